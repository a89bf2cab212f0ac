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

use super::series::{Frame, Run, Series};
use super::{METADATA, ROOT_GROUP, SECTIONS, STEP_NUMBERS, STEPS};
use crate::from_tree::{Item, Kind, Plan, Values, unsupported};
use crate::to_tree::AXIS_NAMES;
use crate::write::write_values;

/// A file before its values are written.
struct File<'a> {
    series: &'a Series<'a>,
    tree: Tree,
    values: Vec<Stored<'a>>,
    /// Soft links and their targets.
    links: Vec<(String, String)>,
}

/// A dataset whose values are written after the structure of the file.
struct Stored<'a> {
    id: NodeId,
    /// Number of the block; the field data of the file are the last.
    block: usize,
    item: &'a Item,
    /// Number of elements before the values of each part.
    places: Vec<u64>,
}

/// Fails if the file cannot be written. Reads no values.
pub(super) fn check(series: &Series<'_>) -> Result<()> {
    File::new(series).map(drop)
}

/// Writes all meshes and species of all frames.
pub(super) fn write(hdf5: &dyn Format, series: &Series<'_>, sink: &mut Sink) -> Result<()> {
    let mut file = File::new(series)?;
    let root = file.tree.group_at(ROOT_GROUP)?;
    file.tree.push_attr(root, METADATA, series.metadata()?)?;
    let Some(Writer::File(host)) = hdf5.abilities().writer else {
        return Err(unsupported("HDF5 is not written"));
    };
    let mut options = WriteOptions::default();
    options.guest_links = Some(file.links);
    let content = series.content;
    let structure = content.with_tree(file.tree);
    host.write(&structure, sink, &options)?;
    let written = Dataset::open(hdf5, sink.source()?, &OpenOptions::from(content.limits()))?;
    let mut offsets = Vec::new();
    for stored in &file.values {
        let path = &structure.tree().node(stored.id).path;
        let desc = written.tree().at(path).and_then(|id| written.tree().array(id));
        let Some(desc) = desc else { return Err(unsupported("not written").in_object(path)) };
        let at = match &desc.layout {
            Layout::Plain { extents, .. } => extents.parts().first().map_or(0, |part| part.offset),
            _ if desc.shape.count() == Some(0) => 0,
            _ => return Err(unsupported("the dataset is not contiguous").in_object(path)),
        };
        offsets.push(at);
    }
    for number in 0..series.frames.unwrap_or(1) {
        let later = if number > 0 { Some(series.frame(number)?) } else { None };
        let frame = later.as_ref().unwrap_or(&series.first);
        for (stored, at) in file.values.iter().zip(&offsets) {
            let Some(place) = stored.places.get(number as usize) else { continue };
            let item = frame.item(stored.block, stored.item)?;
            if item.bytes()? > 0 {
                let at = at + place * item.dtype.size() as u64;
                write_values(&frame.snapshot, item, sink, at)?;
            }
        }
    }
    Ok(())
}

fn integers(values: impl IntoIterator<Item = u64>) -> Value {
    Value::List(values.into_iter().map(|value| Value::Int(value as i64)).collect())
}

fn floats(values: impl IntoIterator<Item = f64>) -> Value {
    Value::List(values.into_iter().map(Value::Float).collect())
}

/// The arrays of a block that are written, with their numbers and their tuples.
struct Block<'a> {
    number: usize,
    plan: &'a Plan,
    runs: &'a [Option<Run>],
}

impl<'a> Block<'a> {
    fn items(&self) -> impl Iterator<Item = (&'a Item, &'a Run)> {
        let items = self.plan.items.iter().zip(self.runs);
        items.filter_map(|(item, run)| Some((item, run.as_ref()?)))
    }

    /// The tuples of an array.
    fn run(&self, section: &str, name: Option<&str>) -> Option<&'a Run> {
        let is_it = |item: &Item| item.section == section && name.is_none_or(|n| item.name == n);
        self.items().find(|(item, _)| is_it(item)).map(|(_, run)| run)
    }

    /// Number of parts of points and cells.
    fn parts(&self) -> usize {
        let data = ["PointData", "CellData", "FieldData"];
        let own = self.items().filter(|(item, _)| !data.contains(&item.section));
        own.map(|(_, run)| run.parts()).max().unwrap_or(1)
    }
}

impl<'a> File<'a> {
    fn new(series: &'a Series<'a>) -> Result<Self> {
        let tree = Tree::new(series.content.limits());
        let mut file = Self { series, tree, values: Vec::new(), links: Vec::new() };
        let root = file.tree.group_at(ROOT_GROUP)?;
        let Frame { blocks, .. } = &series.first;
        let last = blocks.blocks.len();
        let block =
            |number: usize, plan: &'a Plan| Block { number, plan, runs: &series.runs[number] };
        let fields = block(last, &blocks.fields);
        if let [(_, plan)] = &blocks.blocks[..] {
            file.block(root, &block(0, plan))?;
            // The block has the time.
            let own = fields.items().filter(|(item, _)| !item.attributes.is_empty());
            file.arrays(root, &fields, own)?;
        } else {
            file.set_type(root, "MultiBlockDataSet", 2)?;
            file.steps(root)?;
            let assembly = file.tree.add_group(root, "Assembly")?;
            let mut used: HashSet<String> =
                ["Assembly", "FieldData", STEPS].map(String::from).into();
            for (number, (name, plan)) in blocks.blocks.iter().enumerate() {
                let name = unique(name, &mut used);
                let group = file.tree.add_group(root, &name)?;
                file.block(group, &block(number, plan))?;
                let link = format!("{}/{name}", file.tree.node(assembly).path);
                file.links.push((link, format!("/{ROOT_GROUP}/{name}")));
            }
            file.arrays(root, &fields, fields.items())?;
        }
        Ok(file)
    }

    fn set_type(&mut self, group: NodeId, kind: &str, minor: u64) -> Result<()> {
        self.tree.push_attr(group, "Version", integers([2, minor]))?;
        self.tree.push_attr(group, "Type", kind)
    }

    /// Adds the times of the frames to a block or the file.
    fn steps(&mut self, group: NodeId) -> Result<()> {
        let (Some(frames), Some(axis)) = (self.series.frames, self.series.content.tree().frames())
        else {
            return Ok(());
        };
        let steps = self.tree.add_group(group, STEPS)?;
        self.tree.push_attr(steps, "NSteps", Value::Int(frames as i64))?;
        let (mut times, mut numbers) = (Vec::new(), Vec::new());
        for frame in 0..frames {
            let (time, step) = (axis.time(frame)?, axis.step(frame)?);
            let shown = time.or(step.map(|step| step as f64)).unwrap_or(frame as f64);
            times.extend(shown.to_le_bytes());
            numbers.extend(step.unwrap_or(0).to_le_bytes());
        }
        let shape = || Shape::new([frames]);
        let values =
            self.tree.add_array(steps, "Values", ArrayDesc::inline(DType::F64, shape(), times))?;
        let known = |what: &dyn Fn(u64) -> bool| (0..frames).all(what);
        let has_times = known(&|frame| matches!(axis.time(frame), Ok(Some(_))));
        let has_steps = known(&|frame| matches!(axis.step(frame), Ok(Some(_))));
        if !has_times {
            // They are steps or numbers of frames.
            self.tree.push_attr(values, "times", Value::Bool(false))?;
        }
        if has_steps {
            let desc = ArrayDesc::inline(DType::U64, shape(), numbers);
            self.tree.add_array(steps, STEP_NUMBERS, desc)?;
        }
        Ok(())
    }

    /// Adds a list of numbers per step, of `columns` columns, unless the file has no steps.
    fn per_step(
        &mut self,
        group: NodeId,
        name: &str,
        columns: u64,
        value: impl Fn(usize) -> Vec<u64>,
    ) -> Result<()> {
        let Some(frames) = self.series.frames else { return Ok(()) };
        let numbers: Vec<u64> = (0..frames as usize).flat_map(value).collect();
        let lengths = if columns == 0 { vec![frames] } else { vec![frames, columns] };
        let path = format!("{}/{STEPS}/{name}", self.tree.node(group).path);
        let (above, name) = path.rsplit_once('/').unwrap_or_default();
        let above = self.tree.group_at(above)?;
        self.numbers(above, name, &numbers, lengths)
    }

    /// Adds a grid or points.
    fn block(&mut self, group: NodeId, block: &Block<'a>) -> Result<()> {
        let plan = block.plan;
        let is_new = matches!(plan.kind, Kind::Rectilinear | Kind::Structured);
        self.set_type(group, plan.kind.name(), if is_new { 8 } else { 2 })?;
        self.steps(group)?;
        match plan.kind {
            Kind::Image => {
                // First and last index of each axis; the last one of an axis without points is -1.
                let ends = plan.points.iter().flat_map(|n| [0, *n as i64 - 1]);
                let ends = Value::List(ends.map(Value::Int).collect());
                self.tree.push_attr(group, "WholeExtent", ends)?;
                let mut lines = [(0.0, 1.0); 3];
                for (line, axis) in lines.iter_mut().zip(&plan.axes) {
                    *line = self.series.first.snapshot.uniform(axis)?;
                }
                self.tree.push_attr(group, "Origin", floats(lines.map(|line| line.0)))?;
                self.tree.push_attr(group, "Spacing", floats(lines.map(|line| line.1)))?;
                let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
                self.tree.push_attr(group, "Direction", floats(identity))?;
            }
            Kind::Rectilinear | Kind::Structured => {
                self.tree.push_attr(group, "Dimensions", integers(plan.points))?;
                let names = match plan.kind {
                    Kind::Structured => &["PointOffsets"][..],
                    _ => &["XCoordinatesOffsets", "YCoordinatesOffsets", "ZCoordinatesOffsets"],
                };
                for name in names {
                    self.per_step(group, name, 0, |_| vec![0])?;
                }
            }
            Kind::Unstructured => {
                self.parts(group, block, &[(group, "Cells")])?;
            }
            Kind::Poly => {
                let mut cells = Vec::new();
                for (name, section) in SECTIONS {
                    cells.push((self.tree.add_group(group, name)?, section));
                }
                self.parts(group, block, &cells)?;
            }
        }
        self.arrays(group, block, block.items())
    }

    /// Adds the numbers of points and of cells, and where those of each step begin.
    fn parts(&mut self, group: NodeId, block: &Block<'a>, cells: &[(NodeId, &str)]) -> Result<()> {
        let parts = block.parts();
        let counts = |run: Option<&Run>| -> Vec<u64> {
            (0..parts).map(|part| run.map_or(0, |run| run.count(part))).collect()
        };
        let points = block.run("Points", None);
        self.numbers(group, "NumberOfPoints", &counts(points), vec![parts as u64])?;
        let mut starts = Vec::new();
        for (own, section) in cells {
            let offsets = block.run(section, Some("offsets"));
            let corners = block.run(section, Some("connectivity"));
            self.numbers(*own, "NumberOfCells", &counts(offsets), vec![parts as u64])?;
            let corner_counts = counts(corners);
            self.numbers(*own, "NumberOfConnectivityIds", &corner_counts, vec![parts as u64])?;
            if offsets.is_none() {
                let entries = if *section == "Cells" { parts } else { 1 };
                self.numbers(*own, "Offsets", &vec![0; entries], vec![entries as u64])?;
                self.array(*own, "Connectivity", DType::I64, vec![0])?;
                if *section == "Cells" {
                    self.array(*own, "Types", DType::U8, vec![0])?;
                }
            }
            starts.push((offsets, corners));
        }
        let start = |run: Option<&Run>, step: usize| run.map_or(0, |run| run.start(step));
        let columns = cells.len() as u64;
        self.per_step(group, "NumberOfParts", 0, |_| vec![1])?;
        self.per_step(group, "PartOffsets", 0, |step| vec![step.min(parts - 1) as u64])?;
        self.per_step(group, "PointOffsets", 0, |step| vec![start(points, step)])?;
        let all = |pick: usize, step: usize| -> Vec<u64> {
            let both = starts.iter().map(|(offsets, corners)| [*offsets, *corners][pick]);
            both.map(|run| start(run, step)).collect()
        };
        self.per_step(group, "CellOffsets", columns, |step| all(0, step))?;
        self.per_step(group, "ConnectivityIdOffsets", columns, |step| all(1, step))
    }

    fn numbers(
        &mut self,
        group: NodeId,
        name: &str,
        values: &[u64],
        lengths: Vec<u64>,
    ) -> Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let layout = Layout::Inline(bytes.into(), Order::C);
        let desc = ArrayDesc::new(DType::I64, Shape::new(lengths), layout);
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
        group: NodeId,
        block: &Block<'a>,
        items: impl Iterator<Item = (&'a Item, &'a Run)>,
    ) -> Result<()> {
        let mut used: HashMap<&str, HashSet<String>> = HashMap::new();
        let mut axes = AXIS_NAMES.into_iter();
        // VTK 9.7 cannot read text.
        for (item, run) in items.filter(|(item, _)| !matches!(item.values, Values::Texts(_))) {
            let mut lengths = lengths(block.plan, item, run, self.series.frames.is_some());
            let starts = (0..run.parts()).map(|part| run.start(part) * item.components);
            let mut places: Vec<u64> = starts.collect();
            let (mut section, mut name) = (String::new(), item.name.clone());
            match item.section {
                "Coordinates" => {
                    // They are in the order of the axes; their names may be those of arrays.
                    let axis = axes.next().unwrap_or_default();
                    name = format!("{}Coordinates", axis.to_uppercase());
                }
                "Points" => name = "Points".into(),
                "PointData" | "CellData" | "FieldData" => {
                    section = format!("/{}", item.section);
                    name = unique(&item.name, used.entry(item.section).or_default());
                    self.data_offsets(group, block, (item, run), &name)?;
                }
                of_cells => {
                    let of_surface = SECTIONS.iter().find(|(_, xml)| *xml == of_cells);
                    section = of_surface.map(|(name, _)| format!("/{name}")).unwrap_or_default();
                    name = match name.as_str() {
                        "connectivity" => "Connectivity".into(),
                        "types" if item.dtype == DType::U8 => "Types".into(),
                        "offsets" => {
                            (places, lengths) = offset_places(run, of_surface.is_none());
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
            let section = format!("{}{section}", self.tree.node(group).path);
            let section = self.tree.group_at(&section)?;
            let id = self.array(section, &name, item.dtype, lengths)?;
            let mut attrs = Attrs::new();
            attrs.extend(item.attributes.iter().map(|(name, value)| (*name, value.clone().into())));
            attrs.extend(item.units.as_ref().map(|units| ("units", units.clone().into())));
            self.tree.set_attrs(id, attrs)?;
            self.values.push(Stored { id, block: block.number, item, places });
        }
        Ok(())
    }

    /// Adds where the values of an array begin in each step.
    fn data_offsets(
        &mut self,
        group: NodeId,
        block: &Block<'a>,
        (item, run): (&Item, &Run),
        name: &str,
    ) -> Result<()> {
        let on_grid = is_structured(block.plan) && item.section != "FieldData";
        let start =
            |step: usize| vec![if on_grid { run.part(step) as u64 } else { run.start(step) }];
        self.per_step(group, &format!("{}Offsets/{name}", item.section), 0, start)?;
        if item.section == "FieldData" {
            let sizes = |step: usize| vec![item.components, run.count(step)];
            self.per_step(group, &format!("FieldDataSizes/{name}"), 2, sizes)?;
        }
        Ok(())
    }
}

fn is_structured(plan: &Plan) -> bool {
    matches!(plan.kind, Kind::Image | Kind::Rectilinear | Kind::Structured)
}

/// Places of the offsets of cells, and the length of their dataset. Each part begins with a 0, which XML files do not
/// have; in surfaces, readers count only parts that begin before the first cell of the part (`vtkHDFReader`).
fn offset_places(run: &Run, for_each: bool) -> (Vec<u64>, Vec<u64>) {
    let (mut places, mut len) = (Vec::new(), 0_u64);
    let mut before = 0;
    for part in 0..run.parts() {
        let start = run.start(part);
        while before < part && run.start(before) < start {
            before += 1;
        }
        let zeros = if for_each { part } else { before };
        let place = start.saturating_add(zeros as u64).saturating_add(1);
        places.push(place);
        len = len.max(place.saturating_add(run.count(part)));
    }
    (places, vec![len])
}

/// Lengths of the dataset of an array, the slowest index first: with steps, the parts of grids are the first one. Axes
/// of one point are omitted in arrays on points and cells.
fn lengths(plan: &Plan, item: &Item, run: &Run, with_steps: bool) -> Vec<u64> {
    let is_structured = is_structured(plan);
    let on_grid = ["Points", "PointData", "CellData"].contains(&item.section) && is_structured;
    let mut lengths: Vec<u64> = match item.section {
        "Points" if is_structured => plan.points.into(),
        "PointData" if is_structured => plan.points.into_iter().filter(|n| *n != 1).collect(),
        "CellData" if is_structured => {
            let cells = plan.points.iter().filter(|n| **n != 1);
            cells.map(|n| n.saturating_sub(1)).collect()
        }
        _ => vec![run.total()],
    };
    if lengths.is_empty() {
        lengths.push(1);
    }
    if on_grid && with_steps {
        lengths.push(run.parts() as u64);
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
