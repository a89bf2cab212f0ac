//! Heat maps, dots and bars: colours and positions.

use resvg::tiny_skia::Pixmap;
use resvg::usvg::roxmltree::Document;
use spile_plot::{Axis, ColourMode, Figure, HeatMap, Series};

const LOW: [u8; 3] = [0x44, 0x01, 0x54];
const MIDDLE: [u8; 3] = [0x21, 0x91, 0x8c];
const HIGH: [u8; 3] = [0xfd, 0xe7, 0x25];
const BACKGROUND: [u8; 3] = [0xff; 3];

fn map(x: &[f64], y: &[f64], values: &[f64]) -> HeatMap {
    HeatMap { x: x.to_vec(), y: y.to_vec(), values: values.to_vec(), ..HeatMap::default() }
}

fn figure(map: HeatMap) -> Figure {
    Figure { map: Some(map), ..Figure::default() }
}

/// Rectangles of the images: heat map, then colour bar.
fn images(figure: &Figure) -> Vec<[f64; 4]> {
    let svg = figure.to_svg();
    let document = Document::parse(&svg).unwrap();
    let images = document.descendants().filter(|n| n.has_tag_name("image"));
    let value = |n: &resvg::usvg::roxmltree::Node<'_, '_>, name: &str| {
        n.attribute(name).unwrap().parse::<f64>().unwrap()
    };
    images.map(|n| ["x", "y", "width", "height"].map(|name| value(&n, name))).collect()
}

fn pixel(figure: &Figure, x: f64, y: f64) -> [u8; 3] {
    let canvas = Pixmap::decode_png(&figure.to_png(2.0).unwrap()).unwrap();
    let pixel = canvas.pixel((x * 2.0) as u32, (y * 2.0) as u32).unwrap();
    [pixel.red(), pixel.green(), pixel.blue()]
}

/// Colour at a relative position of the map from its left and lower edge.
fn at(figure: &Figure, right: f64, up: f64) -> [u8; 3] {
    let [x, y, width, height] = images(figure)[0];
    pixel(figure, x + right * width, y + (1.0 - up) * height)
}

#[track_caller]
fn near(a: [u8; 3], b: [u8; 3]) {
    assert!(a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 1), "{a:?} is not {b:?}");
}

#[test]
fn the_first_row_is_at_the_bottom_and_cells_have_their_colours() {
    let figure = figure(map(&[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0, 2.0]));
    near(at(&figure, 0.25, 0.25), LOW);
    near(at(&figure, 0.75, 0.25), MIDDLE);
    near(at(&figure, 0.25, 0.75), HIGH);
    // Cells are not interpolated.
    near(at(&figure, 0.497, 0.25), LOW);
    near(at(&figure, 0.503, 0.25), MIDDLE);
}

#[test]
fn decreasing_edges_flip_the_image() {
    let increasing = figure(map(&[0.0, 1.0, 2.0], &[0.0, 1.0], &[0.0, 2.0]));
    let decreasing = figure(map(&[2.0, 1.0, 0.0], &[0.0, 1.0], &[0.0, 2.0]));
    near(at(&increasing, 0.25, 0.5), LOW);
    near(at(&decreasing, 0.25, 0.5), HIGH);
    let flipped = figure(map(&[0.0, 1.0], &[2.0, 1.0, 0.0], &[0.0, 2.0]));
    near(at(&flipped, 0.5, 0.75), LOW);
}

#[test]
fn non_uniform_cells_have_their_true_size() {
    let figure = figure(map(&[0.0, 1.0, 10.0], &[0.0, 2.0, 20.0], &[0.0, 2.0, 1.0, 2.0]));
    near(at(&figure, 0.08, 0.05), LOW);
    near(at(&figure, 0.12, 0.05), HIGH);
    near(at(&figure, 0.08, 0.12), MIDDLE);
    // Both columns have the same width on a logarithmic axis.
    let mut log = Figure { map: figure.map.clone(), ..Figure::default() };
    log.map.as_mut().unwrap().x = vec![0.1, 1.0, 10.0];
    log.x.log = true;
    near(at(&log, 0.45, 0.05), LOW);
    near(at(&log, 0.55, 0.05), HIGH);
}

#[test]
fn gaps_are_grey_or_transparent_if_sparse() {
    let values = [0.0, f64::NAN, f64::INFINITY, 2.0];
    let mut figure = figure(map(&[0.0, 1.0, 2.0, 3.0, 4.0], &[0.0, 1.0], &values));
    for gap in [0.375, 0.625] {
        near(at(&figure, gap, 0.5), [0xc4; 3]);
    }
    figure.map.as_mut().unwrap().sparse = true;
    near(at(&figure, 0.41, 0.45), BACKGROUND);
    near(at(&figure, 0.91, 0.45), HIGH);
}

#[test]
fn a_logarithmic_colour_axis_maps_factors_to_colours() {
    let mut figure = figure(map(&[0.0, 1.0, 2.0, 3.0, 4.0], &[0.0, 1.0], &[1.0, 1e3, 1e6, -5.0]));
    figure.map.as_mut().unwrap().colour = Axis { log: true, ..Axis::new("density", "m^-3") };
    near(at(&figure, 0.375, 0.5), MIDDLE);
    near(at(&figure, 0.875, 0.5), [0xc4; 3]);
    let svg = figure.to_svg();
    for part in ["10⁰", "10³", "10⁶", "density (m⁻³)"] {
        assert!(svg.contains(&format!(">{part}<")), "{part}");
    }
    figure.map.as_mut().unwrap().values = vec![-1.0; 4];
    assert!(figure.to_svg().contains("no positive values"));
}

#[test]
fn a_diverging_map_is_symmetric_about_zero() {
    let mut figure = figure(map(&[0.0, 1.0, 2.0, 3.0], &[0.0, 1.0], &[-1.0, 0.0, 4.0]));
    figure.map.as_mut().unwrap().diverging = true;
    let [low, zero, high] = [1.0, 3.0, 5.0].map(|k| at(&figure, k / 6.0, 0.5));
    assert!(low[2] > low[0] && high[0] > high[2], "{low:?} {high:?}");
    assert!(zero.iter().all(|v| *v > 235), "{zero:?}");
    // A quarter of the distance from zero is much paler.
    assert!(low[0] > 160 && high[2] < 40, "{low:?} {high:?}");
    let svg = figure.to_svg();
    assert!(svg.contains(">−4<") && svg.contains(">4<"), "the bar is symmetric");
}

#[test]
fn the_colour_bar_has_the_requested_range() {
    let mut figure = figure(map(&[0.0, 1.0, 2.0], &[0.0, 1.0], &[-50.0, 50.0]));
    let map = figure.map.as_mut().unwrap();
    map.colour = Axis { range: Some((0.0, 10.0)), ..Axis::new("n", "") };
    let [x, y, width, height] = images(&figure)[1];
    near(pixel(&figure, x + width / 2.0, y + 1.0), HIGH);
    near(pixel(&figure, x + width / 2.0, y + height - 1.0), LOW);
    // Values outside the range have the colour of the end.
    near(at(&figure, 0.25, 0.5), LOW);
    near(at(&figure, 0.75, 0.5), HIGH);
    let svg = figure.to_svg();
    assert!(svg.contains(">10<") && svg.contains(">0<") && !svg.contains(">50<"));
}

#[test]
fn an_axis_range_crops_the_map() {
    let mut figure = figure(map(&[0.0, 1.0, 2.0], &[0.0, 1.0], &[0.0, 2.0]));
    figure.x.range = Some((0.5, 1.0));
    let [x, _, width, _] = images(&figure)[0];
    assert!(x < 0.0 && width > 800.0, "the image is larger than the figure");
    near(pixel(&figure, 400.0, 200.0), LOW);
}

#[test]
fn a_map_of_many_cells_stays_small_in_svg() {
    let edges: Vec<f64> = (0..=1000).map(f64::from).collect();
    let values: Vec<f64> = (0..1_000_000).map(|k| f64::from(k % 1000 + k / 1000)).collect();
    let svg = figure(map(&edges, &edges, &values)).to_svg();
    assert!(svg.len() < 600_000, "{}", svg.len());
    assert!(figure(map(&edges, &edges, &[1.0])).to_svg().len() < 60_000);
}

#[test]
fn a_huge_figure_of_non_uniform_cells_stays_small() {
    let non_uniform = figure(map(&[0.0, 1.0, 3.0], &[0.0, 1.0], &[1.0, 2.0]));
    let svg = Figure { width: 4_000_000, height: 400, ..non_uniform }.to_svg();
    assert!(svg.len() < 200_000, "{}", svg.len());
}

#[test]
fn invalid_edges_give_an_empty_figure() {
    for x in [&[][..], &[1.0], &[0.0, 0.0], &[0.0, 2.0, 1.0], &[0.0, f64::NAN]] {
        let figure = figure(map(x, &[0.0, 1.0], &[1.0, 2.0]));
        assert!(images(&figure).is_empty());
        assert!(figure.to_svg().contains("no finite values"));
        assert!(figure.to_terminal(60, 12, ColourMode::TrueColour).contains("no finite values"));
    }
}

#[test]
fn equal_aspect_changes_the_size_of_the_figure() {
    let square = figure(map(&[0.0, 1.0], &[0.0, 1.0], &[1.0])).with_equal_aspect();
    let [_, _, width, height] = images(&square)[0];
    assert!((width - height).abs() <= 3.0, "{width} {height}");
    let flat = figure(map(&[0.0, 2.0], &[0.0, 1.0], &[1.0]));
    let flat = Figure { height: 700, ..flat }.with_equal_aspect();
    let [_, _, width, height] = images(&flat)[0];
    assert!((width - 2.0 * height).abs() <= 4.0 && flat.width == 800, "{width} {height}");
    let thin = figure(map(&[0.0, 1e-6], &[0.0, 1.0], &[1.0]));
    assert_eq!((thin.clone().with_equal_aspect().width, thin.width), (800, 800));
}

#[test]
fn a_character_has_two_cells() {
    let figure = figure(map(&[0.0, 1.0], &[0.0, 1.0, 2.0], &[0.0, 2.0]));
    let text = figure.to_terminal(60, 3, ColourMode::TrueColour);
    // The middle one of three rows shows both cells.
    let row = text.lines().nth(1).unwrap();
    assert!(row.contains("\x1b[38;2;253;231;37m\x1b[48;2;68;1;84m▀▀▀▀"), "{row:?}");
    let text = figure.to_terminal(60, 3, ColourMode::Ansi256);
    assert!(text.contains("\x1b[38;5;220m\x1b[48;5;53m▀▀▀▀"), "{text:?}");
    let text = figure.to_terminal(60, 4, ColourMode::Plain);
    assert!(text.lines().next().unwrap().contains("@@@@"), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("...."), "{text}");
}

#[test]
fn a_terminal_figure_has_a_colour_bar() {
    let mut figure = figure(map(&[0.0, 1.0], &[0.0, 1.0, 2.0], &[0.0, 2e-3]));
    figure.map.as_mut().unwrap().colour = Axis::new("field", "V/m");
    figure.y = Axis::new("height", "m");
    let text = figure.to_terminal(60, 14, ColourMode::Plain);
    let head = text.lines().next().unwrap();
    assert!(head.starts_with("height (m)") && head.ends_with("field (mV/m)"), "{text}");
    assert!(text.contains("@@ 2") && text.contains(".. 0"), "{text}");
}

#[test]
fn dots_are_drawn_at_their_positions() {
    let figure = Figure {
        series: vec![Series::dots("p", vec![0.0, 1.0, f64::NAN], vec![0.0, 1.0, 0.5])],
        x: Axis { range: Some((-1.0, 3.0)), ..Axis::default() },
        y: Axis { range: Some((-1.0, 3.0)), ..Axis::default() },
        ..Figure::default()
    };
    let svg = figure.to_svg();
    let document = Document::parse(&svg).unwrap();
    let starts: Vec<(f64, f64)> = document
        .descendants()
        .filter_map(|n| n.attribute("d")?.strip_suffix("h0"))
        .map(|d| d[1..].split_once(' ').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    assert_eq!(starts.len(), 2);
    for (x, y) in starts {
        let [r, g, b] = pixel(&figure, x, y);
        assert!(b > 150 && r < 90 && g < 160, "a blue dot: {r} {g} {b}");
    }
    assert_eq!(figure.to_terminal(60, 12, ColourMode::Plain).matches(is_braille).count(), 2);
}

fn is_braille(c: char) -> bool {
    ('\u{2801}'..='\u{28ff}').contains(&c)
}

#[test]
fn bars_start_at_zero() {
    let mut figure = Figure {
        series: vec![Series::bars("h", 0.0, 1.0, vec![5.0, 0.0, 10.0])],
        ..Figure::default()
    };
    let svg = figure.to_svg();
    assert!(svg.contains(">0<") && svg.contains(">10<") && !svg.contains(">−"), "{svg}");
    // The middle bar has height 0.
    let [left, middle, right] = [200.0, 420.0, 640.0].map(|x| pixel(&figure, x, 395.0));
    assert!(left[2] > left[0] && right[2] > right[0], "{left:?} {right:?}");
    near(middle, BACKGROUND);
    figure.y.log = true;
    let svg = figure.to_svg();
    assert!(svg.contains(">4<") && svg.contains(">10<"), "{svg}");
    // Bars of height 0 still extend the x axis.
    let sides = Series::bars("h", 0.0, 1.0, vec![0.0, 0.0, 7.0, 0.0]);
    figure.series = vec![sides];
    let svg = figure.to_svg();
    assert!(svg.contains(">0.0<") && svg.contains(">4.0<"), "{svg}");
    figure.series = vec![Series::bars("h", 0.0, 1.0, vec![0.0; 3])];
    assert!(figure.to_svg().contains("no positive values"));
}
