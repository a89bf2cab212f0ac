//! Headers of the CSV files that oscilloscopes write: names and units of the channels, and the time base.

use crate::semantics::{Name, parse_name};

/// Keys of the metadata that some instruments write in the first columns of the rows.
const TDS_FIRST: &str = "Record Length,";

/// Words for a time in the first column of a table.
const TIMES: [&str; 7] = ["time", "x", "t", "second", "seconds", "source", "x-axis"];

/// What the header of an oscilloscope says about the columns.
#[derive(Debug, PartialEq)]
pub(crate) struct Scope {
    /// Names and units of the columns of samples.
    pub(crate) channels: Vec<Name>,
    /// Number of columns before them: the time, or none.
    pub(crate) skip: u64,
    /// Time of the sample with the number 0 and interval, where the first column numbers the samples or there is no
    /// time in the rows.
    pub(crate) sequence: Option<(f64, f64)>,
    /// Unit of the times in seconds.
    pub(crate) unit: f64,
}

impl Scope {
    /// Recognises the header of a table with `columns` columns; `None` if no oscilloscope writes it.
    pub(crate) fn of(header: &str, columns: u64) -> Option<Self> {
        let columns = usize::try_from(columns).ok()?;
        let lines: Vec<Vec<&str>> = header.lines().map(fields).filter(|f| !f.is_empty()).collect();
        let (last, above) = lines.split_last()?;
        if let Some(scope) =
            Self::keyed(&lines, columns).or_else(|| Self::with_start(last, columns))
        {
            return Some(scope);
        }
        if columns < 2 {
            return None;
        }
        let in_units: Option<Vec<(&str, &str)>> = last.iter().map(|f| name_in_unit(f)).collect();
        if let Some(in_units) = in_units.filter(|names| names.len() == columns)
            && seconds(in_units[0].1).is_some()
        {
            let channel = |(name, unit): &(&str, &str)| {
                Some(Name { text: (*name).into(), unit: scaled_symbol(unit)? })
            };
            let channels = in_units[1..].iter().map(channel).collect::<Option<Vec<Name>>>()?;
            let unit = seconds(in_units[0].1)?;
            return Some(Self { channels, skip: 1, sequence: None, unit });
        }
        if last.len() >= columns
            && last[1..columns].iter().all(|unit| scaled_symbol(unit).is_some())
        {
            return Self::with_units(above.last()?, last, columns);
        }
        let named = last.len() == columns && TIMES.contains(&first_word(last[0]).as_str());
        let channels: Vec<Name> = last.get(1..)?.iter().map(|name| parse_name(name)).collect();
        // Without other lines, any program may have written the table; those write a blank before a unit.
        let is_bare = |field: &&str| field.ends_with(')') && !field.contains(' ');
        let certain = !above.is_empty() || last[0] == "X" || last.iter().all(is_bare);
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
        Some(Self { channels, skip: 1, sequence: None, unit: 1.0 })
    }

    /// Lines of keys and values above a line `Data:` (Keysight Infiniium, GW Instek).
    fn keyed(lines: &[Vec<&str>], columns: usize) -> Option<Self> {
        let (last, above) = lines.split_last()?;
        let [word] = last[..] else { return None };
        if !["Data:", "Waveform Data"].contains(&word) {
            return None;
        }
        let value = |names: &[&str]| {
            let own = above.iter().find(|line| names.contains(&line[0].trim_end_matches(':')))?;
            own.get(1).copied()
        };
        let interval: f64 = value(&["XInc", "Sampling Period"])?.parse().ok()?;
        let unit = value(&["YUnits", "Vertical Units"]).and_then(symbol).unwrap_or("");
        let source = value(&["Source", "Source:"]).unwrap_or("data");
        let start = value(&["XOrg"]).and_then(|start| start.parse().ok());
        let (skip, sequence) = match (columns, start) {
            (1, Some(start)) => (0, Some((start, interval))),
            (1, None) => return None,
            _ => (1, None),
        };
        let count = columns - skip;
        let name = |k: usize| match count {
            1 => source.to_string(),
            _ => format!("{source}_{}", k + 1),
        };
        let channels = (0..count).map(|k| Name { text: name(k), unit: unit.into() }).collect();
        Some(Self { channels, skip: skip as u64, sequence, unit: 1.0 })
    }

    /// `CH1V,CH2V,t0 = -1e-3s, tInc = 1e-6,` (Rigol MSO5000 and DHO), with or without times in the rows.
    fn with_start(line: &[&str], columns: usize) -> Option<Self> {
        let number = |field: &str, name: &str| -> Option<f64> {
            let value = field.strip_prefix(name)?.trim_start().strip_prefix('=')?;
            value.trim().trim_end_matches(['s', 'S']).trim().parse().ok()
        };
        let at = line.iter().position(|field| number(field, "t0").is_some())?;
        let (start, step) = (number(line[at], "t0")?, number(line.get(at + 1)?, "tInc")?);
        let skip = usize::from(TIMES.contains(&first_word(line[0]).as_str()));
        if at != columns {
            return None;
        }
        let channel = |field: &&str| {
            let name = parse_name(field);
            if !name.unit.is_empty() {
                return name;
            }
            let short = ['V', 'A', 'W'].into_iter().find_map(|unit| {
                let rest = name.text.strip_suffix(unit).filter(|rest| is_channel(rest))?;
                Some(Name { text: rest.into(), unit: unit.into() })
            });
            short.unwrap_or(name)
        };
        let channels = line[skip..at].iter().map(channel).collect();
        let sequence = (skip == 0).then_some((start, step));
        Some(Self { channels, skip: skip as u64, sequence, unit: 1.0 })
    }

    /// Files of Tektronix TDS instruments, whose rows have a key and a value before time and sample. `head` is the
    /// start of the file.
    pub(crate) fn of_rows(head: &str) -> Option<Self> {
        if !head.starts_with(TDS_FIRST) {
            return None;
        }
        let rows: Vec<Vec<&str>> = head.lines().take(40).map(fields).collect();
        let value = |name: &str| {
            let row = rows.iter().find(|row| row.first() == Some(&name))?;
            row.get(1).copied().filter(|value| !value.is_empty())
        };
        let unit = value("Vertical Units").map_or("", |unit| symbol(unit).unwrap_or(unit));
        let name = Name { text: value("Source")?.into(), unit: unit.into() };
        Some(Self { channels: vec![name], skip: 1, sequence: None, unit: 1.0 })
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
        let unit = seconds(units[0]);
        let timed = unit.is_some();
        if counted != sequence.is_some() || !(counted || timed) {
            return None;
        }
        let channel = |(name, unit): (&&str, &&str)| Name {
            text: (*name).into(),
            unit: scaled_symbol(unit).unwrap_or_default(),
        };
        let channels: Vec<Name> = names[1..columns].iter().zip(&units[1..]).map(channel).collect();
        let named = channels.iter().all(|name| !name.text.is_empty());
        named.then_some(Self { channels, skip: 1, sequence, unit: unit.unwrap_or(1.0) })
    }
}

/// Time and sample of a row of a Tektronix TDS file, after a key, a value and an empty column: `Source,CH1,,-5e-6,0.2,`.
pub(crate) fn tds_numbers(line: &[u8]) -> Option<[&[u8]; 2]> {
    let mut fields = line.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let key = fields.next()?;
    let is_key = key.iter().all(|b| b.is_ascii_alphabetic() || *b == b' ');
    let (_, empty) = (fields.next()?, fields.next()?);
    let pair = [fields.next()?, fields.next()?];
    let ends = fields.all(<[u8]>::is_empty);
    (is_key && empty.is_empty() && ends && pair.iter().all(|f| !f.is_empty())).then_some(pair)
}

/// `CH1 in V`, or `in s` of a column of times.
fn name_in_unit(field: &str) -> Option<(&str, &str)> {
    let (name, unit) = match field.strip_prefix("in ") {
        Some(unit) => ("time", unit),
        None => field.split_once(" in ")?,
    };
    Some((name.trim(), unit.trim()))
}

/// A unit of time in seconds: `s`, `(ms)`.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim_matches(['(', ')']);
    match text {
        "ms" => Some(1e-3),
        "us" | "\u{b5}s" | "\u{3bc}s" => Some(1e-6),
        "ns" => Some(1e-9),
        "ps" => Some(1e-12),
        _ => matches!(symbol(text), Some("s")).then_some(1.0),
    }
}

/// Symbol of a unit that may have a prefix: `Volt`, `(mV)`.
fn scaled_symbol(text: &str) -> Option<String> {
    let text = text.trim_matches(['(', ')']);
    if let Some(symbol) = symbol(text) {
        return Some(symbol.into());
    }
    let unit = text.strip_prefix(['m', 'u', '\u{b5}', '\u{3bc}', 'n', 'k'])?;
    matches!(unit, "V" | "A" | "W" | "s" | "Hz").then(|| text.to_string())
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
    ["CH", "MATH", "ANALOG", "REF", "AMPL", "VOLT", "POD"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
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
        assert_eq!(channels("in s,C1 in V,C2 in V\n", 3), volts(&["C1", "C2"]));
        assert_eq!(channels("Time(s),CH1(V),CH2(V)\n", 3), volts(&["CH1", "CH2"]));
    }

    #[test]
    fn times_may_be_in_the_header_or_have_a_prefix() {
        let scope = Scope::of("CH1V,CH2V,t0 =-5.0e-06s, tInc = 2.5e-07,\n", 2).unwrap();
        assert_eq!((scope.skip, scope.sequence), (0, Some((-5e-6, 2.5e-7))));
        assert_eq!(scope.channels[1], Name { text: "CH2".into(), unit: "V".into() });
        let scope = Scope::of("Time(s),CH1V,t0 = -5e-06, tInc = 2.5e-07,\n", 2).unwrap();
        assert_eq!((scope.skip, scope.sequence), (1, None));
        let pico = "Time,Channel A,Channel B\n(us),(V),(mV)\n";
        let scope = Scope::of(pico, 3).unwrap();
        assert_eq!((scope.unit, scope.channels[1].unit.as_str()), (1e-6, "mV"));
        let infiniium = "Revision:,0\nPoints:,4\nXInc:,2e-07\nXOrg:,-5e-06\nYUnits:,Volt\nData:\n";
        let scope = Scope::of(infiniium, 1).unwrap();
        assert_eq!((scope.skip, scope.sequence), (0, Some((-5e-6, 2e-7))));
        assert_eq!(Scope::of(infiniium, 2).unwrap().sequence, None);
        let tds =
            "Record Length,2.5e+03,,-000.005,0.1,\nSource,CH2,,1,2,\nVertical Units,V,,1,2,\n";
        let scope = Scope::of_rows(tds).unwrap();
        assert_eq!(scope.channels, [Name { text: "CH2".into(), unit: "V".into() }]);
        assert_eq!(tds_numbers(b"Source,CH2,,-0.5,1.5,"), Some([&b"-0.5"[..], b"1.5"]));
        assert_eq!(tds_numbers(b",,,-0.5,1.5,"), Some([&b"-0.5"[..], b"1.5"]));
        assert_eq!(tds_numbers(b"1,2,,-0.5,1.5,"), None);
        assert_eq!(tds_numbers(b"a,b,c,-0.5,1.5"), None);
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
