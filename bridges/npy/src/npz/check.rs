//! Checks beyond opening: the CRC-32 of every member, and bytes after arrays.

use std::collections::HashSet;
use std::io::{self, Write as _};

use flate2::write::DeflateDecoder;
use flate2::{Crc, CrcWriter};
use spile_core::error::{Error, Result};
use spile_core::format::Checker;
use spile_core::limits::Limits;
use spile_core::report::{Report, Severity};
use spile_core::source::Source;

use super::wire::Member;
use super::{ENDING, to_tree};
use crate::Npz;
use crate::wire::Header;

/// Size of the buffer for stored bytes.
const PIECE: usize = 256 << 10;

/// Codes of members that are not supported.
const UNSUPPORTED: [&str; 2] = ["npz-006", "npy-006"];

impl Checker for Npz {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let (directory, _, mut report) = match to_tree::read(source, limits) {
            Ok(read) => read,
            Err(error) => {
                let mut report = Report::default();
                report.absorb(error)?;
                return Ok(report);
            }
        };
        // Members that are not supported may be valid.
        for finding in report.findings.iter_mut().filter(|f| UNSUPPORTED.contains(&f.code)) {
            finding.severity = Severity::Warning;
        }
        // Members reported on opening.
        let reported: HashSet<Option<String>> =
            report.findings.iter().map(|finding| finding.object.clone()).collect();
        let mut buffer = Vec::new();
        for member in &directory.members {
            let object = member.object();
            match sum(source, member, &mut buffer) {
                Ok(crc) if crc == member.crc => {}
                Ok(crc) => {
                    let expected = member.crc;
                    let message =
                        format!("CRC-32 mismatch: expected {expected:08x}, found {crc:08x}");
                    report.error("npz-021", message).in_object(object).at(member.data);
                    continue;
                }
                Err(e) => {
                    if !reported.contains(&Some(object.clone())) {
                        report.absorb(e.in_object(object))?;
                    }
                    continue;
                }
            }
            if member.name.ends_with(ENDING)
                && let Ok(stream) = member.content(source)
                && let Ok(header) = Header::read(&stream, limits)
                && header.end()? < member.size
            {
                let message = format!("{} bytes follow the array", member.size - header.end()?);
                report
                    .warn("npz-022", message)
                    .in_object(object)
                    .at(stream.offset_of(header.end()?));
            }
        }
        Ok(report)
    }
}

/// CRC-32 of a member's content. For members that cannot be read, which are reported on opening, the CRC-32 of
/// the directory. `buffer` is reused for all members.
pub(super) fn sum(source: &Source, member: &Member, buffer: &mut Vec<u8>) -> Result<u32> {
    let Ok(content) = member.content(source) else { return Ok(member.crc) };
    buffer.resize(PIECE, 0);
    let mut sum = Crc::new();
    let mut inflate = DeflateDecoder::new(CrcWriter::new(io::sink()));
    let (mut at, end) = (member.data, member.data + member.stored);
    while at < end {
        let piece = &mut buffer[..(end - at).min(PIECE as u64) as usize];
        source.read_exact_at(at, piece)?;
        at += piece.len() as u64;
        if content.deflated.is_none() {
            sum.update(piece);
            continue;
        }
        inflate.write_all(piece).map_err(|e| match e.kind() {
            io::ErrorKind::WriteZero => invalid("bytes follow the deflate stream", at),
            _ => invalid("invalid deflate stream", at),
        })?;
    }
    if content.deflated.is_none() {
        return Ok(sum.sum());
    }
    inflate.try_finish().map_err(|_| invalid("invalid deflate stream", at))?;
    let size = inflate.total_out();
    if size != member.size {
        let message = format!("expected {} decoded bytes, found {size}", member.size);
        return Err(invalid(&message, member.data));
    }
    Ok(inflate.get_ref().crc().sum())
}

fn invalid(message: &str, at: u64) -> Error {
    Error::malformed("npz-008", message).at(at)
}
