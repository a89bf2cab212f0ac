//! The RLE/bit-packing hybrid encoding, used for levels and dictionary indices.

/// Decodes `count` values of `width` bits and calls `each` with every value and its number of repetitions.
/// `None` if the data end early or `each` returns `None`.
pub(crate) fn decode(
    bytes: &[u8],
    width: u32,
    count: u64,
    mut each: impl FnMut(u32, u64) -> Option<()>,
) -> Option<()> {
    if width > 32 {
        return None;
    }
    let mut rest = bytes;
    let mut left = count;
    while left > 0 {
        let mut head = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, after) = rest.split_first()?;
            rest = after;
            head |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                break;
            }
        }
        if head < 2 {
            return None;
        }
        if head & 1 == 0 {
            let (value, after) = rest.split_at_checked(width.div_ceil(8) as usize)?;
            rest = after;
            let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            let run = (head >> 1).min(left);
            each(value, run)?;
            left -= run;
            continue;
        }
        for _ in 0..head >> 1 {
            if left == 0 {
                break;
            }
            let (group, after) = rest.split_at_checked(width as usize)?;
            rest = after;
            for k in 0..8.min(left) as u32 {
                each(unpack(group, k * width, width), 1)?;
            }
            left -= left.min(8);
        }
    }
    Some(())
}

/// The value of `width` bits that begins at bit `first`.
fn unpack(group: &[u8], first: u32, width: u32) -> u32 {
    let bytes = group.iter().skip(first as usize / 8).take(5);
    let all = bytes.enumerate().fold(0_u64, |all, (k, byte)| all | u64::from(*byte) << (8 * k));
    (all >> (first % 8) & ((1 << width) - 1)) as u32
}

/// Decodes definition levels of up to `most`, the level of rows with a value, into runs of rows with (`true`) and
/// without a value. `None` if they are invalid.
pub(crate) fn decode_levels(bytes: &[u8], values: u64, most: u32) -> Option<Vec<(u64, bool)>> {
    let mut runs: Vec<(u64, bool)> = Vec::new();
    decode(bytes, u32::BITS - most.leading_zeros(), values, |level, count| {
        if level > most {
            return None;
        }
        push_run(&mut runs, count, level == most);
        Some(())
    })?;
    Some(runs)
}

/// Appends `count` rows with or without a value to runs of rows.
pub(crate) fn push_run(runs: &mut Vec<(u64, bool)>, count: u64, defined: bool) {
    match runs.last_mut() {
        Some((rows, own)) if *own == defined => *rows = rows.saturating_add(count),
        _ => runs.push((count, defined)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &[u8], width: u32, count: u64) -> Option<Vec<u32>> {
        let mut all = Vec::new();
        decode(bytes, width, count, |value, n| {
            all.extend(std::iter::repeat_n(value, n as usize));
            Some(())
        })?;
        Some(all)
    }

    #[test]
    fn runs_and_groups_of_any_width_are_decoded() {
        assert_eq!(numbers(&[6, 1], 1, 3), Some(vec![1; 3]));
        // 0 to 7 in three bits each: the example of the specification.
        let group = [3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(numbers(&group, 3, 8), Some((0..8).collect()));
        assert_eq!(numbers(&[4, 0x34, 0x12], 13, 2), Some(vec![0x1234; 2]));
        assert_eq!(numbers(&[10], 0, 5), Some(vec![0; 5]));
        let wide: Vec<u8> = std::iter::once(3).chain([0xff; 32]).collect();
        assert_eq!(numbers(&wide, 32, 8), Some(vec![u32::MAX; 8]));
        for (bytes, width) in
            [(&[][..], 1), (&[6], 1), (&[0, 1], 1), (&[1], 1), (&[3], 1), (&[6, 1], 33)]
        {
            assert_eq!(numbers(bytes, width, 5), None, "{bytes:?}");
        }
    }

    #[test]
    fn adjacent_runs_are_merged() {
        assert_eq!(decode_levels(&[6, 1], 3, 1), Some(vec![(3, true)]));
        assert_eq!(decode_levels(&[6, 1, 4, 0], 5, 1), Some(vec![(3, true), (2, false)]));
        assert_eq!(decode_levels(&[3, 0b0000_0111], 5, 1), Some(vec![(3, true), (2, false)]));
        assert_eq!(decode_levels(&[4, 1, 3, 0b1], 5, 1), Some(vec![(3, true), (2, false)]));
        // Values in optional groups.
        assert_eq!(decode_levels(&[6, 2, 4, 1], 5, 2), Some(vec![(3, true), (2, false)]));
        assert_eq!(decode_levels(&[6, 3, 4, 1], 5, 2), None);
        for bad in [&[][..], &[6], &[0, 1], &[6, 2], &[3]] {
            assert_eq!(decode_levels(bad, 5, 1), None, "{bad:?}");
        }
    }
}
