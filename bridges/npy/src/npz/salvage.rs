//! An archive whose directory is missing or wrong: the members still have headers of their own.

use spile_core::error::{Error, Result};
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use super::check::{Buffers, sum};
use super::write::Archive;
use super::zip::Member;
use crate::place::Place;
use crate::wire::Header;

/// Copies the members that are whole, one behind the other, as far as they can be followed.
pub(super) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    let mut saved = Salvage::default();
    let mut archive = Archive::new(target);
    let (mut at, mut buffers) = (0, Buffers::default());
    while let Some(mut member) = Member::local_at(source, at)? {
        if member.is_open()
            && let Some(len) = array_len(source, &member, limits)
        {
            // Written by a program that was stopped before it knew: the array itself tells.
            member.settle(len);
            member.crc = sum(source, &member, &mut buffers)?;
        }
        let named = |what: &str| format!("{}: {what}", member.name);
        let end = member.data.checked_add(member.stored).filter(|end| *end <= source.len());
        let Some(end) = end.filter(|_| !member.is_open()) else {
            saved.lost.push(named("cut"));
            break;
        };
        match sum(source, &member, &mut buffers) {
            Ok(crc) if crc == member.crc => {
                archive.copy(source, &member)?;
                saved.kept.push(member.name.clone());
            }
            Ok(_) => saved.lost.push(named("its bytes do not have the sum that it says")),
            Err(error) => saved.lost.push(named(error.message())),
        }
        at = member.behind(source, end)?;
    }
    if saved.kept.is_empty() {
        return Err(Error::truncated("npz-002", "no member of the archive is whole").at(at));
    }
    archive.finish()?;
    Ok(saved)
}

/// Bytes of the array that a stored member holds.
fn array_len(source: &Source, member: &Member, limits: &Limits) -> Option<u64> {
    let len = source.len().checked_sub(member.data)?;
    let place = Place { source, offset: member.data, len, deflated: None };
    Header::read(&place, limits).ok()?.end().ok().filter(|_| member.is_stored())
}
