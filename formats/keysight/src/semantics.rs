//! Units and dates as written by the instruments.

use spile_core::recording::date_time;

/// Unit symbol of a code in a `.bin` file; empty if unknown.
pub(crate) fn unit_of_code(code: u32) -> &'static str {
    match code {
        1 => "V",
        2 => "s",
        4 => "A",
        5 => "dB",
        6 => "Hz",
        _ => "",
    }
}

/// Unit symbol of a name in an HDF5 file; unknown names are returned unchanged.
pub(crate) fn unit_of_name(name: &str) -> &str {
    match name {
        "Volt" | "Volts" => "V",
        "Second" | "Seconds" => "s",
        "Amp" | "Amps" | "Ampere" => "A",
        "Hertz" => "Hz",
        "Decibel" => "dB",
        "Unknown" | "None" | "Unitless" => "",
        other => other,
    }
}

/// Date and time such as `07 AUG 2023` and `12:34:56` in ISO 8601; any other text is joined unchanged.
pub(crate) fn iso_time(date: &str, time: &str) -> String {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let unchanged = || [date, time].join(" ").trim().to_string();
    let parse = || {
        let mut parts = date.split([' ', '-']).filter(|p| !p.is_empty());
        let day = parts.next()?.parse().ok()?;
        let month = parts.next()?.to_ascii_uppercase();
        let month = MONTHS.iter().position(|m| *m == month)? as u32 + 1;
        let year = parts.next()?.parse().ok()?;
        let mut parts = time.split(':');
        let time =
            (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(date_time((year, month, day), time)).filter(|text| !text.is_empty())
    };
    parse().unwrap_or_else(unchanged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_dates_become_iso_8601_and_other_text_is_unchanged() {
        assert_eq!(iso_time("07 AUG 2023", "12:34:56"), "2023-08-07T12:34:56");
        assert_eq!(iso_time("07-AUG-2023", "01:02:03.5"), "2023-08-07T01:02:03.5");
        assert_eq!(iso_time("yesterday", ""), "yesterday");
        assert_eq!(iso_time("", ""), "");
    }
}
