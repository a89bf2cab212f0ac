//! Dimension scales of a new file.

use std::collections::HashMap;

use spile_core::dtype::DType;
use spile_core::layout::Coord;
use spile_core::tree::{NodeId, ROOT, Value};
use spile_interchange::Dimension;

use super::attribute::attach_value;
use super::{DataSource, Flavor, NetCdfType, Writer, netcdf_type};
use crate::to_tree::scales::WITHOUT_VARIABLE;
use crate::write::{Data, DatasetType, HeapObject, MAX_MESSAGE, ObjectKind, datatype};

impl Writer {
    /// Adds a scale for every dimension with coordinates; in netCDF for every dimension.
    pub(super) fn add_scales(&mut self) {
        let units = self.dimension_units();
        for (k, dimension) in self.dimensions.list().to_vec().into_iter().enumerate() {
            let Dimension { name, len, coord } = dimension;
            let scale = match coord {
                Coord::Node(id) => {
                    let Some(own) = self.objects.get(&id).copied() else { continue };
                    let is_scale =
                        self.paths.get(&id) == Some(&name) || self.flavor == Flavor::Hdf5;
                    if is_scale { own } else { self.copy_coordinates(&name, id) }
                }
                Coord::Uniform { start, step } => {
                    let kind = DatasetType::Own(datatype::of(DType::F64));
                    let bytes = len * 8;
                    let kind = ObjectKind::Dataset { kind, dims: vec![len], bytes, external: None };
                    let object = self.plan.add(kind);
                    let name = self.link_root(&name, object);
                    self.flat.metadata.add_auxiliary(name);
                    self.data.push((object, DataSource::Uniform { start, step, len }));
                    let mut attrs = self.variables.dimension_attributes(k);
                    if let (true, Some(units)) = (attrs.is_empty(), units.get(&k)) {
                        attrs.push("units", units.as_str());
                    }
                    self.add_attributes(object, &attrs);
                    object
                }
                Coord::None if self.flavor == Flavor::NetCdf => {
                    self.scales[k] = Some(self.length_dimension(&name, len));
                    continue;
                }
                Coord::None => continue,
            };
            self.make_scale(scale, &name);
            self.scales[k] = Some(scale);
            if self.flavor == Flavor::NetCdf {
                self.add_dimensions_of_scale(scale);
            }
        }
    }

    /// Units of uniform coordinates, which arrays have as attributes: `time_units`.
    fn dimension_units(&self) -> HashMap<usize, String> {
        let mut units = HashMap::new();
        for (id, node, array) in self.flat.tree().arrays() {
            for (k, dim) in self.dimensions.array(id).iter().zip(&array.dims) {
                if let Some(own) = node.attrs.get_str(&format!("{dim}_units")) {
                    units.entry(*k).or_insert_with(|| own.to_string());
                }
            }
        }
        units
    }

    /// Adds a copy of the coordinates under the name of the dimension, where netCDF looks for them.
    fn copy_coordinates(&mut self, name: &str, id: NodeId) -> usize {
        let node = self.flat.tree().node(id).clone();
        let object = match &node.array {
            // The array itself was added before, so this does not fail.
            Some(array) => self.dataset(array).unwrap_or(0),
            None => 0,
        };
        let name = self.link_root(name, object);
        self.flat.metadata.add_auxiliary(name);
        self.data.push((object, DataSource::Array(id)));
        self.add_attributes(object, &node.attrs);
        self.add_conventions(object, node.array.as_ref(), &node.attrs);
        object
    }

    /// Adds a netCDF dimension without a variable.
    fn length_dimension(&mut self, name: &str, len: u64) -> usize {
        let kind = DatasetType::Own(datatype::of(DType::F32));
        let kind = ObjectKind::Dataset { kind, dims: vec![len], bytes: 0, external: None };
        let object = self.plan.add(kind);
        self.link_root(name, object);
        self.make_scale(object, &format!("{WITHOUT_VARIABLE}{len:10}"));
        object
    }

    /// Makes a dataset a dimension scale.
    fn make_scale(&mut self, object: usize, name: &str) {
        let mut text = |own: &str, value: &str| {
            let bytes = [value.as_bytes(), &[0]].concat();
            let kind = datatype::terminated_text(bytes.len() as u32);
            self.plan.attach(object, own, kind, Vec::new(), Data::Raw(bytes));
        };
        text("CLASS", "DIMENSION_SCALE");
        text("NAME", name);
        if self.flavor == Flavor::NetCdf {
            self.scale_ids.insert(object, self.dimension_ids);
            let number = (self.dimension_ids as u32).to_le_bytes().to_vec();
            self.dimension_ids += 1;
            let kind = datatype::integer(4, true);
            self.plan.attach(object, "_Netcdf4Dimid", kind, Vec::new(), Data::Raw(number));
        }
    }

    /// Adds the dimensions of a scale of texts, which has another one for their characters: scales have no list of
    /// scales, and netCDF libraries do not open a file without this attribute.
    fn add_dimensions_of_scale(&mut self, scale: usize) {
        let ObjectKind::Dataset { dims, .. } = &self.plan.objects[scale].kind else { return };
        let [_, len] = dims[..] else { return };
        let own = self.dimension_ids - 1;
        let characters = self.string_dimension(len);
        let other = self.scale_ids.get(&characters).copied().unwrap_or(0);
        let bytes = [own, other].iter().flat_map(|id| (*id as u32).to_le_bytes()).collect();
        let kind = datatype::integer(4, true);
        self.plan.attach(scale, "_Netcdf4Coordinates", kind, vec![2], Data::Raw(bytes));
    }

    /// Adds the attributes of all arrays and groups, with the lists of scales.
    pub(super) fn attach_scales(&mut self) {
        let arrays: Vec<NodeId> = self.flat.tree().arrays().map(|(id, ..)| id).collect();
        for id in arrays {
            let Some(object) = self.objects.get(&id).copied() else { continue };
            let node = self.flat.tree().node(id).clone();
            let Some(array) = &node.array else { continue };
            let mut own: Vec<usize> = self.dimensions.array(id).to_vec();
            self.reverse_dims(id, &mut own);
            let mut scales: Vec<Option<usize>> = own.iter().map(|k| self.scales[*k]).collect();
            if self.flavor == Flavor::NetCdf
                && matches!(netcdf_type(array.dtype), NetCdfType::Characters)
            {
                scales.push(Some(self.string_dimension(array.dtype.size().max(1) as u64)));
            }
            if self.flavor == Flavor::Hdf5 || !self.scale_ids.contains_key(&object) {
                self.add_dimension_list(object, &scales);
            }
            if self.flavor == Flavor::Hdf5 {
                let labels =
                    own.iter().map(|k| Value::from(self.dimensions.list()[*k].name.as_str()));
                let labels = Value::List(labels.collect());
                attach_value(&mut self.plan, self.flavor, object, "DIMENSION_LABELS", &labels);
            }
            self.add_missing_values(object, array.dtype, &node.attrs);
            self.add_attributes(object, &node.attrs);
            let attrs = self.variables.attributes(id);
            self.add_attributes(object, &attrs);
            self.add_conventions(object, Some(array), &node.attrs);
            self.add_sample_dimension(object, &node.path, node.parent);
        }
        let mut groups: Vec<(NodeId, usize)> =
            self.objects.iter().map(|(id, object)| (*id, *object)).collect();
        groups.sort_unstable_by_key(|(_, object)| *object);
        for (id, object) in groups {
            if self.flat.tree().node(id).array.is_none() && id != ROOT {
                let attrs = self.flat.tree().node(id).attrs.clone();
                self.add_attributes(object, &attrs);
            }
        }
        let mut uses: Vec<_> = std::mem::take(&mut self.uses).into_iter().collect();
        uses.sort_unstable_by_key(|(scale, _)| *scale);
        for (scale, uses) in uses {
            // Only needed to detach scales.
            if uses.len() * 16 < MAX_MESSAGE {
                let members = [
                    ("dataset", 0, datatype::reference()),
                    ("dimension", 8, datatype::integer(4, false)),
                ];
                let (kind, dims) = (datatype::compound(16, &members), vec![uses.len() as u64]);
                self.plan.attach(scale, "REFERENCE_LIST", kind, dims, Data::Uses(uses));
            }
        }
    }

    fn string_dimension(&mut self, len: u64) -> usize {
        if let Some(known) = self.string_dimensions.get(&len) {
            return *known;
        }
        let object = self.length_dimension(&format!("string{len}"), len);
        self.string_dimensions.insert(len, object);
        object
    }

    /// Adds `DIMENSION_LIST`, unless the object has no scale except itself.
    fn add_dimension_list(&mut self, object: usize, scales: &[Option<usize>]) {
        let others = scales.iter().map(|scale| scale.filter(|s| *s != object));
        let others: Vec<Option<usize>> = others.collect();
        if others.iter().all(Option::is_none) {
            return;
        }
        let mut slots = Vec::new();
        for (k, scale) in others.iter().enumerate() {
            slots.push(scale.map(|scale| {
                self.uses.entry(scale).or_default().push((object, k as u32));
                (1, self.plan.add_heap_object(HeapObject::Object(scale)))
            }));
        }
        let (kind, dims) = (datatype::references(), vec![slots.len() as u64]);
        self.plan.attach(object, "DIMENSION_LIST", kind, dims, Data::Heap(slots));
    }
}
