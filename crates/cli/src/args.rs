//! Definition of the command line, from which help, man pages and completions are generated.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use spile::error::{Error, Result};
use spile::sink::Overwrite;
use spile::{Dataset, Format};
use spile_ops::Pick;

use crate::{cmd, raw_samples};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

const AFTER_HELP: &str = "\
Exit status:
  0    success; also if the reader of a pipe closes it
  1    `check` found errors, `diff` found differences
  2    error: invalid argument, unreadable file
  3    partial success: some files failed, or `salvage`, `index` or `iotk convert`
       left something out; `convert` lists losses as warnings, see --strict
  130  interrupted

JSON: docs/json.md describes the output of --json.
Colour: used on a terminal unless NO_COLOR is set; see --color.";

/// Open, convert, compare and repair simulation and instrument files.
#[derive(Parser)]
#[command(
    name = "spile",
    bin_name = "spile",
    version,
    about = "Open, convert, compare and repair simulation and instrument files",
    long_about = None,
    after_help = AFTER_HELP,
    override_usage = "spile [OPTIONS] FILE...\n       spile [OPTIONS] COMMAND ...",
    arg_required_else_help = true,
    allow_external_subcommands = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    styles = STYLES
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args)]
#[command(next_help_heading = "Options of every command")]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(crate) struct Global {
    /// Print JSON, one document per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print details
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Use colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) color: When,
    /// Add the arrays that the format derives from others
    #[arg(long, global = true)]
    pub(crate) derived: bool,
    /// Format of the input [default: recognised by content]; raw is followed by --type i16 [--rate HZ]
    /// [--header BYTES] [--channels N] [--big-endian]
    #[arg(long, global = true, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) from: Option<&'static dyn Format>,
    /// Number of threads [default: all cores]
    #[arg(short, long, global = true, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Memory limit, for example 64M or 1GiB [default: 512M]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_memory: Option<u64>,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// Selection of objects and frames.
#[derive(Debug, Args)]
pub(crate) struct PickArgs {
    /// Select objects by path or native id; a group selects its content: 'Electric*/E?', '**/Ex', ex
    #[arg(long, value_name = "GLOB")]
    select: Vec<String>,
    /// Select frames as a slice: 5, -1, 0:100, 0:100:10
    #[arg(long, value_name = "A:B:C", allow_hyphen_values = true)]
    frames: Option<String>,
}

impl PickArgs {
    /// The selected part of a dataset. Fails if frames are selected and it has none.
    pub(crate) fn pick_of(&self, dataset: &Dataset) -> Result<Pick> {
        let tree = dataset.tree();
        if self.frames.is_some()
            && tree.frames().is_none()
            && !tree.arrays().any(|(_, _, desc)| desc.layout.frames().is_some())
        {
            return Err(Error::argument("--frames: the file has no frames"));
        }
        self.pick()
    }

    pub(crate) fn pick(&self) -> Result<Pick> {
        let pick = Pick::new(&self.select)?;
        match &self.frames {
            Some(frames) => pick.with_frames(frames),
            None => Ok(pick),
        }
    }
}

/// The output of a command like `cp`: the second positional argument or -o.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Output path
    #[arg(value_name = "OUTPUT", required_unless_present = "output_option")]
    output: Option<PathBuf>,
    /// Output path, instead of the second argument
    #[arg(short = 'o', long = "output", value_name = "OUTPUT", conflicts_with = "output")]
    output_option: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
}

impl OutputArgs {
    pub(crate) fn path(&self) -> &Path {
        self.output.as_deref().or(self.output_option.as_deref()).unwrap_or(Path::new(""))
    }

    /// The path, which cannot be standard output.
    pub(crate) fn file(&self) -> Result<&Path> {
        not_standard_output(self.path())
    }

    pub(crate) fn overwrite(&self) -> Overwrite {
        overwrite(self.overwrite)
    }
}

/// The output file of a command that has no second positional argument.
#[derive(Debug, Args)]
pub(crate) struct NewFileArgs {
    /// Output path
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
}

impl NewFileArgs {
    /// The path, which cannot be standard output.
    pub(crate) fn file(&self) -> Result<&Path> {
        not_standard_output(&self.output)
    }

    pub(crate) fn overwrite(&self) -> Overwrite {
        overwrite(self.overwrite)
    }
}

/// Rejects `-` as output: writes are atomic and not sequential, so they need a path.
pub(crate) fn not_standard_output(path: &Path) -> Result<&Path> {
    if path == Path::new("-") {
        let message = "the output cannot be written to standard output; specify a path";
        return Err(Error::argument(message));
    }
    Ok(path)
}

/// The value of the option `--overwrite`.
pub(crate) fn overwrite(allowed: bool) -> Overwrite {
    if allowed { Overwrite::Replace } else { Overwrite::Never }
}

// The help text of a variant without a comment is at its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Summarise files; `spile FILE` also lists the arrays
    Info(cmd::info::InfoArgs),
    /// List the groups and arrays of a file
    Ls(cmd::ls::LsArgs),
    Cat(cmd::cat::CatArgs),
    Stat(cmd::stat::StatArgs),
    /// Show the byte ranges of a file and their meaning
    Map(cmd::map::MapArgs),
    Check(cmd::check::CheckArgs),
    Convert(cmd::convert::ConvertArgs),
    Merge(cmd::merge::MergeArgs),
    Index(cmd::index::IndexArgs),
    Diff(cmd::diff::DiffArgs),
    Hash(cmd::hash::HashArgs),
    Plot(cmd::plot::PlotArgs),
    Records(cmd::records::RecordsArgs),
    Spectrum(cmd::spectrum::SpectrumArgs),
    Spectrogram(cmd::spectrum::SpectrogramArgs),
    Salvage(cmd::salvage::SalvageArgs),
    Watch(cmd::watch::WatchArgs),
    #[command(subcommand)]
    Sdf(cmd::sdf::Operation),
    #[command(subcommand)]
    Iotk(cmd::iotk::Operation),
    #[command(subcommand)]
    Taf(cmd::taf::Operation),
    #[command(subcommand)]
    Scda(cmd::scda::Operation),
    #[command(subcommand)]
    Gsd(cmd::gsd::Operation),
    /// Demonstrate spile on sample files
    Tour(cmd::tour::TourArgs),
    /// List the supported formats
    Formats(cmd::formats::FormatsArgs),
    /// Print the completion script of a shell
    Completions(cmd::completions::CompletionsArgs),
    /// Print the manual page, or write all pages to a folder
    Man(cmd::man::ManArgs),
    /// The file of `spile FILE`
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// Parses the name of a format.
fn parse_format(name: &str) -> std::result::Result<&'static dyn Format, String> {
    if let Some(list) = name.strip_prefix("raw:") {
        // Formats live as long as the process, which has one such option.
        return Ok(Box::leak(Box::new(raw_samples::parse(list)?)));
    }
    spile::REGISTRY.named(name).map_err(|e| {
        let names: Vec<_> = spile::REGISTRY.0.iter().map(|f| f.info().name).collect();
        format!("{}; known formats: {}", e.message(), names.join(", "))
    })
}

/// Parses a size in bytes: `64M`, `1GiB`, `1.5g`, `4096`. Units are powers of 1024.
fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.to_ascii_lowercase();
    let letter = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let power = ["", "k", "m", "g", "t"].iter().position(|l| *l == letter);
    let number = number.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    match (number, power) {
        (Some(n), Some(power)) => Ok((n * 1024_f64.powi(power as i32)) as u64),
        _ => Err("expected a number with K, M, G or T, for example 64M or 1GiB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("1.5 kb"), Ok(1536));
        for bad in ["", "M", "-1M", "1X", "nan", "1e400", "12MM", "0"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
