//! Dimension scales: which dataset has the points of which dimension.

use spile_core::axes::Dimension;
use spile_core::dtype::DType;
use spile_core::layout::Coord;
use spile_core::tree::{NodeId, ROOT, Value};

use super::file::{Attribute, Data, LONGEST, Slot, Stored, What};
use super::values::attribute;
use super::{Carrier, Origin, Rules, Writer, carrier, types};
use crate::scales::NO_VARIABLE;

impl Writer<'_> {
    /// A scale for every dimension that has points, and in netCDF for every one.
    pub(super) fn scales(&mut self) {
        for (k, dimension) in self.dimensions.list().to_vec().into_iter().enumerate() {
            let Dimension { name, len, coord } = dimension;
            let scale = match coord {
                Coord::Node(id) => {
                    let Some(own) = self.objects.get(&id).copied() else { continue };
                    let itself = self.paths.get(&id) == Some(&name) || self.rules == Rules::Hdf5;
                    if itself { own } else { self.copy(&name, id) }
                }
                Coord::Uniform { start, step } => {
                    let kind = Stored::Own(types::of(DType::F64));
                    let bytes = len * 8;
                    let what = What::Dataset { kind, dims: vec![len], bytes, elsewhere: None };
                    let object = self.outline.add(what);
                    let name = self.link_root(&name, object);
                    self.flat.description.made(name);
                    self.origins.push((object, Origin::Points { start, step, len }));
                    object
                }
                Coord::None if self.rules == Rules::NetCdf => {
                    self.scales[k] = Some(self.bare(&name, len));
                    continue;
                }
                Coord::None => continue,
            };
            self.mark(scale, &name);
            self.scales[k] = Some(scale);
        }
    }

    /// netCDF finds the points of a dimension only beside it, under its name.
    fn copy(&mut self, name: &str, id: NodeId) -> usize {
        let node = self.flat.tree().node(id).clone();
        let object = match &node.array {
            // It was written once already, so it can be.
            Some(array) => self.dataset(array).unwrap_or(0),
            None => 0,
        };
        let name = self.link_root(name, object);
        self.flat.description.made(name);
        self.origins.push((object, Origin::Array(id)));
        self.say(object, &node.attrs);
        self.map(object, node.array.as_ref());
        object
    }

    /// A dimension without points.
    fn bare(&mut self, name: &str, len: u64) -> usize {
        let kind = Stored::Own(types::of(DType::F32));
        let what = What::Dataset { kind, dims: vec![len], bytes: 0, elsewhere: None };
        let object = self.outline.add(what);
        self.link_root(name, object);
        self.mark(object, &format!("{NO_VARIABLE}{len:10}"));
        object
    }

    /// Makes a dataset a dimension scale.
    fn mark(&mut self, object: usize, name: &str) {
        let mut text = |own: &str, value: &str| {
            let bytes = [value.as_bytes(), &[0]].concat();
            let kind = types::ended_text(bytes.len() as u32);
            let (name, dims, data) = (own.to_string(), Vec::new(), Data::Raw(bytes));
            self.outline.objects[object].attributes.push(Attribute { name, kind, dims, data });
        };
        text("CLASS", "DIMENSION_SCALE");
        text("NAME", name);
        if self.rules == Rules::NetCdf {
            let number = (self.numbers as u32).to_le_bytes().to_vec();
            self.numbers += 1;
            self.outline.objects[object].attributes.push(Attribute {
                name: "_Netcdf4Dimid".into(),
                kind: types::integer(4, true),
                dims: Vec::new(),
                data: Data::Raw(number),
            });
        }
    }

    /// Says of every array which scales its dimensions have.
    pub(super) fn attach(&mut self) {
        let arrays: Vec<NodeId> = self.flat.tree().arrays().map(|(id, ..)| id).collect();
        for id in arrays {
            let Some(object) = self.objects.get(&id).copied() else { continue };
            let node = self.flat.tree().node(id).clone();
            let Some(array) = &node.array else { continue };
            let mut own: Vec<usize> = self.dimensions.array(id).to_vec();
            self.turn(id, &mut own);
            let mut scales: Vec<Option<usize>> = own.iter().map(|k| self.scales[*k]).collect();
            if self.rules == Rules::NetCdf && matches!(carrier(array.dtype), Carrier::Characters) {
                scales.push(Some(self.character_dimension(array.dtype.size().max(1) as u64)));
            }
            self.list(object, &scales);
            if self.rules == Rules::Hdf5 {
                let labels =
                    own.iter().map(|k| Value::from(self.dimensions.list()[*k].name.as_str()));
                let labels = Value::List(labels.collect());
                let made = attribute(&mut self.outline, self.rules, "DIMENSION_LABELS", &labels);
                self.outline.objects[object].attributes.extend(made);
            }
            self.say(object, &node.attrs);
            self.map(object, Some(array));
            self.sample_dimension(object, &node.path, node.parent);
        }
        let groups: Vec<(NodeId, usize)> = self.objects.iter().map(|(id, o)| (*id, *o)).collect();
        for (id, object) in groups {
            if self.flat.tree().node(id).array.is_none() && id != ROOT {
                let attrs = self.flat.tree().node(id).attrs.clone();
                self.say(object, &attrs);
            }
        }
        let mut uses: Vec<_> = std::mem::take(&mut self.uses).into_iter().collect();
        uses.sort_unstable_by_key(|(scale, _)| *scale);
        for (scale, uses) in uses {
            // Readers do not need it; who takes scales off does.
            if uses.len() * 16 < LONGEST {
                let members = [
                    ("dataset", 0, types::reference()),
                    ("dimension", 8, types::integer(4, false)),
                ];
                let attribute = Attribute {
                    name: "REFERENCE_LIST".into(),
                    kind: types::compound(16, &members),
                    dims: vec![uses.len() as u64],
                    data: Data::Uses(uses),
                };
                self.outline.objects[scale].attributes.push(attribute);
            }
        }
    }

    fn character_dimension(&mut self, len: u64) -> usize {
        if let Some(known) = self.characters.get(&len) {
            return *known;
        }
        let object = self.bare(&format!("string{len}"), len);
        self.characters.insert(len, object);
        object
    }

    /// The list of scales, if there are any; a scale has none of its own.
    fn list(&mut self, object: usize, scales: &[Option<usize>]) {
        let others = scales.iter().map(|scale| scale.filter(|s| *s != object));
        let others: Vec<Option<usize>> = others.collect();
        if others.iter().all(Option::is_none) {
            return;
        }
        let mut slots = Vec::new();
        for (k, scale) in others.iter().enumerate() {
            slots.push(scale.map(|scale| {
                self.uses.entry(scale).or_default().push((object, k as u32));
                (1, self.outline.slot(Slot::Object(scale)))
            }));
        }
        self.outline.objects[object].attributes.push(Attribute {
            name: "DIMENSION_LIST".into(),
            kind: types::references(),
            dims: vec![slots.len() as u64],
            data: Data::Slots(slots),
        });
    }
}
