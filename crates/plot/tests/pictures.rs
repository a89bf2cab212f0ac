//! Any numbers and texts give valid output.

use proptest::prelude::*;
use resvg::usvg::roxmltree::Document;
use spile_plot::{Axis, ColourMode, Figure, HeatMap, PlotError, Series, Theme};
use unicode_width::UnicodeWidthChar;

const SPECIAL: [f64; 14] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    5e-324,
    -5e-324,
    f64::MIN_POSITIVE,
    0.0,
    -0.0,
    1.0,
    1e9,
    1e-9,
    1.0 + f64::EPSILON,
];

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![prop::sample::select(&SPECIAL[..]), any::<f64>(), -1.0..1.0f64]
}

fn series() -> impl Strategy<Value = Series> {
    let values = || prop::collection::vec(value(), 0..40);
    prop_oneof![
        (any::<String>(), values(), values()).prop_map(|(l, x, y)| Series::line(l, x, y)),
        (any::<String>(), values(), values()).prop_map(|(l, x, y)| Series::dots(l, x, y)),
        (any::<String>(), value(), value(), values())
            .prop_map(|(l, start, step, high)| Series::bars(l, start, step, high)),
        (any::<String>(), value(), value(), values(), values())
            .prop_map(|(l, start, step, low, high)| Series::envelope(l, start, step, low, high)),
    ]
}

fn axis() -> impl Strategy<Value = Axis> {
    let range = prop::option::of((value(), value()));
    (any::<String>(), any::<String>(), range, any::<bool>(), any::<bool>()).prop_map(
        |(label, unit, range, log, integer)| Axis { range, log, integer, ..Axis::new(label, unit) },
    )
}

/// Maps with increasing, decreasing or invalid edges.
fn map() -> impl Strategy<Value = HeatMap> {
    let edges = || {
        let sorted = |reverse: bool, mut edges: Vec<f64>| {
            edges.sort_by(f64::total_cmp);
            edges.dedup();
            if reverse {
                edges.reverse();
            }
            edges
        };
        let finite = prop::collection::vec(prop_oneof![-1e3..1e3f64, -1e300..1e300f64], 0..12);
        prop_oneof![
            4 => (any::<bool>(), finite).prop_map(move |(reverse, e)| sorted(reverse, e)),
            1 => prop::collection::vec(value(), 0..12),
        ]
    };
    let values = prop::collection::vec(value(), 0..150);
    (edges(), edges(), values, axis(), any::<bool>(), any::<bool>()).prop_map(
        |(x, y, values, colour, diverging, sparse)| HeatMap {
            x,
            y,
            values,
            colour,
            diverging,
            sparse,
        },
    )
}

fn mode() -> impl Strategy<Value = ColourMode> {
    prop::sample::select(&[ColourMode::Plain, ColourMode::Ansi256, ColourMode::TrueColour][..])
}

fn figure() -> impl Strategy<Value = Figure> {
    let size = (0u32..900, 0u32..600);
    let series = prop::collection::vec(series(), 0..9);
    let map = prop::option::of(map());
    (any::<String>(), axis(), axis(), series, map, size, any::<bool>()).prop_map(
        |(title, x, y, series, map, (width, height), dark)| Figure {
            title,
            x,
            y,
            series,
            map,
            width,
            height,
            theme: if dark { Theme::Dark } else { Theme::Light },
            left: 0,
        },
    )
}

/// Checks that `text` has `rows` lines of at most `columns` characters, without escape sequences.
fn fits(text: &str, columns: usize, rows: usize) -> Result<(), String> {
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.len() != rows {
        return Err(format!("{} lines instead of {rows}", lines.len()));
    }
    for line in lines {
        let mut seen = 0;
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            if c == '\x1b' {
                chars.by_ref().find(|&c| c == 'm');
            } else {
                seen += c.width().ok_or("a control character")?;
            }
        }
        if seen > columns {
            return Err(format!("{seen} columns instead of {columns}: {line}"));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_figure_gives_valid_xml(figure in figure()) {
        let svg = figure.to_svg();
        prop_assert!(Document::parse(&svg).is_ok(), "{}", svg);
        // Three letters of an embedded picture may be "NaN" by coincidence.
        let numbers: Vec<&str> = svg.split('"').filter(|part| !part.starts_with("data:")).collect();
        let numbers = numbers.join("\"");
        prop_assert!(!numbers.contains("NaN") && !numbers.contains("inf,"));
        prop_assert!(figure.plot_width() >= 1);
    }

    #[test]
    fn any_figure_fits_the_terminal(
        figure in figure(),
        columns in 1usize..130,
        rows in 1usize..50,
        mode in mode(),
    ) {
        let text = figure.to_terminal(columns, rows, mode);
        if let Err(message) = fits(&text, columns, rows) {
            prop_assert!(false, "{}\n{}", message, text);
        }
        prop_assert!(mode != ColourMode::Plain || !text.contains('\x1b'));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_figure_gives_a_png_of_the_requested_size(figure in figure(), scale in 0.2..2.5f32) {
        let want = [figure.width, figure.height]
            .map(|v| (f64::from(v) * f64::from(scale)).round() as u32);
        match figure.to_png(scale) {
            Ok(png) => prop_assert_eq!(size(&png), want),
            Err(e) => prop_assert!(want.contains(&0), "{}", e),
        }
    }
}

/// Width and height of the header chunk, which follows the signature of eight bytes.
fn size(png: &[u8]) -> [u32; 2] {
    let field = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    [field(16), field(20)]
}

fn ramp() -> Figure {
    Figure {
        series: vec![Series::line("ramp", vec![0.0, 1.0], vec![0.0, 1.0])],
        ..Figure::default()
    }
}

#[test]
fn invalid_sizes_are_errors() {
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
        assert!(matches!(ramp().to_png(scale), Err(PlotError::Size { .. })), "{scale}");
    }
    let empty = Figure { width: 0, ..ramp() };
    assert!(empty.to_png(1.0).unwrap_err().to_string().contains("at least one pixel"));
    assert_eq!(size(&ramp().to_png(2.0).unwrap()), [1600, 900]);
}

#[test]
fn markup_and_control_characters_are_escaped() {
    let hostile = "</text><script>&amp;\"'\u{0}\u{1b}[2J\u{202e}\u{ffff}]]>";
    let figure = Figure {
        title: hostile.into(),
        x: Axis::new(hostile, hostile),
        y: Axis::new(hostile, hostile),
        series: vec![Series::line(hostile, vec![0.0, 1.0], vec![0.0, 1.0]); 3],
        ..Figure::default()
    };
    let svg = figure.to_svg();
    let document = Document::parse(&svg).unwrap();
    assert!(document.descendants().all(|n| !n.has_tag_name("script")));
    let title = document.descendants().filter_map(|n| n.text()).find(|t| t.contains("<script>"));
    assert_eq!(title, Some("</text><script>&amp;\"'\u{fffd}\u{fffd}[2J\u{fffd}\u{fffd}]]>"));
    assert!(!figure.to_terminal(80, 24, ColourMode::Plain).contains('\x1b'));
}

#[test]
fn an_empty_figure_has_a_message() {
    let nan = Series::line("n", vec![0.0, 1.0], vec![f64::NAN, f64::INFINITY]);
    for series in [vec![], vec![nan]] {
        let figure = Figure { series, ..Figure::default() };
        assert!(figure.to_svg().contains("no finite values"));
        assert!(figure.to_terminal(60, 12, ColourMode::Plain).contains("no finite values"));
    }
    assert!(!ramp().to_svg().contains("no finite values"));
}

#[test]
fn the_svg_of_a_long_line_stays_small() {
    let n = 2_000_000;
    let x = (0..n).map(f64::from).collect();
    let y = (0..n).map(|i| f64::from(i % 1000 * 619 % 1000)).collect();
    let figure = Figure { series: vec![Series::line("noise", x, y)], ..Figure::default() };
    let svg = figure.to_svg();
    assert!(svg.len() < 60_000, "{}", svg.len());
}

#[test]
fn numbers_have_at_most_two_decimals() {
    let x: Vec<f64> = (0..100).map(|i| f64::from(i) / 7.0).collect();
    let y = x.iter().map(|x| x.sin()).collect();
    let figure = Figure { series: vec![Series::line("", x, y)], ..Figure::default() };
    for part in figure.to_svg().split('.').skip(1) {
        assert!(part.chars().take_while(char::is_ascii_digit).count() <= 2, "{part}");
    }
}

#[test]
fn neighbouring_buckets_are_connected_in_a_terminal() {
    // The step between two constant levels is a continuous column of dots.
    let level: Vec<f64> = (0..40).map(|k| f64::from(k / 20)).collect();
    let figure = Figure {
        series: vec![Series::envelope("step", 0.0, 1.0, level.clone(), level)],
        ..Figure::default()
    };
    let text = figure.to_terminal(60, 14, ColourMode::Plain);
    let drawn = |l: &str| l.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
    let rows: Vec<bool> = text.lines().map(drawn).collect();
    let first = rows.iter().position(|&d| d).unwrap();
    let last = rows.iter().rposition(|&d| d).unwrap();
    assert!(last - first > 8 && rows[first..=last].iter().all(|&d| d), "{text}");
}
