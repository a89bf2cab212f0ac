//! Long records, and records of Fortran programs.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::source::Source;
use spile_core::tree::Attrs;
use spile_core::wire::ByteOrder;
use spile_iotk::wire::Tag;
use spile_iotk::wire::record::{Framing, Records, SUBRECORD};
use spile_iotk::{File, Form, Style, Target, Writer};

fn limits() -> Limits {
    Limits::default()
}

#[test]
fn a_record_over_two_gigabytes_is_read_in_parts() {
    use std::os::unix::fs::FileExt as _;
    let count = SUBRECORD / 8 + 1_000;
    let open = format!("x type=\"real\" size=\"{count}\" kind=\"8\"");
    let mut writer = Writer::new(Vec::new(), Target::default(), Style::Exact).unwrap();
    writer.begin(&Tag::new(open.as_bytes())).unwrap();
    let begin = writer.level();
    writer.end().unwrap();
    let tags = writer.finish().unwrap();
    // The begin tag has two records: four bytes and markers, then the text.
    let len = 12 + 8 + u64::from(tags[12]);
    let (first, second) = tags.split_at(len as usize);
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut at = 0;
    let mut put = |bytes: &[u8], skip: u64| {
        file.as_file().write_all_at(bytes, at).unwrap();
        at += bytes.len() as u64 + skip;
        at
    };
    let rest = 4 + 8 * count - SUBRECORD;
    put(first, 0);
    put(&(-(SUBRECORD as i32)).to_le_bytes(), SUBRECORD);
    put(&(SUBRECORD as i32).to_le_bytes(), 0);
    let end = put(&(rest as i32).to_le_bytes(), rest);
    put(&(-(rest as i32)).to_le_bytes(), 0);
    put(second, 0);
    file.as_file().write_all_at(&2.5_f64.to_le_bytes(), end - 8).unwrap();
    // An element that is in both sub-records: its last bytes are the first of the second.
    assert_eq!((begin, (SUBRECORD - 4) % 8), (1, 3));
    let small = limits().with_memory(1 << 20);
    let opened = File::open(file.path(), &small).unwrap();
    let array = opened.array(0).unwrap().unwrap();
    let read = |part: &str| array.read_f64(&part.parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(read("-2:"), [0.0, 2.5]);
    let split = (SUBRECORD - 4) / 8;
    file.as_file().write_all_at(&1.5_f64.to_le_bytes()[3..], end - rest).unwrap();
    assert_eq!(read(&format!("{}:{}", split - 1, split + 2)), [0.0, 1.5, 0.0]);
}

#[test]
fn the_packed_file_of_two_gigabytes_is_read_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk");
    let unpacked = Command::new("tar")
        .args(["--sparse", "-xJf"])
        .arg(golden.join("big_2GiB_sparse.tar.xz"))
        .current_dir(folder.path())
        .output();
    match unpacked {
        Ok(done) if done.status.success() => {}
        Ok(done) => return skipped(&format!("tar: {}", String::from_utf8_lossy(&done.stderr))),
        Err(why) => return skipped(&format!("no tar: {why}")),
    }
    let small = limits().with_memory(1 << 20);
    let file = File::open(folder.path().join("big.dat"), &small).unwrap();
    assert_eq!(file.read::<i32>("Root/before").unwrap(), Some(vec![1]));
    assert_eq!(file.read::<i32>("Root/after").unwrap(), Some(vec![2]));
    let element = file.index().find("Root/big").unwrap();
    assert_eq!(file.index().elements()[element].data[0].extents.parts().len(), 2);
    let array = file.array(element).unwrap().unwrap();
    assert_eq!(array.shape().lengths(), [268_436_456]);
    // All numbers but these are 0; the third is in both sub-records.
    let mut found = Vec::new();
    array
        .all()
        .unwrap()
        .stream(|block, bytes| {
            if bytes.iter().any(|byte| *byte != 0) {
                let numbers = bytes.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap()));
                let others = numbers.enumerate().filter(|(_, x)| *x != 0.0);
                found.extend(others.map(|(k, x)| (block.first + k as u64, x)));
            }
            Ok(())
        })
        .unwrap();
    let values: Vec<f64> = found.iter().map(|(_, x)| *x).collect();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!((found[0].0, found[4].0), (0, 268_436_455));
}

/// Reports to `cargo xtask test` that a test was skipped.
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(list) = std::env::var_os("SPILE_SKIPPED") {
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        writeln!(list, "{why}").unwrap();
    }
}

#[test]
fn records_are_exchanged_with_a_fortran_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let program = "program p\n integer :: h, k\n real(8) :: x(1000), y(1000)\n character(200) :: t\n\
        open(10, file='ours.dat', form='unformatted', status='old')\n\
        do k = 1, 6\n read(10) h\n if (h == 0) exit\n read(10) h, t(1:h/256)\n end do\n\
        backspace(10)\n read(10) h, x\n close(10)\n\
        open(11, file='theirs.dat', form='unformatted')\n y = -2 * x\n write(11) y\n write(11) 7\n\
        close(11)\n end program\n";
    std::fs::write(path("p.f90"), program).unwrap();
    for (flags, marker) in
        [(&["-fmax-subrecord-length=1024"][..], 4), (&["-frecord-marker=8"][..], 8)]
    {
        let mut compiler = Command::new("gfortran");
        compiler.args(flags).args(["p.f90", "-o", "p"]).current_dir(folder.path());
        match compiler.output() {
            Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
            Err(why) => return skipped(&format!("no gfortran: {why}")),
        }
        let numbers: Vec<f64> = (0..1000).map(|k| f64::from(k) / 3.0).collect();
        let framing = Framing { marker, order: ByteOrder::NATIVE };
        let target = Target::Binary(framing, if marker == 4 { 1024 } else { SUBRECORD });
        let mut writer = Writer::new(Vec::new(), target, Style::Exact).unwrap();
        writer.dat_slice("x", &Attrs::new(), &numbers).unwrap();
        std::fs::write(path("ours.dat"), writer.finish().unwrap()).unwrap();
        let done = Command::new(path("p")).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let source = Source::open(path("theirs.dat")).unwrap();
        assert_eq!(Form::detect(&source).unwrap(), Form::Binary(framing));
        let mut records = Records::new(source, framing, &limits());
        let first = records.next().unwrap().unwrap();
        assert_eq!(first.content.parts().len() > 1, marker == 4);
        let mut found = Vec::new();
        records.beginning(&first, 8000, &mut found).unwrap();
        let wanted: Vec<u8> =
            (0..1000).flat_map(|k| (-2.0 * (f64::from(k) / 3.0)).to_ne_bytes()).collect();
        assert_eq!(found, wanted);
    }
}
