//! `spile plot` of every kind, as typed by a user.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    path.to_str().unwrap().to_string()
}

fn dump() -> String {
    golden("sdf/epoch2d_4ranks_id4_0001.sdf")
}

fn density() -> String {
    golden("iotk/qe54_si/si.save/charge-density.dat")
}

fn trajectory() -> String {
    golden("gsd/py-5.0.1/hoomd_many_frames.gsd")
}

fn spile(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(words).env_remove("COLORTERM").stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn good(words: &[&str]) -> String {
    let done = spile(words);
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), &*error), (Some(0), ""), "{words:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// What the user is told, without the file's name.
#[track_caller]
fn bad(words: &[&str]) -> String {
    let done = spile(words);
    assert_eq!(done.status.code(), Some(2), "{words:?}");
    assert!(done.stdout.is_empty(), "{words:?}");
    let told = String::from_utf8(done.stderr).unwrap();
    let told = told.strip_prefix("error: ").map_or(told.clone(), str::to_string);
    match told.strip_prefix(words[1]) {
        Some(rest) => rest.trim_start_matches(": ").to_string(),
        None => told,
    }
}

#[track_caller]
fn json(words: &[&str]) -> Value {
    let all: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&good(&all)).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap_or(f64::NAN)).collect()
}

/// The values that `spile cat` prints, in rows.
#[track_caller]
fn cat(words: &[&str]) -> Vec<Vec<f64>> {
    let all: Vec<&str> = ["cat"].into_iter().chain(words.iter().copied()).collect();
    let text = good(&all);
    text.lines().map(|l| l.split('\t').map(|n| n.parse().unwrap()).collect()).collect()
}

#[track_caller]
fn alike(a: &[f64], b: &[f64], part: f64) {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= part * size, "{a} is not {b}");
    }
}

#[test]
fn a_field_of_two_dimensions_is_a_map_between_the_nodes_of_its_mesh() {
    let drawn = json(&["plot", &dump(), "number_density", "-o", "x.svg"]);
    let map = &drawn["map"];
    let (x, y) = (numbers(&map["x_edges"]), numbers(&map["y_edges"]));
    let nodes = |name: &str| cat(&[&dump(), name]).concat();
    alike(&x, &nodes("Grid/Grid/X"), 1e-12);
    alike(&y, &nodes("Grid/Grid/Y"), 1e-12);
    // Rows of the map are columns of the array: its first dimension lies along x.
    let values = cat(&[&dump(), "number_density"]);
    let rows = map["rows"].as_array().unwrap();
    assert_eq!((rows.len(), values.len(), values[0].len()), (36, 44, 36));
    for (j, row) in rows.iter().enumerate() {
        let column: Vec<f64> = values.iter().map(|line| line[j]).collect();
        assert_eq!(numbers(row), column);
    }
    assert_eq!((&drawn["x"]["label"], &drawn["x"]["unit"]), (&"X".into(), &"m".into()));
    assert_eq!(map["unit"], "1/m^3");
    assert!(!Path::new("x.svg").exists(), "JSON draws nothing");
    // The coordinates of a staggered field are the cell centres, as in sdf-xarray.
    let staggered = numbers(&json(&["plot", &dump(), "ex", "-o", "x.svg"])["map"]["x_edges"]);
    alike(&staggered, &x, 1e-12);
}

#[test]
fn cells_of_a_stretched_mesh_lie_between_its_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(dump()).unwrap();
    let old = spile(&["cat", &dump(), "Grid/Grid/X", "--raw"]).stdout;
    let at = bytes.windows(old.len()).position(|w| w == old).unwrap();
    let nodes: Vec<f64> = (0..45).map(|k| f64::from(k * k) * 1e-8).collect();
    let new: Vec<u8> = nodes.iter().flat_map(|v| v.to_le_bytes()).collect();
    bytes[at..at + old.len()].copy_from_slice(&new);
    let path = folder.path().join("stretched.sdf");
    fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let edges = |words: &[&str]| {
        let all: Vec<&str> = ["plot", path].into_iter().chain(words.iter().copied()).collect();
        numbers(&json(&all)["map"]["x_edges"])
    };
    let out = ["-o", "x.png"];
    assert_eq!(edges(&[&["number_density"], &out[..]].concat()), nodes);
    assert_eq!(edges(&[&["number_density", "10:20, :"], &out[..]].concat()), nodes[10..21]);
    // The coordinates of a staggered field are the cell centres, as in sdf-xarray.
    assert_eq!(edges(&[&["ex"], &out[..]].concat()), nodes);
    // In a drawing of few columns narrow cells are joined.
    let few = edges(&["number_density", "--width", "30"]);
    assert!(few.len() < 31 && few.iter().all(|e| nodes.contains(e)), "{few:?}");
}

#[test]
fn pictures_name_what_they_show() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("n.svg");
    let out = picture.to_str().unwrap();
    good(&["plot", &dump(), "number_density", "-o", out]);
    let svg = fs::read_to_string(&picture).unwrap();
    for part in
        ["X (µm)", "Y (µm)", "Derived/Number_Density (×10²⁴ 1/m³)", "epoch2d_4ranks_id4_0001.sdf"]
    {
        assert!(svg.contains(&format!(">{part}<")), "{part}");
    }
    assert_eq!(svg.matches("<image").count(), 2, "the map and its bar");
    assert!(bad(&["plot", &dump(), "number_density", "-o", out]).contains("exists"));
    good(&["plot", &dump(), "ex", "--symmetric", "--overwrite", "-o", out, "--title", "E & B"]);
    let svg = fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("Electric Field/Ex (GV/m)") && svg.contains("E &amp; B"));
    assert!(svg.contains(">−20<") && svg.contains(">20<"), "as far below zero as above");
    let png = folder.path().join("n.png");
    good(&[
        "plot",
        &dump(),
        "ex",
        "-o",
        png.to_str().unwrap(),
        "--width",
        "300",
        "--height",
        "200",
    ]);
    let png = fs::read(png).unwrap();
    assert_eq!(png[16..24], [0, 0, 2, 88, 0, 0, 1, 144], "600 x 400 pixels");
}

#[test]
fn of_three_dimensions_the_middle_is_shown_and_said() {
    let drawn = json(&["plot", &density()]);
    let title = "charge-density.dat: density[:, :, 6], a3 = 0.5 (the middle)";
    assert_eq!(drawn["title"], title);
    assert!(good(&["plot", &density()]).contains(title));
    let name = "Root/CHARGE-DENSITY/density";
    let values = cat(&[&density(), name, ":, :, 6"]);
    let first: Vec<f64> = values.iter().map(|line| line[0]).collect();
    assert_eq!(numbers(&drawn["map"]["rows"][0]), first);
    // A part that was asked for is no default.
    let asked = json(&["plot", &density(), name, ":, 3, :"]);
    assert_eq!(asked["title"], "charge-density.dat: density[:, 3, :], a2 = 0.25");
    let values = cat(&[&density(), name, ":, 3, :"]);
    assert_eq!(numbers(&asked["map"]["rows"][11])[2], values[2][11]);
    let turned = json(&["plot", &density(), name, ":, 3, :", "--transpose"]);
    assert_eq!(numbers(&turned["map"]["rows"][2]), values[2]);
    // Coordinates of what was left out are told.
    let energy = json(&["plot", &dump(), "dist_fn/xy_en/electron"]);
    let title = energy["title"].as_str().unwrap();
    assert!(title.ends_with("electron[:, :, 2], energy = 5e-15 J (the middle)"), "{title}");
}

#[test]
fn few_columns_stay_lines_unless_asked() {
    let lines = json(&["plot", &density(), "Root/CHARGE-DENSITY/density", ":, 0:3, 0"]);
    let labels: Vec<&Value> =
        lines["series"].as_array().unwrap().iter().map(|s| &s["label"]).collect();
    assert_eq!(labels, ["column 0, 0", "column 1, 0", "column 2, 0"]);
    let name = "Root/CHARGE-DENSITY/density";
    let map = json(&["plot", &density(), name, ":, 0:3, 0", "--heatmap"]);
    assert_eq!(map["map"]["rows"].as_array().unwrap().len(), 3);
    // As wide as long is no bundle of lines.
    assert!(json(&["plot", &density(), name, ":, :, 0"])["map"].is_object());
    let lines = json(&["plot", &density(), name, ":, :, 0", "--lines"]);
    assert_eq!(lines["series"].as_array().unwrap().len(), 12);
}

#[test]
fn particles_are_points_and_their_density_is_a_map() {
    let (x, px, weight) = ("Grid/Particles/electron/X", "px/electron", "weight/electron");
    let points = json(&["plot", &dump(), x, px]);
    let (xs, ps) = (cat(&[&dump(), x]).concat(), cat(&[&dump(), px]).concat());
    assert_eq!(numbers(&points["series"][0]["x"]), xs);
    // Half as long numbers are printed with half as many digits.
    alike(&numbers(&points["series"][0]["y"]), &ps, 1e-7);
    assert_eq!(points["y"]["label"], "Px/electron");

    let counted = json(&["plot", &dump(), x, px, "--hist", "--bins", "7x5"]);
    let rows = counted["map"]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), rows[0].as_array().unwrap().len()), (5, 7));
    let total = |rows: &Value| -> f64 {
        let all = rows.as_array().unwrap().iter().flat_map(numbers);
        all.filter(|v| v.is_finite()).sum()
    };
    assert_eq!(total(&counted["map"]["rows"]), xs.len() as f64);
    // One bin by hand.
    let (xe, ye) = (numbers(&counted["map"]["x_edges"]), numbers(&counted["map"]["y_edges"]));
    let inside = xs
        .iter()
        .zip(&ps)
        .filter(|(a, b)| **a >= xe[3] && **a < xe[4] && **b >= ye[2] && **b < ye[3]);
    assert_eq!(numbers(&rows[2])[3], inside.count() as f64);

    let weights: f64 = cat(&[&dump(), weight]).concat().iter().sum();
    let summed = json(&["plot", &dump(), x, px, "--weight", weight]);
    assert!((total(&summed["map"]["rows"]) / weights - 1.0).abs() < 1e-12);
    assert_eq!(summed["map"]["label"], "sum of Weight/electron");

    let bars = json(&["plot", &dump(), px, "--hist", "--bins", "10"]);
    assert_eq!(numbers(&bars["series"][0]["high"]).iter().sum::<f64>(), ps.len() as f64);
    // A field of any number of dimensions has a histogram too.
    let field = json(&["plot", &dump(), "ex", "--hist"]);
    assert_eq!(numbers(&field["series"][0]["high"]).iter().sum::<f64>(), 44.0 * 36.0);
}

#[test]
fn columns_of_one_array_are_drawn_against_each_other() {
    let file = golden("gsd/py-5.0.1/hoomd_full.gsd");
    let drawn = json(&[
        "plot",
        &file,
        "particles/position[:, 0]",
        "particles/position[:, 2]",
        "--frame",
        "1",
    ]);
    let all = cat(&[&file, "particles/position", "--frame", "1"]);
    let column = |k: usize| all.iter().map(|row| row[k]).collect::<Vec<_>>();
    alike(&numbers(&drawn["series"][0]["x"]), &column(0), 1e-7);
    alike(&numbers(&drawn["series"][0]["y"]), &column(2), 1e-7);
    assert_eq!(drawn["title"], "hoomd_full.gsd: frame 1 (step 100)");
    assert_eq!(drawn["x"]["label"], "particles/position[:, 0]");
}

#[test]
fn values_of_every_frame_are_drawn_over_their_steps() {
    let drawn = json(&["plot", &trajectory(), "log/E"]);
    let series = &drawn["series"][0];
    let ys = numbers(&series["low"]);
    assert_eq!((ys.len(), drawn["x"]["label"].as_str()), (100, Some("step")));
    assert_eq!((&series["start"], &series["step"]), (&0.0.into(), &10.0.into()));
    for frame in [0, 37, 99] {
        let value = cat(&[&trajectory(), "log/E", "--frame", &frame.to_string()]);
        assert_eq!(ys[frame], value[0][0]);
    }
    // One coordinate of one particle; all of it is too much.
    let one = json(&["plot", &trajectory(), "particles/position", "2, 1"]);
    let at = cat(&[&trajectory(), "particles/position", "2, 1", "--frame", "50"]);
    alike(&numbers(&one["series"][0]["low"])[50..51], &at[0], 1e-7);
    let two = json(&["plot", &trajectory(), "particles/position", "1, :"]);
    assert_eq!(two["series"][2]["label"], "position[1, 2]");
    let file = golden("gsd/py-5.0.1/hoomd_full.gsd");
    assert_eq!(
        bad(&["plot", &file, "particles/position"]),
        "the array has 3 frames of 60 elements; specify a frame\n\
         hint: for example --frame 0; up to 12 selected elements are plotted over all frames\n"
    );
    assert!(good(&["plot", &file, "particles/position", "--frame", "0"]).contains("frame 0"));
    assert_eq!(
        bad(&["plot", &file, "particles/position", "--hist"]),
        "\"particles/position\" has 3 frames; specify one\n\
         hint: for example --frame 0, or --frame -1 for the last\n"
    );
}

#[test]
fn a_folder_of_dumps_has_a_time_axis() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    let mut energies = Vec::new();
    let energy = "Total Field Energy in Simulation (J)";
    for k in 0..3 {
        let name = format!("epoch2d_4ranks_id4_000{k}.sdf");
        fs::copy(golden(&format!("sdf/{name}")), run.join(&name)).unwrap();
        energies.push(cat(&[&golden(&format!("sdf/{name}")), energy])[0][0]);
    }
    let run = run.to_str().unwrap();
    let drawn = json(&["plot", run, energy]);
    let series = &drawn["series"][0];
    let values = if series["y"].is_array() { &series["y"] } else { &series["low"] };
    assert_eq!((numbers(values), &drawn["x"]["label"]), (energies, &"time".into()));
    let map = json(&["plot", run, "number_density", "--frame", "2"]);
    let title = map["title"].as_str().unwrap();
    assert!(title.starts_with("run: frame 2 (time ") && title.ends_with("e-14)"), "{title}");
    let alone = json(&["plot", &golden("sdf/epoch2d_4ranks_id4_0002.sdf"), "number_density"]);
    assert_eq!(map["map"], alone["map"]);
}

#[test]
fn mistakes_are_told_with_a_way_out() {
    let dump = dump();
    let cases: &[(&[&str], &str)] = &[
        (
            &["Grid/Particles/electron/X", "Particles/Px/Carbon_ions_with_a_long_name"],
            "Grid/Particles/electron/X has 713 elements, but \
             Particles/Px/Carbon_ions_with_a_long_name has 730\n\
             hint: both arrays need the same number of elements\n",
        ),
        (
            &["ex", "px/electron"],
            "an axis requires one dimension, Electric Field/Ex has 44 x 36 elements\n\
             hint: for example 'Electric Field/Ex[:, 0]'\n",
        ),
        (
            &["px/electron", "--points"],
            "--points requires two arrays\n\
             hint: the first is plotted along x, the second along y\n",
        ),
        (
            &["ex", "--bins", "5"],
            "--bins requires a histogram\nhint: add --hist or a second array\n",
        ),
        (
            &["px/electron", "--symmetric"],
            "--symmetric applies to heat maps, not to line plots\n\
             hint: --heatmap draws a two-dimensional array as a heat map\n",
        ),
        (
            &["px/electron", "--heatmap"],
            "a heat map requires two dimensions\n\
             hint: without --heatmap the array is drawn as a line\n",
        ),
        (
            &["px/electron", "--hist", "--weight", "id/carbon_ions_with_a_long_name"],
            "expected 713 weights, Particles/ID/Carbon_ions_with_a_long_name has 730 elements\n",
        ),
        (
            &["ex", ":, 5x"],
            "invalid slice \"5x\"\n\
             hint: valid slices are 3, 0:100, ::10, -5: and ..., separated by commas\n",
        ),
    ];
    for (words, told) in cases {
        let all: Vec<&str> = ["plot", &dump].into_iter().chain(words.iter().copied()).collect();
        assert_eq!(bad(&all), *told, "{words:?}");
    }
    let told = bad(&["plot", &dump, "ex", "--hist", "--weight", "bz"]);
    assert!(
        told.contains("an axis requires one dimension, Electric Field/Ex has 44 x 36 elements")
    );
    assert!(bad(&["plot", &dump, "exx"]).contains("did you mean"));
    assert!(bad(&["plot", &dump, "ex[0:"]).contains("no object named \""));
    assert!(bad(&["plot", &dump]).contains("specify one"));
    for words in [["--range", "5:1"], ["--range", "a:b"], ["--bins", "0"], ["--bins", "3x"]] {
        let told = bad(&["plot", &dump, "ex", words[0], words[1]]);
        assert!(told.contains("expected "), "{told}");
    }
    assert!(bad(&["plot", &dump, "ex", "--log", "--symmetric"]).contains("cannot be used with"));
}

#[test]
fn terminals_get_what_they_can_show() {
    let plain = good(&["plot", &dump(), "number_density", "--width", "70", "--height", "16"]);
    assert_eq!(plain.lines().count(), 16);
    assert!(plain.lines().all(|l| l.chars().count() <= 70) && !plain.contains('\x1b'), "{plain}");
    assert!(plain.contains("Derived/Number_Density (×10²⁴ 1/m³)") && plain.contains("X (µm)"));
    let words = ["--color", "always", "plot", &dump(), "number_density"];
    assert!(good(&words).contains("\x1b[38;5;"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    let done = command.args(words).env("COLORTERM", "truecolor").output().unwrap();
    assert!(String::from_utf8(done.stdout).unwrap().contains("\x1b[38;2;"));
    let kitty = good(&["plot", &dump(), "number_density", "--kitty"]);
    assert!(kitty.starts_with("\x1b_Ga=T,f=100,c=80,m=1;iVBORw0KGgo"), "a PNG file");
    let sixel = good(&["plot", &dump(), "number_density", "--sixel", "--width", "200"]);
    assert!(sixel.starts_with("\x1bPq\"1;1;200;600#0;2;") && sixel.ends_with("\x1b\\\n"));
}

/// What a terminal gets that says so in its environment; nothing where there is no program `script`, which
/// makes terminals.
#[cfg(target_os = "linux")]
fn in_terminal(words: &str, environment: &[(&str, &str)]) -> Option<String> {
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{} {words}", env!("CARGO_BIN_EXE_spile")), "/dev/null"]);
    for known in ["TMUX", "STY", "KITTY_WINDOW_ID", "TERM_PROGRAM", "KONSOLE_VERSION", "NO_COLOR"] {
        command.env_remove(known);
    }
    command.env("TERM", "xterm-256color").envs(environment.iter().copied());
    let done = command.stdin(Stdio::null()).output().ok()?;
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8(done.stdout).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_offers_graphics_gets_them_unless_characters_are_wanted() {
    let plot = format!("plot {} number_density", dump());
    let Some(plain) = in_terminal(&plot, &[]) else {
        eprintln!("skipped: there is no program `script` that makes a terminal");
        return;
    };
    let (kitty, sixel) = ("\x1b_Ga=T,f=100,", "\x1bPq");
    assert!(!plain.contains(kitty) && !plain.contains(sixel) && plain.contains('▀'), "{plain}");
    let cases = [
        ("", &[("TERM", "xterm-kitty")][..], kitty),
        ("", &[("TERM_PROGRAM", "WezTerm")], kitty),
        ("", &[("TERM", "foot")], sixel),
        ("--text", &[("TERM", "xterm-kitty")], "▀"),
        ("--width 60", &[("TERM", "xterm-kitty")], "▀"),
        ("", &[("TERM", "xterm-kitty"), ("TMUX", "x")], "▀"),
        ("--sixel", &[("TERM", "xterm-kitty")], sixel),
    ];
    for (option, environment, mark) in cases {
        let shown = in_terminal(&format!("{plot} {option}"), environment).unwrap();
        let others = [kitty, sixel, "▀"].into_iter().filter(|other| *other != mark);
        assert!(shown.contains(mark), "{option} {environment:?}");
        assert_eq!(
            others.filter(|other| shown.contains(other)).count(),
            0,
            "{option} {environment:?}"
        );
    }
    // A pipe is no terminal, whatever the environment says.
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(["plot", &dump(), "number_density"]).env("TERM", "xterm-kitty");
    let piped = command.stdin(Stdio::null()).output().unwrap().stdout;
    assert!(!piped.contains(&0x1b));
}

/// The words of a command as a shell splits them.
fn shell_words(line: &str) -> Vec<String> {
    let quoted = |(k, part): (usize, &str)| match k % 2 {
        1 => vec![part.to_string()],
        _ => part.split_whitespace().map(str::to_string).collect(),
    };
    line.split('\'').enumerate().flat_map(quoted).collect()
}

// Other processors may round otherwise at the edges of lines.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_gallery_shows_what_is_drawn() {
    use resvg::tiny_skia::Pixmap;
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("gallery.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("    spile plot ")) {
        let mut words = shell_words(line);
        let name = words.pop().unwrap();
        words[0] = golden(&words[0]);
        // Drawn twice: nothing but the file decides what it looks like, to the last byte.
        let files = ["first.png", "second.png"].map(|file| folder.path().join(file));
        for file in &files {
            let mut all = vec!["plot"];
            all.extend(words.iter().map(String::as_str));
            all.extend([file.to_str().unwrap(), "--overwrite"]);
            good(&all);
        }
        let [first, second] = files.map(|file| fs::read(file).unwrap());
        assert!(first == second, "{name} is drawn in two ways");
        // How well pixels are packed depends on the parts that a build has; pixels do not.
        let shown = fs::read(docs.join("images/gallery").join(&name)).unwrap();
        let [drawn, shown] = [first, shown].map(|bytes| Pixmap::decode_png(&bytes).unwrap());
        assert!(drawn == shown, "{name} is not what is drawn; run `cargo xtask gallery`");
        compared += 1;
    }
    assert_eq!(compared, 11);
}

/// A NumPy file of bytes, `at` which `ones` are written; the rest takes no space on disk.
fn sparse(folder: &Path, shape: [u64; 2], ones: &[(u64, u64)]) -> PathBuf {
    use std::io::{Seek as _, SeekFrom};
    let path = folder.join("sparse.npy");
    let mut file = fs::File::create(&path).unwrap();
    let text = format!(
        "{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {}), }}",
        shape[0], shape[1]
    );
    let mut header = format!("{text:117}\n").into_bytes();
    assert_eq!(header.len(), 118);
    header.splice(0..0, *b"\x93NUMPY\x01\x00\x76\x00");
    file.write_all(&header).unwrap();
    for (offset, length) in ones {
        file.seek(SeekFrom::Start(128 + offset)).unwrap();
        file.write_all(&vec![1; *length as usize]).unwrap();
    }
    file.set_len(128 + shape[0] * shape[1]).unwrap();
    path
}

#[test]
fn an_array_larger_than_the_budget_is_drawn_whole() {
    let folder = tempfile::tempdir().unwrap();
    // A hundred million elements; a thousand ones in the line 2500.
    let path = sparse(folder.path(), [10_000, 10_000], &[(25_000_000, 1000)]);
    let path = path.to_str().unwrap();
    let drawn = json(&["plot", path, "--max-memory", "4M", "--width", "100", "--height", "20"]);
    let map = &drawn["map"];
    let (columns, rows) = (100, 40);
    assert_eq!(map["x_edges"].as_array().unwrap().len(), columns + 1);
    assert_eq!(map["rows"].as_array().unwrap().len(), rows);
    // One line of a hundred, in the first tenth of the second index.
    for (j, row) in map["rows"].as_array().unwrap().iter().enumerate() {
        for (i, value) in numbers(row).into_iter().enumerate() {
            let want = if i == 25 && j < 4 { 0.01 } else { 0.0 };
            assert!((value - want).abs() < 1e-15, "{i} {j}: {value}");
        }
    }
    for jobs in ["1", "2"] {
        let again = json(&["plot", path, "--width", "100", "--height", "20", "-j", jobs]);
        assert_eq!(again["map"], *map, "whatever the budget and the number of threads");
    }
    let bars = json(&["plot", path, "--hist", "--max-memory", "4M"]);
    assert_eq!(numbers(&bars["series"][0]["high"]), [99_999_000.0, 1000.0]);
}

#[test]
fn more_points_than_can_be_drawn_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = sparse(folder.path(), [20_000, 2], &[(0, 10)]);
    let path = path.to_str().unwrap();
    let drawn = json(&["plot", path, "data[:, 0]", "data[:, 1]"]);
    let corner: Vec<Vec<f64>> =
        drawn["map"]["rows"].as_array().unwrap().iter().map(numbers).collect();
    assert_eq!((corner[0][0], corner[1][1]), (19_995.0, 5.0));
    let points = json(&["plot", path, "data[:, 0]", "data[:, 1]", "--points"]);
    assert_eq!(points["series"][0]["x"].as_array().unwrap().len(), 20_000);
    let few = json(&["plot", path, "data[:100, 0]", "data[:100, 1]"]);
    assert_eq!(few["series"][0]["x"].as_array().unwrap().len(), 100);
}

#[test]
fn odd_arrays_are_drawn_or_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let empty = sparse(folder.path(), [0, 50], &[]);
    let told = bad(&["plot", empty.to_str().unwrap()]);
    assert!(told.contains("the selection of an array of 0 x 50 elements is empty"), "{told}");
    let row = sparse(folder.path(), [1, 50], &[(10, 5)]);
    let drawn = json(&["plot", row.to_str().unwrap()]);
    assert_eq!(numbers(&drawn["map"]["x_edges"]), [-0.5, 0.5]);
    let zeros = sparse(folder.path(), [30, 30], &[]);
    let log = good(&["plot", zeros.to_str().unwrap(), "--log", "-q"]);
    assert!(log.contains("no positive values"), "{log}");
    let one = sparse(folder.path(), [1, 1], &[]);
    good(&["plot", one.to_str().unwrap()]);
    good(&["plot", one.to_str().unwrap(), "--heatmap"]);
}
