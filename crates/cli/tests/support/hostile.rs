//! Files with very many objects that take few bytes, as no writer makes them. Include this file with `#[path]`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A file with this number of objects at a path.
type Make = fn(usize, &Path);

/// The files by name.
pub(crate) const FILES: [(&str, Make); 9] = [
    ("sparse.gsd", sparse_gsd),
    ("sections.scda", scda_sections),
    ("elements.scda", scda_elements),
    ("arrays.vti", vti_arrays),
    ("rank.npy", npy_rank),
    ("arrays.iotk", iotk_arrays),
    ("comments.iotk", iotk_comments),
    ("columns.csv", csv_columns),
    ("frames.xyz", xyz_frames),
];

/// Names in frame 0 and one chunk in a late frame.
pub(crate) fn sparse_gsd(names: usize, path: &Path) {
    let (index, entries) = (256_u64, names as u64 + 2);
    let list = index + entries * 32;
    let blocks = names as u64 / 4 + 2;
    let data = list + blocks * 64;
    let mut file = Vec::new();
    for word in [0x65df_65df_65df_65df, index, entries, list, blocks] {
        file.extend(u64::to_le_bytes(word));
    }
    file.extend(1_u32.to_le_bytes());
    file.extend(0x0002_0001_u32.to_le_bytes());
    file.resize(256, 0);
    let mut entry = |frame: u64, id: u16| {
        for word in [frame, 1, data] {
            file.extend(word.to_le_bytes());
        }
        file.extend(1_u32.to_le_bytes());
        file.extend(id.to_le_bytes());
        // uint8
        file.extend([1, 0]);
    };
    for name in 0..names.min(60_000) {
        entry(0, name as u16);
    }
    entry(1_000, 0);
    file.resize(list as usize, 0);
    for name in 0..names.min(60_000) {
        file.extend(format!("log/n{name}\0").bytes());
    }
    file.resize(data as usize, 0);
    file.push(7);
    fs::write(path, file).unwrap();
}

/// A string with its padding (section 2.1.1 of the specification).
fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(b' ');
    bytes.resize(length - 2, b'-');
    bytes.extend(b"-\n");
    bytes
}

fn scda_sections(count: usize, path: &Path) {
    let mut file = scda_file_head();
    for k in 0..count {
        file.extend(b"I ");
        file.extend(padded(&format!("section {k}"), 62));
        file.extend(format!("{k:<31}\n").bytes());
    }
    fs::write(path, file).unwrap();
}

/// The header of a file.
fn scda_file_head() -> Vec<u8> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/scda/enc_a.scd");
    fs::read(golden).unwrap()[..128].to_vec()
}

/// One section with elements of one byte and different sizes.
fn scda_elements(count: usize, path: &Path) {
    let mut file = scda_file_head();
    file.extend(b"V ");
    file.extend(padded("elements", 62));
    let number = |letter: char, n: usize| {
        let mut line = format!("{letter} ").into_bytes();
        line.extend(padded(&n.to_string(), 30));
        line
    };
    let count = count * 10;
    file.extend(number('N', count));
    for _ in 0..count {
        file.extend(number('E', 1));
    }
    file.extend(vec![b'x'; count]);
    let rest = 32 - count % 32;
    let rest = if rest < 7 { rest + 32 } else { rest };
    file.extend(b"\n=");
    file.extend(vec![b'='; rest - 4]);
    file.extend(b"\n\n");
    fs::write(path, file).unwrap();
}

fn vti_arrays(count: usize, path: &Path) {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"LittleEndian\">\n\
         <ImageData WholeExtent=\"0 0 0 0 0 0\" Origin=\"0 0 0\" Spacing=\"1 1 1\">\n\
         <Piece Extent=\"0 0 0 0 0 0\">\n<PointData>\n",
    );
    for k in 0..count {
        let _ = writeln!(
            text,
            "<DataArray type=\"Float32\" Name=\"a{k}\" format=\"ascii\">{k}</DataArray>"
        );
    }
    text += "</PointData>\n</Piece>\n</ImageData>\n</VTKFile>\n";
    fs::write(path, text).unwrap();
}

/// One element with very many dimensions.
fn npy_rank(rank: usize, path: &Path) {
    let shape = "1,".repeat(rank);
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    while (12 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x02\x00".to_vec();
    file.extend((header.len() as u32).to_le_bytes());
    file.extend(header.bytes());
    file.extend(1.5_f64.to_le_bytes());
    fs::write(path, file).unwrap();
}

fn iotk_arrays(count: usize, path: &Path) {
    let mut text = String::from("<?xml version=\"1.0\"?>\n<Root>\n");
    for k in 0..count {
        let _ = writeln!(text, "<a{k} type=\"real\" size=\"1\">\n 1.5\n</a{k}>");
    }
    text += "</Root>\n";
    fs::write(path, text).unwrap();
}

/// Comments that begin and do not end.
fn iotk_comments(count: usize, path: &Path) {
    let text = format!("<?xml version=\"1.0\"?>\n<Root>\n{}", "<!-- ".repeat(count));
    fs::write(path, text).unwrap();
}

fn csv_columns(count: usize, path: &Path) {
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..count).map(cell).collect();
        cells.join(",") + "\n"
    };
    let text = line(&|k| format!("c{k}")) + &line(&|k| format!("{k}.5")) + &line(&|_| "2.5".into());
    fs::write(path, text).unwrap();
}

fn xyz_frames(count: usize, path: &Path) {
    let mut text = String::new();
    for k in 0..count {
        let _ = write!(text, "1\nProperties=species:S:1:pos:R:3 step={k}\nH 0.0 0.0 {k}.5\n");
    }
    fs::write(path, text).unwrap();
}
