//! Comparison of the reader with a simple model.
//!
//! `cases` generates random arrays and selections, `toys` writes the arrays to files in every layout,
//! `model` reads the selections element by element. `frugal` tests the cost of small reads, `edges` cases
//! that random tests do not reach.

mod cases;
mod edges;
mod frugal;
mod model;
mod toys;

use std::sync::{Mutex, OnceLock};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rayon::{ThreadPool, ThreadPoolBuilder};
use spile_core::Dataset;
use spile_core::error::ErrorKind;
use spile_core::read::{Array, Selected};
use spile_core::select::Slice;
use spile_core::shape::{Order, Shape};

use cases::{Case, Form, cases};
use toys::{Sample, sample};

/// Pools of one, two and five threads.
fn pools() -> &'static [ThreadPool; 3] {
    static POOLS: OnceLock<[ThreadPool; 3]> = OnceLock::new();
    POOLS.get_or_init(|| {
        [1, 2, 5].map(|n| ThreadPoolBuilder::new().num_threads(n).build().expect("threads"))
    })
}

fn open(case: &Case, sample: &Sample) -> spile_core::error::Result<Array> {
    let Sample { source, tree, desc, .. } = sample;
    let dataset = Dataset::new(source.clone(), tree.clone()).with_limits(case.limits);
    match sample.frame {
        None => dataset.open_array(desc),
        Some(frame) => {
            assert!(dataset.open_array_in_frame(desc, 1)?.is_none());
            assert!(dataset.open_array_in_frame(desc, 6).is_err());
            let found = dataset.open_array_in_frame(desc, frame)?;
            Ok(found.expect("the frame has the array"))
        }
    }
}

fn selected<'a>(case: &Case, array: &'a Array) -> Selected<'a> {
    let selected = array.select(&case.selection(), case.axes()).expect("a valid selection");
    match case.block_bytes {
        Some(bytes) => selected.with_block_bytes(bytes),
        None => selected,
    }
}

/// A hash of the values, their order and the block boundaries.
fn fingerprint(selected: &Selected<'_>) -> u64 {
    let mix = |a: u64, b: u64| a.wrapping_mul(1_000_003).wrapping_add(b);
    selected
        .fold(
            || 1,
            |total, block, bytes| {
                let sum = bytes.iter().fold(block.first, |h, b| mix(h, u64::from(*b)));
                *total = mix(*total, sum);
                Ok(())
            },
            |a, b| mix(a, b) ^ (a << 7),
        )
        .expect("a readable array")
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let sample = sample(case);
    let array = match open(case, &sample) {
        Ok(array) => array,
        Err(error) => {
            // Encoded text is decoded completely.
            let too_long = case.form == Form::Text && 2 * case.bytes() > case.limits.memory;
            prop_assert!(too_long && error.kind() == ErrorKind::Limit, "{error}");
            return Ok(());
        }
    };
    let size = array.dtype().size();
    prop_assert_eq!(array.shape().lengths(), &case.shape[..]);
    let mut slices = case.slices.clone();
    slices.resize(case.shape.len(), Slice::ALL);
    let indices: Vec<Vec<u64>> =
        slices.iter().zip(&case.shape).map(|(s, n)| model::indices(*s, *n)).collect();
    let expected =
        model::read(&sample.values, size, &case.shape, case.order, &indices, &case.slowest());

    // Blocks in order, without gaps.
    let part = selected(case, &array);
    let kept = indices.iter().zip(&slices).filter(|(_, s)| !matches!(s, Slice::Index(_)));
    let shape = Shape::new(kept.map(|(w, _)| w.len() as u64).collect::<Vec<_>>());
    prop_assert_eq!(part.shape(), shape);
    prop_assert_eq!(part.count(), (expected.len() / size) as u64);
    let mut streamed = Vec::new();
    part.stream(|block, bytes| {
        assert_eq!(block.first as usize * size, streamed.len());
        assert_eq!(block.count as usize * size, bytes.len());
        assert!(bytes.len() <= size.max(case.block_bytes.unwrap_or(16 << 20)));
        streamed.extend_from_slice(bytes);
        Ok(())
    })
    .map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert!(streamed == expected, "streamed");

    let read = array.read_bytes(&case.selection(), case.axes());
    if expected.len() as u64 <= case.limits.memory {
        prop_assert!(read.expect("within the budget") == expected, "read");
    } else {
        prop_assert_eq!(read.expect_err("over the budget").kind(), ErrorKind::Limit);
    }

    // All elements into a buffer of exactly their length.
    let mut into = vec![0xa5; sample.values.len()];
    array.read_into(&mut into).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let every: Vec<Vec<u64>> = case.shape.iter().map(|n| (0..*n).collect()).collect();
    let stored: Vec<usize> = match array.order() {
        Order::C => (0..case.shape.len()).collect(),
        Order::F => (0..case.shape.len()).rev().collect(),
    };
    let all = model::read(&sample.values, size, &case.shape, case.order, &every, &stored);
    prop_assert!(into == all, "read_into");
    into.push(0);
    prop_assert_eq!(
        array.read_into(&mut into).expect_err("one too many").kind(),
        ErrorKind::Argument
    );

    // In parallel: every element once, at its position.
    let seen = Mutex::new((vec![0_u8; expected.len()], 0));
    part.for_each(|block, bytes| {
        let mut seen = seen.lock().expect("no panic so far");
        let at = block.first as usize * size;
        seen.0[at..at + bytes.len()].copy_from_slice(bytes);
        seen.1 += bytes.len();
        Ok(())
    })
    .map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert!(seen.into_inner().expect("no panic") == (expected.clone(), expected.len()));

    let mut next = 0;
    part.ordered(
        |block, bytes| Ok((block, bytes.to_vec())),
        |(block, bytes)| {
            assert_eq!(block.first, next);
            next += block.count;
            let at = block.first as usize * size;
            assert!(bytes == expected[at..at + bytes.len()]);
            Ok(())
        },
    )
    .map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(next, part.count());

    let results = pools().each_ref().map(|p| p.install(|| fingerprint(&selected(case, &array))));
    prop_assert!(results.iter().all(|r| *r == results[0]), "fold {results:?}");
    Ok(())
}

/// `PROPTEST_CASES`, or a number that takes a few seconds.
fn number_of_cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: number_of_cases(), ..ProptestConfig::default() })]

    #[test]
    fn any_selection_of_any_layout_reads_like_the_model(case in cases()) {
        check(&case)?;
    }
}
