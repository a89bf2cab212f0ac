//! What an archive can have wrong though it opens: every byte is read and summed up.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use spile_core::error::{Error, Result};
use spile_core::format::Reader as _;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use super::ENDING;
use super::read::File;
use super::zip::Member;
use crate::wire::Header;

/// Bytes read, and bytes inflated, at once.
const PIECE: usize = 256 << 10;

pub(super) fn check(source: &Source, limits: &Limits) -> Result<Report> {
    let mut report = Report::default();
    let file = match File::open(source.clone(), limits) {
        Ok(file) => file,
        Err(error) => {
            report.absorb(error)?;
            return Ok(report);
        }
    };
    report.findings.extend_from_slice(file.findings());
    let mut buffers = Buffers::default();
    for member in &file.directory.members {
        let object = format!("\"{}\"", member.name);
        match sum(source, member, &mut buffers) {
            Ok(crc) if crc == member.crc => {}
            Ok(crc) => {
                let said = member.crc;
                let message =
                    format!("its bytes have the sum {crc:08x}, the archive says {said:08x}");
                report.error("npz-021", message).in_object(object).at(member.data);
                continue;
            }
            Err(e) => {
                report.absorb(e.in_object(object))?;
                continue;
            }
        }
        if member.name.ends_with(ENDING)
            && let Ok(place) = member.place(source)
            && let Ok(header) = Header::read(&place, limits)
            && header.end()? < member.size
        {
            let message = format!("{} bytes follow the array", member.size - header.end()?);
            report.warn("npz-022", message).in_object(object).at(place.byte(header.end()?));
        }
    }
    Ok(report)
}

/// What is used again from member to member.
#[derive(Default)]
pub(super) struct Buffers {
    stored: Vec<u8>,
    inflated: Vec<u8>,
}

/// The sum of a member's content. Members that are not read have been told of; their sum is right.
pub(super) fn sum(source: &Source, member: &Member, buffers: &mut Buffers) -> Result<u32> {
    let Ok(place) = member.place(source) else { return Ok(member.crc) };
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
        if place.deflated.is_none() {
            sum.update(piece);
            continue;
        }
        let mut rest = &piece[..];
        loop {
            let (read, written) = (stream.total_in(), stream.total_out());
            let status = stream.decompress(rest, inflated, FlushDecompress::None);
            let status = status.map_err(|_| damaged("the deflate stream is damaged", at))?;
            let written = (stream.total_out() - written) as usize;
            sum.update(&inflated[..written]);
            rest = &rest[(stream.total_in() - read) as usize..];
            let over = status == Status::StreamEnd;
            if over && (!rest.is_empty() || at < end) {
                return Err(damaged("bytes follow the deflate stream", at));
            }
            if over || (rest.is_empty() && written < inflated.len()) {
                break;
            }
        }
    }
    if place.deflated.is_some() && stream.total_out() != member.size {
        let message = format!("it inflates to {} bytes, not {}", stream.total_out(), member.size);
        return Err(damaged(&message, member.data));
    }
    Ok(sum.sum())
}

fn damaged(message: &str, at: u64) -> Error {
    Error::malformed("npz-008", message).at(at)
}
