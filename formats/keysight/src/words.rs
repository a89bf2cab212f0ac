//! Units and dates as the instruments write them.

use spile_core::recording::date_time;

/// Units by their numbers in `.bin` files.
pub(crate) fn unit(number: u32) -> &'static str {
    match number {
        1 => "V",
        2 => "s",
        4 => "A",
        5 => "dB",
        6 => "Hz",
        _ => "",
    }
}

/// The sign of a unit that is written out in `.h5` files.
pub(crate) fn sign(name: &str) -> &str {
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

/// `07 AUG 2023` and `12:34:56` as one time; anything else as it stands.
pub(crate) fn when(date: &str, time: &str) -> String {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let plain = || [date, time].join(" ").trim().to_string();
    let read = || {
        let mut parts = date.split([' ', '-']).filter(|p| !p.is_empty());
        let day = parts.next()?.parse().ok()?;
        let month = parts.next()?.to_ascii_uppercase();
        let month = MONTHS.iter().position(|m| *m == month)? as u32 + 1;
        let year = parts.next()?.parse().ok()?;
        let mut parts = time.split(':');
        let clock =
            (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(date_time((year, month, day), clock)).filter(|text| !text.is_empty())
    };
    read().unwrap_or_else(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_where_they_are_dates() {
        assert_eq!(when("07 AUG 2023", "12:34:56"), "2023-08-07T12:34:56");
        assert_eq!(when("07-AUG-2023", "01:02:03.5"), "2023-08-07T01:02:03.5");
        assert_eq!(when("yesterday", ""), "yesterday");
        assert_eq!(when("", ""), "");
    }
}
