//! Components of vectors as one array, and the units and names of all arrays as field data.

use std::collections::{BTreeMap, HashSet};

use spile_core::dtype::DType;
use spile_core::tree::NodeId;

use super::{Item, Kind, Plan, Snapshot, Values};

/// Field data with the names, units and long names of the arrays of a file.
const LABELS: [&str; 3] = ["names", "units", "long_names"];

impl Snapshot<'_> {
    /// Adds arrays of one section. Three components of a vector become one array of three components, named after
    /// the vector; the components remain if one is missing or has another type or shape.
    pub(super) fn push_vectors(&self, items: Vec<(NodeId, Item)>, plan: &mut Plan) {
        let mut vectors: BTreeMap<&str, Vec<(u8, usize)>> = BTreeMap::new();
        let mut names: HashSet<&str> = items.iter().map(|(_, item)| item.name.as_str()).collect();
        for (k, (id, item)) in items.iter().enumerate() {
            let desc = self.tree().node(*id).array.as_ref();
            if let Some(part) = desc.and_then(|desc| desc.semantics().component.as_ref())
                && item.components == 1
            {
                vectors.entry(&part.vector).or_default().push((part.index, k));
            }
        }
        let mut combined: Vec<Option<Item>> = Vec::new();
        combined.resize_with(items.len(), || None);
        let mut members = HashSet::new();
        for (name, mut parts) in vectors {
            parts.sort_unstable();
            let [(0, x), (1, y), (2, z)] = parts[..] else { continue };
            let shape = |k: usize| self.shape_of(items[k].0);
            let alike = |k: usize| items[k].1.dtype == items[x].1.dtype && shape(k) == shape(x);
            if !alike(y) || !alike(z) || !names.insert(name) {
                continue;
            }
            let ids = [x, y, z].map(|k| items[k].0);
            let paths = ids.map(|id| self.tree().node(id).path.as_str()).join("\n");
            let first = &items[x].1;
            combined[x.min(y).min(z)] = Some(Item {
                section: first.section,
                name: name.to_string(),
                dtype: first.dtype,
                components: 3,
                tuples: first.tuples,
                attributes: std::iter::once(("Columns", paths)).chain(shape(x)).collect(),
                units: first.units.clone(),
                values: Values::Interleaved(ids.into()),
            });
            members.extend([x, y, z]);
        }
        for (k, ((id, item), vector)) in items.into_iter().zip(combined).enumerate() {
            plan.written.push((id, item.dtype));
            plan.items.extend(vector);
            if !members.contains(&k) {
                plan.items.push(item);
            }
        }
    }

    /// The attribute with order and lengths of an array.
    fn shape_of(&self, id: NodeId) -> Option<(&'static str, String)> {
        let found = self.find(id).ok()??;
        Some(super::plan::shape_attribute(&found.shape, found.order))
    }

    /// Adds field data with the names of all arrays on points and cells, their units and long names. meshio cannot
    /// read text, so that `.vtu` files have none.
    pub(crate) fn add_labels(&self, plan: &mut Plan) {
        if plan.kind == Kind::Unstructured {
            return;
        }
        let mut columns = [Vec::new(), Vec::new(), Vec::new()];
        let shown = ["PointData", "CellData", "FieldData", "Points", "Coordinates"];
        for item in plan.items.iter().filter(|item| shown.contains(&item.section)) {
            let first = match &item.values {
                Values::Array(id, _) => Some(*id),
                Values::Interleaved(ids) => ids.first().copied(),
                _ => None,
            };
            let attrs = first.map(|id| &self.tree().node(id).attrs);
            let long = attrs.and_then(|attrs| attrs.get_str("long_name"));
            // The long name of a component is not that of the vector.
            let is_vector = matches!(item.values, Values::Interleaved(_));
            let long = long.filter(|_| !is_vector).unwrap_or_default();
            let units = item.units.clone().unwrap_or_default();
            if !units.is_empty() || !long.is_empty() {
                columns[0].push(item.name.clone());
                columns[1].push(units);
                columns[2].push(long.to_string());
            }
        }
        if columns[0].is_empty() {
            return;
        }
        for (name, texts) in LABELS.into_iter().zip(columns) {
            if texts.iter().any(|text| !text.is_empty()) {
                let count = texts.len() as u64;
                let values = Values::Texts(texts);
                plan.items.push(Item::generated("FieldData", name, DType::U8, count, values));
            }
        }
    }
}
