//! `.vtm`: all meshes and species of a tree. It is written with a folder of the same name that has one file per
//! block, and read as one tree.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::sink::{FolderSink, Sink};
use spile_core::tree::NodeId;

use crate::collection;
use crate::from_tree::{Plan, Snapshot, blocks, metadata, unsupported};
use crate::write::write_blocks;
use crate::xml::{Element, escape};

/// Group of arrays that are not in the tree from which a multiblock file was written.
pub(crate) const GENERATED: &str = ".vtk";

/// The files of a multiblock file.
pub(crate) struct Blocks {
    /// Names and contents of the blocks.
    pub(crate) blocks: Vec<(String, Plan)>,
    /// Field data of the multiblock file.
    pub(crate) fields: Plan,
}

impl Blocks {
    /// The contents of all files.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.blocks.iter().map(|(_, plan)| plan).chain([&self.fields])
    }
}

/// Plans the blocks of a snapshot. Reads no values. Fails if there is neither a grid nor points.
pub(crate) fn plan(snapshot: &Snapshot<'_>) -> Result<Blocks> {
    let found = plan_some(snapshot)?;
    if found.blocks.is_empty() {
        return Err(unsupported("neither a grid nor points"));
    }
    Ok(found)
}

/// Plans the blocks of a snapshot, which may have none.
pub(crate) fn plan_some(snapshot: &Snapshot<'_>) -> Result<Blocks> {
    let mut found = Vec::new();
    let mut fields = Plan::default();
    for block in blocks(snapshot.tree()) {
        let mut plan = snapshot.plan_mesh(snapshot.kind_of(&block), &block.mesh)?;
        snapshot.add_time(&mut plan)?;
        snapshot.add_labels(&mut plan);
        for path in &mut plan.generated {
            *path = format!("{GENERATED}/{}/{path}", block.name);
        }
        fields.include(&plan);
        found.push((block.name, plan));
    }
    let known: HashSet<NodeId> = fields.written().collect();
    snapshot.fields(&mut fields)?;
    snapshot.add_others(&mut fields)?;
    snapshot.add_labels(&mut fields);
    fields.forget(&known);
    Ok(Blocks { blocks: found, fields })
}

/// Writes the blocks to files of `folder` whose names begin with `prefix`, and the list of them to `sink`. Paths in
/// the list begin with `folder_name`.
pub(crate) fn write_files(
    snapshot: &Snapshot<'_>,
    plan: &Blocks,
    folder: &FolderSink,
    prefix: &str,
    folder_name: &str,
    sink: &Sink,
) -> Result<()> {
    let mut list = String::new();
    let mut used = HashSet::new();
    for (index, (name, plan)) in plan.blocks.iter().enumerate() {
        let plain = |c: char| if c.is_alphanumeric() || "_-+".contains(c) { c } else { '_' };
        let mut file: String = name.chars().take(80).map(plain).collect();
        if !used.insert(file.to_lowercase()) {
            file = format!("{file}_{index}");
            used.insert(file.to_lowercase());
        }
        let file = format!("{file}.{}", plan.kind.ending());
        snapshot.write_plan(plan, None, &folder.file(&format!("{prefix}{file}"))?)?;
        let _ = writeln!(
            list,
            "    <DataSet index=\"{index}\" name=\"{}\" file=\"{}\"/>",
            escape(name),
            escape(&format!("{folder_name}/{file}"))
        );
    }
    let plans: Vec<&Plan> = plan.plans().collect();
    write_blocks(snapshot, &list, &plan.fields.items, &metadata(snapshot, &plans)?, sink)
}

/// Writes all meshes and species of `content`.
pub(crate) fn write(content: &Dataset, sink: &mut Sink) -> Result<()> {
    let mut snapshot = Snapshot::new(content, None)?;
    snapshot.with_paths = true;
    let plan = plan(&snapshot)?;
    let (folder, name) = collection::folder(sink)?;
    write_files(&snapshot, &plan, &folder, "", &name, sink)?;
    sink.attach(folder);
    Ok(())
}

/// Names and paths of the files of a multiblock file. Fails if a file is not below its folder.
pub(crate) fn files(path: &Path, root: &Element) -> Result<Vec<(String, PathBuf)>> {
    let kind = root.attr("type").unwrap_or_default();
    let list = root.child(kind).ok_or_else(|| root.malformed(format!("no element {kind}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    collect(list, "", folder, &mut found)?;
    let mut used = HashSet::new();
    for (index, (name, _)) in found.iter_mut().enumerate() {
        if !used.insert(name.clone()) {
            *name = format!("{name}_{index}");
            used.insert(name.clone());
        }
    }
    Ok(found)
}

fn collect(
    list: &Element,
    above: &str,
    folder: &Path,
    found: &mut Vec<(String, PathBuf)>,
) -> Result<()> {
    for (k, entry) in list.children.iter().enumerate() {
        let name = entry.attr("name").filter(|name| !name.is_empty());
        let name = name.map_or_else(|| format!("block_{k}"), ToString::to_string);
        let name = if above.is_empty() { name } else { format!("{above}/{name}") };
        match (entry.name.as_str(), entry.attr("file")) {
            ("DataSet" | "Piece", Some(file)) => {
                found.push((name, collection::below(folder, file, entry)?));
            }
            ("Block" | "Piece", _) => collect(entry, &name, folder, found)?,
            // Among others a block without data.
            _ => {}
        }
    }
    Ok(())
}
