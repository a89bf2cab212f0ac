//! The tasks, with every command line, and the targets.

use super::super::harness::{Results, Task, task};
use super::super::target::{Target, duration};

pub(super) const C: &str = "C";
pub(super) const NUMPY: &str = "numpy";
pub(super) const H5PY: &str = "h5py";
pub(super) const ONE: &str = "spile -j 1";
pub(super) const TWO: &str = "spile -j 2";

/// Differences below this, in seconds, are noise.
const NOISE: f64 = 0.002;

const STAT: &str = "statistics, uint8";
const STAT_I16: &str = "statistics, int16";
const ENVELOPE: &str = "envelope, uint8";
const ENVELOPE_I16: &str = "envelope, int16";
const WIDEN: &str = "all as double, uint8";
const WIDEN_I16: &str = "all as double, int16";
pub(super) const CROP: &str = "crop to half, uint8";
const EXPORT: &str = "export as text, int16";
pub(super) const TRANSPOSE: &str = "transpose, float32";
const INFO: &str = "info, large file";
const INFO_SMALL: &str = "info, small file";
const WINDOW: &str = "window, large file";
const WINDOW_SMALL: &str = "window, small file";

/// Tasks with a numeric result, and the placeholder of their number of samples.
pub(super) const ANSWERS: [(&str, &str); 6] = [
    (STAT, "u8-count"),
    (STAT_I16, "i16-count"),
    (ENVELOPE, "u8-count"),
    (ENVELOPE_I16, "i16-count"),
    (WIDEN, "u8-count"),
    (WIDEN_I16, "i16-count"),
];

/// A task with one command for spile on one and on two threads.
macro_rules! row {
    ($name:expr, $spile:literal $(, $implementation:expr => $command:literal)*) => {
        task($name, 1, &[
            (&[ONE], concat!($spile, " -j 1")),
            (&[TWO], concat!($spile, " -j 2")),
            $((&[$implementation], $command)),*
        ])
    };
}

pub(super) const TASKS: [Task; 14] = [
    row!(STAT, "stat {u8}", C => "stat {u8} {offset} {u8-count} u8",
        NUMPY => "stat {u8}", H5PY => "stat {h5}"),
    row!(STAT_I16, "stat {i16}", C => "stat {i16} {offset} {i16-count} i16", NUMPY => "stat {i16}"),
    row!(ENVELOPE, "plot {u8} -o {out}.svg",
        C => "envelope {u8} {offset} {u8-count} u8 {pixels}",
        NUMPY => "envelope {u8} pixels={pixels}", H5PY => "envelope {h5} pixels={pixels}"),
    row!(ENVELOPE_I16, "plot {i16} -o {out}.svg",
        C => "envelope {i16} {offset} {i16-count} i16 {pixels}",
        NUMPY => "envelope {i16} pixels={pixels}"),
    row!("all as stored, uint8", "cat --raw --stored {u8}",
        C => "copy {u8} {offset} {u8-count} /dev/null",
        NUMPY => "load {u8} first=0 count={u8-count}"),
    row!(WIDEN, "cat --raw {u8}",
        C => "widen {u8} {offset} {u8-count} u8 {intercept} {slope}",
        NUMPY => "widen {u8}", H5PY => "widen {h5}"),
    row!(WIDEN_I16, "cat --raw {i16}",
        C => "widen {i16} {offset} {i16-count} i16 {intercept} {slope}", NUMPY => "widen {i16}"),
    row!(CROP, "taf crop {u8} 1 --index 1:{half} -o {out}.taf",
        C => "copy {u8} {offset} {half} {out}.raw", NUMPY => "copy {u8} count={half} out={out}.raw"),
    row!(EXPORT, "taf export {text} -o {out}.txt",
        C => "export {text} {offset} {text-count} i16 {intercept} {slope} 0 1e-9 {out}.txt",
        NUMPY => "export {text} out={out}.txt"),
    row!(TRANSPOSE, "taf transpose {f32} -o {out}.taf --max-memory 256M",
        C => "transpose {f32} {offset} {side} {side} {out}.raw",
        NUMPY => "transpose {f32} out={out}.raw"),
    task(INFO, 4, &[(&[ONE], "info {u8}")]),
    task(INFO_SMALL, 4, &[(&[ONE], "info {small}")]),
    task(
        WINDOW,
        4,
        &[
            (&[ONE], "cat --raw --stored {u8} {half}:{half-end} -j 1"),
            (&[TWO], "cat --raw --stored {u8} {half}:{half-end} -j 2"),
            (&[NUMPY], "load {u8} first={half} count={window}"),
        ],
    ),
    task(
        WINDOW_SMALL,
        4,
        &[
            (&[ONE], "cat --raw --stored {small} 0:{window} -j 1"),
            (&[TWO], "cat --raw --stored {small} 0:{window} -j 2"),
            (&[NUMPY], "load {small} first=0 count={window}"),
        ],
    ),
];

pub(super) fn targets(results: &Results) -> Vec<Target> {
    let independent = |large, small| Target {
        text: format!("{large}: independent of the file size"),
        found: results
            .seconds(large, ONE)
            .zip(results.seconds(small, ONE))
            .map(|(l, s)| (format!("{} and {}", duration(l), duration(s)), l - s < NOISE)),
    };
    let mut all = vec![
        results.faster(STAT, ONE, C, 0.5),
        results.faster(STAT, TWO, C, 1.0),
        results.faster(ENVELOPE, ONE, C, 0.67),
        results.faster(TRANSPOSE, TWO, NUMPY, 1.0),
        results.within(INFO, ONE, 0.005),
        independent(INFO, INFO_SMALL),
        independent(WINDOW, WINDOW_SMALL),
    ];
    all.extend([STAT, ENVELOPE, CROP, EXPORT].map(|task| results.memory(task, TWO, 64)));
    all.push(results.memory(TRANSPOSE, TWO, 256));
    all
}
