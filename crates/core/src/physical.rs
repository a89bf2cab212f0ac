//! Datasets with physical values: arrays that are scaled or have missing values are read as floating-point
//! numbers, for formats without a convention for scaling.

use std::sync::Arc;

use crate::semantics::Missing;
use crate::{Array, ArrayDesc, ByteOrder, DType, Dataset, FrameCell, Layout, Linear, convert};

/// Stored elements whose physical values are read; see [`Layout::Physical`].
#[derive(Clone, Debug)]
pub struct Stored {
    /// Element type as stored.
    pub dtype: DType,
    /// Location and encoding of the stored elements.
    pub layout: Layout,
    /// Linear scaling from stored to physical values.
    pub map: Option<Linear>,
    /// Stored values that mean missing; they are read as NaN.
    pub missing: Missing,
}

impl Stored {
    /// Type of the physical values: `float64`, or `float32` where that is the stored type and nothing is scaled.
    pub fn physical_dtype(&self) -> DType {
        let single = self.map.is_none() && self.dtype.with_order(ByteOrder::Little) == DType::F32;
        if single { DType::F32 } else { DType::F64 }
    }

    /// Converts little-endian stored elements to little-endian physical values, in one of the buffers.
    pub(crate) fn convert<'a>(
        &self,
        bytes: &[u8],
        numbers: &'a mut Vec<f64>,
        out: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        convert::to_physical(self.dtype, self.map, &self.missing, bytes, numbers);
        if self.physical_dtype() == DType::F64 {
            return convert::little_bytes(numbers);
        }
        convert::from_f64(self.physical_dtype(), None, numbers, out);
        out
    }

    /// The same scaling and missing values for elements elsewhere.
    pub(crate) fn with_layout(&self, layout: Layout) -> Layout {
        Layout::Physical(Arc::new(Self { layout, ..self.clone() }))
    }
}

impl ArrayDesc {
    /// Whether physical values differ from stored ones: the array is scaled or has missing values.
    pub fn has_scaling(&self) -> bool {
        self.dtype.is_real() && (self.map.is_some() || !self.semantics().missing.is_none())
    }

    /// Changes the array to one with physical values.
    fn make_physical(&mut self) {
        let missing = self.meaning.as_mut().map(|own| std::mem::take(&mut own.missing));
        let (map, layout) = (self.map.take(), self.layout.clone());
        let stored =
            Stored { dtype: self.dtype, layout, map, missing: missing.unwrap_or_default() };
        self.dtype = stored.physical_dtype();
        self.layout = match &self.layout {
            Layout::PerFrame(table) => Layout::changed_frames(table, move |cell| {
                Ok(Some(FrameCell { layout: stored.with_layout(cell.layout), ..cell }))
            }),
            // The other array is converted itself.
            Layout::Same(id) => Layout::Same(*id),
            layout => stored.with_layout(layout.clone()),
        };
    }
}

impl Array {
    /// Returns this array with physical values: an array that is scaled or has missing values is read as floating-point
    /// numbers, with missing values as NaN.
    pub fn physical(&self) -> Self {
        let (dtype, map, missing) = (self.dtype(), self.map(), self.missing().clone());
        if !dtype.is_real() || (map.is_none() && missing.is_none()) {
            return self.clone();
        }
        // The layout is that of the array, which is open.
        let layout = Layout::Fill([].into());
        self.clone().converted(Arc::new(Stored { dtype, layout, map, missing }))
    }
}

impl Dataset {
    /// Returns this dataset with physical values in all arrays that are scaled or have missing values: they are
    /// floating-point numbers without scaling, missing values are NaN. Values are converted when they are read.
    pub fn physical(&self) -> Self {
        self.change_scaled(ArrayDesc::make_physical)
    }

    /// Returns this dataset with stored values: scaling and missing values are removed from all arrays.
    pub fn stored(&self) -> Self {
        self.change_scaled(|array| {
            array.map = None;
            array.semantics_mut().missing = Missing::default();
        })
    }

    /// Returns this dataset with all arrays that are scaled or have missing values changed by `change`.
    fn change_scaled(&self, change: impl Fn(&mut ArrayDesc)) -> Self {
        let mut tree = None;
        for (id, ..) in self.arrays().filter(|(.., desc)| desc.has_scaling()) {
            let tree = tree.get_or_insert_with(|| self.tree().clone());
            tree.array_mut(id).into_iter().for_each(&change);
        }
        tree.map_or_else(|| self.clone(), |tree| self.with_tree(tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Cells;

    use crate::limits::Limits;
    use crate::read::Axes;
    use crate::select::Selection;
    use crate::shape::{Order, Shape};
    use crate::source::Source;
    use crate::tree::{ROOT, Tree};

    fn scaled(layout: Layout) -> ArrayDesc {
        let mut desc =
            ArrayDesc::new(DType::I16.with_order(ByteOrder::Big), Shape::new([2, 3]), layout);
        desc.map = Some(Linear::new(1.0, 0.5));
        desc.semantics_mut().missing.values.push(-1.0);
        desc
    }

    #[test]
    fn physical_values_are_converted_when_they_are_read() {
        let bytes: Vec<u8> =
            [2_i16, 4, -1, 6, 8, 10].iter().flat_map(|v| v.to_be_bytes()).collect();
        let mut tree = Tree::new(&Limits::default());
        let layout = Layout::contiguous(0, 12, Order::F);
        tree.add_array(ROOT, "a", scaled(layout.clone())).unwrap();
        let cell = FrameCell { shape: Shape::new([2, 3]), layout };
        let frames = Layout::PerFrame(Arc::new(Cells(vec![None, Some(cell)])));
        let b = tree.add_array(ROOT, "b", scaled(frames)).unwrap();
        let dataset = Dataset::new(Source::memory(bytes), tree);
        let expected = dataset.array("a").unwrap().read::<Vec<f64>>("...").unwrap();
        let physical = dataset.physical();
        let arrays =
            [physical.array("a").unwrap(), physical.array_in_frame(b, 1).unwrap().unwrap()];
        for array in arrays {
            assert_eq!((array.dtype(), array.map()), (DType::F64, None));
            assert!(array.missing().is_none() && array.view().is_none());
            let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C)).unwrap();
            let values: Vec<f64> = convert::decode(&bytes);
            assert_eq!(format!("{values:?}"), format!("{expected:?}"));
            assert_eq!(format!("{values:?}"), "[2.0, NaN, 5.0, 3.0, 4.0, 6.0]");
            let part = array.read::<Vec<f64>>("1, 1:").unwrap();
            assert_eq!(part, [4.0, 6.0]);
        }
        let stored = dataset.stored();
        assert_eq!(stored.array("a").unwrap().read::<Vec<f64>>("0, :").unwrap(), [2.0, -1.0, 8.0]);
        assert!(physical.array_in_frame(b, 0).unwrap().is_none());
    }

    #[test]
    fn single_precision_stays_where_nothing_is_scaled() {
        let mut tree = Tree::new(&Limits::default());
        let bytes: Vec<u8> = [1.5_f32, -999.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut desc = ArrayDesc::inline(DType::F32, Shape::new([2]), bytes);
        desc.semantics_mut().missing.values.push(-999.0);
        tree.add_array(ROOT, "t", desc).unwrap();
        let array = Dataset::new(Source::memory([]), tree).physical().array("t").unwrap();
        assert_eq!(array.dtype(), DType::F32);
        let values: Vec<f32> = array.read("...").unwrap();
        assert!(values[0] == 1.5 && values[1].is_nan());
    }
}
