//! Random arrays and random selections.

use proptest::prelude::*;
use spile_core::dtype::{DType, Kind};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::{Selection, Slice};
use spile_core::shape::Order;
use spile_core::wire::ByteOrder;

/// Largest array in bytes: larger than the staging buffer of the reader, small enough for the model.
const LARGEST: u64 = 600 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain(u8),
    Inline,
    Fill,
    Encoded(u8),
    Text,
    Ragged,
    /// Elements at a constant distance; the number is the gap in bytes.
    Rows(u8),
    /// Chunked; the bits of the number choose axis order, missing chunks and encoding.
    Chunked(u8),
    PerFrame,
    Same,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    Memory,
    Mapped,
    Positioned,
}

#[derive(Clone, Debug)]
pub(crate) enum Requested {
    Stored,
    Order(Order),
    Slowest(Vec<usize>),
}

/// An array and a selection.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub order: Order,
    pub form: Form,
    pub via: Via,
    pub slices: Vec<Slice>,
    pub requested: Requested,
    pub limits: Limits,
    pub block_bytes: Option<usize>,
    pub seed: u64,
}

impl Case {
    pub(crate) fn selection(&self) -> Selection {
        Selection(self.slices.clone())
    }

    pub(crate) fn axes(&self) -> Axes<'_> {
        match &self.requested {
            Requested::Stored => Axes::Stored,
            Requested::Order(order) => Axes::Order(*order),
            Requested::Slowest(axes) => Axes::Slowest(axes),
        }
    }

    /// Dimensions from slowest to fastest in the output.
    pub(crate) fn slowest(&self) -> Vec<usize> {
        let rank = self.shape.len();
        let order = match &self.requested {
            Requested::Slowest(axes) => return axes.clone(),
            Requested::Stored => self.order,
            Requested::Order(order) => *order,
        };
        if order == Order::C { (0..rank).collect() } else { (0..rank).rev().collect() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.dtype.size() as u64
    }
}

fn dtypes() -> impl Strategy<Value = DType> {
    let kinds = vec![
        (Kind::UInt, 1),
        (Kind::Int, 2),
        (Kind::Opaque, 3),
        (Kind::Float, 4),
        (Kind::Float, 8),
        (Kind::Float, 16),
        (Kind::Complex, 8),
        (Kind::Complex, 16),
        (Kind::X87, 16),
        (Kind::ComplexX87, 32),
        (Kind::Text, 5),
    ];
    (prop::sample::select(kinds), any::<bool>()).prop_map(|((kind, size), big)| {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        DType::new(kind, size, order).expect("a known type")
    })
}

fn lengths() -> impl Strategy<Value = Vec<u64>> {
    let length = prop_oneof![24 => 1_u64..7, 1 => Just(0), 6 => 8_u64..60, 3 => 100_u64..9000];
    prop::collection::vec(length, 0..=5)
}

/// A slice in fractions of the length that it is applied to.
type Share = (u8, u16, u16, i64, bool, bool);

fn shares() -> impl Strategy<Value = Vec<Share>> {
    let step = prop_oneof![4 => Just(1_i64), 2 => Just(-1), 2 => 2_i64..5, 2 => -5_i64..-1,
                           1 => 100_i64..2000, 1 => -2000_i64..-100];
    let one = (0_u8..12, any::<u16>(), any::<u16>(), step, any::<bool>(), any::<bool>());
    prop::collection::vec(one, 0..=5)
}

fn slice((form, a, b, step, from_end, other): Share, length: u64) -> Slice {
    let n = length as i64;
    let sign = |at: i64, flip: bool| if flip { at - n } else { at };
    // Also slightly outside the array on both sides.
    let near = |share: u16, flip| sign(i64::from(share) * (n + 5) / 65536 - 2, flip);
    match form {
        0 | 1 if n > 0 => Slice::Index(sign(i64::from(a) * n / 65536, from_end)),
        0..=3 => Slice::Range { start: None, stop: None, step },
        4 => Slice::Range { start: Some(near(a, from_end)), stop: None, step },
        5 => Slice::Range { start: None, stop: Some(near(b, other)), step },
        6 | 7 => {
            let (start, stop) = (Some(near(a, from_end)), Some(near(b, other)));
            Slice::Range { start, stop, step }
        }
        _ => Slice::ALL,
    }
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![
        3 => Just(Form::Plain(1)),
        3 => (2_u8..9).prop_map(Form::Plain),
        1 => Just(Form::Inline),
        1 => Just(Form::Fill),
        3 => (1_u8..9).prop_map(Form::Encoded),
        1 => Just(Form::Text),
        1 => Just(Form::Ragged),
        2 => (0_u8..40).prop_map(Form::Rows),
        4 => any::<u8>().prop_map(Form::Chunked),
        1 => Just(Form::PerFrame),
        1 => Just(Form::Same),
    ]
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let via = prop::sample::select(vec![Via::Memory, Via::Mapped, Via::Positioned]);
    let requested = (0_u8..5, Just(vec![0_usize, 1, 2, 3, 4]).prop_shuffle());
    let memory = prop::sample::select(vec![4 << 10, 20 << 10, 1 << 20, 512_u64 << 20]);
    let block = prop::option::of(prop::sample::select(vec![1_usize, 7, 64, 1000, 5000, 100_000]));
    let array = (dtypes(), lengths(), any::<bool>(), forms(), via);
    let request = (shares(), requested, memory, block, any::<u64>());
    (array, request).prop_map(
        |((dtype, shape, c, form, via), (shares, (choice, all), memory, block, seed))| {
            let order = if c { Order::C } else { Order::F };
            let mut case = Case {
                dtype,
                shape,
                order,
                form,
                via,
                slices: Vec::new(),
                requested: Requested::Stored,
                limits: Limits::default().with_memory(memory),
                block_bytes: block.map(|b| b.min(memory as usize)),
                seed,
            };
            match form {
                // These layouts have no order.
                Form::Fill | Form::Chunked(_) => case.order = Order::C,
                // Elements of variable length are read as bytes.
                Form::Ragged => {
                    let bytes = case.shape.iter().product::<u64>() % LARGEST;
                    (case.dtype, case.shape, case.order) =
                        (DType::opaque(1), vec![bytes], Order::C);
                }
                // Gaps may be much longer than elements.
                Form::Rows(_) => {
                    while case.shape.iter().product::<u64>() > LARGEST / 40 {
                        let largest = case.shape.iter_mut().max().expect("a scalar is small");
                        *largest /= 2;
                    }
                }
                _ => {}
            }
            while case.bytes() > LARGEST {
                let largest = case.shape.iter_mut().max().expect("a scalar is small");
                *largest /= 2;
            }
            let rank = case.shape.len();
            case.slices = shares
                .into_iter()
                .zip(&case.shape)
                .map(|(share, length)| slice(share, *length))
                .collect();
            case.requested = match choice {
                0 | 1 => Requested::Stored,
                2 => Requested::Order(Order::C),
                3 => Requested::Order(Order::F),
                _ => Requested::Slowest(all.into_iter().filter(|k| *k < rank).collect()),
            };
            case
        },
    )
}
