//! Scales of a channel, which properties describe: `NI_Number_Of_Scales`, `NI_Scale[0]_Scale_Type` and others.

use spile_core::{Attrs, Linear};

/// Most scales and coefficients that are read.
const MOST: u64 = 64;

/// From stored to physical values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scaling {
    None,
    Linear(Linear),
    /// Polynomials, applied one after the other: the coefficients from that of power 0 on.
    Polynomials(Vec<Vec<f64>>),
    /// A scale that is not supported: its type.
    Unsupported(String),
}

/// The scaling by the properties of a channel, or else of its group, or else of the file. `raw` is the number of the
/// scale that stands for the stored values of a DAQmx channel.
pub(crate) fn scaling(levels: [&Attrs; 3], raw: Option<u32>) -> Scaling {
    let scales = |attrs: &Attrs| {
        let count = attrs.get_u64("NI_Number_Of_Scales").filter(|count| *count > 0)?;
        (attrs.get_str("NI_Scaling_Status") != Some("scaled")).then_some(count)
    };
    let found = levels.into_iter().find_map(|attrs| Some((attrs, scales(attrs)?)));
    let Some((attrs, count)) = found else { return Scaling::None };
    let mut stages = Vec::new();
    let mut number = count - 1;
    loop {
        let name = |field: &str| format!("NI_Scale[{number}]_{field}");
        // The values of a DAQmx channel have a number, but no properties.
        let Some(kind) = attrs.get_str(&name("Scale_Type")) else { break };
        let (coefficients, source) = match kind {
            "Linear" => {
                let value = |field: &str| attrs.get_f64(&name(&format!("Linear_{field}")));
                (value("Y_Intercept").zip(value("Slope")).map(|(a, b)| vec![a, b]), "Linear")
            }
            "Polynomial" => (polynomial(attrs, &name("Polynomial_Coefficients")), "Polynomial"),
            other => return Scaling::Unsupported(other.into()),
        };
        let Some(coefficients) = coefficients else {
            return Scaling::Unsupported(format!("{kind} without coefficients"));
        };
        stages.push(coefficients);
        let input = attrs.get_u64(&name(&format!("{source}_Input_Source")));
        match input {
            // The input is the stored values, or an earlier scale.
            None => break,
            Some(input) if input == u64::from(u32::MAX) || Some(input) == raw.map(u64::from) => {
                break;
            }
            Some(input) if input < number && stages.len() as u64 <= MOST => number = input,
            Some(_) => return Scaling::Unsupported("scales that refer to each other".into()),
        }
    }
    stages.reverse();
    match &stages[..] {
        [] => Scaling::None,
        [one] if one.len() == 2 => Scaling::Linear(Linear::new(one[0], one[1])),
        _ => Scaling::Polynomials(stages),
    }
}

fn polynomial(attrs: &Attrs, name: &str) -> Option<Vec<f64>> {
    let count = attrs.get_u64(&format!("{name}_Size")).unwrap_or(4).min(MOST);
    (0..count).map(|k| attrs.get_f64(&format!("{name}[{k}]"))).collect()
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
        let of = |attrs: &Attrs, raw| scaling([&none, attrs, &none], raw);
        assert_eq!(of(&attrs, None), Scaling::Linear(Linear::new(1.0, 2.0)));
        attrs.extend(linear(1, 3.0, 0));
        attrs.set("NI_Number_Of_Scales", 2_u64);
        let both = vec![vec![1.0, 2.0], vec![1.0, 3.0]];
        assert_eq!(of(&attrs, None), Scaling::Polynomials(both));
        // Scale 0 is the stored values of a DAQmx channel.
        assert_eq!(of(&attrs, Some(0)), Scaling::Linear(Linear::new(1.0, 3.0)));
        attrs.set("NI_Scaling_Status", "scaled");
        assert_eq!(of(&attrs, None), Scaling::None);
        attrs.set("NI_Scaling_Status", "unscaled");
        attrs.set("NI_Scale[1]_Scale_Type", "RTD");
        assert_eq!(of(&attrs, None), Scaling::Unsupported("RTD".into()));
        let circle: Attrs = linear(0, 2.0, 0).into_iter().collect();
        let mut circle = circle;
        circle.set("NI_Number_Of_Scales", 1_u64);
        assert!(matches!(of(&circle, None), Scaling::Unsupported(_)));
    }
}
