//! Scales of a channel, which properties describe: `NI_Number_Of_Scales`, `NI_Scale[0]_Scale_Type` and others.

use std::sync::Arc;

use spile_core::{Attrs, Linear};

use crate::sensor::Sensor;

/// Most scales and coefficients that are read.
const MOST: u64 = 64;

/// Most entries of a table.
const MOST_ENTRIES: u64 = 1 << 16;

/// From stored to physical values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scaling {
    None,
    Linear(Linear),
    Scales(Arc<Scale>),
    /// A scale that is not supported: its type.
    Unsupported(String),
}

/// A scale, with the scales it is applied to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// The stored values: those of the DAQmx scaler with this number, or of the channel.
    Stored(Option<u32>),
    /// A polynomial: its coefficients from that of power 0 on.
    Polynomial(Vec<f64>, Box<Self>),
    Sensor(Sensor, Box<Self>),
    Add(Box<Self>, Box<Self>),
    /// The second minus the first, as other programs do.
    Subtract(Box<Self>, Box<Self>),
}

/// The scaling by the properties of a channel, or else of its group, or else of the file. `raw` are the numbers of the
/// scales that stand for the stored values of a DAQmx channel.
pub(crate) fn scaling(levels: [&Attrs; 3], raw: &[u32]) -> Scaling {
    let scales = |attrs: &Attrs| {
        let count = attrs.get_u64("NI_Number_Of_Scales").filter(|count| *count > 0)?;
        (attrs.get_str("NI_Scaling_Status") != Some("scaled")).then_some(count)
    };
    let found = levels.into_iter().find_map(|attrs| Some((attrs, scales(attrs)?)));
    let Some((attrs, count)) = found else { return Scaling::None };
    let mut reader = Reader { attrs, raw, left: 2 * MOST };
    match reader.scale(count - 1) {
        Err(kind) => Scaling::Unsupported(kind),
        Ok(Scale::Stored(None)) => Scaling::None,
        Ok(Scale::Polynomial(c, input))
            if c.len() == 2 && matches!(*input, Scale::Stored(_)) && raw.len() < 2 =>
        {
            Scaling::Linear(Linear::new(c[0], c[1]))
        }
        Ok(Scale::Stored(Some(_))) if raw.len() < 2 => Scaling::None,
        Ok(scale) => Scaling::Scales(Arc::new(scale)),
    }
}

struct Reader<'a> {
    attrs: &'a Attrs,
    raw: &'a [u32],
    /// Scales that may still be read: scales can refer to each other.
    left: u64,
}

impl Reader<'_> {
    fn scale(&mut self, number: u64) -> Result<Scale, String> {
        if number == u64::from(u32::MAX) {
            return Ok(Scale::Stored(self.raw.first().copied()));
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Err("scales that refer to each other".into());
        };
        self.left = left;
        let name = |field: &str| format!("NI_Scale[{number}]_{field}");
        // The values of a DAQmx channel have a number, but no properties.
        let Some(kind) = self.attrs.get_str(&name("Scale_Type")) else {
            let own = self.raw.iter().find(|raw| u64::from(**raw) == number);
            return Ok(Scale::Stored(own.or(self.raw.first()).copied()));
        };
        let value = |field: &str| {
            let missing = || format!("{kind} without {field}");
            self.attrs.get_f64(&name(&format!("{kind}_{field}"))).ok_or_else(missing)
        };
        let coefficients = match kind {
            "Add" | "Subtract" => {
                let operand = |side: &str| {
                    let field = format!("{kind}_{side}_Operand_Input_Source");
                    self.attrs.get_u64(&name(&field)).ok_or_else(|| format!("{kind} of one scale"))
                };
                let (left, right) = (operand("Left")?, operand("Right")?);
                let (left, right) = (Box::new(self.scale(left)?), Box::new(self.scale(right)?));
                return Ok(match kind {
                    "Add" => Scale::Add(left, right),
                    _ => Scale::Subtract(left, right),
                });
            }
            "Linear" => Some(vec![value("Y_Intercept")?, value("Slope")?]),
            "Polynomial" => {
                let count = self.attrs.get_u64(&name("Polynomial_Coefficients_Size"));
                let count = count.unwrap_or(4).min(MOST);
                let each = |k: u64| value(&format!("Coefficients[{k}]"));
                Some((0..count).map(each).collect::<Result<Vec<f64>, String>>()?)
            }
            _ => None,
        };
        let sensor = match kind {
            "AdvancedAPI" | "Linear" | "Polynomial" => None,
            "Table" => {
                let count = value("Scaled_Values_Size")? as u64;
                if count != value("Pre_Scaled_Values_Size")? as u64 || count > MOST_ENTRIES {
                    return Err(format!("{kind} with {count} values"));
                }
                let column = |field: &str| -> Result<Vec<f64>, String> {
                    (0..count).map(|k| value(&format!("{field}[{k}]"))).collect()
                };
                let table = Sensor::table(column("Pre_Scaled_Values")?, column("Scaled_Values")?);
                Some(table.ok_or_else(|| format!("{kind} that is not monotonic"))?)
            }
            other => Some(Sensor::of(other, value)?),
        };
        let source = self.attrs.get_u64(&name(&format!("{kind}_Input_Source")));
        let input = Box::new(self.scale(source.unwrap_or(u64::from(u32::MAX)))?);
        Ok(match (coefficients, sensor) {
            (Some(coefficients), _) => Scale::Polynomial(coefficients, input),
            (None, Some(sensor)) => Scale::Sensor(sensor, input),
            (None, None) => *input,
        })
    }
}

impl Scale {
    /// The values of `count` elements; `stored` has the stored values of a scaler.
    pub(crate) fn values(
        &self,
        stored: &mut dyn FnMut(Option<u32>) -> spile_core::Result<Vec<f64>>,
    ) -> spile_core::Result<Vec<f64>> {
        let pairs = |mut left: Vec<f64>, right: Vec<f64>, sum: fn(f64, f64) -> f64| {
            left.iter_mut().zip(right).for_each(|(a, b)| *a = sum(*a, b));
            left
        };
        Ok(match self {
            Self::Stored(number) => stored(*number)?,
            Self::Polynomial(coefficients, input) => {
                let mut values = input.values(stored)?;
                for value in &mut values {
                    *value = coefficients.iter().rev().fold(0.0, |sum, c| sum * *value + c);
                }
                values
            }
            Self::Sensor(sensor, input) => {
                let mut values = input.values(stored)?;
                for value in &mut values {
                    *value = sensor.value(*value);
                }
                values
            }
            Self::Add(left, right) => {
                pairs(left.values(stored)?, right.values(stored)?, |a, b| a + b)
            }
            Self::Subtract(left, right) => {
                pairs(left.values(stored)?, right.values(stored)?, |a, b| b - a)
            }
        })
    }

    /// Number of arrays that are in memory at once while values are computed.
    pub(crate) fn depth(&self) -> u64 {
        match self {
            Self::Stored(_) => 1,
            Self::Polynomial(_, input) | Self::Sensor(_, input) => input.depth(),
            Self::Add(a, b) | Self::Subtract(a, b) => 1 + a.depth().max(b.depth()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::Value;

    fn linear(number: u64, slope: f64, input: u64) -> Vec<(String, Value)> {
        let name = |field: &str| format!("NI_Scale[{number}]_{field}");
        vec![
            (name("Scale_Type"), "Linear".into()),
            (name("Linear_Slope"), slope.into()),
            (name("Linear_Y_Intercept"), 1.0.into()),
            (name("Linear_Input_Source"), input.into()),
        ]
    }

    #[test]
    fn the_last_scale_is_applied_to_its_input() {
        let none = Attrs::new();
        let mut attrs: Attrs = linear(0, 2.0, u64::from(u32::MAX)).into_iter().collect();
        attrs.set("NI_Number_Of_Scales", 1_u64);
        let of = |attrs: &Attrs, raw: &[u32]| scaling([&none, attrs, &none], raw);
        let values = |scaling: Scaling| match scaling {
            Scaling::Scales(scale) => scale.values(&mut |_| Ok(vec![1.0, 2.0])).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(&attrs, &[]), Scaling::Linear(Linear::new(1.0, 2.0)));
        attrs.extend(linear(1, 3.0, 0));
        attrs.set("NI_Number_Of_Scales", 2_u64);
        assert_eq!(values(of(&attrs, &[])), [10.0, 16.0]);
        attrs.set("NI_Scale[0]_Scale_Type", "AdvancedAPI");
        assert_eq!(of(&attrs, &[]), Scaling::Linear(Linear::new(1.0, 3.0)));
        attrs.set("NI_Scaling_Status", "scaled");
        assert_eq!(of(&attrs, &[]), Scaling::None);
        attrs.set("NI_Scaling_Status", "unscaled");
        attrs.set("NI_Scale[1]_Scale_Type", "Nothing");
        assert_eq!(of(&attrs, &[]), Scaling::Unsupported("Nothing".into()));
        let mut circle: Attrs = linear(0, 2.0, 0).into_iter().collect();
        circle.set("NI_Number_Of_Scales", 1_u64);
        assert!(matches!(of(&circle, &[]), Scaling::Unsupported(_)));
    }

    #[test]
    fn scales_combine_the_scalers_of_a_channel() {
        let none = Attrs::new();
        let mut attrs: Attrs = linear(2, 10.0, 0).into_iter().collect();
        attrs.set("NI_Number_Of_Scales", 4_u64);
        attrs.set("NI_Scale[3]_Scale_Type", "Subtract");
        attrs.set("NI_Scale[3]_Subtract_Left_Operand_Input_Source", 1_u64);
        attrs.set("NI_Scale[3]_Subtract_Right_Operand_Input_Source", 2_u64);
        let Scaling::Scales(scale) = scaling([&attrs, &none, &none], &[0, 1]) else { panic!() };
        let stored =
            &mut |number| Ok(if number == Some(0) { vec![1.0, 2.0] } else { vec![5.0, 7.0] });
        assert_eq!(scale.values(stored).unwrap(), [6.0, 14.0]);
        assert_eq!(scale.depth(), 2);
    }
}
