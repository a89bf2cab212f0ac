//! Members of an archive as a tree.

use spile_core::description::Description;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::limits::Limits;
use spile_core::report::{Finding, Report, Severity};
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};

use super::ENDING;
use super::from_tree::DESCRIPTION;
use super::wire::{Directory, Member};
use crate::wire::Header;

pub(crate) struct File {
    source: Source,
    pub(super) directory: Directory,
    /// The arrays as stored.
    members: Tree,
    /// The tree restored from the metadata in the archive.
    described: Option<Tree>,
    findings: Vec<Finding>,
}

impl File {
    pub(super) fn open(source: Source, limits: &Limits) -> Result<Self> {
        let mut directory = Directory::read(&source, limits)?;
        let mut tree = Tree::new(limits);
        let mut report = Report::default();
        tree.reserve(directory.members.len());
        let mut unreadable = std::mem::take(&mut directory.invalid);
        let mut metadata = None;
        for member in &directory.members {
            if member.name == DESCRIPTION {
                metadata = Some(member);
            } else if let Some(path) = member.name.strip_suffix(ENDING) {
                unreadable.extend(add(&source, member, path, &mut tree, limits).err());
            } else {
                let message = "member is not an array";
                report.note("npz-020", message).in_object(member.object()).at(member.header);
            }
        }
        report_unreadable(unreadable, &tree, &mut report)?;
        let mut described = None;
        if let Some(member) = metadata {
            match describe(&source, member, &tree, limits) {
                Ok(tree) => described = Some(tree),
                Err(e) if matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit) => return Err(e),
                Err(e) => {
                    let message = format!("metadata ignored: {}", e.message());
                    report.warn("npz-023", message).in_object(DESCRIPTION).at(member.header);
                }
            }
        }
        Ok(Self { source, directory, members: tree, described, findings: report.findings })
    }
}

/// Reports members that cannot be read: unsupported ones as warnings, invalid ones as errors. Fails with the
/// first error if all arrays are invalid.
fn report_unreadable(errors: Vec<Error>, tree: &Tree, report: &mut Report) -> Result<()> {
    let empty = tree.arrays().next().is_none();
    for error in errors {
        let unsupported = error.kind() == ErrorKind::Unsupported;
        if empty && !unsupported {
            return Err(error);
        }
        report.absorb(error)?;
        if let Some(finding) = report.findings.last_mut().filter(|_| unsupported) {
            finding.severity = Severity::Warning;
            finding.message = format!("not read: {}", finding.message);
        }
    }
    Ok(())
}

/// The tree restored from the metadata.
fn describe(source: &Source, member: &Member, plain: &Tree, limits: &Limits) -> Result<Tree> {
    let text = member.location(source)?.read(limits)?;
    Description::parse(&text, limits)?.dress(source, plain, limits)
}

/// Adds the array of a member to the tree. Errors name the member.
fn add(
    source: &Source,
    member: &Member,
    path: &str,
    tree: &mut Tree,
    limits: &Limits,
) -> Result<()> {
    let named = |e: Error| e.in_object(member.object()).at(member.header);
    let location = member.location(source).map_err(named)?;
    let header = Header::read(&location, limits).map_err(|e| match e.kind() {
        ErrorKind::NotThisFormat => named(Error::malformed("npz-009", e.message()).at(member.data)),
        _ => named(e),
    })?;
    let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = tree.node_at(group)?;
    header.add_to(tree, parent, name, &location).map_err(named)?;
    Ok(())
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        self.described.as_ref().unwrap_or(&self.members)
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let members = &self.directory.members;
        let deflated = members.iter().filter(|m| m.stored != m.size).count() as u64;
        let bytes = members.iter().fold(0_u64, |sum, m| sum.saturating_add(m.size));
        vec![
            ("members".into(), (members.len() as u64).into()),
            ("compressed".into(), deflated.into()),
            ("bytes of members".into(), bytes.into()),
        ]
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut members: Vec<&Member> = self.directory.members.iter().collect();
        members.sort_by_key(|member| member.header);
        let mut at = 0;
        let mut emit = |from: u64, to: u64, role, name: &str, value: String| {
            if from >= at && to > from {
                if from > at {
                    let (offset, len) = (at, from - at);
                    let (name, value) = ("rest".into(), String::new());
                    each(Region { offset, len, role: Role::Unknown, name, value })?;
                }
                each(Region { offset: from, len: to - from, role, name: name.into(), value })?;
                at = to;
            }
            Ok(())
        };
        for member in members {
            emit(member.header, member.data, Role::Header, "member", member.name.clone())?;
            let end = member.data + member.stored;
            let value = format!("{} bytes", member.size);
            emit(member.data, end, Role::Data, &member.name, value)?;
        }
        let count = format!("{} members", self.directory.members.len());
        emit(self.directory.offset, self.source.len(), Role::Header, "directory", count)
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in self.members.arrays() {
            let kind = array.dtype.numpy().unwrap_or_default();
            let (path, array) = (node.path.clone(), array.clone());
            each(Object { path, id: None, frame: None, kind, array })?;
        }
        Ok(())
    }
}
