//! `cargo xtask bench digitizer`: files of oscilloscopes converted and drawn, next to plain copying and
//! reading.

use super::report::Promise;
use super::rounds::{Arena, Bench, Contestant, Results, Task, Words};
use super::{Options, build, compile, example, or_say};
use crate::Result;
use crate::shell::{output, program};

const C: &str = "C";
const SPILE: &str = "spile";

const TRC8_TAF: &str = "LeCroy int8 to TAF";
const TRC16_TAF: &str = "LeCroy int16 to TAF";
const SWAPPED_TAF: &str = "LeCroy int16 big-endian to TAF";
const BIN_TAF: &str = "Keysight float32 to TAF";
const BIN_NPY: &str = "Keysight float32 to npy";
const TRC16_NPY: &str = "LeCroy int16 to npy (float64)";
const PLOT_TRC8: &str = "plot of LeCroy int8";
const PLOT_TRC16: &str = "plot of LeCroy int16";
const PLOT_TAF: &str = "plot of TAF int8";

const CONVERSIONS: [&str; 6] = [TRC8_TAF, TRC16_TAF, SWAPPED_TAF, BIN_TAF, BIN_NPY, TRC16_NPY];
const PLOTS: [&str; 3] = [PLOT_TRC8, PLOT_TRC16, PLOT_TAF];

macro_rules! conversion {
    ($name:expr, $from:literal, $verb:literal, $to:literal, $times:literal) => {
        Task {
            name: $name,
            lines: &[
                (
                    &[SPILE],
                    concat!(
                        "run {length of ",
                        $from,
                        "} {folder}/",
                        $from,
                        ".",
                        $to,
                        " {spile} ",
                        $verb
                    ),
                ),
                (&[C], concat!("copy {", $from, "} {copy}")),
            ],
            times: $times,
            warm: true,
        }
    };
}

macro_rules! plot {
    ($name:expr, $from:literal) => {
        Task {
            name: $name,
            lines: &[
                (
                    &[SPILE],
                    concat!(
                        "run {length of ",
                        $from,
                        "} {folder}/plot.svg {spile} plot {",
                        $from,
                        "} -o {folder}/plot.svg"
                    ),
                ),
                (&[C], concat!("read {", $from, "} {length of ", $from, "} 0 262144")),
            ],
            times: 2,
            warm: true,
        }
    };
}

const TASKS: [Task; 9] = [
    conversion!(TRC8_TAF, "trc8", "taf convert {trc8}", "taf", 2),
    conversion!(TRC16_TAF, "trc16", "taf convert {trc16}", "taf", 2),
    conversion!(SWAPPED_TAF, "trc16be", "taf convert {trc16be}", "taf", 2),
    conversion!(BIN_TAF, "bin", "taf convert {bin}", "taf", 2),
    conversion!(BIN_NPY, "bin", "convert -q {bin} {folder}/bin.npy", "npy", 2),
    conversion!(TRC16_NPY, "trc16", "convert -q {trc16} {folder}/trc16.npy", "npy", 1),
    plot!(PLOT_TRC8, "trc8"),
    plot!(PLOT_TRC16, "trc16"),
    plot!(PLOT_TAF, "taf"),
];

const HOW: &str = "\
Files have 1 GB of samples at scale 1; a plot of int8 goes through 10^9 of them.

- **C** is `benches/plain.c`: the file copied with `read()` and `write()` through 256 KiB, and synced; for plots
  it is read, 256 KiB at a time.
- **spile** is the program as it is: `spile taf convert`, `spile convert` and `spile plot -o plot.svg`, from its
  start to its end, the new file synced. Speeds are those of the file that is read; an `.npy` file of LeCroy
  samples has doubles, four times as many bytes, and is compared with copying the file all the same.
- A new file is removed when the clock has stopped, whoever made it, and files of both are in the same
  folder. The contestants take turns in an order that changes, the first of each round once more before it counts, and
  the median counts.
";

const BENCH: Bench = Bench {
    name: "digitizer",
    files: 8.5e9,
    tasks: &TASKS,
    columns: &[C, SPILE],
    ratios: &[(SPILE, C)],
    cell,
    remark: |_| String::new(),
    promises,
    how: HOW,
};

/// Gigabytes in a second, of the file that is read.
fn cell(results: &Results, task: &'static str, who: &'static str) -> String {
    let found = results.seconds(task, who).zip(results.bytes(task, C));
    found.map_or("-".into(), |(seconds, bytes)| format!("{:.2} GB/s", bytes as f64 / seconds / 1e9))
}

fn promises(results: &Results) -> Vec<Promise> {
    let conversion = |task: &'static str| {
        let text = format!("{task}: 0.8 times as fast as copying or faster");
        results.faster(text, task, SPILE, C, 0.8)
    };
    let plot = |task: &'static str| {
        let text = format!("{task}: within 1.5 times the time of reading it once");
        results.faster(text, task, SPILE, C, 1.0 / 1.5)
    };
    // Four bytes are written for each that is read there; no copy of the file is a peer.
    let conversions = CONVERSIONS.into_iter().filter(|task| *task != TRC16_NPY).map(conversion);
    conversions.chain(PLOTS.into_iter().map(plot)).collect()
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let spile = build()?;
        let driver = example("spile-cli", "bench_ops")?;
        let c = or_say("C", compile(folder.join("peer-in-c"), &["benches/plain.c"]));
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut words = Words::from([
            ("spile", spile.to_string_lossy().into_owned()),
            ("folder", folder.to_string_lossy().into_owned()),
            ("copy", path("copy")),
            ("taf", path("samples.taf")),
        ]);
        let files = [("trc8", "trc"), ("trc16", "trc"), ("trc16be", "trc"), ("bin", "bin")];
        let bytes = ((1e9 * options.scale) as u64).max(8) / 8 * 8;
        let mut maker = Contestant::new(SPILE, {
            let driver = driver.clone();
            move || program(&driver)
        });
        for (kind, ending) in files {
            let file = path(&format!("{kind}.{ending}"));
            maker.ask(&format!("record {kind} {file} {bytes}"))?;
            words.insert(kind, file);
        }
        // The file of a plot has to stay.
        output(program(&spile).args(["convert", "-q", &words["trc8"], &words["taf"]]))?;
        let incomplete = c.is_none();
        let programs = [(SPILE, Some(driver)), (C, c)];
        let contestants = programs
            .into_iter()
            .filter_map(|(name, path)| {
                path.map(|path| Contestant::new(name, move || program(&path)))
            })
            .collect();
        Ok(Arena { contestants, words, incomplete, versions: String::new() })
    })
}
