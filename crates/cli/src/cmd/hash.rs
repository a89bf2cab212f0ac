//! `spile hash`.

use crate::cmd::prelude::*;

/// Print checksums of the content of files.
///
/// The digest of a file is independent of byte order, element order and compression. -v and --json add the
/// SHA-256 of every array: stored values, without scaling, as little-endian bytes in the element order of the
/// file. With --select or --frames only the checksums of arrays are printed.
#[derive(Debug, Args)]
pub(crate) struct HashArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print checksums of native objects: sections, blocks, chunks, records
    #[arg(long, conflicts_with_all = ["select", "frames"])]
    native: bool,
    #[command(flatten)]
    pick: PickArgs,
}

pub(crate) fn run(args: &HashArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let file = context.open(entry.path)?;
        let pick = args.pick.pick_of(&file)?;
        let all = !args.native && pick.is_all();
        let digest = if all { Some(spile_ops::content(&file)?) } else { None };
        if context.json {
            let mut document = out.document_of(entry, &file)?;
            document.some("digest", digest.as_ref())?;
            if args.native {
                document.list("objects", |add| spile_ops::hash::native(&file, add))?;
            } else {
                document.list("arrays", |add| spile_ops::hash(&file, &pick, add))?;
            }
            return document.end();
        }
        match digest {
            Some(digest) => line(&digest, &entry.name(), None, out)?,
            None => out.heading(entry)?,
        }
        if args.native {
            spile_ops::hash::native(&file, &mut |row| line(&row.sha256, &row.path, row.frame, out))
        } else if context.verbose || !pick.is_all() {
            spile_ops::hash(&file, &pick, &mut |row| line(&row.sha256, &row.path, row.frame, out))
        } else {
            Ok(())
        }
    })
}

/// Prints a line in the format of `sha256sum`.
fn line(sum: &str, name: &str, frame: Option<u64>, out: &mut Output) -> Result<()> {
    write!(out, "{sum}  {}", text::one_line(name))?;
    if let Some(frame) = frame {
        write!(out, " [{frame}]")?;
    }
    writeln!(out)?;
    Ok(())
}
