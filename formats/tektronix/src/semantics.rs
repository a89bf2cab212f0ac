//! Meaning of coded values: units, storage types, trigger times.

use spile_core::recording::date_time;

/// Unit symbol of a code in an LLWFM file; only volts and seconds are known.
pub(crate) fn unit_of_code(code: i16) -> String {
    match code {
        609 => "V".into(),
        610 => "s".into(),
        0 => String::new(),
        other => format!("unit {other}"),
    }
}

/// Name of a WFM storage type; empty for plain samples.
pub(crate) fn storage_type(number: i32) -> &'static str {
    match number {
        1 => "min/max",
        2 => "vertical histogram",
        3 => "horizontal histogram",
        4 => "row order",
        5 => "column order",
        _ => "",
    }
}

/// Trigger time in ISO 8601, given in seconds since 1970 and a fraction of a second; empty if the clock was
/// not set.
pub(crate) fn iso_time(seconds: i32, fraction: f64) -> String {
    if seconds <= 0 || !(0.0..1.0).contains(&fraction) {
        return String::new();
    }
    let seconds = i64::from(seconds);
    let (days, time) = (seconds / 86_400, (seconds % 86_400) as u32);
    let second = f64::from(time % 60) + fraction;
    date_time(date(days), (time / 3600, time / 60 % 60, second))
}

/// Year, month and day, given in days since 1970.
fn date(mut days: i64) -> (i64, u32, u32) {
    let mut year = 1970;
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let mut month = 1;
    for length in [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        assert_eq!(iso_time(1_691_400_000, 0.5), "2023-08-07T09:20:00.5");
        assert_eq!(iso_time(951_782_400, 0.0), "2000-02-29T00:00:00");
        assert_eq!(iso_time(i32::MAX, 0.0), "2038-01-19T03:14:07");
        assert_eq!(iso_time(0, 0.0) + &iso_time(5, f64::NAN), "");
    }
}
