//! Recovery of archives without a valid directory from the local headers of the members.

use spile_core::error::{Error, Result};
use spile_core::format::{Salvage, Salvager};
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use super::check::sum;
use super::wire::Member;
use super::write::Archive;
use crate::Npz;
use crate::stream::Stream;
use crate::wire::Header;

/// Copies complete members in file order, as far as local headers can be found.
impl Salvager for Npz {
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        let mut saved = Salvage::default();
        let mut archive = Archive::new(target);
        let (mut at, mut buffer) = (0, Vec::new());
        while let Some(mut member) = Member::local_at(source, at)? {
            if member.has_no_size()
                && let Some(len) = array_len(source, &member, limits)
            {
                // The writer was interrupted: the size follows from the array header.
                member.set_size(len);
                member.crc = sum(source, &member, &mut buffer)?;
            }
            let name = member.name.clone();
            let named = |reason: &str| format!("{name}: {reason}");
            let end = member.data.checked_add(member.stored).filter(|end| *end <= source.len());
            let Some(end) = end.filter(|_| !member.has_no_size()) else {
                saved.lost.push(named("truncated"));
                break;
            };
            if member.is_stored() {
                // The checksum decides whether these are its bytes, whatever the other size is.
                member.set_size(member.stored);
            }
            match sum(source, &member, &mut buffer) {
                Ok(crc) if crc == member.crc => {
                    archive.copy(source, &member)?;
                    saved.kept.push(member.name.clone());
                }
                Ok(_) => saved.lost.push(named("CRC-32 mismatch")),
                Err(error) => saved.lost.push(named(error.message())),
            }
            at = Member::next_header(source, end)?;
        }
        if saved.kept.is_empty() {
            return Err(Error::truncated("npz-002", "no complete member in the archive").at(at));
        }
        archive.finish()?;
        Ok(saved)
    }
}

/// Size in bytes of the array in a stored member, from its header.
fn array_len(source: &Source, member: &Member, limits: &Limits) -> Option<u64> {
    let len = source.len().checked_sub(member.data)?;
    let stream = Stream { source, offset: member.data, len, deflated: None };
    Header::read(&stream, limits).ok()?.end().ok().filter(|_| member.is_stored())
}
