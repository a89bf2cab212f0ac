//! What is measured: every command line of the benchmark stands in this file.

/// A task and how each contestant does it. Words in braces are filled in by [`super::sample`];
/// an empty line means that the contestant has no such thing.
pub(super) struct Task {
    pub(super) name: &'static str,
    /// Arguments of the program `spile`.
    pub(super) spile: &'static str,
    /// Arguments of `benches/taf/limit.c`.
    pub(super) limit: &'static str,
    /// Arguments of `benches/taf/peers.py`, with NumPy.
    pub(super) numpy: &'static str,
    /// The same with h5py.
    pub(super) h5py: &'static str,
    /// So short that a round has several of it.
    pub(super) quick: bool,
}

pub(super) const STAT: &str = "statistics, uint8";
pub(super) const ENVELOPE: &str = "envelope, uint8";
pub(super) const STAT_I16: &str = "statistics, int16";
pub(super) const ENVELOPE_I16: &str = "envelope, int16";
pub(super) const CROP: &str = "crop to half, uint8";
pub(super) const EXPORT: &str = "export as text, int16";
pub(super) const TRANSPOSE: &str = "transpose, float32";
pub(super) const INFO: &str = "info, large file";
pub(super) const INFO_SMALL: &str = "info, small file";
pub(super) const WINDOW: &str = "window, large file";
pub(super) const WINDOW_SMALL: &str = "window, small file";

const NONE: Task = Task { name: "", spile: "", limit: "", numpy: "", h5py: "", quick: false };

pub(super) const TASKS: [Task; 14] = [
    Task {
        name: STAT,
        spile: "stat {u8} -j {j}",
        limit: "stat {u8} {offset} {u8-count} u8",
        numpy: "numpy stat {u8}",
        h5py: "h5py stat {h5}",
        ..NONE
    },
    Task {
        name: STAT_I16,
        spile: "stat {i16} -j {j}",
        limit: "stat {i16} {offset} {i16-count} i16",
        numpy: "numpy stat {i16}",
        ..NONE
    },
    Task {
        name: ENVELOPE,
        spile: "plot {u8} -o {out}.svg -j {j}",
        limit: "envelope {u8} {offset} {u8-count} u8 {pixels}",
        numpy: "numpy envelope {u8} pixels={pixels}",
        h5py: "h5py envelope {h5} pixels={pixels}",
        ..NONE
    },
    Task {
        name: ENVELOPE_I16,
        spile: "plot {i16} -o {out}.svg -j {j}",
        limit: "envelope {i16} {offset} {i16-count} i16 {pixels}",
        numpy: "numpy envelope {i16} pixels={pixels}",
        ..NONE
    },
    Task {
        name: "all as stored, uint8",
        spile: "cat --raw --stored {u8} -j {j}",
        limit: "copy {u8} {offset} {u8-count} /dev/null",
        numpy: "numpy load {u8} first=0 count={u8-count}",
        ..NONE
    },
    Task {
        name: "all as double, uint8",
        spile: "cat --raw {u8} -j {j}",
        limit: "widen {u8} {offset} {u8-count} u8 {intercept} {slope}",
        numpy: "numpy widen {u8}",
        h5py: "h5py widen {h5}",
        ..NONE
    },
    Task {
        name: "all as double, int16",
        spile: "cat --raw {i16} -j {j}",
        limit: "widen {i16} {offset} {i16-count} i16 {intercept} {slope}",
        numpy: "numpy widen {i16}",
        ..NONE
    },
    Task {
        name: CROP,
        spile: "taf crop {u8} 1 --index 1:{half} -o {out}.taf -j {j}",
        limit: "copy {u8} {offset} {half} {out}.raw",
        numpy: "numpy copy {u8} count={half} out={out}.raw",
        ..NONE
    },
    Task {
        name: EXPORT,
        spile: "taf export {text} -o {out}.txt -j {j}",
        limit: "export {text} {offset} {text-count} i16 {intercept} {slope} 0 1e-9 {out}.txt",
        numpy: "numpy export {text} out={out}.txt",
        ..NONE
    },
    Task {
        name: TRANSPOSE,
        spile: "taf transpose {f32} -o {out}.taf --max-memory 256M -j {j}",
        limit: "transpose {f32} {offset} {side} {side} {out}.raw",
        numpy: "numpy transpose {f32} out={out}.raw",
        ..NONE
    },
    Task { name: INFO, spile: "info {u8}", quick: true, ..NONE },
    Task { name: INFO_SMALL, spile: "info {small}", quick: true, ..NONE },
    Task {
        name: WINDOW,
        spile: "cat --raw --stored {u8} {half}:{half-end} -j {j}",
        numpy: "numpy load {u8} first={half} count={window}",
        quick: true,
        ..NONE
    },
    Task {
        name: WINDOW_SMALL,
        spile: "cat --raw --stored {small} 0:{window} -j {j}",
        numpy: "numpy load {small} first=0 count={window}",
        quick: true,
        ..NONE
    },
];
