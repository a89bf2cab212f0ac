//! `spile man`.

use clap::CommandFactory as _;

use crate::args::Cli;
use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page per command to this folder
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    if let Some(folder) = &args.folder {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
        written.map_err(|e| Error::io(folder, e))?;
        if context.json {
            out.object(&[("folder", json!(folder.to_string_lossy()))])?;
        }
        return Ok(Exit::Yes);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    if context.json {
        out.object(&[("page", json!(String::from_utf8_lossy(&page)))])?;
    } else {
        out.write_all(&page)?;
    }
    Ok(Exit::Yes)
}
