//! Writes one figure of each kind to the folder given as the only argument.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use spile_plot::{Axis, ColourMode, Figure, Series};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: sample FOLDER")?);
    fs::create_dir_all(&folder)?;
    for (name, figure) in figures() {
        fs::write(folder.join(format!("{name}.svg")), figure.to_svg())?;
        fs::write(folder.join(format!("{name}.png")), figure.to_png(2.0)?)?;
        fs::write(folder.join(format!("{name}-1x.png")), figure.to_png(1.0)?)?;
        fs::write(
            folder.join(format!("{name}.txt")),
            figure.to_terminal(80, 24, ColourMode::Plain),
        )?;
        fs::write(
            folder.join(format!("{name}.ansi")),
            figure.to_terminal(80, 24, ColourMode::Ansi256),
        )?;
    }
    Ok(())
}

fn figures() -> Vec<(&'static str, Figure)> {
    let t: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
    let of = |f: &dyn Fn(f64) -> f64| t.iter().map(|&t| f(t)).collect::<Vec<f64>>();

    let polynomials = Figure {
        title: "Three polynomials".into(),
        x: Axis::new("t", ""),
        y: Axis::new("value", ""),
        series: vec![
            Series::line("t", t.clone(), of(&|t| t)),
            Series::line("3t² − 2t³", t.clone(), of(&|t| t * t * (3.0 - 2.0 * t))),
            Series::line("4t(1 − t) − 0.5", t.clone(), of(&|t| 4.0 * t * (1.0 - t) - 0.5)),
        ],
        ..Figure::default()
    };
    let (low, high) = burst(600, 400);
    let trace = Figure {
        title: "Channel 1: burst at 2 MHz".into(),
        x: Axis::new("time", "s"),
        y: Axis::new("voltage", "V"),
        series: vec![Series::envelope("ch1", -5e-6, 30e-6 / 600.0, low, high)],
        ..Figure::default()
    };
    let (low, high) = burst(600, 100);
    let [low2, high2] = [&low, &high].map(|v| v.iter().map(|y| y * 0.5 + 0.01).collect());
    let two = Figure {
        title: "Two channels on a dark background".into(),
        series: vec![
            Series::envelope("channel 1", -5e-6, 30e-6 / 600.0, low, high),
            Series::envelope("channel 2 (half, raised)", -5e-6, 30e-6 / 600.0, low2, high2),
        ],
        dark: true,
        ..trace.clone()
    };
    let constant = Figure {
        title: "Constant".into(),
        series: vec![Series::line("c", t.clone(), of(&|_| 3.3))],
        x: Axis::new("time", "s"),
        y: Axis::new("supply", "V"),
        ..Figure::default()
    };
    let empty = Figure {
        title: "An empty file".into(),
        x: Axis::new("time", "s"),
        y: Axis::new("voltage", "V"),
        series: vec![Series::line("none", t.clone(), of(&|_| f64::NAN))],
        ..Figure::default()
    };
    let offset = Figure {
        title: "A large offset".into(),
        x: Axis::new("time", "s"),
        y: Axis::new("counts", ""),
        series: vec![Series::line(
            "drift",
            t.iter().map(|t| 1.7e9 + t * 2e-3).collect(),
            of(&|t| 1e9 + 0.001 * (12.0 * t).sin()),
        )],
        ..Figure::default()
    };
    let many = Figure {
        title: "Twelve series".into(),
        x: Axis::new("position", "m"),
        y: Axis::new("density", "m^-3"),
        series: (0..12)
            .map(|k| {
                let y = of(&|t| 1e24 * (f64::from(k) * 0.4 + (6.0 * t + f64::from(k)).sin()));
                let x = t.iter().map(|t| t * 4e-6).collect();
                Series::line(format!("Derived/Number_Density/species {k}"), x, y)
            })
            .collect(),
        ..Figure::default()
    };
    let mut gaps = of(&|t| (20.0 * t).sin());
    gaps.iter_mut().enumerate().for_each(|(i, y)| {
        if i % 40 > 34 && i % 40 != 37 {
            *y = f64::NAN;
        }
    });
    let gaps = Figure {
        title: "Gaps, single points, a zoomed axis & <escaped> text".into(),
        x: Axis { range: Some((0.1, 0.9)), ..Axis::new("phase", "rad") },
        y: Axis { range: Some((-0.75, 1.5)), ..Axis::default() },
        series: vec![Series::line("g", t.clone(), gaps)],
        width: 480,
        height: 270,
        ..Figure::default()
    };
    vec![
        ("polynomials", polynomials),
        ("burst", trace),
        ("dark", two),
        ("constant", constant),
        ("empty", empty),
        ("offset", offset),
        ("many", many),
        ("gaps", gaps),
        ("walk", walk()),
        ("stairs", stairs()),
        ("thumbnail", Figure { width: 220, height: 130, ..polynomials_small(&t) }),
    ]
}

/// A million steps of a random walk with two spikes, one bucket per pixel.
fn walk() -> Figure {
    let mut figure = Figure {
        title: "A random walk with two glitches".into(),
        x: Axis::new("step", ""),
        y: Axis::new("distance", "m"),
        ..Figure::default()
    };
    let samples = 1_000_000usize;
    let mut state = 7u64;
    let mut at = 0.0;
    let mut walk: Vec<f64> = Vec::new();
    for _ in 0..samples {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        at += (state >> 40) as f64 / f64::from(1 << 24) - 0.5;
        walk.push(at);
    }
    walk[300_000] += 200.0;
    walk[700_000] -= 150.0;
    let size = samples.div_ceil(figure.plot_width() as usize);
    let low = walk.chunks(size).map(|c| c.iter().copied().fold(f64::INFINITY, f64::min));
    let high = walk.chunks(size).map(|c| c.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    figure.series = vec![Series::envelope("walk", 0.0, size as f64, low.collect(), high.collect())];
    figure
}

/// A few wide buckets.
fn stairs() -> Figure {
    let low: Vec<f64> = (0..24).map(|k| (f64::from(k) * 0.5).sin() * 3.0 - 0.2).collect();
    let high = low.iter().map(|v| v + 0.4).collect();
    Figure {
        title: "Wide buckets".into(),
        x: Axis::new("frequency", "Hz"),
        y: Axis::new("gain", "dB"),
        series: vec![Series::envelope("gain", 0.0, 2.5e6, low, high)],
        ..Figure::default()
    }
}

fn polynomials_small(t: &[f64]) -> Figure {
    let y = t.iter().map(|t| t * t * 4000.0).collect();
    Figure {
        x: Axis::new("time", "s"),
        y: Axis::new("field", "V/m"),
        series: vec![Series::line("f", t.to_vec(), y)],
        ..Figure::default()
    }
}

/// Minimum and maximum of each bucket of a noisy burst, with a gap near the end.
fn burst(buckets: usize, samples: usize) -> (Vec<f64>, Vec<f64>) {
    let mut state = 1u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let mut low = Vec::new();
    let mut high = Vec::new();
    for bucket in 0..buckets {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for sample in 0..samples {
            let t = (bucket * samples + sample) as f64 / (buckets * samples) as f64 * 30.0 - 5.0;
            let shape = if t > 0.0 { t * (-t / 3.0).exp() } else { 0.0 };
            let v = 0.03 * shape * (t * std::f64::consts::TAU * 2.0).sin() + 0.002 * noise();
            least = least.min(v);
            most = most.max(v);
        }
        let gap = (540..560).contains(&bucket);
        low.push(if gap { f64::NAN } else { least });
        high.push(if gap { f64::NAN } else { most });
    }
    (low, high)
}
