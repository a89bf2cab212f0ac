//! Groups, datasets and typed attributes of an openPMD file.

use spile_core::format::{GuestAttribute, Loss, LossKind, WriteOptions, Writer};
use spile_core::semantics::Centring;
use spile_core::{
    ArrayDesc, Attrs, Coord, DType, Dataset, Error, Format, NodeId, ROOT, Result, Sink, Tree, Value,
};

use crate::from_tree::{Iteration, iterations, unsupported};
use crate::records::{AXES, Record, Records, Species, plain_name};
use crate::units::{Dimension, LENGTH, NONE, dimension};

/// Largest deviation of a coordinate from a uniform one, as a fraction of the length of the axis.
const TOLERANCE: f64 = 1e-6;

/// Writes all frames of `content`. Returns the fields on grids that are not uniform, which are not written.
pub(crate) fn write(
    hdf5: &dyn Format,
    content: &Dataset,
    sink: &mut Sink,
    options: &WriteOptions,
) -> Result<Vec<Loss>> {
    let Some(Writer::File(host)) = hdf5.abilities().writer else {
        return Err(unsupported("HDF5 is not written"));
    };
    let records = Records::of(content);
    let mut file = File::new(content)?;
    file.root(&records)?;
    for iteration in iterations(content)? {
        file.iteration(&records, &iteration)?;
    }
    let mut options = options.clone();
    options.guest_links = Some(Vec::new());
    options.guest_attributes = file.attributes;
    let mut losses = file.losses;
    losses.extend(host.write(&content.with_tree(file.tree), sink, &options)?);
    Ok(losses)
}

/// The attributes of the root that are written: texts and numbers, true and false as 1 and 0. Step and time belong to
/// iterations.
pub(crate) fn root_attributes(attrs: &Attrs) -> Attrs {
    let written = |(name, value): (&str, &Value)| {
        let value = match value {
            Value::Bool(value) => Value::Int((*value).into()),
            Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Text(_) => value.clone(),
            _ => return None,
        };
        (!matches!(name, "step" | "time")).then(|| (name.to_string(), value))
    };
    attrs.iter().filter_map(written).collect()
}

/// A file before it is written.
struct File<'a> {
    content: &'a Dataset,
    tree: Tree,
    attributes: Vec<GuestAttribute>,
    losses: Vec<Loss>,
}

/// The uniform grid of a field.
struct Grid {
    labels: Vec<String>,
    /// Lower corner of the first cell, or first node.
    offset: Vec<f64>,
    spacing: Vec<f64>,
    /// Position of the values in their cell.
    position: Vec<f64>,
}

impl<'a> File<'a> {
    fn new(content: &'a Dataset) -> Result<Self> {
        let mut tree = Tree::new(content.limits());
        tree.set_attrs(ROOT, root_attributes(content.attrs()))?;
        Ok(Self { content, tree, attributes: Vec::new(), losses: Vec::new() })
    }

    fn attach(
        &mut self,
        path: &str,
        name: &str,
        dtype: DType,
        dims: Vec<u64>,
        bytes: Vec<u8>,
    ) -> Result<()> {
        let cost =
            size_of::<GuestAttribute>() + path.len() + name.len() + bytes.len() + 8 * dims.len();
        self.tree.charge(cost as u64, "attributes")?;
        let (path, name) = (path.to_string(), name.to_string());
        self.attributes.push(GuestAttribute { path, name, dtype, dims, bytes });
        Ok(())
    }

    fn text(&mut self, path: &str, name: &str, text: &str) -> Result<()> {
        let length =
            u32::try_from(text.len().max(1)).map_err(|_| unsupported("text is too long"))?;
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(length as usize, 0);
        self.attach(path, name, DType::text(length), Vec::new(), bytes)
    }

    fn texts(&mut self, path: &str, name: &str, texts: &[String]) -> Result<()> {
        let longest = texts.iter().map(String::len).max().unwrap_or(1).max(1);
        let length = u32::try_from(longest).map_err(|_| unsupported("text is too long"))?;
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend(text.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(longest).max(longest), 0);
        }
        bytes.resize(longest * texts.len(), 0);
        self.attach(path, name, DType::text(length), vec![texts.len() as u64], bytes)
    }

    fn float(&mut self, path: &str, name: &str, value: f64) -> Result<()> {
        self.attach(path, name, DType::F64, Vec::new(), value.to_le_bytes().into())
    }

    fn floats(&mut self, path: &str, name: &str, values: &[f64]) -> Result<()> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.attach(path, name, DType::F64, vec![values.len() as u64], bytes)
    }

    /// The attributes of the file.
    fn root(&mut self, records: &Records) -> Result<()> {
        self.text("", "openPMD", "1.1.0")?;
        self.attach("", "openPMDextension", DType::U32, Vec::new(), vec![0; 4])?;
        self.text("", "basePath", "/data/%T/")?;
        self.text("", "iterationEncoding", "groupBased")?;
        self.text("", "iterationFormat", "/data/%T/")?;
        self.text("", "software", "spile")?;
        self.text("", "softwareVersion", env!("CARGO_PKG_VERSION"))?;
        if !records.meshes.is_empty() {
            self.text("", "meshesPath", "meshes/")?;
        }
        if !records.species.is_empty() {
            self.text("", "particlesPath", "particles/")?;
        }
        Ok(())
    }

    fn iteration(&mut self, records: &Records, at: &Iteration) -> Result<()> {
        let base = format!("data/{}", at.number);
        self.tree.group_at(&base)?;
        self.float(&base, "time", at.time)?;
        self.float(&base, "dt", at.dt)?;
        self.float(&base, "timeUnitSI", 1.0)?;
        for id in &records.scalars {
            let array = self.content.array_in_frame(*id, at.frame.unwrap_or(0))?;
            let value = array.map(|array| array.values()).transpose()?;
            if let Some(value) = value.and_then(|values| values.first().copied()) {
                let name = plain_name(&self.content.tree().node(*id).path);
                self.float(&base, &name, value)?;
            }
        }
        if !records.meshes.is_empty() {
            self.tree.group_at(&format!("{base}/meshes"))?;
        }
        for record in &records.meshes {
            self.mesh(&format!("{base}/meshes/{}", record.name), record, at)?;
        }
        if !records.species.is_empty() {
            self.tree.group_at(&format!("{base}/particles"))?;
        }
        for species in &records.species {
            self.species(&format!("{base}/particles/{}", species.name), species, at)?;
        }
        Ok(())
    }

    /// The description of an array in an iteration; `None` if it does not have it.
    fn in_frame(&self, id: NodeId, at: &Iteration) -> Result<Option<ArrayDesc>> {
        let tree = self.content.tree();
        let Some(own) = tree.array(id) else { return Ok(None) };
        let desc = tree.resolve(own)?;
        let (shape, layout) = match desc.layout.frames() {
            Some(table) => match table.cell(at.frame.unwrap_or(0))? {
                Some(cell) => (cell.shape, cell.layout),
                None => return Ok(None),
            },
            None => (desc.shape.clone(), desc.layout.clone()),
        };
        Ok(Some(ArrayDesc::new(desc.dtype, shape, layout)))
    }

    /// Adds a dataset. Of its attributes it keeps the unit and the path in the source.
    fn dataset(&mut self, path: &str, id: NodeId, desc: ArrayDesc) -> Result<()> {
        let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
        let group = self.tree.group_at(group)?;
        let new = self.tree.add_array(group, name, desc)?;
        let node = self.content.tree().node(id);
        let mut attrs = Attrs::from([("long_name", node.path.as_str().into())]);
        attrs.extend(node.attrs.get_str("units").map(|unit| ("units", unit.into())));
        self.tree.set_attrs(new, attrs)?;
        self.float(path, "unitSI", 1.0)
    }

    /// The powers of the unit of a record.
    fn dimension(&self, record: &Record) -> Dimension {
        let first = record.components.first().map(|(_, id)| self.content.tree().node(*id));
        let unit = first.and_then(|node| node.attrs.get_str("units"));
        unit.and_then(dimension).unwrap_or(NONE)
    }

    fn mesh(&mut self, path: &str, record: &Record, at: &Iteration) -> Result<()> {
        let mut first: Option<Grid> = None;
        for (component, id) in &record.components {
            let Some(desc) = self.in_frame(*id, at)? else { continue };
            let Some(grid) = self.grid(*id, &desc, at)? else {
                let node = self.content.tree().node(*id);
                let loss = Loss::new(&node.path, LossKind::Array, "openPMD meshes are uniform");
                if !self.losses.contains(&loss) {
                    self.losses.push(loss);
                }
                continue;
            };
            let own = component.map_or(path.to_string(), |axis| format!("{path}/{axis}"));
            self.dataset(&own, *id, desc)?;
            self.floats(&own, "position", &grid.position)?;
            first.get_or_insert(grid);
        }
        let Some(grid) = first else { return Ok(()) };
        self.text(path, "geometry", "cartesian")?;
        self.text(path, "dataOrder", "C")?;
        self.texts(path, "axisLabels", &grid.labels)?;
        self.floats(path, "gridSpacing", &grid.spacing)?;
        self.floats(path, "gridGlobalOffset", &grid.offset)?;
        self.float(path, "gridUnitSI", 1.0)?;
        self.floats(path, "unitDimension", &self.dimension(record))?;
        self.float(path, "timeOffset", 0.0)
    }

    /// The grid of a field; `None` if its coordinates are not uniform.
    fn grid(&self, id: NodeId, desc: &ArrayDesc, at: &Iteration) -> Result<Option<Grid>> {
        let tree = self.content.tree();
        let Some(own) = tree.array(id) else { return Ok(None) };
        let mut grid = Grid {
            labels: Vec::new(),
            offset: Vec::new(),
            spacing: Vec::new(),
            position: Vec::new(),
        };
        for (k, length) in desc.shape.lengths().iter().enumerate() {
            let (start, step, on_nodes) = match own.coords.get(k) {
                Some(Coord::Uniform { start, step }) => (*start, *step, true),
                Some(Coord::Node(coord)) => {
                    let Some(line) = self.line(*coord, *length, at)? else { return Ok(None) };
                    (line.0, line.1, !tree.node(*coord).name.ends_with("_mid"))
                }
                _ => return Ok(None),
            };
            let is_staggered = match own.semantics().centring {
                Some(Centring::Node) => true,
                Some(Centring::Face(axis)) => axis == k,
                Some(Centring::Edge(axis)) => axis != k,
                _ => false,
            };
            // One value per cell that is not at its centre is at the upper face.
            let position = match (on_nodes, is_staggered) {
                (true, _) => 0.0,
                (false, true) => 1.0,
                (false, false) => 0.5,
            };
            grid.labels.push(own.dims.get(k).map_or_else(String::new, |dim| dim.to_lowercase()));
            grid.offset.push(if on_nodes { start } else { start - step / 2.0 });
            grid.spacing.push(step);
            grid.position.push(position);
        }
        Ok(Some(grid))
    }

    /// Start and step of a coordinate; `None` if it is not uniform or has another length.
    fn line(&self, id: NodeId, length: u64, at: &Iteration) -> Result<Option<(f64, f64)>> {
        let Some(array) = self.content.array_in_frame(id, at.frame.unwrap_or(0))? else {
            return Ok(None);
        };
        let points = array.values()?;
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(None) };
        if points.len() as u64 != length {
            return Ok(None);
        }
        if points.len() == 1 {
            return Ok(Some((*first, 1.0)));
        }
        let step = (last - first) / (points.len() - 1) as f64;
        let off = |(k, x): (usize, &f64)| (first + k as f64 * step - x).abs();
        let worst = points.iter().enumerate().map(off).fold(0.0, f64::max);
        // NaN is never within the tolerance.
        let is_uniform = worst <= TOLERANCE * (last - first).abs();
        Ok(is_uniform.then_some((*first, step)))
    }

    fn species(&mut self, path: &str, species: &Species, at: &Iteration) -> Result<()> {
        let mut axes = Vec::new();
        for (axis, id) in AXES.into_iter().zip(&species.positions) {
            axes.extend(self.in_frame(*id, at)?.map(|desc| (axis, *id, desc)));
        }
        let count = axes.first().and_then(|(_, _, desc)| desc.shape.count()).unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        for (axis, id, desc) in axes {
            self.dataset(&format!("{path}/position/{axis}"), id, desc)?;
            let offset = format!("{path}/positionOffset/{axis}");
            self.tree.group_at(&offset)?;
            self.float(&offset, "value", 0.0)?;
            self.attach(&offset, "shape", DType::U64, vec![1], count.to_le_bytes().into())?;
            self.float(&offset, "unitSI", 1.0)?;
        }
        for record in ["position", "positionOffset"] {
            let record = format!("{path}/{record}");
            self.floats(&record, "unitDimension", &LENGTH)?;
            self.float(&record, "timeOffset", 0.0)?;
        }
        for record in &species.records {
            let own = format!("{path}/{}", record.name);
            let mut any = false;
            for (component, id) in &record.components {
                let Some(desc) = self.in_frame(*id, at)? else { continue };
                if desc.shape.count() != Some(count) {
                    let node = &self.content.tree().node(*id).path;
                    let message = format!("expected {count} particles, found {}", desc.shape);
                    return Err(
                        Error::unsupported("openpmd-002", message).in_object(format!("\"{node}\""))
                    );
                }
                let target = component.map_or(own.clone(), |axis| format!("{own}/{axis}"));
                self.dataset(&target, *id, desc)?;
                any = true;
            }
            if any {
                self.floats(&own, "unitDimension", &self.dimension(record))?;
                self.float(&own, "timeOffset", 0.0)?;
            }
        }
        Ok(())
    }
}
