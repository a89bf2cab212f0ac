//! Embedded source code (section 5.6): a gzipped tar archive, uuencoded by older programs. The
//! content is untrusted: paths outside the target folder and links are skipped.

use std::path::{Component, Path, PathBuf};

use libdeflater::Decompressor;
use spile_core::{Error, Limits, Result};

/// Length of a record of a tar archive, in bytes.
const RECORD: usize = 512;

/// Content of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    /// Relative path without `..` and content of each file.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Skipped entries, each with the reason.
    pub refused: Vec<String>,
}

/// Unpacks `bytes`: a tar archive, compressed, uuencoded or both, or else a single file with the
/// path `name`. Fails if the archive is damaged (sdf-017) or exceeds `limits`.
pub fn unpack(bytes: &[u8], name: &str, limits: &Limits) -> Result<Archive> {
    let mut bytes = match uudecode(bytes) {
        Some(decoded) => decoded,
        None => bytes.to_vec(),
    };
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bytes = gunzip(&bytes, limits)?;
    }
    if is_tar(&bytes) {
        return tar(&bytes);
    }
    let mut archive = Archive::default();
    match safe(name) {
        Some(path) => archive.files.push((path, bytes)),
        None => archive.files.push(("source".into(), bytes)),
    }
    Ok(archive)
}

/// Decodes uuencoded text; `None` if `text` is not uuencoded.
fn uudecode(text: &[u8]) -> Option<Vec<u8>> {
    let mut lines = text.split(|b| *b == b'\n');
    if !lines.next()?.starts_with(b"begin ") {
        return None;
    }
    let mut out = Vec::new();
    for line in lines {
        let line = line.trim_ascii_end();
        if line == b"end" {
            return Some(out);
        }
        let Some((length, body)) = line.split_first() else { continue };
        let value = |b: &u8| b.wrapping_sub(b' ') & 63;
        let length = usize::from(value(length));
        let start = out.len();
        // Trailing spaces of the line, which are zeros, may be missing.
        let mut body = body.to_vec();
        body.resize(body.len().max(length.div_ceil(3) * 4), b' ');
        for group in body.chunks_exact(4) {
            let bits = group.iter().fold(0_u32, |bits, b| bits << 6 | u32::from(value(b)));
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
        }
        out.truncate(start + length);
    }
    None
}

fn gunzip(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>> {
    // The last four bytes are the decompressed length modulo 4 GiB.
    let tail = bytes.last_chunk::<4>().map_or(0, |raw| u32::from_le_bytes(*raw));
    let mut out = vec![0; limits.allow(u64::from(tail), "the source code")?];
    let length = Decompressor::new()
        .gzip_decompress(bytes, &mut out)
        .map_err(|e| damaged("gzip", &e.to_string()))?;
    out.truncate(length);
    Ok(out)
}

fn damaged(archive: &str, what: &str) -> Error {
    Error::malformed("sdf-017", format!("damaged {archive} archive: {what}"))
}

fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

fn tar(bytes: &[u8]) -> Result<Archive> {
    let mut archive = Archive::default();
    let mut at = 0;
    // Long name from an extra record, for the next file.
    let mut long_name: Option<String> = None;
    while let Some(head) = bytes.get(at..at + RECORD) {
        if head.iter().all(|b| *b == 0) {
            break;
        }
        let damaged = |what: &str| damaged("tar", what);
        let size = octal(&head[124..136]).ok_or_else(|| damaged("invalid file length"))?;
        let start = at + RECORD;
        let end = start.checked_add(size).filter(|end| *end <= bytes.len());
        let data = &bytes[start..end.ok_or_else(|| damaged("unexpected end of archive"))?];
        at = start + size.next_multiple_of(RECORD);
        let name = long_name.take().unwrap_or_else(|| {
            let (prefix, name) = (field(&head[345..500]), field(&head[..100]));
            if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
        });
        match head[156] {
            b'0' | 0 => match safe(&name) {
                Some(path) => archive.files.push((path, data.to_vec())),
                None => archive.refused.push(format!("{name:?}: path outside the target folder")),
            },
            // Long name, GNU and POSIX.
            b'L' => long_name = Some(field(data)),
            b'x' => long_name = pax_path(data),
            b'5' | b'g' => {}
            _ => archive.refused.push(format!("{name:?}: neither a file nor a folder")),
        }
    }
    Ok(archive)
}

fn field(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(bytes: &[u8]) -> Option<usize> {
    usize::from_str_radix(field(bytes).trim(), 8).ok()
}

/// `path` of a POSIX extended header: lines of `length key=value`.
fn pax_path(data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(data);
    let found = text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path="));
    found.map(ToString::to_string)
}

/// `name` as a relative path without `..`; `None` for any other path.
fn safe(name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let plain = !name.contains(['\0', '\\']) && path.file_name().is_some();
    plain.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive with one entry.
    fn entry(name: &str, kind: u8, data: &[u8]) -> Vec<u8> {
        let mut head = vec![0; RECORD];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", data.len()).as_bytes());
        head[156] = kind;
        head[257..262].copy_from_slice(b"ustar");
        head.extend_from_slice(data);
        head.resize(RECORD + data.len().next_multiple_of(RECORD), 0);
        head
    }

    #[test]
    fn paths_outside_the_target_folder_are_refused() {
        let mut all = Vec::new();
        for name in ["../evil", "/etc/passwd", "a/../../b", "..", "a\\b"] {
            all.extend(entry(name, b'0', b"x"));
        }
        all.extend(entry("link", b'2', b""));
        all.extend(entry("./src/main.F90", b'0', b"program"));
        let archive = unpack(&all, "x", &Limits::default()).unwrap();
        assert_eq!(archive.refused.len(), 6, "{archive:?}");
        assert_eq!(archive.files, [("src/main.F90".into(), b"program".to_vec())]);
    }

    #[test]
    fn uuencoded_bytes_are_decoded() {
        let text = b"begin 644 cat.txt\n#0V%T\n`\nend\n";
        let archive = unpack(text, "deck/one", &Limits::default()).unwrap();
        assert_eq!(archive.files, [("deck/one".into(), b"Cat".to_vec())]);
        // Zeros at the end of a line are spaces, which an editor or a writer may remove.
        let text = b"begin 644 zeros\n+    0V%T\nend\n".to_vec();
        let stripped = b"begin 644 zeros\n)0V%T\n!\nend\n";
        let decoded =
            |text: &[u8]| unpack(text, "a", &Limits::default()).unwrap().files[0].1.clone();
        assert_eq!(decoded(&text), b"\0\0\0Cat\0\0\0\0\0");
        assert_eq!(decoded(stripped), b"Cat\0\0\0\0\0\0\0");
        // Text that starts with "begin" only is not decoded.
        let text = b"begin:control\nend:control\n";
        assert_eq!(unpack(text, "a", &Limits::default()).unwrap().files[0].1, text);
    }

    #[test]
    fn a_truncated_archive_is_an_error() {
        let all = entry("a", b'0', &[1; 600]);
        for end in [RECORD + 1, RECORD + 599] {
            assert_eq!(tar(&all[..end]).unwrap_err().code(), "sdf-017");
        }
        let mut packed = vec![0x1f, 0x8b, 8, 0];
        packed.extend(u32::MAX.to_le_bytes());
        let small = Limits::default().with_memory(1 << 20);
        assert!(unpack(&packed, "a", &small).is_err());
    }
}
