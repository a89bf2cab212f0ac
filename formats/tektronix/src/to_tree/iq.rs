//! Spectrum View records: alternating in-phase and quadrature numbers of 16 bits as complex samples.

use std::sync::Arc;

use spile_core::dtype::Kind;
use spile_core::{ArrayDesc, ByteOrder, Codec, DType, Error, Layout, Order, Result, Shape};

/// The complex array of pairs of numbers, scaled by `offset + scale * x`; arrays of another layout are unchanged.
pub(super) fn complex(array: ArrayDesc, offset: f64, scale: f64) -> ArrayDesc {
    let count = array.shape.lengths().iter().product::<u64>() / 2;
    // An odd number at the end is not a sample.
    let pairs = array.layout.rows(0, 4 * count);
    let Some((extents, _)) = pairs.as_ref().and_then(Layout::plain) else { return array };
    let (extents, order) = (extents.clone(), array.dtype.order());
    let Some(complex) = DType::new(Kind::Complex, 16, ByteOrder::Little) else { return array };
    let codec = Arc::new(Pairs { order, offset, scale });
    let layout = Layout::EncodedWhole { extents, codec, order: Order::C };
    ArrayDesc::new(complex, Shape::new([count]), layout)
}

/// Scales pairs of 16-bit numbers.
struct Pairs {
    order: ByteOrder,
    offset: f64,
    scale: f64,
}

impl Codec for Pairs {
    fn name(&self) -> &'static str {
        "iq"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let (numbers, values) = (stored.as_chunks::<2>().0, out.as_chunks_mut::<8>().0);
        if numbers.len() != values.len() {
            let message = format!("expected {} numbers, found {}", values.len(), numbers.len());
            return Err(Error::truncated("tektronix-018", message));
        }
        for (value, number) in values.iter_mut().zip(numbers) {
            let number = match self.order {
                ByteOrder::Little => i16::from_le_bytes(*number),
                ByteOrder::Big => i16::from_be_bytes(*number),
            };
            *value = (self.offset + self.scale * f64::from(number)).to_le_bytes();
        }
        Ok(())
    }
}
