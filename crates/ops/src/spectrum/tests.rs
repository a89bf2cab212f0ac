use spile_core::{Limits, Source, Value};

use super::*;

/// A dataset with one array "x" of these samples at the given rate.
fn trace(samples: &[f64], rate: f64) -> (Dataset, NodeId) {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
    let bytes: Vec<u8> = samples.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut desc = ArrayDesc::inline(DType::F64, Shape::new([samples.len() as u64]), bytes);
    desc.dims = vec!["time".into()];
    desc.coords = vec![Coord::Uniform { start: 0.0, step: 1.0 / rate }];
    let id = tree.add_array(ROOT, "x", desc).unwrap();
    tree.push_attr(id, "units", "V").unwrap();
    tree.push_attr(id, "time_units", "s").unwrap();
    (Dataset::new(Source::memory([]), tree), id)
}

fn tone(count: usize, cycles: f64) -> Vec<f64> {
    (0..count).map(|k| (std::f64::consts::TAU * cycles * k as f64).sin()).collect()
}

#[test]
fn the_power_of_a_tone_is_at_its_frequency() {
    let (data, id) = trace(&tone(4096, 1.0 / 8.0), 800.0);
    let settings = Settings { segment: Some(256), density: false, ..Settings::default() };
    let found = welch(&data, &[id], &settings).unwrap();
    let spectrum = found.array("x").unwrap();
    let values = spectrum.values().unwrap();
    let frequencies = spectrum.coord("frequency").unwrap().read().unwrap();
    assert_eq!((values.len(), frequencies[1], frequencies[32]), (129, 3.125, 100.0));
    // A sine of amplitude 1 has the mean square 0.5.
    assert!((values[32] - 0.5).abs() < 1e-9, "{}", values[32]);
    assert!(values.iter().enumerate().all(|(k, v)| (31..=33).contains(&k) || *v < 1e-20));
    assert_eq!(spectrum.units(), Some("V^2"));
    assert_eq!(spectrum.attrs().get("frequency_units"), Some(&Value::from("Hz")));
}

#[test]
fn the_integral_of_the_density_is_the_variance() {
    let mut state = 1_u64;
    let noise: Vec<f64> = (0..1 << 16)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        })
        .collect();
    let (data, id) = trace(&noise, 1e6);
    let found = welch(&data, &[id], &Settings::default()).unwrap();
    let spectrum = found.array("x").unwrap();
    let step = spectrum.coord("frequency").unwrap().uniform().unwrap().1;
    let total: f64 = spectrum.values().unwrap().iter().sum::<f64>() * step;
    assert!((total - 1.0 / 12.0).abs() < 0.002, "{total}");
    assert_eq!(spectrum.units(), Some("V^2/Hz"));
}

#[test]
fn a_spectrogram_has_the_same_spectra_as_single_segments_in_any_part() {
    let chirp: Vec<f64> = (0..10_000).map(|k| (1e-5 * f64::from(k * k)).sin()).collect();
    let (data, id) = trace(&chirp, 1.0);
    let settings = Settings { segment: Some(100), overlap: Some(60), ..Settings::default() };
    let found = spectrogram(&data, &[id], &settings).unwrap();
    let map = found.array("x").unwrap();
    assert_eq!(
        (map.shape().lengths(), map.dims()),
        (&[248, 51][..], &["time".into(), "frequency".into()][..])
    );
    assert_eq!(map.coord("time").unwrap().uniform(), Some((50.0, 40.0)));
    let all = map.values().unwrap();
    for row in [0, 7, 247] {
        let (part, id) = trace(&chirp[row * 40..row * 40 + 100], 1.0);
        let one = welch(&part, &[id], &settings).unwrap();
        assert_eq!(one.array("x").unwrap().values().unwrap(), all[row * 51..(row + 1) * 51]);
        let read: Vec<f64> = map.read(format!("{row}, :").as_str()).unwrap();
        assert_eq!(read, all[row * 51..(row + 1) * 51]);
    }
}

#[test]
fn parameters_that_do_not_fit_are_errors() {
    let (data, id) = trace(&[1.0; 10], 1.0);
    let overlap = Settings { segment: Some(8), overlap: Some(8), ..Settings::default() };
    assert!(welch(&data, &[id], &overlap).is_err());
    assert!(welch(&data, &[id], &Settings { rate: Some(0.0), ..Settings::default() }).is_err());
    let (empty, id) = trace(&[], 1.0);
    assert!(welch(&empty, &[id], &Settings::default()).is_err());
    // A segment longer than the trace is shortened.
    let (data, id) = trace(&[1.0; 10], 1.0);
    let long = Settings { segment: Some(64), overlap: Some(60), ..Settings::default() };
    assert_eq!(welch(&data, &[id], &long).unwrap().array("x").unwrap().shape().lengths(), [6]);
}
