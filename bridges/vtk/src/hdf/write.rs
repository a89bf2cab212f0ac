//! Writer of VTKHDF files. The host format writes groups, attributes and datasets of zeros; the values follow in place.

use std::collections::{HashMap, HashSet};

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{Format, OpenOptions, WriteOptions, Writer};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::{Attrs, NodeId, Tree, Value};

use super::{METADATA, ROOT_GROUP, SECTIONS};
use crate::from_tree::{Item, Kind, Plan, Snapshot, Values, metadata, unsupported};
use crate::multiblock::{self, Blocks};
use crate::write::write_values;

/// A file before its values are written.
struct File<'a> {
    tree: Tree,
    /// Arrays of the tree, their values, and the number of elements before these.
    values: Vec<(NodeId, &'a Item, u64)>,
    /// Soft links and their targets.
    links: Vec<(String, String)>,
}

/// Fails if `content` cannot be written. Reads no values.
pub(super) fn check(content: &Dataset) -> Result<()> {
    let snapshot = Snapshot::new(content, None)?;
    File::new(&snapshot, &multiblock::plan(&snapshot)?).map(drop)
}

/// Writes all meshes and species of `content`.
pub(super) fn write(hdf5: &dyn Format, content: &Dataset, sink: &mut Sink) -> Result<()> {
    let mut snapshot = Snapshot::new(content, None)?;
    (snapshot.with_paths, snapshot.with_images) = (true, true);
    let mut blocks = multiblock::plan(&snapshot)?;
    for (_, plan) in &mut blocks.blocks {
        // Arrays without a path are not in the tree of a reader.
        plan.generated.clear();
    }
    blocks.fields.generated.clear();
    let mut file = File::new(&snapshot, &blocks)?;
    let root = file.tree.group_at(ROOT_GROUP)?;
    let plans: Vec<&Plan> = blocks.plans().collect();
    file.tree.push_attr(root, METADATA, metadata(&snapshot, &plans)?)?;
    let Some(Writer::File(host)) = hdf5.abilities().writer else {
        return Err(unsupported("HDF5 is not written"));
    };
    let mut options = WriteOptions::default();
    options.guest_links = Some(file.links);
    let structure = content.with_tree(file.tree);
    host.write(&structure, sink, &options)?;
    let written = Dataset::open(hdf5, sink.source()?, &OpenOptions::from(content.limits()))?;
    for (id, item, before) in file.values {
        let path = &structure.tree().node(id).path;
        if item.bytes()? == 0 {
            continue;
        }
        let desc = written.tree().at(path).and_then(|id| written.tree().array(id));
        let Some(Layout::Plain { extents, .. }) = desc.map(|desc| &desc.layout) else {
            return Err(unsupported("the dataset is not contiguous").in_object(path));
        };
        let at = extents.parts().first().map_or(0, |part| part.offset);
        write_values(&snapshot, item, sink, at + before * item.dtype.size() as u64)?;
    }
    Ok(())
}

fn integers(values: impl IntoIterator<Item = u64>) -> Value {
    Value::List(values.into_iter().map(|value| Value::Int(value as i64)).collect())
}

fn floats(values: impl IntoIterator<Item = f64>) -> Value {
    Value::List(values.into_iter().map(Value::Float).collect())
}

impl<'a> File<'a> {
    fn new(snapshot: &Snapshot<'_>, blocks: &'a Blocks) -> Result<Self> {
        let tree = Tree::new(snapshot.all.limits());
        let mut file = Self { tree, values: Vec::new(), links: Vec::new() };
        let root = file.tree.group_at(ROOT_GROUP)?;
        if let [(_, plan)] = &blocks.blocks[..] {
            file.block(snapshot, root, plan)?;
            // The block has the time.
            let fields = blocks.fields.items.iter().filter(|item| !item.attributes.is_empty());
            file.arrays(root, plan, fields)?;
        } else {
            file.set_type(root, "MultiBlockDataSet", 2)?;
            let assembly = file.tree.add_group(root, "Assembly")?;
            let mut used: HashSet<String> = ["Assembly", "FieldData"].map(String::from).into();
            for (name, plan) in &blocks.blocks {
                let name = unique(name, &mut used);
                let group = file.tree.add_group(root, &name)?;
                file.block(snapshot, group, plan)?;
                let link = format!("{}/{name}", file.tree.node(assembly).path);
                file.links.push((link, format!("/{ROOT_GROUP}/{name}")));
            }
            file.arrays(root, &blocks.fields, blocks.fields.items.iter())?;
        }
        Ok(file)
    }

    fn set_type(&mut self, group: NodeId, kind: &str, minor: u64) -> Result<()> {
        self.tree.push_attr(group, "Version", integers([2, minor]))?;
        self.tree.push_attr(group, "Type", kind)
    }

    /// Adds a grid or points.
    fn block(&mut self, snapshot: &Snapshot<'_>, group: NodeId, plan: &'a Plan) -> Result<()> {
        let is_new = matches!(plan.kind, Kind::Rectilinear | Kind::Structured);
        self.set_type(group, plan.kind.name(), if is_new { 8 } else { 2 })?;
        match plan.kind {
            Kind::Image => {
                let ends = plan.points.iter().flat_map(|n| [0, n.saturating_sub(1)]);
                self.tree.push_attr(group, "WholeExtent", integers(ends))?;
                let mut lines = [(0.0, 1.0); 3];
                for (line, axis) in lines.iter_mut().zip(&plan.axes) {
                    *line = snapshot.uniform(axis)?;
                }
                self.tree.push_attr(group, "Origin", floats(lines.map(|line| line.0)))?;
                self.tree.push_attr(group, "Spacing", floats(lines.map(|line| line.1)))?;
                let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
                self.tree.push_attr(group, "Direction", floats(identity))?;
            }
            Kind::Rectilinear | Kind::Structured => {
                self.tree.push_attr(group, "Dimensions", integers(plan.points))?;
            }
            Kind::Unstructured => {
                self.count_points(group, plan)?;
                self.count_cells(group, plan, "Cells")?;
            }
            Kind::Poly => {
                self.count_points(group, plan)?;
                for (name, section) in SECTIONS {
                    let cells = self.tree.add_group(group, name)?;
                    self.count_cells(cells, plan, section)?;
                }
            }
        }
        self.arrays(group, plan, plan.items.iter())
    }

    fn count_points(&mut self, group: NodeId, plan: &Plan) -> Result<()> {
        let points = plan.items.iter().find(|item| item.section == "Points");
        self.number(group, "NumberOfPoints", points.map_or(0, |item| item.tuples))
    }

    /// Adds the numbers of cells and of their corners, and the arrays of a section without cells.
    fn count_cells(&mut self, group: NodeId, plan: &Plan, section: &str) -> Result<()> {
        let own = || plan.items.iter().filter(|item| item.section == section);
        let count = |name: &str| own().find(|item| item.name == name).map(|item| item.tuples);
        self.number(group, "NumberOfCells", count("offsets").unwrap_or(0))?;
        self.number(group, "NumberOfConnectivityIds", count("connectivity").unwrap_or(0))?;
        if count("offsets").is_none() {
            self.number(group, "Offsets", 0)?;
            self.array(group, "Connectivity", DType::I64, vec![0])?;
            if section == "Cells" {
                self.array(group, "Types", DType::U8, vec![0])?;
            }
        }
        Ok(())
    }

    fn number(&mut self, group: NodeId, name: &str, value: u64) -> Result<()> {
        let layout = Layout::Inline(value.to_le_bytes().into(), Order::C);
        let desc = ArrayDesc::new(DType::I64, Shape::new([1]), layout);
        self.tree.add_array(group, name, desc).map(drop)
    }

    fn array(
        &mut self,
        group: NodeId,
        name: &str,
        dtype: DType,
        lengths: Vec<u64>,
    ) -> Result<NodeId> {
        let zeros = Layout::Fill(vec![0; dtype.size()].into());
        self.tree.add_array(group, name, ArrayDesc::new(dtype, Shape::new(lengths), zeros))
    }

    /// Adds arrays of a block.
    fn arrays(
        &mut self,
        block: NodeId,
        plan: &Plan,
        items: impl Iterator<Item = &'a Item>,
    ) -> Result<()> {
        let mut used: HashMap<&str, HashSet<String>> = HashMap::new();
        // VTK 9.7 cannot read text.
        let numbers = items.filter(|item| !matches!(item.values, Values::Texts(_)));
        for item in numbers {
            let mut lengths = lengths(plan, item);
            let (mut group, mut name, mut before) = (String::new(), item.name.clone(), 0);
            match item.section {
                "Coordinates" => name = format!("{}Coordinates", item.name.to_uppercase()),
                "Points" => name = "Points".into(),
                "PointData" | "CellData" | "FieldData" => {
                    group = format!("/{}", item.section);
                    name = unique(&item.name, used.entry(item.section).or_default());
                }
                section => {
                    let of_surface = SECTIONS.iter().find(|(_, xml)| *xml == section);
                    group = of_surface.map(|(name, _)| format!("/{name}")).unwrap_or_default();
                    name = match name.as_str() {
                        "connectivity" => "Connectivity".into(),
                        "types" if item.dtype == DType::U8 => "Types".into(),
                        "offsets" => {
                            // The first offset, 0, is not in XML files.
                            (lengths[0], before) = (lengths[0].saturating_add(1), 1);
                            "Offsets".into()
                        }
                        _ => {
                            let name = &item.name;
                            let message =
                                format!("VTKHDF has no cells with {name} of {}", item.dtype);
                            return Err(unsupported(message).hint("write .vtu or .vtm"));
                        }
                    };
                }
            }
            let group = format!("{}{group}", self.tree.node(block).path);
            let group = self.tree.group_at(&group)?;
            let id = self.array(group, &name, item.dtype, lengths)?;
            let mut attrs = Attrs::new();
            attrs.extend(item.attributes.iter().map(|(name, value)| (*name, value.clone().into())));
            attrs.extend(item.units.as_ref().map(|units| ("units", units.clone().into())));
            self.tree.set_attrs(id, attrs)?;
            self.values.push((id, item, before));
        }
        Ok(())
    }
}

/// Lengths of the dataset of an array, the slowest index first. Axes of one point are omitted in arrays on points and
/// cells.
fn lengths(plan: &Plan, item: &Item) -> Vec<u64> {
    let is_structured = matches!(plan.kind, Kind::Image | Kind::Rectilinear | Kind::Structured);
    let mut lengths: Vec<u64> = match item.section {
        "Points" if is_structured => plan.points.into(),
        "PointData" if is_structured => plan.points.into_iter().filter(|n| *n != 1).collect(),
        "CellData" if is_structured => {
            let cells = plan.points.iter().filter(|n| **n != 1);
            cells.map(|n| n.saturating_sub(1)).collect()
        }
        _ => vec![item.tuples],
    };
    if lengths.is_empty() {
        lengths.push(1);
    }
    lengths.reverse();
    if item.components != 1 {
        lengths.push(item.components);
    }
    lengths
}

/// A name without slashes that is not in use.
fn unique(name: &str, used: &mut HashSet<String>) -> String {
    let name = name.replace(['/', '\0'], "_");
    let mut unique = name.clone();
    for k in 1.. {
        if used.insert(unique.clone()) {
            break;
        }
        unique = format!("{name}_{k}");
    }
    unique
}
