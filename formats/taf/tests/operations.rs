//! The operations of Table 3-1 on files.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::ErrorKind;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::tree::Tree;
use spile_taf::File;
use spile_taf::ops::{self, Adjust, Bounds, Create, Target};
use spile_taf::wire::{Dimension, Header};

const LIMITS: Limits = Limits { memory: 64 << 20, nodes: 100, depth: 10 };

fn array(dtype: DType, lengths: &[u64], bytes: Vec<u8>) -> Array {
    let layout = Layout::Inline(bytes.into(), Order::F);
    let desc = ArrayDesc::new(dtype, Shape::new(lengths), layout);
    Dataset::new(Source::memory([]), Tree::new(&LIMITS)).open_array(&desc).unwrap()
}

fn doubles(lengths: &[u64], values: &[f64]) -> Array {
    array(DType::F64, lengths, values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

struct Temp(tempfile::TempDir);

impl Temp {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file of shape `lengths` with the values 0, 1, 2, ... and a comment.
    fn counting(&self, dtype: DType, lengths: &[u64]) -> PathBuf {
        let count = Shape::new(lengths).count().unwrap();
        let values: Vec<f64> = (0..count).map(|k| k as f64).collect();
        let path = self.path("counting.taf");
        let options = Create {
            dtype,
            grids: vec![(10.0, 0.5)],
            comments: b"first\n".to_vec(),
            overwrite: Overwrite::Replace,
        };
        ops::create(&path, &doubles(lengths, &values), &Selection::all(), &options).unwrap();
        path
    }
}

fn open(path: &Path) -> File {
    File::open(path, &LIMITS).unwrap()
}

fn values(path: &Path) -> Vec<f64> {
    open(path).read(&Selection::all()).unwrap().0
}

fn text(path: &Path) -> String {
    String::from_utf8(open(path).comments().unwrap()).unwrap()
}

#[test]
fn comments_are_added_as_lines_and_replaced() {
    let temp = Temp::new();
    let path = temp.counting(DType::F32, &[4, 2]);
    let before = values(&path);
    ops::add_comment(&path, "second", &LIMITS).unwrap();
    assert_eq!(text(&path), "first\nsecond\n");
    ops::set_comment(&path, "only", &LIMITS).unwrap();
    ops::add_comment(&path, "two\n", &LIMITS).unwrap();
    assert_eq!(text(&path), "only\ntwo\n");
    assert_eq!(ops::add_comment(&path, "", &LIMITS).unwrap_err().kind(), ErrorKind::Argument);
    ops::set_comment(&path, "", &LIMITS).unwrap();
    assert_eq!(text(&path), "");
    assert_eq!(values(&path), before);
}

#[test]
fn adjust_writes_sixteen_bytes_and_nothing_else() {
    let temp = Temp::new();
    let path = temp.counting(DType::I16, &[5, 2]);
    let before = fs::read(&path).unwrap();
    ops::adjust(&path, 2, Adjust::Span(0.0, 7.0), &LIMITS).unwrap();
    let after = fs::read(&path).unwrap();
    let differ: Vec<usize> = (0..before.len()).filter(|k| before[*k] != after[*k]).collect();
    assert!(differ.iter().all(|k| (1088..1104).contains(k)), "{differ:?}");
    assert_eq!(open(&path).header().dimensions[1].step, 7.0);
    for number in [0, 3] {
        let error = ops::adjust(&path, number, Adjust::Shift(1.0), &LIMITS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
    }
    assert_eq!(fs::read(&path).unwrap(), after);
}

#[test]
fn append_keeps_data_comments_and_map() {
    let temp = Temp::new();
    for safe in [false, true] {
        let path = temp.counting(DType::F64, &[3, 2]);
        // Longer than a block, so that source and target overlap.
        let long = "x".repeat(200_000) + "\n";
        ops::set_comment(&path, &long, &LIMITS).unwrap();
        ops::append(&path, &doubles(&[3, 1], &[6.0, 7.0, 8.0]), safe, &LIMITS).unwrap();
        ops::append(&path, &doubles(&[3], &[9.0, 10.0, 11.0]), safe, &LIMITS).unwrap();
        assert_eq!(open(&path).header().shape().lengths(), [3, 4]);
        assert_eq!(values(&path), (0..12).map(f64::from).collect::<Vec<_>>());
        assert_eq!(text(&path), long);
        for bad in [&[2, 1][..], &[3, 2, 1], &[4], &[]] {
            let count = Shape::new(bad).count().unwrap() as usize;
            let input = doubles(bad, &vec![0.0; count]);
            let error = ops::append(&path, &input, safe, &LIMITS).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument, "{bad:?}");
        }
        assert_eq!(open(&path).header().shape().lengths(), [3, 4]);
    }
}

#[test]
fn appended_values_are_clipped_to_the_files_map_and_counted() {
    let temp = Temp::new();
    let path = temp.counting(DType::U8, &[256, 1]);
    let map = open(&path).header().map().unwrap();
    let mut more = vec![0.0; 256];
    (more[0], more[1], more[2]) = (1000.0, -5.0, f64::NAN);
    let clipped = ops::append(&path, &doubles(&[256, 1], &more), false, &LIMITS).unwrap();
    assert_eq!(clipped, 3);
    let all = values(&path);
    assert_eq!((all[256], all[257]), (map.apply(255.0), map.apply(0.0)));
}

#[test]
fn backups_never_overwrite() {
    let temp = Temp::new();
    let path = temp.counting(DType::U16, &[3, 3]);
    let first = ops::backup(&path).unwrap();
    let second = ops::backup(&path).unwrap();
    assert!(first.ends_with("counting-backup-1.taf") && second.ends_with("counting-backup-2.taf"));
    assert_eq!(fs::read(&first).unwrap(), fs::read(&path).unwrap());
}

#[test]
fn create_maps_floats_to_integers_and_keeps_integers() {
    let temp = Temp::new();
    let make = |name: &str, dtype, input: &Array| {
        let path = temp.path(name);
        let options = Create { dtype, ..Create::default() };
        let clipped = ops::create(&path, input, &Selection::all(), &options).unwrap();
        (path, clipped)
    };
    let wave = doubles(&[5], &[-1.0, 0.0, 1.0, f64::INFINITY, f64::NAN]);
    let (path, clipped) = make("u8", DType::U8, &wave);
    assert_eq!(clipped, 2);
    let file = open(&path);
    assert_eq!(file.header().shape().lengths(), [5, 1]);
    assert_eq!((file.header().intercept, file.header().slope), (-1.0, 2.0 / 255.0));
    assert_eq!(values(&path)[..3], [-1.0, -1.0 + 2.0 / 255.0 * 128.0, 1.0]);
    let (path, _) = make("f32", DType::F32, &wave);
    let got = values(&path);
    assert!(got[3] == f64::INFINITY && got[4].is_nan());

    let extremes: Vec<u8> = [i64::MIN, -1, i64::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
    let (path, _) = make("i64", DType::I64, &array(DType::I64, &[3, 1], extremes.clone()));
    assert!(open(&path).header().map().is_none());
    assert_eq!(fs::read(&path).unwrap()[1104..], extremes);
    let (path, _) = make("u16", DType::U16, &array(DType::U8, &[3, 1], vec![0, 7, 255]));
    assert_eq!((open(&path).header().map(), values(&path)), (None, vec![0.0, 7.0, 255.0]));

    let complex = array("complex128".parse().unwrap(), &[1], vec![0; 16]);
    let error = ops::create(&temp.path("c"), &complex, &Selection::all(), &Create::default());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Argument);
    let again = ops::create(&path, &wave, &Selection::all(), &Create::default());
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Exists);
}

#[test]
fn appended_64_bit_integers_are_exact() {
    let temp = Temp::new();
    let path = temp.path("u64.taf");
    let numbers = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let options = Create { dtype: DType::U64, ..Create::default() };
    let first = array(DType::U64, &[2, 1], numbers(&[1, 2]));
    ops::create(&path, &first, &Selection::all(), &options).unwrap();
    let big = [(1 << 53) + 1, (1 << 53) + 3];
    let more = array(DType::I64, &[2, 1], numbers(&big));
    assert_eq!(ops::append(&path, &more, false, &LIMITS).unwrap(), 0);
    assert_eq!(fs::read(&path).unwrap()[1104 + 16..], numbers(&big));
    let negative = array(DType::I64, &[2, 1], numbers(&[-1, 5]));
    assert_eq!(ops::append(&path, &negative, false, &LIMITS).unwrap(), 1);
}

#[test]
fn unsupported_element_types_are_rejected_by_every_operation() {
    let temp = Temp::new();
    let path = temp.counting(DType::F32, &[2, 2]);
    let before = fs::read(&path).unwrap();
    for dtype in ["complex128", "text[16]", "opaque[16]"] {
        let column = array(dtype.parse().unwrap(), &[2, 1], vec![1; 32]);
        let full = array(dtype.parse().unwrap(), &[2, 2], vec![1; 64]);
        for safe in [false, true] {
            assert!(ops::append(&path, &column, safe, &LIMITS).is_err(), "{dtype}");
        }
        assert!(ops::replace(&path, &full, &LIMITS).is_err(), "{dtype}");
        assert_eq!(fs::read(&path).unwrap(), before, "{dtype}");
    }
    let float16 = Create { dtype: "float16".parse().unwrap(), ..Create::default() };
    let made = ops::create(&temp.path("h"), &doubles(&[1], &[1.0]), &Selection::all(), &float16);
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Argument);
}

#[test]
fn constants_and_narrow_ranges_are_restored() {
    let temp = Temp::new();
    for (k, dtype) in [DType::U8, DType::I8, DType::I32, DType::I64].into_iter().enumerate() {
        for (j, values) in [[7.3; 3], [0.0, 1e-307, 5e-307]].iter().enumerate() {
            let path = temp.path(&format!("{k}-{j}"));
            let options = Create { dtype, ..Create::default() };
            match ops::create(&path, &doubles(&[3], values), &Selection::all(), &options) {
                Ok(clipped) => {
                    // A subnormal slope can put the largest value one level too high.
                    assert!(clipped <= j as u64);
                    let range = values[2] - values[0];
                    for (got, want) in self::values(&path).iter().zip(values) {
                        assert!((got - want).abs() <= range / 200.0, "{dtype}: {got} for {want}");
                    }
                }
                // The range is too narrow for 2^64 levels.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Argument),
            }
        }
    }
    let wide = doubles(&[2], &[-1.7e308, 1.7e308]);
    let options = Create { dtype: DType::U8, ..Create::default() };
    assert!(ops::create(&temp.path("wide"), &wide, &Selection::all(), &options).is_err());
    let overflow = doubles(&[2], &[1e300, 1.0]);
    let single = Create::default();
    assert_eq!(ops::create(&temp.path("f32"), &overflow, &Selection::all(), &single).unwrap(), 1);
}

#[test]
fn concurrent_appends_are_serialised() {
    let temp = Temp::new();
    let path = temp.counting(DType::F64, &[50, 1]);
    std::thread::scope(|scope| {
        for k in 0..12 {
            let path = &path;
            scope.spawn(move || {
                let column = doubles(&[50], &[f64::from(100 + k); 50]);
                ops::append(path, &column, k % 3 == 0, &LIMITS).unwrap();
                ops::add_comment(path, &format!("by {k}"), &LIMITS).unwrap();
            });
        }
    });
    let file = open(&path);
    assert_eq!(file.header().shape().lengths(), [50, 13]);
    let mut columns: Vec<u32> =
        values(&path)[50..].chunks(50).map(|column| column[7] as u32).collect();
    columns.sort_unstable();
    assert_eq!(columns, (100..112).collect::<Vec<_>>());
    assert_eq!(text(&path).lines().count(), 13);
}

#[test]
fn every_grid_value_of_a_long_signal_selects_one_row() {
    let temp = Temp::new();
    let path = temp.path("long.taf");
    // A sparse file of a billion samples.
    let header = Header::new(
        DType::U8,
        None,
        vec![
            Dimension { length: 1_000_000_000, start: 0.0, step: 1e-10 },
            Dimension::with_default_grid(1),
        ],
    );
    fs::write(&path, header.encode()).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(header.comment_offset()).unwrap();
    let file = open(&path);
    for index in (0..1000).map(|k| 999_999_999 - k * 997_331) {
        let at = header.dimensions[0].grid_value(index);
        let mut out = Vec::new();
        let bounds = Bounds { grid: Some((at, at)), index: None };
        ops::write_rows(&file, bounds, &mut out).unwrap();
        assert_eq!(out.split(|b| *b == b'\n').count(), 2, "index {index}");
    }
}

#[test]
fn empty_arrays_and_many_dimensions_use_little_memory() {
    let temp = Temp::new();
    for lengths in [[0, 1 << 60], [1 << 60, 0]] {
        let path = temp.path("empty.taf");
        let dimensions = lengths.map(Dimension::with_default_grid).to_vec();
        let header = Header::new(DType::U8, None, dimensions);
        fs::write(&path, header.encode()).unwrap();
        let mut out = Vec::new();
        ops::export(&open(&path), &mut out).unwrap();
        assert!(out.is_empty());
    }
    // Twenty million dimensions in a sparse file would need gigabytes for their names.
    let path = temp.path("dimensions.taf");
    let header = Header::new(DType::U8, None, vec![]);
    let mut bytes = header.encode();
    bytes[1048..1056].copy_from_slice(&20_000_000_u64.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(1056 + 480_000_000).unwrap();
    assert_eq!(File::open(&path, &LIMITS).err().unwrap().kind(), ErrorKind::Limit);
}

#[test]
fn crop_updates_the_grid_and_keeps_comments() {
    let temp = Temp::new();
    let path = temp.counting(DType::F32, &[10, 3]);
    let bounds = Bounds { grid: Some((11.0, 12.0)), index: None };
    let shape = ops::crop(&path, 1, bounds, &Target::InPlace, &LIMITS).unwrap();
    assert_eq!(shape.lengths(), [3, 3]);
    let file = open(&path);
    let (data, grids) = file.read(&Selection::all()).unwrap();
    assert_eq!(data, [2.0, 3.0, 4.0, 12.0, 13.0, 14.0, 22.0, 23.0, 24.0]);
    assert_eq!(grids[0], [11.0, 11.5, 12.0]);
    assert_eq!(text(&path), "first\n");
    let before = fs::read(&path).unwrap();
    let bounds = Bounds { grid: None, index: Some((2, 9)) };
    assert!(ops::crop(&path, 1, bounds, &Target::InPlace, &LIMITS).is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
    let other = temp.path("other.taf");
    let target = Target::File(other.clone(), Overwrite::Never);
    let bounds = Bounds { grid: None, index: Some((2, 2)) };
    ops::crop(&path, 2, bounds, &target, &LIMITS).unwrap();
    assert_eq!(values(&other), [12.0, 13.0, 14.0]);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn moving_dimensions_of_length_one_rewrites_the_header_only() {
    let temp = Temp::new();
    let path = temp.counting(DType::F32, &[6, 1]);
    let inode = |p: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(p).unwrap());
    let before = inode(&path);
    ops::transpose(&path, &Target::InPlace, &LIMITS).unwrap();
    assert_eq!(inode(&path), before);
    let file = open(&path);
    assert_eq!(file.header().shape().lengths(), [1, 6]);
    assert_eq!((file.header().dimensions[1].start, file.header().dimensions[1].step), (10.0, 0.5));
    let cube = temp.counting(DType::U8, &[2, 3, 4]);
    assert!(ops::transpose(&cube, &Target::InPlace, &LIMITS).is_err());
    for bad in [&[1, 2][..], &[1, 2, 2], &[0, 1, 2], &[1, 2, 4]] {
        assert!(ops::permute(&cube, bad, &Target::InPlace, &LIMITS).is_err(), "{bad:?}");
    }
}

#[test]
fn replace_changes_only_the_values() {
    let temp = Temp::new();
    let path = temp.counting(DType::F64, &[2, 2]);
    ops::replace(&path, &doubles(&[2, 2], &[9.0, 8.0, 7.0, 6.0]), &LIMITS).unwrap();
    assert_eq!(values(&path), [9.0, 8.0, 7.0, 6.0]);
    assert_eq!((text(&path).as_str(), open(&path).header().dimensions[0].step), ("first\n", 0.5));
    assert!(ops::replace(&path, &doubles(&[4], &[0.0; 4]), &LIMITS).is_err());
}

#[test]
fn exported_text_restores_the_same_numbers() {
    let temp = Temp::new();
    let path = temp.path("e.taf");
    let numbers = [0.1, -0.0, 1e-300, 1.0 / 3.0, f64::NAN, f64::INFINITY, 1e17, 123_456.789];
    let options =
        Create { dtype: DType::F64, comments: b"one\ntwo\n".to_vec(), ..Create::default() };
    ops::create(&path, &doubles(&[4, 2], &numbers), &Selection::all(), &options).unwrap();
    let mut out = Vec::new();
    ops::export(&open(&path), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines();
    assert_eq!((lines.next(), lines.next()), (Some("# one"), Some("# two")));
    for (row, line) in lines.enumerate() {
        let fields: Vec<f64> = line.split('\t').map(|f| f.parse().unwrap()).collect();
        assert_eq!(fields[0], row as f64 + 1.0);
        for column in 0..2 {
            let want = numbers[column * 4 + row];
            assert!(fields[column + 1].to_bits() == want.to_bits() || want.is_nan());
        }
    }
    assert_eq!(text.lines().count(), 6);
    assert!(text.contains("0.10000000000000001"));
}

#[test]
fn salvage_recovers_the_complete_columns_of_a_truncated_file() {
    use spile_core::format::Salvager as _;
    use spile_core::sink::Sink;
    let temp = Temp::new();
    let path = temp.counting(DType::U16, &[10, 5]);
    let expected = values(&path);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..1104 + 2 * 33]).unwrap();
    let source = Source::open(&path).unwrap();
    let saved = temp.path("saved.taf");
    let mut sink = Sink::create(&saved, Overwrite::Never).unwrap();
    let report = spile_taf::Taf.salvage(&source, &mut sink, &LIMITS).unwrap();
    sink.commit().unwrap();
    assert_eq!(open(&saved).header().shape().lengths(), [10, 3]);
    assert_eq!(values(&saved), expected[..30]);
    assert_eq!(report.lost.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn permute_moves_every_element_to_its_new_position(
        lengths in proptest::collection::vec(1_u64..6, 2..5), seed in any::<u64>())
    {
        let temp = Temp::new();
        let path = temp.counting(DType::I32, &lengths);
        let rank = lengths.len();
        let mut order: Vec<usize> = (1..=rank).collect();
        for k in 0..rank {
            order.swap(k, (seed >> (8 * k)) as usize % rank);
        }
        let before = values(&path);
        ops::permute(&path, &order, &Target::InPlace, &LIMITS).unwrap();
        let after = values(&path);
        let new: Vec<u64> = order.iter().map(|k| lengths[k - 1]).collect();
        let old_strides = Shape::new(lengths.clone()).strides(Order::F);
        for (position, value) in after.iter().enumerate() {
            let mut rest = position as u64;
            let mut from = 0;
            for (k, length) in new.iter().enumerate() {
                from += rest % length * old_strides[order[k] - 1];
                rest /= length;
            }
            prop_assert_eq!(*value, before[from as usize]);
        }
        prop_assert_eq!(text(&path), "first\n");
        let mut inverse = vec![0; rank];
        for (k, d) in order.iter().enumerate() {
            inverse[d - 1] = k + 1;
        }
        ops::permute(&path, &inverse, &Target::InPlace, &LIMITS).unwrap();
        prop_assert_eq!(values(&path), before);
    }
}
