//! Members of an archive as a tree.

use spile_core::Dataset;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::limits::Limits;
use spile_core::metadata::StoredMetadata;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::{Attrs, Tree};

use super::ENDING;
use super::from_tree::DESCRIPTION;
use super::wire::{Directory, Member};
use crate::wire::Header;

/// Reads the members of an archive. Members that cannot be read are warnings of severity error.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let limits = &options.limits;
    let (directory, tree, mut report) = read(&source, limits)?;
    let metadata = directory.members.iter().rfind(|member| member.name == DESCRIPTION);
    let metadata = metadata.and_then(|member| {
        let text = member.content(&source).and_then(|stream| stream.read(limits));
        let text = text.map_err(|e| {
            let message = format!("stored metadata cannot be read: {}", e.message());
            report.warn("npz-023", message).in_object(DESCRIPTION).at(member.header);
        });
        Some(StoredMetadata::new(text.ok()?, DESCRIPTION).at(member.header))
    });
    let deflated = directory.members.iter().filter(|m| m.stored != m.size).count();
    let bytes = directory.members.iter().fold(0_u64, |sum, m| sum.saturating_add(m.size));
    let summary = Attrs::from([
        ("members", (directory.members.len() as u64).into()),
        ("compressed", (deflated as u64).into()),
        ("bytes of members", bytes.into()),
    ]);
    let parsed = Parsed::new(source, tree).with_summary(summary).with_metadata(metadata);
    Ok(parsed.with_warnings(report.findings).with_native(directory))
}

/// Reads the members and the tree of their arrays. Members that cannot be read are reported; fails with
/// the first error if all arrays are invalid.
pub(super) fn read(source: &Source, limits: &Limits) -> Result<(Directory, Tree, Report)> {
    let mut directory = Directory::read(source, limits)?;
    let mut report = Report::default();
    for member in &directory.members {
        if member.name != DESCRIPTION && !member.name.ends_with(ENDING) {
            let message = "member is not an array";
            report.note("npz-020", message).in_object(member.object()).at(member.header);
        }
    }
    let (tree, errors) = directory.read_tree(source, limits)?;
    let empty = tree.arrays().next().is_none();
    for error in directory.invalid.drain(..).chain(errors) {
        if empty && error.kind() != ErrorKind::Unsupported {
            return Err(error);
        }
        report.absorb(error)?;
    }
    Ok((directory, tree, report))
}

impl Directory {
    /// The arrays as stored, and the errors of members that cannot be read.
    fn read_tree(&self, source: &Source, limits: &Limits) -> Result<(Tree, Vec<Error>)> {
        let (mut tree, mut errors) = (Tree::new(limits), Vec::new());
        tree.reserve(self.members.len());
        for member in &self.members {
            let Some(path) = member.name.strip_suffix(ENDING) else { continue };
            let mut add = || {
                let stream = member.content(source)?;
                let header = Header::read(&stream, limits).map_err(|e| match e.kind() {
                    ErrorKind::NotThisFormat => {
                        Error::malformed("npz-009", e.message()).at(member.data)
                    }
                    _ => e,
                })?;
                let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
                let parent = tree.node_at(group)?;
                header.add_to(&mut tree, parent, name, &stream)
            };
            let error = add().err();
            errors.extend(error.map(|e| e.in_object(member.object()).at(member.header)));
        }
        let fatal = |e: &Error| matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit);
        match errors.iter().position(fatal) {
            Some(k) => Err(errors.swap_remove(k)),
            None => Ok((tree, errors)),
        }
    }
}

impl Native for Directory {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut members: Vec<&Member> = self.members.iter().collect();
        members.sort_by_key(|member| member.header);
        let mut at = 0;
        let mut emit = |from: u64, to: u64, kind, name: &str, value: String| {
            if from >= at && to > from {
                if from > at {
                    let (offset, len, kind) = (at, from - at, RegionKind::Unknown);
                    each(Region { offset, len, kind, name: "rest".into(), value: String::new() })?;
                }
                each(Region { offset: from, len: to - from, kind, name: name.into(), value })?;
                at = to;
            }
            Ok(())
        };
        for member in members {
            emit(member.header, member.data, RegionKind::Header, "member", member.name.clone())?;
            let end = member.data + member.stored;
            let value = format!("{} bytes", member.size);
            emit(member.data, end, RegionKind::Data, &member.name, value)?;
        }
        let count = format!("{} members", self.members.len());
        emit(self.offset, dataset.source().len(), RegionKind::Header, "directory", count)
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        let (tree, _) = self.read_tree(dataset.source(), dataset.limits())?;
        for (_, node, array) in tree.arrays() {
            let kind = array.dtype.numpy().unwrap_or_default();
            let (path, array) = (node.path.clone(), array.clone());
            each(Object { path, id: None, frame: None, kind, array })?;
        }
        Ok(())
    }
}
