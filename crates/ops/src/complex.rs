//! Real and imaginary parts of complex arrays, as arrays of their own.

use std::sync::Arc;

use spile_core::computed::{Computed, Function};
use spile_core::{Array, ArrayDesc, DType, Dataset, Error, Kind, Layout, NodeId, Order, Result};

/// Attribute of a part: `real` or `imag`.
pub const PART: &str = "complex_part";

/// Elements computed at once.
const PIECE: u64 = 64 << 10;

/// The dataset with the arrays `NAME.real` and `NAME.imag` beside each complex array `NAME`. They are computed when they
/// are read. Arrays of several frames have none.
pub fn with_parts(content: &Dataset) -> Result<Dataset> {
    let is_complex = |desc: &ArrayDesc| {
        desc.dtype.kind() == Kind::Complex
            && matches!(desc.dtype.size(), 8 | 16)
            && desc.map.is_none()
            && desc.layout.frames().is_none()
    };
    let all: Vec<NodeId> =
        content.arrays().filter(|(.., desc)| is_complex(desc)).map(|(id, ..)| id).collect();
    if all.is_empty() {
        return Ok(content.clone());
    }
    let mut tree = content.tree().clone();
    for id in all {
        let node = content.tree().node(id);
        let Some(desc) = &node.array else { continue };
        for (part, name) in ["real", "imag"].into_iter().enumerate() {
            let own = format!("{}.{name}", node.name);
            if tree.at(&format!("{}.{name}", node.path)).is_some() {
                continue;
            }
            let new = tree.add_array(node.parent, &own, half(desc, part))?;
            let mut attrs = node.attrs.clone();
            attrs.set(PART, name);
            tree.set_attrs(new, attrs)?;
        }
    }
    Ok(content.with_tree(tree))
}

/// Part 0 or 1 of the elements of a complex array.
fn half(desc: &ArrayDesc, part: usize) -> ArrayDesc {
    let dtype = if desc.dtype.size() == 8 { DType::F32 } else { DType::F64 };
    let layout = Layout::Computed(Arc::new(Computed {
        inputs: vec![desc.clone()],
        function: Arc::new(Half { part, size: dtype.size() }),
        piece: PIECE,
        order: Order::C,
    }));
    ArrayDesc { dtype, layout, ..desc.clone() }
}

struct Half {
    part: usize,
    /// Bytes of a part.
    size: usize,
}

impl Function for Half {
    fn name(&self) -> &'static str {
        if self.part == 0 { "real part" } else { "imaginary part" }
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(2 * self.size as u64)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let [input] = inputs else { return Err(Error::argument("expected one input")) };
        let mut stored = vec![0; 2 * out.len()];
        input.all()?.part(first, (out.len() / self.size) as u64)?.read_into(&mut stored)?;
        let pairs = stored.chunks_exact(2 * self.size);
        for (part, pair) in out.chunks_exact_mut(self.size).zip(pairs) {
            part.copy_from_slice(&pair[self.part * self.size..][..self.size]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::format::{FormatInfo, Grade};
    use spile_core::{OpenOptions, Parsed, ROOT, Shape, Source, Tree};

    static INFO: FormatInfo = FormatInfo {
        name: "test",
        title: "Test",
        users: "tests",
        specification: "this file",
        extensions: &[],
        read: Grade::Complete,
        write: Grade::None,
        check: Grade::None,
        salvage: Grade::None,
    };

    #[test]
    fn complex_arrays_have_real_and_imaginary_parts() {
        let options = OpenOptions::default();
        let mut tree = Tree::new(&options.limits);
        for (name, dtype) in [("z", "complex64"), ("w", "complex128"), ("x", "float64")] {
            let dtype: DType = dtype.parse().unwrap();
            let values = [1.5, -2.0, 0.25, 8.0];
            let bytes: Vec<u8> = if name == "z" {
                values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect()
            } else {
                values.iter().flat_map(|v| f64::to_le_bytes(*v)).collect()
            };
            let shape = Shape::new([bytes.len() as u64 / dtype.size() as u64]);
            let array = ArrayDesc::inline(dtype, shape, bytes);
            let id = tree.add_array(ROOT, name, array).unwrap();
            tree.push_attr(id, "units", "V").unwrap();
        }
        let parsed = Parsed::new(Source::memory([]), tree);
        let whole = Dataset::from_parsed(&INFO, parsed, &options).unwrap();
        let parts = with_parts(&whole).unwrap();
        let values = |name: &str| parts.array(name).unwrap().values().unwrap();
        for name in ["z", "w"] {
            assert_eq!(values(&format!("{name}.real")), [1.5, 0.25]);
            assert_eq!(values(&format!("{name}.imag")), [-2.0, 8.0]);
        }
        assert_eq!(parts.array("z.imag").unwrap().units(), Some("V"));
        assert_eq!(parts.arrays().count(), 7);
    }
}
