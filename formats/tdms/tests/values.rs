//! Layouts of values that only instruments write: digital lines, several scalers, short last chunks, scales of sensors.

use spile_core::{Dataset, OpenOptions, Source, Value};
use spile_tdms::Tdms;

/// Type, number of values and, for DAQmx channels, the index of a channel.
enum Index {
    Plain(u32, u64),
    Text(u64, u64),
    /// Header, type, number of values, scalers (type, buffer, offset, number) and widths of the buffers.
    Daqmx(u32, u32, u64, Vec<[u32; 4]>, Vec<u32>),
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn words(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend(word.to_le_bytes());
    }
}

/// A segment with these channels of the group `g`, their properties, and data.
/// Name, index and properties of a channel.
type Channel<'a> = (&'a str, Index, Vec<(&'a str, Value)>);

fn segment(contents: u32, channels: &[Channel<'_>], data: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    words(&mut meta, &[channels.len() as u32]);
    for (name, index, properties) in channels {
        text(&mut meta, &format!("/'g'/'{name}'"));
        match index {
            Index::Plain(kind, count) => {
                words(&mut meta, &[20, *kind, 1]);
                meta.extend(count.to_le_bytes());
            }
            Index::Text(count, bytes) => {
                words(&mut meta, &[28, 0x20, 1]);
                meta.extend(count.to_le_bytes());
                meta.extend(bytes.to_le_bytes());
            }
            Index::Daqmx(header, kind, count, scalers, widths) => {
                words(&mut meta, &[*header, *kind, 1]);
                meta.extend(count.to_le_bytes());
                words(&mut meta, &[scalers.len() as u32]);
                for [kind, buffer, offset, number] in scalers {
                    words(&mut meta, &[*kind, *buffer, *offset]);
                    meta.resize(meta.len() + if *header == 0x126a { 1 } else { 4 }, 0);
                    words(&mut meta, &[*number]);
                }
                words(&mut meta, &[widths.len() as u32]);
                words(&mut meta, widths);
            }
        }
        words(&mut meta, &[properties.len() as u32]);
        for (name, value) in properties {
            text(&mut meta, name);
            match value {
                Value::Text(value) => {
                    words(&mut meta, &[0x20]);
                    text(&mut meta, value);
                }
                Value::Float(value) => {
                    words(&mut meta, &[10]);
                    meta.extend(value.to_le_bytes());
                }
                other => words(&mut meta, &[7, u64::try_from(other).unwrap() as u32]),
            }
        }
    }
    let mut bytes = b"TDSm".to_vec();
    words(&mut bytes, &[contents, 4713]);
    bytes.extend((meta.len() as u64 + data.len() as u64).to_le_bytes());
    bytes.extend((meta.len() as u64).to_le_bytes());
    bytes.extend(meta);
    bytes.extend(data);
    bytes
}

fn open(bytes: Vec<u8>) -> Dataset {
    Dataset::open(&Tdms, Source::memory(bytes), &OpenOptions::default()).unwrap()
}

fn values(file: &Dataset, path: &str) -> Vec<f64> {
    file.array(path).unwrap().values().unwrap()
}

const RAW: u32 = u32::MAX;

#[test]
fn a_short_last_chunk_has_fewer_values_of_every_channel() {
    let channels = [("a", Index::Plain(2, 2), vec![]), ("b", Index::Plain(2, 2), vec![])];
    let data: Vec<u8> = [1_i16, 2, 3, 4, 5, 6].iter().flat_map(|v| v.to_le_bytes()).collect();
    let file = open(segment(0xe, &channels, &data));
    assert_eq!(
        (values(&file, "g/a"), values(&file, "g/b")),
        (vec![1.0, 2.0, 5.0], vec![3.0, 4.0, 6.0])
    );
    // A file that ends inside a chunk has all values of the first channel.
    let mut cut = segment(0xe, &channels, &[&data[..], &[7, 0, 8, 0]].concat());
    cut.truncate(cut.len() - 4);
    let file = open(cut);
    assert_eq!(
        (values(&file, "g/a"), values(&file, "g/b")),
        (vec![1.0, 2.0, 5.0, 6.0], vec![3.0, 4.0])
    );
}

#[test]
fn digital_lines_are_bits_of_their_rows() {
    let line = |bit: u32| Index::Daqmx(0x126a, RAW, 4, vec![[0, 0, bit, 0]], vec![2]);
    let channels = [("l0", line(0), vec![]), ("l2", line(2), vec![]), ("l9", line(9), vec![])];
    let file = open(segment(0x8e, &channels, &[1, 0, 4, 2, 5, 0, 0, 3]));
    assert_eq!(values(&file, "g/l0"), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(values(&file, "g/l2"), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(values(&file, "g/l9"), [0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn several_scalers_are_arrays_or_inputs_of_scales() {
    let two = || Index::Daqmx(0x1269, RAW, 2, vec![[3, 0, 0, 0], [5, 0, 2, 1]], vec![6]);
    let data = [[1, 0, 10, 0, 0, 0], [2, 0, 20, 0, 0, 0]].concat();
    let file = open(segment(0x8e, &[("c", two(), vec![])], &data));
    assert_eq!(values(&file, "g/c scaler 0"), [1.0, 2.0]);
    assert_eq!(values(&file, "g/c scaler 1"), [10.0, 20.0]);
    let add = vec![
        ("NI_Number_Of_Scales", 3_u64.into()),
        ("NI_Scale[2]_Scale_Type", "Add".into()),
        ("NI_Scale[2]_Add_Left_Operand_Input_Source", 0_u64.into()),
        ("NI_Scale[2]_Add_Right_Operand_Input_Source", 1_u64.into()),
    ];
    let file = open(segment(0x8e, &[("c", two(), add)], &data));
    assert_eq!(values(&file, "g/c"), [11.0, 22.0]);
}

#[test]
fn daqmx_rows_may_have_values_of_other_types() {
    let float = Index::Daqmx(0x1269, 10, 2, vec![[9, 0, 8, 0]], vec![16]);
    let long = Index::Daqmx(0x1269, 4, 2, vec![[7, 0, 0, 0]], vec![16]);
    let rows = [(7_i64, 0.5_f64), (-8, 1.5)];
    let data = rows.map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()].concat()).concat();
    let file = open(segment(0xe, &[("f", float, vec![]), ("n", long, vec![])], &data));
    assert_eq!((values(&file, "g/f"), values(&file, "g/n")), (vec![0.5, 1.5], vec![7.0, -8.0]));
}

#[test]
fn thermocouples_and_tables_are_scaled() {
    let scale = |kind: &str, more: Vec<(&'static str, Value)>| {
        let mut all =
            vec![("NI_Number_Of_Scales", 1_u64.into()), ("NI_Scale[0]_Scale_Type", kind.into())];
        all.extend(more);
        all
    };
    let data = 4096.23_f64.to_le_bytes();
    let kind = scale(
        "Thermocouple",
        vec![("NI_Scale[0]_Thermocouple_Thermocouple_Type", 10_073_u64.into())],
    );
    let file = open(segment(0xe, &[("t", Index::Plain(10, 1), kind)], &data));
    assert!((values(&file, "g/t")[0] - 100.0).abs() < 0.05);
    let table = scale(
        "Table",
        vec![
            ("NI_Scale[0]_Table_Scaled_Values_Size", 2_u64.into()),
            ("NI_Scale[0]_Table_Pre_Scaled_Values_Size", 2_u64.into()),
            ("NI_Scale[0]_Table_Scaled_Values[0]", 0.0.into()),
            ("NI_Scale[0]_Table_Scaled_Values[1]", 1.0.into()),
            ("NI_Scale[0]_Table_Pre_Scaled_Values[0]", 0.0.into()),
            ("NI_Scale[0]_Table_Pre_Scaled_Values[1]", 8192.46.into()),
        ],
    );
    let file = open(segment(0xe, &[("t", Index::Plain(10, 1), table)], &data));
    assert_eq!(values(&file, "g/t"), [0.5]);
}

#[test]
fn text_is_read_in_interleaved_segments_and_a_wrong_length_hides_no_other_channel() {
    let data = [&4_u32.to_le_bytes()[..], &6_u32.to_le_bytes(), b"abcdef"].concat();
    let file = open(segment(0x2e, &[("s", Index::Text(2, 14), vec![])], &data));
    assert_eq!(file.array("g/s").unwrap().bytes().unwrap(), b"abcdef\0\0");
    let channels = [("s", Index::Text(2, 13), vec![]), ("n", Index::Plain(5, 1), vec![])];
    let file = open(segment(0xe, &channels, &data));
    assert_eq!((values(&file, "g/n"), file.warnings()[0].code), (vec![102.0], "tdms-014"));
}
