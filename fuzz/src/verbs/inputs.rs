//! Inputs of verbs: a file, and control bytes at its end.

use spile::format::OpenOptions;
use spile::{Dataset, Format, REGISTRY, Result, Source};

use crate::drive::{LIMITS, use_one_thread};

/// Bytes at the end of an input that select formats and variants.
const CONTROL: usize = 4;

/// The bytes of the file, and the control bytes.
pub(super) fn split(data: &[u8]) -> (&[u8], [u8; CONTROL]) {
    use_one_thread();
    let (file, end) = data.split_at(data.len().saturating_sub(CONTROL));
    let mut control = [0; CONTROL];
    control[..end.len()].copy_from_slice(end);
    (file, control)
}

/// The file in whatever format it is.
pub(super) fn open(file: &[u8]) -> Result<Dataset> {
    REGISTRY.open(Source::memory(file), &OpenOptions::with_limits(LIMITS))
}

/// A copy of the file with one byte changed.
pub(super) fn changed(file: &[u8], control: [u8; CONTROL]) -> Vec<u8> {
    let mut copy = file.to_vec();
    let at = usize::from(u16::from_le_bytes([control[0], control[1]]));
    if let Some(byte) = copy.get_mut(at) {
        *byte ^= control[2];
    }
    copy
}

/// A format that can be written.
pub(super) fn target(number: u8) -> &'static dyn Format {
    let all: Vec<_> = REGISTRY.0.iter().filter(|f| f.abilities().writer.is_some()).collect();
    *all[usize::from(number) % all.len()]
}

/// The name of a new file of `format`.
pub(super) fn name(format: &dyn Format) -> String {
    let extension = format.info().extensions.first().copied().unwrap_or("out");
    format!("new.{extension}")
}

/// A new folder, in memory where the system has a file system for that. It is removed when it is dropped.
pub(super) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    folder.expect("a temporary folder")
}
