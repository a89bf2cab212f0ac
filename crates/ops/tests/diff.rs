//! Differences of two files that were made for it.

use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::frames::{FrameAxis, FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_ops::Pick;
use spile_ops::diff::{Diff, Rules, renaming};

fn inline(dtype: DType, shape: &[u64], bytes: Vec<u8>, order: Order) -> ArrayDesc {
    ArrayDesc::new(dtype, Shape::new(shape), Layout::Inline(bytes.into(), order))
}

fn reals(values: &[f64]) -> ArrayDesc {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    inline(DType::F64, &[values.len() as u64], bytes, Order::C)
}

/// A file with these arrays.
fn file(arrays: &[(&str, ArrayDesc)]) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    for (path, desc) in arrays {
        let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
        let group = tree.group_at(above).unwrap();
        tree.add_array(group, last, desc.clone()).unwrap();
    }
    Dataset::new(Source::memory([]), tree)
}

fn compare(first: &Dataset, second: &Dataset, rules: &Rules) -> Diff {
    spile_ops::diff(first, second, rules).unwrap()
}

/// How many of the values differ, and by how much.
fn apart(first: ArrayDesc, second: ArrayDesc, rules: &Rules) -> Option<(u64, Option<f64>)> {
    let rules = Rules { values_only: true, ..rules.clone() };
    let diff = compare(&file(&[("a", first)]), &file(&[("a", second)]), &rules);
    assert!(diff.differences.len() <= 1);
    let row = diff.differences.into_iter().next()?;
    let values = row.values.unwrap();
    Some((values.differ, values.distance.map(|d| d.0)))
}

#[test]
fn values_may_be_apart_by_what_is_allowed() {
    let exact = Rules::default();
    let (a, b) = (reals(&[1.0, 2.0, -3.0]), reals(&[1.0, 2.5, -3.25]));
    assert_eq!(apart(a.clone(), a.clone(), &exact), None);
    assert_eq!(apart(a.clone(), b.clone(), &exact), Some((2, Some(0.5))));
    let allow = |atol, rtol| Rules { atol, rtol, ..Rules::default() };
    assert_eq!(apart(a.clone(), b.clone(), &allow(0.25, 0.0)), Some((1, Some(0.5))));
    assert_eq!(apart(a.clone(), b.clone(), &allow(0.5, 0.0)), None);
    // A fifth of the second value.
    assert_eq!(apart(a.clone(), b.clone(), &allow(0.0, 0.2)), None);
    assert_eq!(apart(a, b, &allow(0.0, 0.19)), Some((1, Some(0.5))));
}

#[test]
fn a_uniform_coordinate_equals_an_array_with_its_points() {
    // `a` on the points of `x`, or on uniform points.
    let on = |points: &[f64], uniform: Option<(f64, f64)>| {
        let mut tree = Tree::new(&Limits::default());
        let x = tree.add_array(ROOT, "x", reals(points)).unwrap();
        let mut a = reals(&[7.0; 3]);
        a.coords[0] =
            uniform.map_or(Coord::Node(x), |(start, step)| Coord::Uniform { start, step });
        tree.add_array(ROOT, "a", a).unwrap();
        Dataset::new(Source::memory([]), tree)
    };
    let points = [0.1, 0.1 + 0.2, 0.1 + 2.0 * 0.2];
    let differ = |uniform: (f64, f64)| {
        let diff = compare(&on(&points, None), &on(&points, Some(uniform)), &Rules::default());
        diff.differences.into_iter().map(|row| (row.path, row.what)).collect::<Vec<_>>()
    };
    assert_eq!(differ((0.1, 0.2)), []);
    assert_eq!(differ((0.1, 0.25)), [("a".to_string(), "coordinates")]);
}

#[test]
fn nan_infinities_and_zeros() {
    let special = reals(&[f64::NAN, f64::INFINITY, 0.0]);
    let rules = Rules::default();
    let loose = Rules { atol: 1e300, rtol: 1.0, ulp: 5, ..Rules::default() };
    assert_eq!(apart(special.clone(), reals(&[f64::NAN, f64::INFINITY, -0.0]), &rules), None);
    let strict = Rules { nan_equal: false, ..Rules::default() };
    assert_eq!(apart(special.clone(), special.clone(), &strict), Some((1, Some(f64::INFINITY))));
    // No tolerance makes a number of what is none, or of infinity.
    let numbers = reals(&[1.0, f64::MAX, 0.0]);
    assert_eq!(apart(special.clone(), numbers.clone(), &loose), Some((2, Some(f64::INFINITY))));
    assert_eq!(apart(numbers, special, &loose), Some((2, Some(f64::INFINITY))));
}

#[test]
fn integers_are_exact_whatever_their_types() {
    let wide = |values: &[i64]| {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        inline(DType::I64, &[values.len() as u64], bytes, Order::C)
    };
    let rules = Rules::default();
    // Doubles cannot tell these from each other.
    let (a, b) = (wide(&[i64::MAX, i64::MIN]), wide(&[i64::MAX - 1, i64::MIN]));
    assert_eq!(apart(a.clone(), b, &rules), Some((1, Some(1.0))));
    let unsigned = inline(DType::U64, &[2], [u64::MAX, 0].map(u64::to_le_bytes).concat(), Order::C);
    assert_eq!(apart(a, unsigned, &rules).unwrap().0, 2);
    let small = inline(DType::U8, &[2], vec![7, 200], Order::C);
    assert_eq!(apart(wide(&[7, 200]), small, &rules), None);
}

#[test]
fn numbers_between_two_are_counted_in_the_less_precise_type() {
    let single = |v: f32| inline(DType::F32, &[1], v.to_le_bytes().to_vec(), Order::C);
    let next = |v: f32, n: u32| f32::from_bits(v.to_bits() + n);
    let rules = |ulp| Rules { ulp, ..Rules::default() };
    assert_eq!(apart(single(1.0), single(next(1.0, 3)), &rules(3)), None);
    assert!(apart(single(1.0), single(next(1.0, 3)), &rules(2)).is_some());
    let up = f64::from_bits(1.0_f64.to_bits() + 3);
    assert_eq!(apart(reals(&[1.0]), reals(&[up]), &rules(3)), None);
    assert!(apart(reals(&[1.0]), reals(&[up]), &rules(2)).is_some());
    assert_eq!(apart(single(0.1), reals(&[0.1]), &rules(1)), None);
    // Across zero.
    let tiny = f64::from_bits(1);
    assert_eq!(apart(reals(&[tiny]), reals(&[-tiny]), &rules(2)), None);
    assert!(apart(reals(&[tiny]), reals(&[-tiny]), &rules(1)).is_some());
}

#[test]
fn element_order_and_byte_order_are_no_difference_and_the_place_is_right() {
    let c: Vec<u8> = (0..6_u16).flat_map(u16::to_le_bytes).collect();
    let f: Vec<u8> = [0_u16, 3, 1, 4, 2, 9].into_iter().flat_map(u16::to_le_bytes).collect();
    let mut first = inline(DType::U16, &[2, 3], c, Order::C);
    first.coords = vec![Coord::Uniform { start: 10.0, step: 0.5 }, Coord::None];
    let second = inline(DType::U16, &[2, 3], f, Order::F);
    let rules = Rules { values_only: true, ..Rules::default() };
    let diff = compare(&file(&[("a", first)]), &file(&[("a", second)]), &rules);
    let values = diff.differences[0].values.as_ref().unwrap();
    assert_eq!((values.differ, values.count, &values.index[..]), (1, 6, &[1, 2][..]));
    assert_eq!(values.at[0].map(|r| r.0), Some(10.5));
    let row = &diff.differences[0];
    assert_eq!((row.first.as_deref(), row.second.as_deref()), (Some("5"), Some("9")));
}

#[test]
fn complex_numbers_texts_and_digits_beyond_doubles() {
    let rules = Rules::default();
    let complex = DType::new(Kind::Complex, 16, ByteOrder::Little).unwrap();
    let pair = |re: f64, im: f64| {
        inline(complex, &[1], [re.to_le_bytes(), im.to_le_bytes()].concat(), Order::C)
    };
    assert_eq!(apart(pair(1.0, 2.0), pair(1.0, 2.25), &rules), Some((1, Some(0.25))));
    let text = |word: &[u8]| inline(DType::text(3), &[1], word.to_vec(), Order::C);
    assert_eq!(apart(text(b"abc"), text(b"abd"), &rules), Some((1, None)));
    let wide = DType::new(Kind::Float, 16, ByteOrder::Little).unwrap();
    let one = 0x3fff_u128 << 112;
    let quad = |bits: u128| inline(wide, &[1], bits.to_le_bytes().to_vec(), Order::C);
    assert_eq!(apart(quad(one), quad(one), &rules), None);
    assert_eq!(apart(quad(one), quad(one + 1), &rules).unwrap().0, 1);
    let loose = Rules { rtol: 1e-15, ..Rules::default() };
    assert_eq!(apart(quad(one), quad(one + 1), &loose), None);
}

#[test]
fn what_is_in_one_file_only_is_told_once() {
    let a = || reals(&[1.0]);
    let first = file(&[("x", a()), ("left/deep/a", a()), ("left/b", a()), ("old/v", a())]);
    let second = file(&[("x", a()), ("right/c", a()), ("new/v", a())]);
    let told = |rules: &Rules| -> Vec<(String, &'static str)> {
        let rows = compare(&first, &second, rules).differences;
        rows.into_iter().map(|row| (row.path, row.what)).collect()
    };
    let pairs = |all: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
        all.iter().map(|(path, what)| ((*path).to_string(), *what)).collect()
    };
    let one = "first only";
    let two = "second only";
    assert_eq!(
        told(&Rules::default()),
        pairs(&[("left", one), ("old", one), ("right", two), ("new", two)])
    );
    let renamed = vec![renaming("old=new").unwrap()];
    let rules = Rules { renamed, ..Rules::default() };
    assert_eq!(told(&rules), pairs(&[("left", one), ("right", two)]));
    let ignore = Some(Pick::new(&["left".into(), "right".into(), "old".into()]).unwrap());
    assert_eq!(told(&Rules { ignore, ..Rules::default() }), pairs(&[("new", two)]));
    let pick = Pick::new(&["x".into()]).unwrap();
    assert_eq!(told(&Rules { pick, ..Rules::default() }), []);
    assert!(renaming("old").is_err() && renaming("=new").is_err());
}

#[test]
fn attributes_and_dimensions_are_compared() {
    let mut first = file(&[("a", reals(&[1.0, 2.0]))]);
    let mut other = reals(&[1.0, 2.0]);
    other.dims = vec!["x".into()];
    let mut second = file(&[("a", other), ("b", reals(&[]))]);
    let set = |made: &mut Dataset, path: &str, attrs: &[(&str, Value)]| {
        let mut tree = made.tree().clone();
        let id = tree.find(path).unwrap();
        tree.node_mut(id).attrs = attrs.iter().map(|(n, v)| (*n, v.clone())).collect();
        *made = made.with_tree(tree);
    };
    // The same number in another type is the same, and so is NaN.
    let nan = Value::Float(f64::NAN);
    set(&mut first, "a", &[("n", Value::Int(3)), ("x", nan.clone()), ("units", "m".into())]);
    set(&mut second, "a", &[("x", nan), ("n", Value::UInt(3)), ("units", "km".into())]);
    set(&mut first, "", &[("step", Value::Int(1))]);
    let diff = compare(&first, &second, &Rules::default());
    let rows: Vec<_> =
        diff.differences.iter().map(|r| (r.path.as_str(), r.what, r.name.as_deref())).collect();
    assert_eq!(
        rows,
        [
            ("", "attribute", Some("step")),
            ("a", "attribute", Some("units")),
            ("a", "dimensions", None),
            ("b", "second only", None)
        ]
    );
    assert_eq!(diff.arrays, 1);
}

struct Table(Vec<Option<Vec<f64>>>);

impl FrameTable for Table {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        Ok(self.0[frame as usize].as_ref().map(|values| {
            let desc = reals(values);
            FrameCell { shape: desc.shape, layout: desc.layout }
        }))
    }
}

struct Axis(u64);

impl FrameAxis for Axis {
    fn len(&self) -> u64 {
        self.0
    }
    fn step(&self, frame: u64) -> Result<Option<u64>> {
        Ok(Some(frame))
    }
    fn time(&self, _: u64) -> Result<Option<f64>> {
        Ok(None)
    }
}

#[test]
fn frames_are_one_row_with_the_worst_of_them() {
    let frames = |cells: Vec<Option<Vec<f64>>>| {
        let count = cells.len() as u64;
        let layout = Layout::PerFrame(Arc::new(Table(cells)));
        let made = file(&[("a", ArrayDesc::new(DType::F64, Shape::new([2]), layout))]);
        let mut tree = made.tree().clone();
        tree.set_frames(Arc::new(Axis(count)));
        made.with_tree(tree)
    };
    let first = frames(vec![Some(vec![1.0, 2.0]), Some(vec![1.0, 2.0]), None, Some(vec![0.0; 3])]);
    let second =
        frames(vec![Some(vec![1.0, 2.5]), Some(vec![4.0, 2.0]), Some(vec![]), Some(vec![0.0; 2])]);
    let diff = compare(&first, &second, &Rules::default());
    let rows: Vec<_> = diff.differences.iter().map(|r| (r.what, r.frame)).collect();
    assert_eq!(rows, [("second only", Some(2)), ("shape", Some(3)), ("values", Some(1))]);
    let values = diff.differences[2].values.as_ref().unwrap();
    assert_eq!((values.differ, values.count, values.distance.map(|d| d.0)), (2, 4, Some(3.0)));
    let pick = Pick::default().with_frames("0").unwrap();
    let diff = compare(&first, &second, &Rules { pick, ..Rules::default() });
    assert_eq!(diff.differences[0].values.as_ref().unwrap().distance.map(|d| d.0), Some(0.5));
    let short = frames(vec![Some(vec![1.0, 2.0])]);
    // Of one frame and none the values are compared.
    let told = |values: &[f64]| -> Vec<&'static str> {
        let plain = file(&[("a", reals(values))]);
        let diff = compare(&short, &plain, &Rules::default());
        diff.differences.iter().map(|row| row.what).collect()
    };
    assert_eq!(told(&[1.0, 2.0]), ["frames", "frames"]);
    assert_eq!(told(&[1.0, 2.5]), ["frames", "frames", "values"]);
    assert_eq!(compare(&first, &short, &Rules::default()).differences[0].what, "frames");
}
