//! Dimension scales of a new file.

use spile_core::dtype::DType;
use spile_core::layout::Coord;
use spile_core::tree::{NodeId, ROOT, Value};
use spile_interchange::Dimension;

use super::value::attribute;
use super::{DataSource, Flavor, NetCdfType, Writer, netcdf_type};
use crate::to_tree::scales::WITHOUT_VARIABLE;
use crate::write::{Attribute, Data, DatasetType, HeapObject, MAX_MESSAGE, ObjectKind, datatype};

impl Writer {
    /// Adds a scale for every dimension with coordinates; in netCDF for every dimension.
    pub(super) fn add_scales(&mut self) {
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
        }
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
            let (name, dims, data) = (own.to_string(), Vec::new(), Data::Raw(bytes));
            self.plan.objects[object].attributes.push(Attribute { name, kind, dims, data });
        };
        text("CLASS", "DIMENSION_SCALE");
        text("NAME", name);
        if self.flavor == Flavor::NetCdf {
            let number = (self.dimension_ids as u32).to_le_bytes().to_vec();
            self.dimension_ids += 1;
            self.plan.objects[object].attributes.push(Attribute {
                name: "_Netcdf4Dimid".into(),
                kind: datatype::integer(4, true),
                dims: Vec::new(),
                data: Data::Raw(number),
            });
        }
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
            self.add_dimension_list(object, &scales);
            if self.flavor == Flavor::Hdf5 {
                let labels =
                    own.iter().map(|k| Value::from(self.dimensions.list()[*k].name.as_str()));
                let labels = Value::List(labels.collect());
                let made = attribute(&mut self.plan, self.flavor, "DIMENSION_LABELS", &labels);
                self.plan.objects[object].attributes.extend(made);
            }
            self.add_attributes(object, &node.attrs);
            self.add_conventions(object, Some(array), &node.attrs);
            self.add_sample_dimension(object, &node.path, node.parent);
        }
        let groups: Vec<(NodeId, usize)> = self.objects.iter().map(|(id, o)| (*id, *o)).collect();
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
                let attribute = Attribute {
                    name: "REFERENCE_LIST".into(),
                    kind: datatype::compound(16, &members),
                    dims: vec![uses.len() as u64],
                    data: Data::Uses(uses),
                };
                self.plan.objects[scale].attributes.push(attribute);
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
        self.plan.objects[object].attributes.push(Attribute {
            name: "DIMENSION_LIST".into(),
            kind: datatype::references(),
            dims: vec![slots.len() as u64],
            data: Data::Heap(slots),
        });
    }
}
