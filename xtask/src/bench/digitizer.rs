//! `cargo xtask bench digitizer`: oscilloscope files converted and plotted, compared with copying and reading.

use super::harness::{Bench, Implementation, Results, Setup, Task, paths, task};
use super::target::Target;
use super::{Options, build, compile, example, optional};
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

/// A task: the input, the new file, the arguments of spile and the task of C.
macro_rules! row {
    ($name:expr, $times:literal, $from:literal, $new:expr, $args:expr, $c:expr) => {
        task(
            $name,
            $times,
            &[
                (
                    &[SPILE],
                    concat!("run {length of ", $from, "} {folder}/", $new, " {spile} ", $args),
                ),
                (&[C], $c),
            ],
        )
    };
}

macro_rules! conversion {
    ($name:expr, $times:literal, $from:literal, $to:literal, $args:literal) => {
        row!(
            $name,
            $times,
            $from,
            concat!($from, ".", $to),
            $args,
            concat!("copy {", $from, "} {copy}")
        )
    };
}

macro_rules! plot {
    ($name:expr, $from:literal) => {
        row!(
            $name,
            2,
            $from,
            "plot.svg",
            concat!("plot {", $from, "} -o {folder}/plot.svg"),
            concat!("read {", $from, "} {length of ", $from, "} 0 262144")
        )
    };
}

const TASKS: [Task; 9] = [
    conversion!(TRC8_TAF, 2, "trc8", "taf", "taf convert {trc8}"),
    conversion!(TRC16_TAF, 2, "trc16", "taf", "taf convert {trc16}"),
    conversion!(SWAPPED_TAF, 2, "trc16be", "taf", "taf convert {trc16be}"),
    conversion!(BIN_TAF, 2, "bin", "taf", "taf convert {bin}"),
    conversion!(BIN_NPY, 2, "bin", "npy", "convert -q {bin} {folder}/bin.npy"),
    conversion!(TRC16_NPY, 1, "trc16", "npy", "convert -q {trc16} {folder}/trc16.npy"),
    plot!(PLOT_TRC8, "trc8"),
    plot!(PLOT_TRC16, "trc16"),
    plot!(PLOT_TAF, "taf"),
];

const METHOD: &str = "\
Files have 1 GB of samples at scale 1; a plot of int8 reads 10^9 of them.

- **C** is `benches/plain.c`: copies the file with `read()`, `write()` and `fsync()` through a buffer of 256 KiB;
  for plots it reads the file.
- **spile** is the program: `spile taf convert`, `spile convert` and `spile plot -o plot.svg`, from its start to its
  end, including `fsync()`. Rates refer to the input file. The `.npy` file of LeCroy samples contains doubles, four
  times as many bytes as the input.
- New files are removed after each measurement. Implementations alternate in random order, with one warm-up
  per round; values are medians.
";

const BENCH: Bench = Bench {
    name: "digitizer",
    files: 8.5e9,
    tasks: &TASKS,
    columns: &[C, SPILE],
    ratios: &[(SPILE, C)],
    cell: |results, task, name| results.rate(task, name, C),
    note: |_| String::new(),
    targets,
    method: METHOD,
};

fn targets(results: &Results) -> Vec<Target> {
    // Without TRC16_NPY: it writes four times as many bytes as it reads.
    let conversions = [TRC8_TAF, TRC16_TAF, SWAPPED_TAF, BIN_TAF, BIN_NPY].map(|task| (task, 0.8));
    let plots = [PLOT_TRC8, PLOT_TRC16, PLOT_TAF].map(|task| (task, 0.67));
    let all = conversions.into_iter().chain(plots);
    all.map(|(task, factor)| results.faster(task, SPILE, C, factor)).collect()
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let spile = build()?;
        let driver = example("spile-cli", "bench_ops")?;
        let c = optional(C, compile(folder.join("c"), &["benches/plain.c"]));
        let files = [
            ("trc8", "trc8.trc"),
            ("trc16", "trc16.trc"),
            ("trc16be", "trc16be.trc"),
            ("bin", "bin.bin"),
        ];
        let mut values = paths(folder, &files);
        values.extend(paths(folder, &[("folder", ""), ("copy", "copy"), ("taf", "samples.taf")]));
        values.insert("spile", spile.to_string_lossy().into_owned());
        let bytes = ((1e9 * options.scale) as u64).max(8) / 8 * 8;
        let mut runner = Implementation::program(SPILE, &driver, &[]);
        for (kind, _) in files {
            runner.run(&format!("record {kind} {} {bytes}", values[kind]))?;
        }
        // Written here, because conversions remove their results.
        output(program(&spile).args(["convert", "-q", &values["trc8"], &values["taf"]]))?;
        let mut setup = Setup::new(values);
        setup.add(runner);
        setup.add_optional(c.map(|c| Implementation::program(C, &c, &[])));
        Ok(setup)
    })
}
