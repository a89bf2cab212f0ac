//! Stored metadata applied to the plain arrays of a file: the tree that was written is restored.

use std::collections::HashMap;

use super::arrays::MetadataApplier;
use super::{ARRAY, Metadata, StoredMetadata};
use crate::{
    Attrs, Coord, DType, Dataset, ErrorKind, Kind, Layout, NodeId, ROOT, Report, Result, Shape,
    Tree, Value,
};

/// Applies the metadata stored in a file: `stored` by the format, or the array called [`ARRAY`].
/// Metadata that does not fit is a warning and the arrays stay as they are; only an I/O error fails.
pub fn restore(plain: Dataset, stored: Option<StoredMetadata>) -> Result<Dataset> {
    let if_ignored = stored.as_ref().map_or_else(Attrs::new, |stored| stored.if_ignored.clone());
    let applied = find(&plain, stored).and_then(|stored| {
        let Some(stored) = stored else { return Ok(None) };
        let applied = apply(&plain, &stored);
        applied.map(Some).map_err(|e| {
            let e = e.in_object(&stored.object).without_offset();
            if let Some(at) = stored.offset { e.at(at) } else { e }
        })
    });
    match applied {
        Ok(None) => Ok(plain),
        Ok(Some(tree)) => Ok(plain.with_tree(tree)),
        Err(e) if e.kind() == ErrorKind::Io => Err(e),
        Err(e) => {
            let mut report = Report::default();
            let message = format!("stored metadata is ignored: {}", e.message());
            let finding = report.warn("core-metadata", message);
            finding.in_object(e.object().unwrap_or(ARRAY));
            finding.offset = e.offset();
            let mut tree = plain.tree().clone();
            for (name, value) in if_ignored {
                tree.node_mut(ROOT).attrs.set(name, value);
            }
            Ok(plain.with_tree(tree).with_warnings(report.findings))
        }
    }
}

/// The text stored in a file; `None` if there is none.
fn find(plain: &Dataset, stored: Option<StoredMetadata>) -> Result<Option<StoredMetadata>> {
    let tree = plain.tree();
    let (None, Some(id)) = (&stored, tree.at(ARRAY)) else { return Ok(stored) };
    let Some(desc) = tree.array(id) else { return Ok(None) };
    let text = match &desc.layout {
        Layout::PerFrame(_) => plain.array_in_frame(id, 0)?,
        _ => Some(plain.array_at(id)?),
    };
    let bytes = |dtype: DType| dtype.size() == 1 || dtype.kind() == Kind::Text;
    let Some(text) = text.filter(|text| bytes(text.dtype())) else { return Ok(None) };
    let text = text.bytes()?;
    Ok(Some(StoredMetadata::new(text, ARRAY)))
}

fn apply(plain: &Dataset, stored: &StoredMetadata) -> Result<Tree> {
    let mut metadata = Metadata::parse(&stored.text, plain.limits())?;
    metadata.add_auxiliary(ARRAY);
    if !stored.native_grid {
        let mut tree = MetadataApplier::new(&metadata, plain).tree()?;
        if let Some(stored_value) = stored.stored_value {
            merge_edited_attrs(&mut tree, plain.tree(), &metadata, stored_value);
        }
        return Ok(tree);
    }
    let mut native = plain.tree().clone();
    let attrs = std::mem::take(&mut native.node_mut(ROOT).attrs);
    let arrays: Vec<NodeId> = native.arrays().map(|(id, ..)| id).collect();
    for id in arrays {
        // Trailing dimensions of length 1 may be padding of the format.
        let rank = metadata.rank_at(&native.node(id).path);
        let Some(array) = &mut native.node_mut(id).array else { continue };
        let rank = rank.unwrap_or(array.shape.rank());
        let lengths = array.shape.lengths();
        if rank < lengths.len() && lengths[rank..].iter().all(|n| *n == 1) {
            array.shape = Shape::new(&lengths[..rank]);
            array.dims.truncate(rank);
            array.coords.truncate(rank);
        }
    }
    let plain = plain.with_tree(native);
    let mut tree = MetadataApplier::new(&metadata, &plain).tree()?;
    for (path, at) in metadata.locations() {
        let own = plain.tree().at(at).and_then(|id| plain.tree().array(id));
        let array = tree.at(path).and_then(|id| tree.node_mut(id).array.as_mut());
        let (Some(own), Some(array)) = (own, array) else { continue };
        if array.shape == own.shape {
            for (coord, own) in array.coords.iter_mut().zip(&own.coords) {
                // Counting from 1 is the default grid; a dimension without coordinate stays without.
                let counting = *own == Coord::Uniform { start: 1.0, step: 1.0 };
                if *coord != Coord::None || !counting {
                    coord.clone_from(own);
                }
            }
            array.map = own.map;
        }
    }
    tree.node_mut(ROOT).attrs.extend(attrs);
    Ok(tree)
}

/// Takes over attributes that other programs have changed, added or removed since the metadata was
/// written. `stored_value` is what the format stores for a value.
fn merge_edited_attrs(
    tree: &mut Tree,
    plain: &Tree,
    metadata: &Metadata,
    stored_value: fn(&Value) -> Value,
) {
    let locations: HashMap<&str, &str> = metadata.locations().collect();
    let nodes: Vec<NodeId> = std::iter::once(ROOT).chain(tree.iter().map(|(id, _)| id)).collect();
    for id in nodes {
        let node = tree.node_mut(id);
        let path = locations.get(node.path.as_str()).copied().unwrap_or(&node.path);
        let Some(now) = plain.at(path).map(|id| &plain.node(id).attrs) else { continue };
        let added = metadata.added.get(path).map_or(&[][..], Vec::as_slice);
        let is_added = |name: &str| added.iter().any(|added| added == name);
        let old = std::mem::take(&mut node.attrs);
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (name, _) in &old {
            *counts.entry(name.into()).or_default() += 1;
        }
        let mut merged = Attrs::new();
        for (name, value) in old {
            // Repeated names have no counterpart in the file.
            let current = now.get(&name).filter(|_| counts[&name] == 1);
            match current {
                _ if is_added(&name) => merged.push(name, value),
                Some(current) if *current != stored_value(&value) => {
                    merged.push(name, current.clone());
                }
                None if counts[&name] == 1 => {}
                _ => merged.push(name, value),
            }
        }
        let scaling = |name: &str| matches!(name, "scale_factor" | "add_offset");
        let is_new = |name: &str| !counts.contains_key(name) && !scaling(name) && !is_added(name);
        let new = now.iter().filter(|(name, _)| is_new(name));
        merged.extend(new.map(|(name, value)| (name, value.clone())));
        node.attrs = merged;
    }
}

impl Metadata {
    /// Paths of all arrays, and where the file has them.
    fn locations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.nodes.iter().filter_map(|node| {
            let at = node.array.as_ref()?.at.as_deref();
            Some((node.path.as_str(), at.unwrap_or(&node.path)))
        })
    }
}
