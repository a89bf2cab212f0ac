//! Settings of the instrument: the fields of the descriptor that do not describe the samples.

use spile_core::{Attrs, Result, Value};

use super::{Descriptor, Template};

/// Type of a field.
#[derive(Clone, Copy)]
enum Kind {
    I16,
    I32,
    F32,
    F64,
    /// An index in a list of names; the number itself beyond the list.
    Name(&'static [&'static str]),
    /// Number of a step of 1, 2, 5, 10, ... times the first value, in a unit.
    Scale(f64, &'static str),
    /// `dc` with the impedance in ohms, `ac` or `ground`.
    Coupling,
    OnOff,
}

const RECORD_TYPE: Kind = Kind::Name(&[
    "single sweep",
    "interleaved",
    "histogram",
    "graph",
    "filter coefficients",
    "complex",
    "extrema",
    "sequence",
    "centred RIS",
    "peak detect",
]);

const PROCESSING: Kind = Kind::Name(&[
    "none",
    "FIR filter",
    "interpolated",
    "sparsed",
    "autoscaled",
    "no result",
    "rolling",
    "cumulative",
]);

const SOURCE: Kind = Kind::Name(&["C1", "C2", "C3", "C4"]);

/// Name of the attribute, offset and type of the fields of `LECROY_2_3`.
const LECROY_2_3: &[(&str, usize, Kind)] = &[
    ("points_per_screen", 120, Kind::I32),
    ("first_valid_point", 124, Kind::I32),
    ("last_valid_point", 128, Kind::I32),
    ("first_point", 132, Kind::I32),
    ("sparsing_factor", 136, Kind::I32),
    ("segment_index", 140, Kind::I32),
    ("sweeps_per_acquisition", 148, Kind::I32),
    ("points_per_pair", 152, Kind::I16),
    ("pair_offset", 154, Kind::I16),
    ("maximum_stored", 164, Kind::F32),
    ("minimum_stored", 168, Kind::F32),
    ("nominal_bits", 172, Kind::I16),
    ("nominal_segments", 174, Kind::I16),
    ("pixel_offset", 188, Kind::F64),
    ("horizontal_uncertainty", 292, Kind::F32),
    ("acquisition_duration", 312, Kind::F32),
    ("record_type", 316, RECORD_TYPE),
    ("processing", 318, PROCESSING),
    ("ris_sweeps", 322, Kind::I16),
    ("time_per_division", 324, Kind::Scale(1e-12, "s")),
    ("coupling", 326, Kind::Coupling),
    ("probe_attenuation", 328, Kind::F32),
    ("vertical_scale", 332, Kind::Scale(1e-6, "V")),
    ("bandwidth_limit", 334, Kind::OnOff),
    ("vertical_vernier", 336, Kind::F32),
    ("acquisition_vertical_offset", 340, Kind::F32),
    ("source", 344, SOURCE),
];

/// Name of the attribute, offset and type of the fields of `LECROY_1_0`.
const LECROY_1_0: &[(&str, usize, Kind)] = &[
    ("points_per_screen", 96, Kind::I32),
    ("first_valid_point", 100, Kind::I32),
    ("last_valid_point", 104, Kind::I32),
    ("nominal_segments", 112, Kind::I32),
    ("sweeps_per_acquisition", 116, Kind::I32),
    ("display_offset", 124, Kind::F32),
    ("maximum_stored", 128, Kind::I16),
    ("minimum_stored", 130, Kind::I16),
    ("nominal_bits", 132, Kind::I16),
    ("pixel_offset", 146, Kind::F64),
    ("acquisition_duration", 266, Kind::F32),
    ("record_type", 270, RECORD_TYPE),
    ("processing", 272, PROCESSING),
    ("time_per_division", 274, Kind::Scale(1e-12, "s")),
    ("coupling", 276, Kind::Coupling),
    ("probe_attenuation", 278, Kind::F32),
    ("vertical_scale", 282, Kind::Scale(1e-6, "V")),
    ("bandwidth_limit", 284, Kind::OnOff),
    ("vertical_vernier", 286, Kind::F32),
    ("source_plugin", 294, Kind::I16),
    ("source", 296, Kind::I16),
    ("trigger_source", 298, Kind::I16),
    ("trigger_coupling", 300, Kind::I16),
    ("trigger_slope", 302, Kind::I16),
    ("smart_trigger", 304, Kind::I16),
    ("trigger_level", 306, Kind::F32),
];

impl Template {
    /// The settings of this template.
    const fn settings(&self) -> &'static [(&'static str, usize, Kind)] {
        if self.size == 346 { LECROY_2_3 } else { LECROY_1_0 }
    }
}

impl Descriptor {
    /// The settings of the instrument; numbers that are not finite are left out.
    pub(crate) fn settings(&self) -> Result<Attrs> {
        let mut attrs = Attrs::new();
        for (name, offset, kind) in self.template.settings() {
            if let Some(value) = self.setting(*offset, *kind)? {
                attrs.push(*name, value);
            }
        }
        Ok(attrs)
    }

    fn setting(&self, offset: usize, kind: Kind) -> Result<Option<Value>> {
        let mut field = self.field(offset);
        let finite = |number: f64| Some(number).filter(|n| n.is_finite()).map(Value::Float);
        Ok(match kind {
            Kind::I16 => Some(i64::from(field.i16()?).into()),
            Kind::I32 => Some(i64::from(field.i32()?).into()),
            Kind::F32 => finite(single(field.f32()?)),
            Kind::F64 => finite(field.f64()?),
            Kind::Name(names) => {
                let number = field.i16()?;
                let name = usize::try_from(number).ok().and_then(|k| names.get(k));
                Some(name.map_or_else(|| i64::from(number).into(), |name| Value::from(*name)))
            }
            Kind::Scale(first, unit) => match field.i16()? {
                100 => Some("external".into()),
                step @ 0..=47 => Some(scale(first, step, unit).into()),
                other => Some(i64::from(other).into()),
            },
            Kind::Coupling => Some(match field.i16()? {
                0 => "DC 50 Ω".into(),
                1 | 3 => "ground".into(),
                2 => "DC 1 MΩ".into(),
                4 => "AC 1 MΩ".into(),
                other => i64::from(other).into(),
            }),
            Kind::OnOff => Some(match field.i16()? {
                0 => "off".into(),
                1 => "on".into(),
                other => i64::from(other).into(),
            }),
        })
    }
}

/// The shortest decimal number of a single-precision number, as double precision.
fn single(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}

/// Value of step `step` of 1, 2, 5, 10, ... times `first`, with the unit.
fn scale(first: f64, step: i16, unit: &str) -> String {
    let digit = [1, 2, 5][usize::from(step.unsigned_abs() % 3)];
    let power = first.log10().round() as i32 + i32::from(step / 3);
    format!("{} {unit}/div", Value::Float(format!("{digit}e{power}").parse().unwrap_or(f64::NAN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_steps_of_one_two_and_five() {
        assert_eq!(scale(1e-12, 0, "s"), "1e-12 s/div");
        assert_eq!(scale(1e-12, 20, "s"), "5e-6 s/div");
        assert_eq!(scale(1e-12, 47, "s"), "5000.0 s/div");
        assert_eq!(scale(1e-6, 15, "V"), "0.1 V/div");
        assert_eq!(single(0.1), 0.1);
    }
}
