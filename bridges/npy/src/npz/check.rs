//! Checks beyond opening: the CRC-32 of every member, and bytes after arrays.

use std::collections::HashSet;

use flate2::{Crc, Decompress, FlushDecompress, Status};
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::report::{Report, Severity};
use spile_core::source::Source;

use super::ENDING;
use super::to_tree;
use super::wire::Member;
use crate::wire::Header;

/// Size of the buffers for stored and decoded bytes.
const PIECE: usize = 256 << 10;

/// Codes of members that are not supported.
const UNSUPPORTED: [&str; 2] = ["npz-006", "npy-006"];

pub(super) fn check(source: &Source, limits: &Limits) -> Result<Report> {
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
    let mut buffers = Buffers::default();
    for member in &directory.members {
        let object = member.object();
        match sum(source, member, &mut buffers) {
            Ok(crc) if crc == member.crc => {}
            Ok(crc) => {
                let expected = member.crc;
                let message = format!("CRC-32 mismatch: expected {expected:08x}, found {crc:08x}");
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
            && let Ok(location) = member.location(source)
            && let Ok(header) = Header::read(&location, limits)
            && header.end()? < member.size
        {
            let message = format!("{} bytes follow the array", member.size - header.end()?);
            report.warn("npz-022", message).in_object(object).at(location.offset_of(header.end()?));
        }
    }
    Ok(report)
}

/// Buffers reused for all members.
#[derive(Default)]
pub(super) struct Buffers {
    stored: Vec<u8>,
    inflated: Vec<u8>,
}

/// CRC-32 of a member's content. For members that cannot be read, which are reported on opening, the CRC-32 of
/// the directory.
pub(super) fn sum(source: &Source, member: &Member, buffers: &mut Buffers) -> Result<u32> {
    let Ok(location) = member.location(source) else { return Ok(member.crc) };
    let Buffers { stored, inflated } = buffers;
    stored.resize(PIECE, 0);
    inflated.resize(PIECE, 0);
    let mut sum = Crc::new();
    let mut stream = Decompress::new(false);
    let (mut at, end) = (member.data, member.data + member.stored);
    while at < end {
        let piece = &mut stored[..(end - at).min(PIECE as u64) as usize];
        source.read_exact_at(at, piece)?;
        at += piece.len() as u64;
        if location.deflated.is_none() {
            sum.update(piece);
            continue;
        }
        let mut rest = &piece[..];
        loop {
            let (read, written) = (stream.total_in(), stream.total_out());
            let status = stream.decompress(rest, inflated, FlushDecompress::None);
            let status = status.map_err(|_| invalid("invalid deflate stream", at))?;
            let written = (stream.total_out() - written) as usize;
            sum.update(&inflated[..written]);
            rest = &rest[(stream.total_in() - read) as usize..];
            let done = status == Status::StreamEnd;
            if done && (!rest.is_empty() || at < end) {
                return Err(invalid("bytes follow the deflate stream", at));
            }
            if done || (rest.is_empty() && written < inflated.len()) {
                break;
            }
        }
    }
    if location.deflated.is_some() && stream.total_out() != member.size {
        let message =
            format!("expected {} decoded bytes, found {}", member.size, stream.total_out());
        return Err(invalid(&message, member.data));
    }
    Ok(sum.sum())
}

fn invalid(message: &str, at: u64) -> Error {
    Error::malformed("npz-008", message).at(at)
}
