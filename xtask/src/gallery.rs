//! The pictures of `docs/gallery.md`, drawn by `spile plot` from the golden files.

use std::fmt::Write as _;
use std::fs;

use crate::Result;
use crate::shell::{cargo, output, program, root, succeeds, target};

/// A picture: its name, its caption, the golden file, and the other arguments.
struct Picture {
    name: &'static str,
    caption: &'static str,
    file: &'static str,
    args: &'static [&'static str],
}

const PICTURES: [Picture; 11] = [
    Picture {
        name: "density",
        caption: "A field on its mesh; the first dimension is the x axis. Cells lie between the nodes of the mesh.",
        file: "sdf/epoch2d_4ranks_id4_0001.sdf",
        args: &["number_density"],
    },
    Picture {
        name: "field",
        caption: "A field with positive and negative values, with a diverging colour map centred at zero.",
        file: "sdf/epoch2d_4ranks_id4_0001.sdf",
        args: &["Electric Field/Ex", "--symmetric"],
    },
    Picture {
        name: "charge",
        caption: "Of a three-dimensional array the middle plane is drawn; the title shows its index.",
        file: "iotk/qe54_si/si.save/charge-density.dat",
        args: &[],
    },
    Picture {
        name: "slice",
        caption: "A selected plane, with logarithmic colours.",
        file: "iotk/qe54_si/si.save/charge-density.dat",
        args: &["Root/CHARGE-DENSITY/density", "0, :, :", "--log"],
    },
    Picture {
        name: "particles",
        caption: "Two arrays are drawn as points.",
        file: "sdf/epoch3d_0001.sdf",
        args: &["Grid/Particles/electron/X", "px/electron"],
    },
    Picture {
        name: "phase-space",
        caption: "More than 10000 points, or --hist, are drawn as a two-dimensional histogram, optionally weighted.",
        file: "sdf/epoch2d_4ranks_id4_0001.sdf",
        args: &[
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
        caption: "A histogram.",
        file: "sdf/epoch1d_normal_0003.sdf",
        args: &["px/electron", "--hist"],
    },
    Picture {
        name: "line",
        caption: "A one-dimensional array is drawn as a line; with more values than pixels, from the minimum to the \
                maximum at each pixel.",
        file: "sdf/epoch1d_normal_0003.sdf",
        args: &["Electric Field/Ey", "--dark"],
    },
    Picture {
        name: "frames",
        caption: "Arrays with few values per frame are drawn over all frames.",
        file: "gsd/py-5.0.1/hoomd_many_frames.gsd",
        args: &["log/E"],
    },
    Picture {
        name: "trace",
        caption: "An oscilloscope trace in volts over seconds.",
        file: "lecroy/lecroy_le_word.trc",
        args: &[],
    },
    Picture {
        name: "columns",
        caption: "Columns of a text file over the first one, if that is evenly spaced, with the names of the header.",
        file: "columns/column_header.txt",
        args: &[],
    },
];

const HEAD: &str = "\
# Gallery

Every picture is drawn by `spile plot` in the folder `tests/golden`. `cargo xtask gallery` draws them again; a test
compares the pictures with the output of the program.
`-o x.svg` writes vector graphics (colour maps are embedded images). Without `-o` the picture is shown in the terminal:
as pixels in terminals known to support them (kitty, WezTerm, Ghostty, Konsole; with sixels foot, mlterm, contour,
iTerm2) or with `--kitty` or `--sixel`, otherwise as Braille dots (lines, points) and half blocks (colour maps).

The colour map is viridis (by Nathaniel Smith, Stéfan van der Walt and Eric Firing, CC0), or with `--symmetric`
a diverging map from blue through light grey to red, linear in Oklab. Cells without a finite value, or with
`--log` without a positive value, are grey.
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
    for Picture { name, caption, file, args } in &PICTURES {
        let picture = format!("docs/images/gallery/{name}.png");
        let golden = format!("tests/golden/{file}");
        let rest = ["-o", &picture, "--overwrite"];
        output(program(&spile).args(["plot", &golden]).args(*args).args(rest))?;
        total += fs::metadata(root().join(&picture)).map_err(|e| format!("{picture}: {e}"))?.len();
        let quoted: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
        let command = format!("spile plot {file} {}", quoted.join(" "));
        let _ = write!(
            page,
            "\n{caption}\n\n    {} -o {name}.png\n\n![{name}](images/gallery/{name}.png)\n",
            command.trim_end()
        );
    }
    let path = root().join("docs/gallery.md");
    fs::write(&path, page).map_err(|e| format!("docs/gallery.md: {e}"))?;
    println!("docs/gallery.md: {} pictures, {} kB", PICTURES.len(), total / 1000);
    Ok(true)
}

/// An argument as typed in a shell.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
    if arg.chars().all(plain) { arg.to_owned() } else { format!("'{arg}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_if_a_shell_would_split_them() {
        assert_eq!(quoted("px/electron"), "px/electron");
        assert_eq!(quoted("0, :, :"), "'0, :, :'");
    }

    #[test]
    fn every_golden_file_exists() {
        for picture in &PICTURES {
            let path = root().join("tests/golden").join(picture.file);
            assert!(path.is_file(), "{}", path.display());
        }
    }
}
