//! Scales of sensors: resistance thermometers, strain gauges, thermistors, thermocouples and tables.

use crate::thermocouple::Thermocouple;

/// Numbers of excitations by voltage and current.
const BY_VOLTAGE: f64 = 10_322.0;
const BY_CURRENT: f64 = 10_134.0;

/// From a voltage to a physical quantity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sensor {
    /// Callendar-Van Dusen equation of a resistance thermometer: degrees Celsius.
    Rtd { current: f64, r0: f64, abc: [f64; 3], leads: f64 },
    /// Wheatstone bridge of strain gauges: strain.
    Strain {
        bridge: Bridge,
        voltage: f64,
        initial: f64,
        gauge: f64,
        poisson: f64,
        gain: f64,
        leads: f64,
    },
    /// Steinhart-Hart equation: kelvin minus an offset.
    Thermistor { excitation: Excitation, leads: f64, abc: [f64; 3], offset: f64 },
    /// Number of the type, and whether temperatures become voltages.
    Thermocouple { kind: u64, inverse: bool },
    /// Linear interpolation in a table with ascending arguments.
    Table(Vec<f64>, Vec<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Excitation {
    Current(f64),
    /// Voltage, and the reference resistance of the divider.
    Voltage(f64, f64),
}

/// Configuration of a bridge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bridge {
    Full1,
    Full2,
    Full3,
    Half1,
    Half2,
    Quarter,
}

/// Resistance of the leads that is measured with the sensor: with three wires one lead, with two and a current both.
fn leads(resistance: f64, wires: f64, by_current: bool) -> f64 {
    match (wires, by_current) {
        (3.0, _) => resistance,
        (2.0, true) => 2.0 * resistance,
        _ => 0.0,
    }
}

impl Sensor {
    /// The sensor of a type of scales; `value` has its properties. An error is the reason why it cannot be read.
    pub(crate) fn of(
        kind: &str,
        value: impl Fn(&str) -> Result<f64, String>,
    ) -> Result<Self, String> {
        let abc = || Ok::<_, String>([value("A")?, value("B")?, value("C")?]);
        Ok(match kind {
            "RTD" => Self::Rtd {
                current: value("Current_Excitation")?,
                r0: value("R0_Nominal_Resistance")?,
                abc: abc()?,
                leads: leads(
                    value("Lead_Wire_Resistance")?,
                    value("Resistance_Configuration")?,
                    true,
                ),
            },
            "Strain" => Self::Strain {
                bridge: match value("Configuration")? {
                    10_183.0 => Bridge::Full1,
                    10_184.0 => Bridge::Full2,
                    10_185.0 => Bridge::Full3,
                    10_188.0 => Bridge::Half1,
                    10_189.0 => Bridge::Half2,
                    10_271.0 | 10_272.0 => Bridge::Quarter,
                    other => return Err(format!("{kind} with the configuration {other}")),
                },
                voltage: value("Voltage_Excitation")?,
                initial: value("Initial_Bridge_Voltage")?,
                gauge: value("Gage_Factor")?,
                poisson: value("Poisson_Ratio")?,
                gain: value("Bridge_Shunt_Calibration_Gain_Adjustment")?,
                leads: 1.0 + value("Lead_Wire_Resistance")? / value("Gage_Resistance")?,
            },
            "Thermistor" => {
                let excitation = match value("Excitation_Type")? {
                    BY_CURRENT => Excitation::Current(value("Excitation_Value")?),
                    BY_VOLTAGE => Excitation::Voltage(
                        value("Excitation_Value")?,
                        value("R1_Reference_Resistance")?,
                    ),
                    other => return Err(format!("{kind} with the excitation {other}")),
                };
                let by_current = matches!(excitation, Excitation::Current(_));
                let wires = value("Resistance_Configuration")?;
                Self::Thermistor {
                    excitation,
                    leads: leads(value("Lead_Wire_Resistance")?, wires, by_current),
                    abc: abc()?,
                    offset: value("Temperature_Offset")?,
                }
            }
            "Thermocouple" => {
                let number = value("Thermocouple_Type").unwrap_or(10_072.0) as u64;
                Thermocouple::of(number).ok_or_else(|| format!("{kind} of the type {number}"))?;
                let inverse = value("Scaling_Direction").is_ok_and(|direction| direction == 1.0);
                Self::Thermocouple { kind: number, inverse }
            }
            other => return Err(other.into()),
        })
    }

    /// A table, whose arguments may descend; `None` if they are not monotonic.
    pub(crate) fn table(mut arguments: Vec<f64>, mut values: Vec<f64>) -> Option<Self> {
        let ascends = |column: &[f64]| column.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascends(&arguments) {
            arguments.reverse();
            values.reverse();
        }
        let fits = ascends(&arguments) && !arguments.is_empty() && arguments.len() == values.len();
        fits.then_some(Self::Table(arguments, values))
    }

    /// The quantity of a measured voltage.
    pub(crate) fn value(&self, volts: f64) -> f64 {
        match self {
            Self::Rtd { current, r0, abc, leads } => rtd((volts / current - leads) / r0, *abc),
            Self::Strain { bridge, voltage, initial, gauge, poisson, gain, leads } => {
                let (v, poisson) = ((volts - initial) / voltage, *poisson);
                let strain = match bridge {
                    Bridge::Full1 => -v / gauge,
                    Bridge::Full2 => -2.0 * v / (gauge * (1.0 + poisson)),
                    Bridge::Full3 => -2.0 * v / (gauge * (1.0 + poisson + v * (1.0 - poisson))),
                    Bridge::Half1 => {
                        -4.0 * v * leads / (gauge * (1.0 + poisson + 2.0 * v * (1.0 - poisson)))
                    }
                    Bridge::Half2 => -2.0 * v * leads / gauge,
                    Bridge::Quarter => -4.0 * v * leads / (gauge * (1.0 + 2.0 * v)),
                };
                gain * strain
            }
            Self::Thermistor { excitation, leads, abc: [a, b, c], offset } => {
                let resistance = match excitation {
                    Excitation::Current(current) => volts / current,
                    Excitation::Voltage(voltage, reference) => reference / (voltage / volts - 1.0),
                };
                let log = (resistance - leads).ln();
                1.0 / (a + log * (b + c * log * log)) - offset
            }
            Self::Thermocouple { kind, inverse } => match Thermocouple::of(*kind) {
                Some(kind) if *inverse => kind.voltage(volts),
                Some(kind) => kind.temperature(volts),
                None => f64::NAN,
            },
            Self::Table(arguments, values) => interpolated(arguments, values, volts),
        }
    }
}

/// Temperature for a resistance relative to that at 0 degrees.
fn rtd(ratio: f64, [a, b, c]: [f64; 3]) -> f64 {
    let root = (a * a - 4.0 * b * (1.0 - ratio)).sqrt();
    let mut t = (root - a) / (2.0 * b);
    if ratio >= 1.0 {
        return t;
    }
    // Below 0 degrees there is a term of fourth order; the quadratic solution is a few degrees away.
    for _ in 0..50 {
        let excess = 1.0 + t * (a + t * (b + c * t * (t - 100.0))) - ratio;
        let slope = a + t * (2.0 * b + c * t * (4.0 * t - 300.0));
        let step = excess / slope;
        t -= step;
        if step.abs() <= 1e-13 * t.abs() {
            break;
        }
    }
    t
}

/// The value between the entries of a table; its first or last value outside of it.
fn interpolated(arguments: &[f64], values: &[f64], x: f64) -> f64 {
    let next = arguments.partition_point(|argument| *argument <= x);
    let at = |k: usize| arguments.get(k).copied().zip(values.get(k).copied());
    match (next.checked_sub(1).and_then(at), at(next)) {
        _ if x.is_nan() => f64::NAN,
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * ((x - x0) / (x1 - x0)),
        (Some((_, y)), None) | (None, Some((_, y))) => y,
        (None, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resistance_thermometers_follow_iec_60751() {
        let abc = [3.9083e-3, -5.775e-7, -4.183e-12];
        let sensor = Sensor::Rtd { current: 1e-3, r0: 100.0, abc, leads: 0.0 };
        // Rows of the table of Pt100.
        for (ohm, celsius) in [(18.52, -200.0), (60.26, -100.0), (100.0, 0.0), (138.51, 100.0)] {
            assert!((sensor.value(ohm * 1e-3) - celsius).abs() < 0.02, "{celsius}");
        }
    }

    #[test]
    fn tables_are_interpolated_and_end_in_their_last_values() {
        let table = Sensor::table(vec![3.0, 2.0, 0.0], vec![1.0, 5.0, 9.0]).unwrap();
        let values: Vec<f64> = [-1.0, 0.0, 1.0, 2.5, 3.0, 4.0].map(|x| table.value(x)).into();
        assert_eq!(values, [9.0, 9.0, 7.0, 3.0, 1.0, 1.0]);
        assert!(table.value(f64::NAN).is_nan());
        assert_eq!(Sensor::table(vec![1.0, 3.0, 2.0], vec![0.0; 3]), None);
    }
}
