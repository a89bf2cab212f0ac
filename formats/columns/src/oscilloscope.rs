//! Headers of the CSV files that oscilloscopes write: names and units of the channels, and the time base.

use crate::semantics::{Name, parse_name};

/// Words for a time in the first column of a table.
const TIMES: [&str; 7] = ["time", "x", "t", "second", "seconds", "source", "x-axis"];

/// What the header of an oscilloscope says about the columns.
#[derive(Debug, PartialEq)]
pub(crate) struct Scope {
    /// Names and units of the columns after the first.
    pub(crate) channels: Vec<Name>,
    /// Time of the sample with the number 0 and interval, where the first column numbers the samples.
    pub(crate) sequence: Option<(f64, f64)>,
}

impl Scope {
    /// Recognises the header of a table with `columns` columns; `None` if no oscilloscope writes it.
    pub(crate) fn of(header: &str, columns: u64) -> Option<Self> {
        let columns = usize::try_from(columns).ok().filter(|columns| *columns > 1)?;
        let lines: Vec<Vec<&str>> = header.lines().map(fields).filter(|f| !f.is_empty()).collect();
        let (last, above) = lines.split_last()?;
        if last.len() >= columns && last[1..columns].iter().all(|unit| symbol(unit).is_some()) {
            return Self::with_units(above.last()?, last, columns);
        }
        let named = last.len() == columns && TIMES.contains(&first_word(last[0]).as_str());
        let channels: Vec<Name> = last.get(1..)?.iter().map(|name| parse_name(name)).collect();
        // Without other lines, any program may have written the table.
        let certain = !above.is_empty() || last[0] == "X";
        if !named || !certain || !channels.iter().all(|name| is_channel(&name.text)) {
            return None;
        }
        let unit = |name: &&str| -> Option<&str> {
            let line = above.iter().find(|line| line.first() == Some(name))?;
            line.get(1).copied()
        };
        let common = ["Vertical Units", "Vertical Unit"].iter().find_map(unit);
        // Some name all columns alike, and the channels in a line above.
        let own = above
            .iter()
            .rev()
            .find(|line| line.len() == columns && line[1..].iter().all(|name| is_channel(name)));
        let alike = channels.iter().skip(1).any(|name| name.text == channels[0].text);
        let fill = |(index, mut name): (usize, Name)| {
            if name.unit.is_empty() {
                name.unit = common.map_or("", |unit| symbol(unit).unwrap_or(unit)).into();
            }
            match own {
                Some(line) if alike => name.text = line[index + 1].into(),
                None if alike => name.text = format!("{}_{}", name.text, index + 1),
                _ => {}
            }
            name
        };
        let channels = channels.into_iter().enumerate().map(fill).collect();
        Some(Self { channels, sequence: None })
    }

    /// A line of names above a line of units. Rigol adds the start and the increment to both.
    fn with_units(names: &[&str], units: &[&str], columns: usize) -> Option<Self> {
        let sequence = match (names.get(columns..), units.get(columns..)) {
            (Some(["Start", "Increment"]), Some([start, increment])) => {
                Some((start.parse().ok()?, increment.parse().ok()?))
            }
            _ if names.len() == columns && units.len() == columns => None,
            _ => return None,
        };
        let counted = units[0].eq_ignore_ascii_case("sequence");
        let timed = matches!(symbol(units[0]), Some("s"));
        if counted != sequence.is_some() || !(counted || timed) {
            return None;
        }
        let channel = |(name, unit): (&&str, &&str)| Name {
            text: (*name).into(),
            unit: symbol(unit).unwrap_or("").into(),
        };
        let channels: Vec<Name> = names[1..columns].iter().zip(&units[1..]).map(channel).collect();
        let named = channels.iter().all(|name| !name.text.is_empty());
        named.then_some(Self { channels, sequence })
    }
}

/// The fields of a line, without quotes and empty fields at its end.
fn fields(line: &str) -> Vec<&str> {
    let separator = if line.contains(',') { ',' } else { ';' };
    let all = line.split(separator).map(|field| field.trim().trim_matches('"').trim());
    let mut all: Vec<&str> = all.collect();
    while all.last().is_some_and(|field| field.is_empty()) {
        all.pop();
    }
    all
}

/// Lower-case name of the first column, without its unit.
fn first_word(text: &str) -> String {
    parse_name(text).text.to_ascii_lowercase()
}

/// Symbol of a unit in a line of units.
fn symbol(text: &str) -> Option<&'static str> {
    Some(match text.to_ascii_lowercase().as_str() {
        "v" | "volt" | "volts" => "V",
        "a" | "amp" | "amps" | "ampere" | "amperes" => "A",
        "w" | "watt" | "watts" => "W",
        "s" | "second" | "seconds" | "sec" => "s",
        "hz" | "hertz" => "Hz",
        "u" | "unknown" => "",
        _ => return None,
    })
}

/// Whether a name can be that of a channel: `CH1`, `C2`, `D0`, `REF1_D7`, `MATH1`, `Ampl`.
fn is_channel(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["CH", "MATH", "REF", "AMPL", "VOLT", "POD"].iter().any(|prefix| name.starts_with(prefix))
        || (name.starts_with(['C', 'D', 'F', 'M', 'Z'])
            && name.len() > 1
            && name[1..].bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(header: &str, columns: u64) -> Option<Vec<(String, String)>> {
        let scope = Scope::of(header, columns)?;
        Some(scope.channels.into_iter().map(|name| (name.text, name.unit)).collect())
    }

    #[test]
    fn headers_of_all_vendors_are_recognised() {
        let volts = |names: &[&str]| -> Option<Vec<(String, String)>> {
            Some(names.iter().map(|name| ((*name).to_string(), "V".to_string())).collect())
        };
        // Rigol.
        let rigol = "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,-3.5e-03,5e-06,\n";
        assert_eq!(channels(rigol, 3), volts(&["CH1", "CH2"]));
        assert_eq!(Scope::of(rigol, 3).unwrap().sequence, Some((-3.5e-3, 5e-6)));
        assert_eq!(channels("X,CH1,\nSecond,Volt,\n", 2), volts(&["CH1"]));
        assert_eq!(channels(",CH2,CH4\nSecond,Volt,Volt\n", 3), volts(&["CH2", "CH4"]));
        assert_eq!(channels("X,CH 1 (V),CH 2 (V)\n", 3), volts(&["CH 1", "CH 2"]));
        // Keysight, Siglent, Tektronix, LeCroy, Rohde & Schwarz.
        assert_eq!(channels("x-axis,1,2\nsecond,Volt,Volt\n", 3), volts(&["1", "2"]));
        let siglent = "Record Length,Analog:700\nSample Interval,1e-9\nSource,CH1\nSecond,Volt\n";
        assert_eq!(channels(siglent, 2), volts(&["CH1"]));
        let tektronix = "Model,MSO64\nVertical Units,V\n\nLabels,,\nTIME,CH1,CH2\n";
        assert_eq!(channels(tektronix, 3), volts(&["CH1", "CH2"]));
        let lecroy = "LECROYWS,1,Waveform\nSegments,1,SegmentSize,500\nTime,Ampl\n";
        assert_eq!(channels(lecroy, 2), Some(vec![("Ampl".into(), String::new())]));
        let old = "\"Points =\",8,\n\"Channel Data\",\"CH 1\",\"CH 2\"\n\"Time (s)\",\"Voltage (V)\",\"Voltage (V)\"\n";
        assert_eq!(channels(old, 3), volts(&["CH 1", "CH 2"]));
        assert_eq!(channels("RTB;1\nTime [s];CH1 [V]\n", 2), volts(&["CH1"]));
    }

    #[test]
    fn tables_of_other_programs_are_not_those_of_an_oscilloscope() {
        for (header, columns) in [
            ("time,CH1\n", 2),
            ("x,y\n", 2),
            ("a,b\nsecond,Volt\nfast,slow\n", 2),
            ("name,age\nAda,3\n", 2),
            ("X,CH1,Start,Increment\nSequence,Volt,soon,1\n", 2),
            ("X,CH1\nSequence,Volt\n", 2),
            ("", 2),
            ("X\n", 1),
        ] {
            assert_eq!(Scope::of(header, columns), None, "{header}");
        }
    }
}
