//! Values that are computed from stored ones: times, and scales.

use std::sync::Arc;

use spile_core::computed::{Function, store_f64};
use spile_core::recording::date_time;
use spile_core::{Array, ByteOrder, DType, Error, Result};

use crate::scaling::Scale;

/// Seconds from 1904 to 1970.
const EPOCH: i64 = 2_082_844_800;

/// Fractions of a second by which the file counts: 2^-64.
fn parts(bytes: &[u8], order: ByteOrder) -> (i64, u64) {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes.get(at..at + 8).unwrap_or(&[0; 8]));
        word
    };
    match order {
        ByteOrder::Little => (i64::from_le_bytes(word(8)), u64::from_le_bytes(word(0))),
        // The order of the parts is reversed, too.
        ByteOrder::Big => (i64::from_be_bytes(word(0)), u64::from_be_bytes(word(8))),
    }
}

/// Seconds since 1970, and microseconds, rounded down. Fractions are taken in double precision, because writers count in
/// decimal fractions: 0.123 s is stored a little lower.
fn micros(bytes: &[u8], order: ByteOrder) -> (i64, i64) {
    let (seconds, fraction) = parts(bytes, order);
    let micros = (fraction as f64 / 2_f64.powi(64) * 1e6).floor() as i64;
    let seconds = seconds.saturating_sub(EPOCH).saturating_add(micros / 1_000_000);
    (seconds, micros % 1_000_000)
}

/// A time in ISO 8601, in UTC; empty if the year is not of four digits.
pub(crate) fn iso_time(bytes: &[u8], order: ByteOrder) -> String {
    let (seconds, micros) = micros(bytes, order);
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let second = (time % 60) as f64 + micros as f64 / 1e6;
    date_time(date(days), ((time / 3600) as u32, (time / 60 % 60) as u32, second))
}

/// Year, month and day, given in days since 1970.
fn date(days: i64) -> (i64, u32, u32) {
    let days = days.clamp(-1_000_000, 10_000_000) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + next, month as u32, day as u32)
}

/// Microseconds since 1970 of stored times.
pub(crate) struct Times(pub(crate) ByteOrder);

impl Function for Times {
    fn name(&self) -> &'static str {
        "times"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(16)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let stored = input(inputs, first, out.len() as u64 / 8)?;
        for (time, stored) in out.as_chunks_mut::<8>().0.iter_mut().zip(stored.chunks_exact(16)) {
            let (seconds, micros) = micros(stored, self.0);
            *time = seconds.saturating_mul(1_000_000).saturating_add(micros).to_le_bytes();
        }
        Ok(())
    }
}

/// Values by the scale of a channel; the inputs are its scalers, with these numbers.
pub(crate) struct Scaled {
    pub(crate) scale: Arc<Scale>,
    pub(crate) numbers: Vec<Option<u32>>,
}

impl Function for Scaled {
    fn name(&self) -> &'static str {
        "scaling"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(8 * (2 + self.scale.depth()))
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let count = out.len() as u64 / 8;
        let mut stored = |number: Option<u32>| {
            let at = self.numbers.iter().position(|own| *own == number).unwrap_or(0);
            let array = inputs.get(at..=at).unwrap_or_default();
            let mut values = Vec::new();
            let bytes = input(array, first, count)?;
            if let [array] = array {
                array.to_physical(&bytes, &mut values);
            }
            Ok(values)
        };
        store_f64(DType::F64, &self.scale.values(&mut stored)?, out)
    }
}

/// The stored bytes of `count` elements from number `first` on.
fn input(inputs: &[Array], first: u64, count: u64) -> Result<Vec<u8>> {
    let [array] = inputs else { return Err(Error::argument("expected one input")) };
    let part = array.all()?.part(first, count)?;
    let mut bytes = vec![0; count as usize * array.dtype().size()];
    part.read_into(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_1904_in_both_byte_orders() {
        let seconds = EPOCH + 86_400;
        let half = 1_u64 << 63;
        let little = [half.to_le_bytes(), seconds.to_le_bytes()].concat();
        let big = [seconds.to_be_bytes(), half.to_be_bytes()].concat();
        assert_eq!(iso_time(&little, ByteOrder::Little), "1970-01-02T00:00:00.5");
        assert_eq!(iso_time(&big, ByteOrder::Big), "1970-01-02T00:00:00.5");
        // Fractions that are stored a little lower, and almost a second.
        let near = |fraction: u64| [fraction.to_le_bytes(), seconds.to_le_bytes()].concat();
        for (millis, text) in [(123, "00.123"), (456, "00.456"), (1, "00.001")] {
            let fraction = ((1_u128 << 64) * millis / 1000) as u64;
            let expected = format!("1970-01-02T00:00:{text}");
            assert_eq!(iso_time(&near(fraction), ByteOrder::Little), expected);
        }
        let fraction = (0.669_260_7 * 2_f64.powi(64)) as u64;
        assert_eq!(iso_time(&near(fraction), ByteOrder::Little), "1970-01-02T00:00:00.66926");
        assert_eq!(iso_time(&near(u64::MAX), ByteOrder::Little), "1970-01-02T00:00:01");
        let far = [[0xff; 8], i64::MAX.to_le_bytes()].concat();
        assert_eq!(iso_time(&far, ByteOrder::Little), "");
    }
}
