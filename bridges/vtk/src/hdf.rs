//! VTKHDF: HDF5 files with a group `VTKHDF`, as the tree of the equivalent XML file.

mod series;
mod steps;
mod write;

use std::path::Path;
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{
    Abilities, Format, FormatInfo, FormatWriter, Grade, Guest, Head, Loss, Native, Object,
    OpenOptions, Parsed, Region, Score, WriteOptions,
};
use spile_core::frames::FrameCell;
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout};
use spile_core::metadata::StoredMetadata;
use spile_core::semantics::{Centring, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::{Attrs, Node, NodeId, Tree, Value};
use spile_interchange::midpoints::midpoints;
use spile_interchange::table::{complex_losses, split_complex};

use crate::to_tree::{AXIS_NAMES, KINDS, written_shape};
use series::Series;
use steps::Unrolled;

/// The group with everything.
const ROOT_GROUP: &str = "VTKHDF";

/// Attribute of [`ROOT_GROUP`] with the metadata that VTK cannot express.
const METADATA: &str = "spile_metadata";

/// The group with the times of the steps, and where the values of each step begin.
const STEPS: &str = "Steps";

/// The dataset of [`STEPS`] with the numbers of the steps.
const STEP_NUMBERS: &str = "StepNumbers";

/// Sections of cells of surfaces, and their names in XML files.
const SECTIONS: [(&str, &str); 4] =
    [("Vertices", "Verts"), ("Lines", "Lines"), ("Polygons", "Polys"), ("Strips", "Strips")];

/// VTKHDF, for the registry.
pub struct VtkHdf {
    /// The format that opens HDF5 files.
    pub hdf5: &'static dyn Format,
}

static INFO: FormatInfo = FormatInfo {
    name: "vtkhdf",
    title: "VTKHDF",
    users: "everyone with ParaView, VisIt or pyvista",
    specification: "VTKHDF 2",
    extensions: &["vtkhdf"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::None,
    salvage: Grade::None,
};

impl Format for VtkHdf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        // Only the content of an HDF5 file decides.
        self.hdf5.probe(head).min(1)
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        self.view(&Dataset::open(self.hdf5, source, options)?)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().guest(self).writer(self)
    }
}

impl FormatWriter for VtkHdf {
    /// Writes all meshes and species of `content`.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let series = Series::new(split.as_ref().unwrap_or(content), true)?;
        write::write(self.hdf5, &series, sink)?;
        Ok(Vec::new())
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let series = Series::new(split.as_ref().unwrap_or(content), false)?;
        write::check(&series)?;
        Ok(complex_losses(content, series.losses()?))
    }
}

impl Guest for VtkHdf {
    fn host(&self) -> &'static dyn Format {
        self.hdf5
    }

    fn recognises(&self, content: &Dataset) -> bool {
        blocks(content.tree()).is_some_and(|own| steps::unrolled(content, &own).is_ok())
    }

    fn view(&self, content: &Dataset) -> Result<Parsed> {
        let own = blocks(content.tree()).ok_or_else(|| {
            let message = "no group \"VTKHDF\" with grids of one piece";
            Error::unsupported("vtk-030", message).in_object(ROOT_GROUP)
        })?;
        let unrolled = steps::unrolled(content, &own)?;
        let host = unrolled.as_ref().map_or(content.tree(), |unrolled| &unrolled.tree);
        let mut builder = Builder { host, tree: Tree::new(content.limits()) };
        let top = content.tree().at(ROOT_GROUP).map(|id| &content.tree().node(id).attrs);
        let metadata = top.and_then(|attrs| attrs.get_str(METADATA));
        if metadata.is_some() {
            builder.written()?;
        } else {
            for (id, kind) in &own {
                builder.block(*id, kind)?;
            }
        }
        if let Some(Unrolled { moments, .. }) = &unrolled {
            builder.tree.set_frames(Arc::new(moments.clone()));
        }
        let kind = match &own[..] {
            [(_, kind)] => kind.clone(),
            _ => format!("{} blocks", own.len()),
        };
        let arrays = builder.tree.arrays().count() as u64;
        let summary = Attrs::from([("kind", kind.into()), ("arrays", arrays.into())]);
        let parsed = Parsed::new(content.source().clone(), builder.tree).with_summary(summary);
        let object = format!("attribute \"{METADATA}\" of the group \"{ROOT_GROUP}\"");
        let parsed = parsed.with_metadata(metadata.map(|text| StoredMetadata::new(text, object)));
        // Links to blocks are not arrays.
        let findings = content.warnings().iter();
        let assembly = format!("\"{ROOT_GROUP}/Assembly/");
        let findings = findings.filter(|finding| {
            !finding.object.as_ref().is_some_and(|object| object.starts_with(&assembly))
        });
        let findings = findings.cloned().collect();
        Ok(parsed.with_warnings(findings).with_native(Host(content.clone())))
    }
}

/// The structures of the HDF5 file.
struct Host(Dataset);

impl Native for Host {
    fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        self.0.regions(each)
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.0.objects(each)
    }
}

/// Groups of the grids and their types: the group `VTKHDF`, or groups in it. `None` if the file has another content:
/// several pieces in one array.
fn blocks(tree: &Tree) -> Option<Vec<(NodeId, String)>> {
    let top = tree.at(ROOT_GROUP)?;
    let kind = |id: NodeId| tree.node(id).attrs.get_str("Type").map(str::to_string);
    let is_grid = |kind: &str| KINDS.contains(&kind);
    let own = kind(top)?;
    let found: Vec<(NodeId, String)> = if is_grid(&own) {
        vec![(top, own)]
    } else {
        let inside = tree.iter().filter(|(_, node)| node.parent == top && node.array.is_none());
        inside.filter_map(|(id, _)| Some((id, kind(id)?))).collect()
    };
    let is_simple = |(id, kind): &(NodeId, String)| {
        let pieces = tree.child(*id, "NumberOfPoints").and_then(|id| tree.node(id).array.as_ref());
        let has_steps = tree.child(*id, STEPS).is_some();
        let one = has_steps || pieces.is_none_or(|pieces| pieces.shape.count() == Some(1));
        is_grid(kind) && one
    };
    (!found.is_empty() && found.iter().all(is_simple)).then_some(found)
}

struct Builder<'a> {
    host: &'a Tree,
    tree: Tree,
}

/// Names and coordinates of the axes of arrays on points and on cells, the slowest first.
type Axes = [(&'static str, Coord, Coord); 3];

impl Builder<'_> {
    fn array(&self, group: NodeId, name: &str) -> Option<&ArrayDesc> {
        self.host.resolve(self.host.node(self.host.child(group, name)?).array.as_ref()?).ok()
    }

    /// Adds an array of the file as it is.
    fn add(&mut self, path: &str, desc: &ArrayDesc) -> Result<NodeId> {
        let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.tree.node_at(group)?;
        let new = ArrayDesc::new(desc.dtype, desc.shape.clone(), desc.layout.clone());
        self.tree.add_array(parent, name, new)
    }

    /// Adds the arrays of a file that spile wrote, at the paths that they had: the attributes `Path`, `Columns` and
    /// `Shape` have the meaning of those in XML files.
    fn written(&mut self) -> Result<()> {
        for (_, node, desc) in self.host.arrays() {
            let shape = node.attrs.get_str("Shape").and_then(written_shape);
            if let Some(path) = node.attrs.get_str("Path") {
                let mut desc = self.host.resolve(desc)?.clone();
                if node.name == "Offsets" {
                    desc = without_first(desc)?;
                }
                desc = steps::each_frame(desc, move |cell| Ok(reshaped(cell, shape.as_ref())))?;
                let id = self.add(path, &desc)?;
                if node.name.ends_with("Coordinates") {
                    midpoints(&mut self.tree, id)?;
                }
            } else if let Some(columns) = node.attrs.get_str("Columns") {
                self.columns(columns, self.host.resolve(desc)?, shape.as_ref())?;
            }
        }
        Ok(())
    }

    /// Adds the arrays that points or a vector were written from, one per component.
    fn columns(
        &mut self,
        names: &str,
        all: &ArrayDesc,
        shape: Option<&(Order, Shape)>,
    ) -> Result<()> {
        let size = all.dtype.size() as u64;
        let components = all.shape.lengths().last().copied().unwrap_or(1).max(1);
        for (k, path) in (0..components).zip(names.split('\n')) {
            let shape = shape.cloned();
            let one = move |cell: FrameCell| {
                let rows = cell.shape.count().unwrap_or(0) / components;
                let stride = size * components;
                let shape = shape.clone().filter(|(_, shape)| shape.count() == Some(rows));
                let (order, shape) = shape.unwrap_or_else(|| (Order::C, Shape::new([rows])));
                let first = match cell.layout.plain() {
                    Some((extents, _)) => extents.parts().first().map_or(0, |part| part.offset),
                    _ if rows == 0 => 0,
                    _ => {
                        let message = "vectors that are not contiguous";
                        return Err(Error::unsupported("vtk-031", message));
                    }
                };
                let span = if rows == 0 { 0 } else { (rows - 1) * stride + size };
                let extents = Extents::one(first + k * size, span);
                Ok(FrameCell { shape, layout: Layout::Rows { extents, stride, order } })
            };
            self.add(path, &steps::each_frame(all.clone(), one)?)?;
        }
        Ok(())
    }

    fn set(&mut self, id: NodeId, meaning: Semantics) {
        if let Some(desc) = &mut self.tree.node_mut(id).array {
            *desc.semantics_mut() = meaning;
        }
    }

    /// Adds a grid.
    fn block(&mut self, group: NodeId, kind: &str) -> Result<()> {
        let node = self.host.node(group);
        let prefix =
            match node.path.strip_prefix(ROOT_GROUP).map(|rest| rest.trim_start_matches('/')) {
                Some(rest) if !rest.is_empty() => format!("{rest}/"),
                _ => String::new(),
            };
        let (mut mesh, mut is_cloud, mut axes) = (None, false, None);
        match kind {
            "ImageData" => axes = image(node),
            "RectilinearGrid" => (mesh, axes) = self.coordinates(group, &prefix)?,
            _ => {
                is_cloud = self.cells(group, kind, &prefix)?;
                if let Some(points) = self.array(group, "Points").cloned() {
                    let id = self.add(&format!("{prefix}Points"), &points)?;
                    let role = if is_cloud { Role::Points } else { Role::Mesh };
                    self.set(id, Semantics::role(role));
                    mesh = Some(id);
                }
            }
        }
        for (section, centring) in [
            ("PointData", Some(Centring::Node)),
            ("CellData", Some(Centring::Cell)),
            ("FieldData", None),
        ] {
            let Some(own) = self.host.child(group, section) else { continue };
            let inside = self.host.arrays().filter(|(_, node, _)| node.parent == own);
            for (_, node, desc) in inside {
                let id = self
                    .add(&format!("{prefix}{section}/{}", node.name), self.host.resolve(desc)?)?;
                let Some(centring) = centring else { continue };
                let mut meaning = Semantics::role(Role::Field);
                (meaning.mesh, meaning.centring) = (mesh, Some(centring));
                if is_cloud && centring == Centring::Node {
                    (meaning.role, meaning.centring) = (Role::Points, None);
                }
                self.set(id, meaning);
                let is_structured =
                    matches!(kind, "ImageData" | "RectilinearGrid" | "StructuredGrid");
                self.set_dimensions(id, is_structured, axes.as_ref(), centring);
            }
        }
        Ok(())
    }

    /// Names the dimensions of an array on points or cells, and sets their coordinates.
    fn set_dimensions(
        &mut self,
        id: NodeId,
        is_structured: bool,
        axes: Option<&Axes>,
        centring: Centring,
    ) {
        let Some(desc) = &mut self.tree.node_mut(id).array else { return };
        let rank = if is_structured { 3 } else { 1 };
        if desc.shape.rank() == rank + 1 {
            desc.dims[rank] = "component".into();
        }
        if !is_structured || desc.shape.rank() < rank {
            return;
        }
        for (k, name) in AXIS_NAMES.iter().rev().enumerate() {
            desc.dims[k] = (*name).into();
            if let Some(axes) = axes {
                let (_, points, cells) = &axes[k];
                desc.coords[k] =
                    if centring == Centring::Node { points.clone() } else { cells.clone() };
            }
        }
    }

    /// Adds the coordinates of a rectilinear grid.
    fn coordinates(
        &mut self,
        group: NodeId,
        prefix: &str,
    ) -> Result<(Option<NodeId>, Option<Axes>)> {
        let mut axes = AXIS_NAMES.map(|name| (name, Coord::None, Coord::None));
        let mut mesh = None;
        for axis in &mut axes {
            let name = format!("{}Coordinates", axis.0.to_uppercase());
            let Some(desc) = self.array(group, &name).cloned() else { continue };
            let id = self.add(&format!("{prefix}Coordinates/{}", axis.0), &desc)?;
            self.set(id, Semantics::role(Role::Mesh));
            if let Some(desc) = &mut self.tree.node_mut(id).array {
                desc.dims = vec![axis.0.into()];
            }
            mesh = Some(self.tree.node(id).parent);
            let middle = midpoints(&mut self.tree, id)?;
            (axis.1, axis.2) = (Coord::Node(id), middle.map_or(Coord::None, Coord::Node));
        }
        axes.reverse();
        Ok((mesh, Some(axes)))
    }

    /// Adds the cells. Returns whether the points have no cells but vertices.
    fn cells(&mut self, group: NodeId, kind: &str, prefix: &str) -> Result<bool> {
        let mut is_cloud = kind == "PolyData";
        let sections: Vec<(NodeId, &str)> = match kind {
            "UnstructuredGrid" => vec![(group, "Cells")],
            "PolyData" => {
                let own = SECTIONS
                    .iter()
                    .filter_map(|(name, xml)| Some((self.host.child(group, name)?, *xml)));
                own.collect()
            }
            _ => Vec::new(),
        };
        for (own, section) in sections {
            let Some(offsets) = self.array(own, "Offsets").cloned() else { continue };
            let count = offsets.shape.count().unwrap_or(0).saturating_sub(1);
            if count == 0 {
                continue;
            }
            is_cloud &= section == "Verts";
            for (name, xml) in [("Connectivity", "connectivity"), ("Types", "types")] {
                if let Some(desc) = self.array(own, name).cloned() {
                    self.add(&format!("{prefix}{section}/{xml}"), &desc)?;
                }
            }
            self.add(&format!("{prefix}{section}/offsets"), &without_first(offsets)?)?;
        }
        Ok(is_cloud)
    }
}

/// The elements in the shape and order in which they were written, if it has as many elements.
fn reshaped(mut cell: FrameCell, written: Option<&(Order, Shape)>) -> FrameCell {
    if let Some((order, shape)) = written.filter(|(_, shape)| shape.count() == cell.shape.count()) {
        cell.layout = cell.layout.in_order(*order).unwrap_or(cell.layout);
        cell.shape = shape.clone();
    }
    cell
}

/// Offsets of cells without the first one, 0, which XML files omit.
fn without_first(offsets: ArrayDesc) -> Result<ArrayDesc> {
    let size = offsets.dtype.size() as u64;
    steps::each_frame(offsets, move |FrameCell { shape, layout }| {
        let count = shape.count().unwrap_or(0).saturating_sub(1);
        let layout = layout.rows(size, count * size).ok_or_else(|| {
            Error::unsupported("vtk-030", "offsets of cells that are not in one piece")
        })?;
        Ok(FrameCell { shape: Shape::new([count]), layout })
    })
}

/// Uniform coordinates of an image; `None` if its axes are not parallel to x, y and z.
fn image(node: &Node) -> Option<Axes> {
    let numbers = |name: &str| -> Option<Vec<f64>> {
        let Value::List(values) = node.attrs.get(name)? else { return None };
        values
            .iter()
            .map(|value| match value {
                Value::Float(v) => Some(*v),
                Value::Int(v) => Some(*v as f64),
                Value::UInt(v) => Some(*v as f64),
                _ => None,
            })
            .collect()
    };
    let (extent, origin, spacing) =
        (numbers("WholeExtent")?, numbers("Origin")?, numbers("Spacing")?);
    let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    if numbers("Direction").is_some_and(|turned| turned != identity) {
        return None;
    }
    let mut axes = AXIS_NAMES.map(|name| (name, Coord::None, Coord::None));
    for (k, axis) in axes.iter_mut().enumerate() {
        let step = *spacing.get(k)?;
        let start = origin.get(k)? + extent.get(2 * k)? * step;
        let is_one = extent.get(2 * k + 1)? == extent.get(2 * k)?;
        let middle = if is_one { start } else { start + step / 2.0 };
        axis.1 = Coord::Uniform { start, step };
        axis.2 = Coord::Uniform { start: middle, step };
    }
    axes.reverse();
    Some(axes)
}
