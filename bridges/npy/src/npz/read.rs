//! Members of the archive to a tree.

use spile_core::description::Description;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::limits::Limits;
use spile_core::report::{Finding, Report};
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};

use super::ENDING;
use super::write::DESCRIPTION;
use super::zip::{Directory, Member};
use crate::wire::Header;

pub(crate) struct File {
    source: Source,
    pub(super) directory: Directory,
    /// The arrays as they lie there.
    members: Tree,
    /// What they are, where a description tells.
    dressed: Option<Tree>,
    findings: Vec<Finding>,
}

impl File {
    pub(super) fn open(source: Source, limits: &Limits) -> Result<Self> {
        let directory = Directory::read(&source, limits)?;
        let mut tree = Tree::new(limits);
        let mut report = Report::default();
        tree.reserve(directory.members.len());
        let mut description = None;
        for member in &directory.members {
            if member.name == DESCRIPTION {
                description = Some(member);
                continue;
            }
            let Some(path) = member.name.strip_suffix(ENDING) else {
                report
                    .note("npz-020", "a member that is no array is passed over")
                    .in_object(format!("\"{}\"", member.name))
                    .at(member.header);
                continue;
            };
            match add(&source, member, path, &mut tree, limits) {
                // One array that is not read is no reason not to read the others.
                Err(e) if e.kind() == ErrorKind::Unsupported => {
                    let finding = report.note(e.code(), format!("not read: {}", e.message()));
                    let object = format!("\"{}\"", member.name);
                    finding.in_object(object).at(e.offset().unwrap_or(member.header));
                }
                added => added?,
            }
        }
        let mut dressed = None;
        if let Some(member) = description {
            match dress(&source, member, &tree, limits) {
                Ok(tree) => dressed = Some(tree),
                Err(e) if matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit) => return Err(e),
                Err(e) => {
                    let message = format!("the description is not used: {}", e.message());
                    report.warn("npz-023", message).in_object(DESCRIPTION).at(member.header);
                }
            }
        }
        Ok(Self { source, directory, members: tree, dressed, findings: report.findings })
    }
}

/// The tree that the description tells of.
fn dress(source: &Source, member: &Member, plain: &Tree, limits: &Limits) -> Result<Tree> {
    let text = member.place(source)?.read(limits)?;
    Description::parse(&text, limits)?.dress(source, plain, limits)
}

fn add(
    source: &Source,
    member: &Member,
    path: &str,
    tree: &mut Tree,
    limits: &Limits,
) -> Result<()> {
    let named = |e: Error| e.in_object(format!("\"{}\"", member.name));
    let place = member.place(source).map_err(named)?;
    let header = Header::read(&place, limits).map_err(|e| match e.kind() {
        // It was said to be one.
        ErrorKind::NotThisFormat => named(Error::malformed("npz-009", e.message()).at(member.data)),
        _ => named(e),
    })?;
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = tree.node_at(above)?;
    header.add_to(tree, parent, name, &place).map_err(named)?;
    Ok(())
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        self.dressed.as_ref().unwrap_or(&self.members)
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
