//! Digital lines: the bits of samples as arrays of 0 and 1.

use std::sync::Arc;

use super::Record;
use crate::computed::{Computed, Function};
use crate::{Array, ArrayDesc, DType, Error, Layout, Order, Result, Role};

/// Elements computed at once.
const PIECE: u64 = 64 << 10;

/// The record of bit `bit` of the samples of `record`, one byte each: its elements are 0 and 1. `None` for other
/// samples.
pub fn line(record: &Record, bit: u8, channel: impl Into<String>) -> Option<Record> {
    let input = &record.array;
    let plain = input.dtype.is_integer() && input.dtype.size() == 1 && bit < 8;
    plain.then(|| {
        let layout = Layout::Computed(Arc::new(Computed {
            inputs: vec![ArrayDesc { map: None, ..input.clone() }],
            function: Arc::new(Bit(bit)),
            piece: PIECE,
            order: Order::C,
        }));
        let mut array = ArrayDesc::new(DType::U8, input.shape.clone(), layout);
        array.dims.clone_from(&input.dims);
        array.coords.clone_from(&input.coords);
        let mut attrs = record.attrs.clone();
        attrs.retain(|name, _| name != "units" && name != "label");
        attrs.push("bit", u64::from(bit));
        Record { channel: channel.into(), array, attrs, role: Role::Trace, ..record.clone() }
    })
}

/// A record of bytes followed by its eight lines, which are plotted instead of it; `channel` names the line of a
/// bit. Records of other samples have no lines.
pub fn with_lines(mut record: Record, channel: impl Fn(u8) -> String) -> Vec<Record> {
    let lines: Vec<Record> = (0..8).filter_map(|k| line(&record, k, channel(k))).collect();
    if !lines.is_empty() {
        record.role = Role::Data;
    }
    [record].into_iter().chain(lines).collect()
}

/// One bit of each byte.
struct Bit(u8);

impl Function for Bit {
    fn name(&self) -> &'static str {
        "bit"
    }

    fn memory(&self, count: u64) -> u64 {
        count
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let [input] = inputs else {
            return Err(Error::argument("a digital line has one input"));
        };
        let mut stored = vec![0; out.len()];
        input.all()?.part(first, out.len() as u64)?.read_into(&mut stored)?;
        for (line, byte) in out.iter_mut().zip(stored) {
            *line = byte >> self.0 & 1;
        }
        Ok(())
    }
}
