//! `spile stat`.

use spile_ops::json::Real;
use spile_ops::stat::{Histogram, More, Numbers, Row};

use crate::cmd::prelude::*;

/// Print count, minimum, maximum, mean and standard deviation of arrays.
///
/// Values are physical (scaled). NaN and infinities are counted and excluded from the statistics. The
/// standard deviation is the sample standard deviation (n - 1). An array with frames has one row for all
/// frames, or one row per frame with --frames. Text output has six digits, --json full precision.
#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pick: PickArgs,
    /// Draw a histogram; reads the file twice
    #[arg(long)]
    hist: bool,
    /// Number of bins [default: 20]
    #[arg(long, value_name = "N", requires = "hist")]
    bins: Option<usize>,
    /// Add a row for each component of vectors (last dimension of length 2 to 16)
    #[arg(long)]
    components: bool,
}

/// Default number of bins.
const BINS: usize = 20;

/// Width of a histogram if standard output is not a terminal.
const WIDTH: usize = 80;

pub(crate) fn run(args: &StatArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let bins = args.hist.then_some(args.bins.unwrap_or(BINS));
    let more = More { components: args.components, bins };
    context.each_dataset(&args.files, out, |entry, file, out| {
        let pick = args.pick.pick_of(&file)?;
        if context.json {
            let mut document = out.document_of(entry, &file)?;
            document.list("arrays", |add| spile_ops::stat(&file, &pick, more, add))?;
            return document.end();
        }
        let columns = [
            ("count", Align::Right),
            ("min", Align::Right),
            ("max", Align::Right),
            ("mean", Align::Right),
            ("std", Align::Right),
            ("name", Align::Left),
        ];
        let mut table = Table::new(&columns);
        out.heading(entry)?;
        let mut first = true;
        spile_ops::stat(&file, &pick, more, &mut |row| {
            // Each histogram follows its row.
            if args.hist && !std::mem::replace(&mut first, false) {
                writeln!(out)?;
                table = Table::new(&columns);
            }
            table.row(cells(&row, row.numbers.as_ref(), None), out)?;
            for (k, numbers) in row.components.iter().enumerate() {
                table.row(cells(&row, Some(numbers), Some(k)), out)?;
            }
            if args.hist {
                table.print(out)?;
            }
            match &row.histogram {
                Some(histogram) => draw(histogram, out),
                None => Ok(()),
            }
        })?;
        table.print(out)
    })
}

/// Prints a line per bin: lower edge, bar, count.
fn draw(histogram: &Histogram, out: &mut Output) -> Result<()> {
    let edges: Vec<String> = histogram.edges.iter().map(|edge| text::short(edge.0)).collect();
    let counts: Vec<String> = histogram.counts.iter().map(ToString::to_string).collect();
    let longest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
    let (left, right) = (longest(&edges), longest(&counts));
    let available = out.width.unwrap_or(WIDTH).min(WIDTH).saturating_sub(left + right + 6).max(8);
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    writeln!(out)?;
    for ((edge, count), n) in edges.iter().zip(&counts).zip(&histogram.counts) {
        let bar = text::bar(*n as f64 / most as f64, available);
        let gap = available - bar.chars().count();
        let bar = out.paint(style::CALM, &bar);
        writeln!(out, "  {edge:>left$} |{bar}{:gap$} {count:>right$}", "")?;
    }
    writeln!(out, "  {:>left$} |", edges.last().map_or("", String::as_str))?;
    Ok(())
}

fn cells(row: &Row, numbers: Option<&Numbers>, component: Option<usize>) -> [String; 6] {
    let number = |value: Option<Real>| value.map_or("-".to_string(), |v| text::short(v.0));
    let mut name = row.path.clone();
    if let Some(frame) = row.frame {
        name = format!("{name} [{frame}]");
    }
    if let Some(frames) = row.frames {
        name = format!("{name} ({})", text::count(frames, "frame"));
    }
    let mut count = row.count;
    if let (Some(k), Some(last)) = (component, row.shape.last()) {
        name = format!("{name} [..., {k}]");
        count /= last.max(&1);
    }
    let Some(n) = numbers else {
        let [min, max, mean, std] = ["-"; 4].map(String::from);
        return [count.to_string(), min, max, mean, std, format!("{name} ({})", row.dtype)];
    };
    let excluded =
        [(n.nan, "NaN"), (n.positive_infinity, "+Infinity"), (n.negative_infinity, "-Infinity")];
    let excluded: Vec<String> = excluded
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, value)| format!("{count} {value}"))
        .collect();
    if !excluded.is_empty() {
        name = format!("{name} (without {})", excluded.join(", "));
    }
    [count.to_string(), number(n.min), number(n.max), number(n.mean), number(n.std), name]
}
