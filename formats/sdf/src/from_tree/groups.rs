//! Writes blocks that are groups in the tree: meshes, stitched and contiguous blocks, run information,
//! names and values.

use std::collections::HashSet;

use spile_core::{Attrs, Extent, Node, NodeId, Result};

use super::{Form, TreeWriter, attrs, factor, kind, label, stored_datatype, unsupported};
use crate::to_tree::{DATATYPE, NAME, TYPE};
use crate::wire::DataType;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta, PointMesh, RunInfo, Stitched};

impl<'a> TreeWriter<'a> {
    /// Writes a block that is a group in the tree.
    pub(super) fn group_block(
        &mut self,
        id: NodeId,
        node: &'a Node,
        kind: BlockType,
    ) -> Result<()> {
        let attrs = &node.attrs;
        match Meta::of(kind) {
            Meta::Mesh(_) | Meta::PointMesh(_) => self.mesh(id, node, kind),
            Meta::Station(_) => self.station(id, node),
            Meta::RunInfo(_) => {
                let meta = Meta::RunInfo(RunInfo {
                    code_version: attrs::i32(attrs, "code_version"),
                    code_revision: attrs::i32(attrs, "code_revision"),
                    commit_id: attrs::text(attrs, "commit_id"),
                    sha1sum: attrs::text(attrs, "sha1sum"),
                    compile_machine: attrs::text(attrs, "compile_machine"),
                    compile_flags: attrs::text(attrs, "compile_flags"),
                    defines: attrs.get_i64("defines").unwrap_or(0),
                    compile_date: attrs::i32(attrs, "compile_date"),
                    run_date: attrs::i32(attrs, "run_date"),
                    io_date: attrs::i32(attrs, "io_date"),
                    minor_rev: attrs::i32(attrs, "minor_rev"),
                });
                self.write_block(id, (kind, DataType::Other), &meta, 0, None).map(drop)
            }
            Meta::NameValue { .. } => {
                // The reserved attributes come first; the file may contain the same names again.
                let mut reserved: HashSet<&str> = [TYPE, NAME, DATATYPE].into_iter().collect();
                let rest = attrs.iter().filter(|(name, _)| !reserved.remove(name));
                let (names, values) =
                    rest.map(|(name, value)| (name.to_string(), value.clone())).unzip();
                let meta = Meta::NameValue { names, values };
                self.write_block(id, (kind, stored_datatype(attrs)), &meta, 0, None).map(drop)
            }
            Meta::Stitched(_) => {
                let meta = Meta::Stitched(stitched(attrs));
                self.write_block(id, (kind, stored_datatype(attrs)), &meta, 0, None).map(drop)
            }
            _ => Err(unsupported(format!("a {} without data", kind.name()))),
        }
    }

    /// Writes a mesh: the arrays of the group, one per direction, are its data.
    fn mesh(&mut self, id: NodeId, node: &'a Node, kind: BlockType) -> Result<()> {
        let axes = self.arrays(id);
        self.owned.extend(axes.iter().map(|(id, ..)| *id));
        let mut mesh = Mesh {
            geometry: attrs::i32(&node.attrs, "geometry"),
            minval: attrs::f64_list(&node.attrs, "minval"),
            maxval: attrs::f64_list(&node.attrs, "maxval"),
            ..Mesh::default()
        };
        let (mut arrays, mut length) = (Vec::new(), 0_u64);
        for (_, axis, desc) in axes {
            let form = self.form(desc)?;
            mesh.labels.push(label(axis));
            mesh.units.push(attrs::text(&axis.attrs, "units"));
            let unscaled = axis.attrs.get_f64("mult").unwrap_or(1.0);
            mesh.mults.push(desc.map.map_or(Ok(unscaled), factor)?);
            if kind == BlockType::LagrangianMesh {
                mesh.dims.clone_from(&form.lengths);
            } else {
                mesh.dims.extend_from_slice(&form.lengths);
            }
            length = length.saturating_add(form.bytes);
            arrays.push((desc, form));
        }
        if mesh.minval.len() > mesh.labels.len() {
            let (expected, found) = (mesh.minval.len(), mesh.labels.len());
            let message =
                format!("expected a mesh with {expected} coordinate arrays, found {found}");
            return Err(unsupported(message));
        }
        mesh.minval.resize(mesh.labels.len(), 0.0);
        mesh.maxval.resize(mesh.labels.len(), 0.0);
        let datatype = arrays.first().and_then(|(_, form)| DataType::of(form.dtype));
        let same = |(_, form): &(_, Form)| DataType::of(form.dtype) == datatype;
        let Some(datatype) = datatype.filter(|_| arrays.iter().all(same)) else {
            return Err(unsupported("a mesh whose coordinate arrays have different types"));
        };
        let meta = if kind == BlockType::PointMesh {
            let np = mesh.dims.first().copied().unwrap_or(0);
            mesh.dims.clear();
            let species_id = attrs::text(&node.attrs, "species");
            Meta::PointMesh(PointMesh { mesh, np, species_id })
        } else {
            Meta::Mesh(mesh)
        };
        let mut at = self.write_block(id, (kind, datatype), &meta, length, None)?.offset;
        for (desc, form) in arrays {
            self.fill(at, desc)?;
            at += form.bytes;
        }
        Ok(())
    }

    /// Writes a contiguous block with the data of its members. The member blocks are written later
    /// and refer to these data.
    pub(super) fn contiguous(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        let Some(kind) = kind(node) else { return Ok(()) };
        let group = stitched(&node.attrs);
        let mut members = Vec::new();
        let mut length = 0_u64;
        for member_id in &group.ids {
            let member = self.ids.get(member_id.as_str()).copied();
            let desc = member.and_then(|member| self.tree.array(member));
            let (Some(member), Some(desc)) = (member, desc) else {
                return Err(unsupported(format!("no member named \"{member_id}\"")));
            };
            let bytes = self.form(desc)?.bytes;
            length = length.saturating_add(bytes);
            members.push((member, desc, bytes));
        }
        let meta = Meta::Stitched(group);
        let types = (kind, stored_datatype(&node.attrs));
        let mut at = self.write_block(id, types, &meta, length, None)?.offset;
        for (member, desc, len) in members {
            self.fill(at, desc)?;
            self.inside.insert(member, Extent { offset: at, len });
            at += len;
        }
        Ok(())
    }
}

fn stitched(attrs: &Attrs) -> Stitched {
    Stitched {
        stagger: attrs::i32(attrs, "stagger"),
        mesh_id: attrs::text(attrs, "mesh"),
        material_id: attrs::text(attrs, "material"),
        material_name: attrs::text(attrs, "material_name"),
        names: attrs::strings(attrs, "names"),
        ids: attrs::strings(attrs, "parts"),
    }
}
