//! Labels are not clipped, and overlap neither each other nor the data.

use super::*;
use crate::figure::{HeatMap, Series};
use proptest::prelude::*;

fn overlap(a: &Rect, b: &Rect) -> bool {
    let tolerance = 0.5;
    a.left + tolerance < b.right()
        && b.left + tolerance < a.right()
        && a.top + tolerance < b.bottom()
        && b.top + tolerance < a.bottom()
}

fn check(figure: &Figure) -> Result<(), String> {
    let layout = FigureLayout::of(figure);
    let (width, height) = (f64::from(figure.width), f64::from(figure.height));
    let boxes: Vec<(Rect, &str)> =
        layout.texts.iter().map(|t| (t.bounds(), t.content.as_str())).collect();
    for (i, (a, text)) in boxes.iter().enumerate() {
        if a.left < 0.0 || a.top < 0.0 || a.right() > width || a.bottom() > height {
            return Err(format!("`{text}` is outside the figure: {a:?}"));
        }
        if overlap(a, &layout.frame) {
            return Err(format!("`{text}` overlaps the frame: {a:?} {:?}", layout.frame));
        }
        if let Some((b, other)) = boxes[i + 1..].iter().find(|(b, _)| overlap(a, b)) {
            return Err(format!("`{text}` overlaps `{other}`: {a:?} {b:?}"));
        }
    }
    if layout.frame.right() > width || layout.frame.bottom() > height {
        return Err(format!("the frame is outside: {:?}", layout.frame));
    }
    Ok(())
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), -10.0..10.0f64, 1e9..1.000_001e9f64, -1e-6..1e-6f64, Just(0.0)]
}

proptest! {
    #[test]
    fn no_label_is_clipped_or_covered(
        size in (1u32..1400, 1u32..1000),
        ends in [number(), number(), number(), number()],
        series in 0usize..40,
        names in ["\\PC{0,40}", "\\PC{0,40}", "\\PC{0,80}", "\\PC{0,40}"],
        unit in prop_oneof!["(s|V/m|m\\^-3|)", "\\PC{0,8}"],
        coloured: bool,
        log: [bool; 3],
    ) {
        let [a, b, c, d] = ends;
        let [x, y, title, label] = names;
        let map = HeatMap {
            x: vec![a.min(b), a.max(b)],
            y: vec![c, d],
            values: vec![b],
            colour: Axis { log: log[2], ..Axis::new(label.clone(), unit.clone()) },
            ..HeatMap::default()
        };
        let figure = Figure {
            title,
            x: Axis { log: log[0], ..Axis::new(x, unit.clone()) },
            y: Axis { log: log[1], ..Axis::new(y, unit) },
            series: (0..series)
                .map(|k| Series::line(format!("{label}{k}"), vec![a, b], vec![c, d]))
                .collect(),
            map: coloured.then_some(map),
            width: size.0,
            height: size.1,
            theme: crate::Theme::Light,
            left: 0,
        };
        if let Err(message) = check(&figure) {
            prop_assert!(false, "{}", message);
        }
    }
}

#[test]
fn a_large_figure_has_all_parts() {
    let figure = Figure {
        title: "title".into(),
        x: Axis::new("time", "s"),
        y: Axis::new("field", "V/m"),
        series: vec![
            Series::line("one", vec![0.0, 2e-6], vec![0.0, 5e3]),
            Series::line("two", vec![0.0, 2e-6], vec![0.0, 2e4]),
        ],
        ..Figure::default()
    };
    let layout = FigureLayout::of(&figure);
    let texts: Vec<&str> = layout.texts.iter().map(|t| t.content.as_str()).collect();
    for part in ["title", "time (µs)", "field (kV/m)", "one", "two", "2.0", "20.0"] {
        assert!(texts.contains(&part), "{part} is not among {texts:?}");
    }
    assert_eq!(layout.handles.len(), 2);
    check(&figure).unwrap();
}

#[test]
fn a_tiny_figure_has_only_a_frame() {
    let figure = Figure { width: 12, height: 9, title: "t".into(), ..Figure::default() };
    let layout = FigureLayout::of(&figure);
    assert!(layout.texts.is_empty() && layout.frame.width > 5.0);
}

#[test]
fn a_long_label_is_shortened_and_keeps_its_unit() {
    let long = "Derived/Number_Density/".repeat(5) + "electron";
    let map = HeatMap {
        x: vec![0.0, 1.0],
        y: vec![0.0, 1.0],
        values: vec![1.0],
        colour: Axis::new(long.clone(), "1/m^3"),
        ..HeatMap::default()
    };
    let axis = Axis::new(long, "V");
    let figure =
        Figure { x: axis.clone(), y: axis, map: Some(map), width: 400, ..Figure::default() };
    let layout = FigureLayout::of(&figure);
    for end in ["electron (1/m³)", "electron (V)"] {
        let found = layout.texts.iter().find(|t| t.content.ends_with(end)).expect(end);
        assert!(found.content.contains('…'), "{}", found.content);
    }
    check(&figure).unwrap();
}
