//! Files that other programs do not write.

use spile_arrow::Arrow;
use spile_core::error::ErrorKind;
use spile_core::{Dataset, Limits, Result, Source};
use spile_interchange::arrow::{Fields, VERSION, message};
use spile_interchange::flatbuffers::{self, Item};

/// A file with this schema and these messages, each with its metadata and body.
fn file(version: i16, fields: Vec<Fields>, dictionaries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"ARROW1\0\0".to_vec();
    let mut blocks = Vec::new();
    for (metadata, body) in dictionaries {
        for number in [bytes.len(), metadata.len(), body.len()] {
            blocks.extend((number as u64).to_le_bytes());
        }
        bytes.extend(metadata);
        bytes.extend(body);
    }
    let schema = vec![(0, Item::I16(0)), (1, Item::Tables(fields))];
    let footer = flatbuffers::write(vec![
        (0, Item::I16(version)),
        (1, Item::Table(schema)),
        (2, Item::Structs(blocks, 24)),
        (3, Item::Structs(Vec::new(), 24)),
    ]);
    bytes.extend(&footer);
    bytes.extend((footer.len() as u32).to_le_bytes());
    bytes.extend(b"ARROW1");
    bytes
}

fn field(name: &str, code: u8, children: Vec<Fields>) -> Fields {
    vec![
        (0, Item::Text(name.into())),
        (2, Item::U8(code)),
        (3, Item::Table(vec![(0, Item::I32(32)), (1, Item::U8(1))])),
        (5, Item::Tables(children)),
    ]
}

fn open(bytes: Vec<u8>, memory: u64) -> Result<Dataset> {
    let limits = Limits { memory, ..Limits::default() };
    Dataset::open(&Arrow, Source::memory(bytes), &(&limits).into())
}

#[test]
fn structures_that_share_their_children_are_refused_in_bounded_time() {
    // Every structure has two children, of which the second becomes a reference to the first: the 80 tables of the
    // file describe 2^40 columns.
    let nested = (0..40).fold(field("x", 2, Vec::new()), |inner, _| {
        field("s", 13, vec![inner, field("second", 2, Vec::new())])
    });
    let mut bytes = file(VERSION, vec![nested], &[]);
    let number = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    // The vectors of two tables are those of the children.
    let mut shared = 0;
    for at in (8..bytes.len() - 12).filter(|at| at.is_multiple_of(4)) {
        let first = at + 4 + number(&bytes, at + 4).min(bytes.len());
        let second = at + 8 + number(&bytes, at + 8).min(bytes.len());
        let is_table =
            |at: usize| at.is_multiple_of(8) && at + 4 < bytes.len() && number(&bytes, at) < 64;
        let ordered = at + 12 <= first && first < second;
        if number(&bytes, at) == 2 && ordered && is_table(first) && is_table(second) {
            bytes[at + 8..at + 12].copy_from_slice(&((first - at - 8) as u32).to_le_bytes());
            shared += 1;
        }
    }
    assert_eq!(shared, 40);
    let error = open(bytes, 16 << 20).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains("the columns"), "{error}");
}

#[test]
fn unions_before_version_5_are_refused_with_all_later_columns() {
    let fields = || {
        let union = field("u", 14, vec![field("child", 2, Vec::new())]);
        vec![field("a", 2, Vec::new()), union, field("b", 2, Vec::new())]
    };
    // Version 5 removed the validity bitmap of unions; version 4 is number 3.
    for (version, columns, codes) in
        [(VERSION, &["a", "b"][..], &["arrow-020"][..]), (3, &["a"], &["arrow-020", "arrow-022"])]
    {
        let dataset = open(file(version, fields(), &[]), 64 << 20).unwrap();
        let found: Vec<&str> = dataset.warnings().iter().map(|finding| finding.code).collect();
        assert_eq!(found, codes, "version {version}");
        for name in ["a", "b"] {
            assert_eq!(dataset.array(name).is_ok(), columns.contains(&name), "{version}: {name}");
        }
    }
}

#[test]
fn the_dictionaries_of_all_columns_are_charged_together() {
    let len = 1_u64 << 20;
    let numbers = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let batch = vec![
        (0, Item::I64(1)),
        (1, Item::Structs(numbers(&[1, 0]), 16)),
        (2, Item::Structs(numbers(&[0, 0, 0, 8, 64, len]), 16)),
    ];
    let mut body = [0_u32, len as u32].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    body.resize(64, 0);
    body.resize(64 + len as usize, b'x');
    let header = vec![(0, Item::I64(7)), (1, Item::Table(batch))];
    let dictionary = [(message(2, header, body.len() as u64), body)];
    let columns = |count: usize| {
        let column = |k| {
            let mut column = field(&format!("c{k}"), 5, Vec::new());
            column.push((4, Item::Table(vec![(0, Item::I64(7))])));
            column
        };
        file(VERSION, (0..count).map(column).collect(), &dictionary)
    };
    let few = open(columns(2), 16 << 20).unwrap();
    assert!(few.warnings().is_empty(), "{:?}", few.warnings());
    let error = open(columns(20), 16 << 20).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains("the dictionaries"), "{error}");
}
