//! The pictures of `docs/gallery.md`, drawn by the program itself from the golden files.

use std::fmt::Write as _;
use std::fs;

use crate::Result;
use crate::shell::{cargo, output, program, root, succeeds, target};

/// A picture: its name, what it shows, the golden file, and the words after that.
struct Picture {
    name: &'static str,
    shows: &'static str,
    file: &'static str,
    words: &'static [&'static str],
}

const PICTURES: [Picture; 11] = [
    Picture {
        name: "density",
        shows: "A field on its mesh, first dimension along x. Cells lie between the nodes of the mesh.",
        file: "sdf/epoch2d_4ranks_id4_0001.sdf",
        words: &["number_density"],
    },
    Picture {
        name: "field",
        shows: "A field that has a sign: the colours part at zero.",
        file: "sdf/epoch2d_4ranks_id4_0001.sdf",
        words: &["Electric Field/Ex", "--symmetric"],
    },
    Picture {
        name: "charge",
        shows: "Of three dimensions the middle is shown, and the title says so.",
        file: "iotk/qe54_si/si.save/charge-density.dat",
        words: &[],
    },
    Picture {
        name: "slice",
        shows: "Or the part that is asked for; here with logarithmic colours.",
        file: "iotk/qe54_si/si.save/charge-density.dat",
        words: &["Root/CHARGE-DENSITY/density", "0, :, :", "--log"],
    },
    Picture {
        name: "particles",
        shows: "Two arrays are points.",
        file: "sdf/epoch3d_0001.sdf",
        words: &["Grid/Particles/electron/X", "px/electron"],
    },
    Picture {
        name: "phase-space",
        shows: "More than 10000 points, or --hist, are a map of how many (or how much weight) there is.",
        file: "sdf/epoch2d_4ranks_id4_0001.sdf",
        words: &[
            "Grid/Particles/electron/X",
            "px/electron",
            "--bins",
            "32x24",
            "--weight",
            "weight/electron",
        ],
    },
    Picture {
        name: "histogram",
        shows: "How often the values of one array occur.",
        file: "sdf/epoch1d_normal_0003.sdf",
        words: &["px/electron", "--hist"],
    },
    Picture {
        name: "line",
        shows: "One dimension is a line. Longer ones than the picture is wide are drawn whole, from the \
                least to the greatest value of each pixel.",
        file: "sdf/epoch1d_normal_0003.sdf",
        words: &["Electric Field/Ey", "--dark"],
    },
    Picture {
        name: "frames",
        shows: "Few values a frame are drawn over all frames.",
        file: "gsd/py-5.0.1/hoomd_many_frames.gsd",
        words: &["log/E"],
    },
    Picture {
        name: "trace",
        shows: "A trace of an oscilloscope, in volts over seconds; longer ones are drawn by their extremes.",
        file: "lecroy/lecroy_le_word.trc",
        words: &[],
    },
    Picture {
        name: "columns",
        shows: "Columns of a text file over the first one, where that is evenly spaced. The names are those of its header.",
        file: "columns/column_header.txt",
        words: &[],
    },
];

const HEAD: &str = "\
# Gallery

Every picture is drawn by `spile plot` in the folder `tests/golden`; `cargo xtask gallery` draws them anew, and a test
compares what is drawn with what is here.
With `-o x.svg` they are vectors (a map of colours is one embedded image), without `-o` they appear in the
terminal: as pixels where it is known to show them (kitty, WezTerm, Ghostty, Konsole; with sixels foot, mlterm,
contour, iTerm2) or with `--kitty` or `--sixel`, else lines and points as braille dots and maps as half blocks.

The colours are viridis (by Nathaniel Smith, Stéfan van der Walt and Eric Firing, CC0), or with `--symmetric`
a scale from blue over light grey to red that is straight in Oklab. Grey cells have no finite value or, with
`--log`, no positive one.
";

pub(crate) fn write() -> Result<bool> {
    if !succeeds(&mut cargo(&["build", "--quiet", "--package", "spile-cli"]))? {
        return Ok(false);
    }
    let spile = target().join("debug/spile");
    let folder = root().join("docs/images/gallery");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut page = HEAD.to_owned();
    let mut total = 0;
    for Picture { name, shows, file, words } in &PICTURES {
        let picture = format!("docs/images/gallery/{name}.png");
        let golden = format!("tests/golden/{file}");
        let rest = ["-o", &picture, "--overwrite"];
        output(program(&spile).args(["plot", &golden]).args(*words).args(rest))?;
        total += fs::metadata(root().join(&picture)).map_err(|e| format!("{picture}: {e}"))?.len();
        let typed: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let command = format!("spile plot {file} {}", typed.join(" "));
        let _ = write!(
            page,
            "\n{shows}\n\n    {} -o {name}.png\n\n![{name}](images/gallery/{name}.png)\n",
            command.trim_end()
        );
    }
    let path = root().join("docs/gallery.md");
    fs::write(&path, page).map_err(|e| format!("docs/gallery.md: {e}"))?;
    println!("docs/gallery.md: {} pictures, {} kB", PICTURES.len(), total / 1000);
    Ok(true)
}

/// A word as a shell wants it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("px/electron"), "px/electron");
        assert_eq!(quoted("0, :, :"), "'0, :, :'");
    }

    #[test]
    fn every_golden_file_is_there() {
        for picture in &PICTURES {
            let path = root().join("tests/golden").join(picture.file);
            assert!(path.is_file(), "{}", path.display());
        }
    }
}
