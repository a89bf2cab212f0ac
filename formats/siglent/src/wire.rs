//! Versions of the header, which have the same fields at other offsets.

use spile_core::{ByteOrder, Result, Wire};

/// Bytes of the header that are read: the last field of version 5 ends here.
pub(crate) const HEADER: usize = 0x1ba2;

/// Offsets of the fields of a version of the header.
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    /// Number at the start of the file.
    number: Option<u32>,
    /// Whether channels are on, their scale per division and their offset.
    pub(crate) on: [usize; 4],
    pub(crate) scale: [usize; 4],
    pub(crate) offset: [usize; 4],
    pub(crate) time_scale: usize,
    pub(crate) delay: usize,
    pub(crate) length: usize,
    pub(crate) rate: usize,
    /// Whether digital lines are on.
    pub(crate) digital: Option<usize>,
    /// Attenuation of the probes of channels 1 to 4.
    pub(crate) probe: Option<usize>,
    /// Size of a sample: 0 for one byte, 1 for two.
    pub(crate) width: Option<usize>,
    /// Byte order, number of divisions, counts per division.
    pub(crate) settings: Option<[usize; 3]>,
    /// Switches of the calculated channels.
    pub(crate) math: Option<usize>,
    /// Fields that only version 4 has.
    pub(crate) more: Option<&'static More>,
    /// First sample, or the offset of the field with its offset.
    samples: Samples,
    /// The number of bytes of a quantity: value, prefix and unit.
    quantity: usize,
}

/// Fields of version 4: calculated channels, channels 5 to 8, and the window of a zoomed trace.
pub(crate) struct More {
    pub(crate) math_scale: [usize; 4],
    pub(crate) math_offset: [usize; 4],
    pub(crate) math_length: [usize; 4],
    pub(crate) math_step: [usize; 4],
    pub(crate) math_counts: usize,
    pub(crate) on: [usize; 4],
    pub(crate) scale: [usize; 4],
    pub(crate) offset: [usize; 4],
    pub(crate) probe: [usize; 4],
    pub(crate) counts: [usize; 4],
    /// Whether the file has a zoomed trace, and scale and centre of its window.
    pub(crate) zoom: usize,
    pub(crate) zoom_scale: usize,
    pub(crate) zoom_centre: usize,
}

const MORE: More = More {
    math_scale: four(0x290, 40),
    math_offset: four(0x330, 40),
    math_length: four(0x3d0, 4),
    math_step: four(0x3e0, 8),
    math_counts: 0x400,
    on: four(0x404, 4),
    scale: four(0x414, 40),
    offset: four(0x4b4, 40),
    probe: four(0x554, 8),
    counts: four(0x574, 4),
    zoom: 0xaf4,
    zoom_scale: 0xaf8,
    zoom_centre: 0xb20,
};

#[derive(Clone, Copy)]
enum Samples {
    At(u64),
    Field(usize),
}

/// Offsets of four fields, `step` apart.
const fn four(first: usize, step: usize) -> [usize; 4] {
    [first, first + step, first + 2 * step, first + 3 * step]
}

const NONE: Layout = Layout {
    name: "",
    number: None,
    on: [0; 4],
    scale: [0; 4],
    offset: [0; 4],
    time_scale: 0,
    delay: 0,
    length: 0,
    rate: 0,
    digital: None,
    probe: None,
    width: None,
    settings: None,
    math: None,
    more: None,
    samples: Samples::At(0x800),
    quantity: 16,
};

/// The versions with fields at constant offsets, from the most to the least distinctive.
const LAYOUTS: [Layout; 7] = [
    Layout {
        name: "5",
        number: Some(5),
        on: [0x76, 0xf0, 0x194, 0x238],
        scale: [0xab, 0x160, 0x204, 0x2a8],
        offset: [0xbc, 0x170, 0x214, 0x2b8],
        time_scale: 0x1b68,
        delay: 0x1b78,
        length: 0x1b88,
        rate: 0x1b92,
        ..NONE
    },
    Layout {
        name: "4",
        number: Some(4),
        on: four(0x08, 4),
        scale: four(0x18, 40),
        offset: four(0xb8, 40),
        time_scale: 0x19c,
        delay: 0x1c4,
        length: 0x1ec,
        rate: 0x1f0,
        digital: Some(0x158),
        probe: Some(0x244),
        width: Some(0x264),
        settings: Some([0x265, 0x26c, 0x270]),
        math: Some(0x280),
        more: Some(&MORE),
        samples: Samples::Field(4),
        quantity: 40,
    },
    Layout {
        name: "3",
        number: Some(3),
        settings: Some([0x261, 0x268, 0x26c]),
        math: Some(0x27c),
        ..TWO
    },
    TWO,
    Layout {
        name: "1",
        on: four(0, 4),
        scale: four(0x10, 16),
        offset: four(0x50, 16),
        time_scale: 0xd4,
        delay: 0xe4,
        length: 0xf4,
        rate: 0xf8,
        digital: Some(0x90),
        ..NONE
    },
    Layout {
        name: "0.2",
        on: four(0x44, 0xa4),
        scale: four(0xb4, 0xa4),
        offset: four(0xc4, 0xa4),
        time_scale: 0xdb8,
        delay: 0xdc8,
        length: 0xdd8,
        rate: 0xddc,
        samples: Samples::At(0x932c),
        ..NONE
    },
    Layout {
        name: "0.1",
        on: four(0x44, 0x7c),
        scale: four(0x90, 0x7c),
        offset: four(0xa0, 0x7c),
        time_scale: 0xa84,
        delay: 0xa94,
        length: 0xaa4,
        rate: 0xaa8,
        samples: Samples::At(0x8a60),
        ..NONE
    },
];

const TWO: Layout = Layout {
    name: "2",
    number: Some(2),
    on: four(0x04, 4),
    scale: four(0x14, 40),
    offset: four(0xb4, 40),
    time_scale: 0x198,
    delay: 0x1c0,
    length: 0x1e8,
    rate: 0x1ec,
    digital: Some(0x154),
    probe: Some(0x240),
    width: Some(0x260),
    quantity: 40,
    ..NONE
};

/// Fields of the old platform: channels that are on, volts per division in mV, vertical offset in pixels, time base,
/// delay in pixels, and the first sample.
pub(crate) const OLD_ON: usize = 0x100;
pub(crate) const OLD_SCALE: usize = 0xbc;
pub(crate) const OLD_OFFSET: usize = 0xdc;
pub(crate) const OLD_TIME: usize = 0x248;
pub(crate) const OLD_DELAY: usize = 0x250;
pub(crate) const OLD_SAMPLES: u64 = 0x1470;

/// The version of a file.
pub(crate) enum Version {
    /// SDS1000X and SDS2000X: without a version.
    Old,
    Fixed(&'static Layout),
    /// Version 6, with a header per waveform.
    Six,
}

/// Fields of a header by their offsets.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn at(&self, offset: usize) -> Wire<'_> {
        let rest = self.0.get(offset..).unwrap_or_default();
        Wire::new(rest, offset as u64, ByteOrder::Little, "siglent-002")
    }

    pub(crate) fn u32(&self, offset: usize) -> Result<u32> {
        self.at(offset).u32()
    }

    /// A value with the number of its prefix, which is 8 for none and changes by one per factor of 1000.
    pub(crate) fn quantity(&self, offset: usize) -> Result<f64> {
        let mut wire = self.at(offset);
        let (value, prefix) = (wire.f64()?, wire.u32()?);
        let power = 3 * (i64::from(prefix.min(16)) - 8);
        Ok(value * 10_f64.powi(power as i32))
    }

    pub(crate) fn i32(&self, offset: usize) -> Result<i32> {
        self.at(offset).i32()
    }

    pub(crate) fn f64(&self, offset: usize) -> Result<f64> {
        self.at(offset).f64()
    }

    /// Whether there is a positive quantity. Its unit is not examined: instruments do not always set it.
    fn is_quantity(&self, offset: usize) -> bool {
        let mut wire = self.at(offset);
        let (Ok(value), Ok(prefix)) = (wire.f64(), wire.u32()) else { return false };
        prefix <= 16 && (1e-30..1e30).contains(&value)
    }

    /// Unit of a quantity of 40 bytes: a kind, and the powers of volt, ampere and second as fractions. `None` if it is
    /// not set.
    pub(crate) fn composed_unit(&self, offset: usize) -> Option<String> {
        let mut wire = self.at(offset + 12);
        let mut words = [0_i32; 7];
        for word in &mut words {
            *word = wire.i32().ok()?;
        }
        let named =
            ["", "dBV", "dBA", "dB", "V", "V", "dBm", "Sa", "div", "pts", "", "degree", "%"];
        if words[0] != 0 {
            let name = usize::try_from(words[0]).ok().and_then(|kind| named.get(kind))?;
            return Some((*name).into());
        }
        let mut powers = [0.0; 3];
        for (power, pair) in powers.iter_mut().zip(words[1..].chunks_exact(2)) {
            if pair[1] == 0 {
                return None;
            }
            *power = f64::from(pair[0]) / f64::from(pair[1]);
        }
        if powers == [1.0, 1.0, 0.0] {
            return Some("W".into());
        }
        let part = |(power, unit): (f64, &str)| match power {
            0.0 => None,
            1.0 => Some(unit.to_string()),
            power => Some(format!("{unit}^{power}")),
        };
        let parts: Vec<String> = powers.into_iter().zip(["V", "A", "s"]).filter_map(part).collect();
        Some(parts.join(" "))
    }
}

impl Version {
    /// The version of a file that starts with `head` and has `len` bytes; `None` for files of another format. Fields that
    /// are not in `head` are not examined.
    pub(crate) fn of(head: &[u8], len: u64) -> Option<Self> {
        let fields = Fields(head);
        let number = fields.u32(0).ok()?;
        if number == 6 && head.len() >= 108 {
            let (header, waves) = (fields.at(4).u16().ok()?, fields.u32(0x68).ok()?);
            let model = head.get(8..40)?.split(|b| *b == 0).next()?;
            let is_name = !model.is_empty() && model.iter().all(u8::is_ascii_graphic);
            if header >= 108 && waves > 0 && is_name {
                return Some(Self::Six);
            }
        }
        if let Some(layout) = LAYOUTS.iter().find(|layout| layout.fits(fields, number, len)) {
            return Some(Self::Fixed(layout));
        }
        let flags = |k: usize| fields.u32(OLD_ON + 4 * k).ok();
        let on: Option<Vec<u32>> = (0..4).map(flags).collect();
        let on = on.filter(|on| on.iter().all(|flag| *flag <= 1))?;
        let count = u64::from(on.iter().sum::<u32>());
        let scale = |k: usize| fields.at(OLD_SCALE + 4 * k).f32().ok();
        let plausible = |k: usize| scale(k).is_some_and(|mv| (0.1..=1e6).contains(&mv));
        let scaled = (0..4).filter(|k| on[*k] == 1).all(plausible);
        let samples = len.checked_sub(OLD_SAMPLES)?;
        let whole = count > 0 && samples > 0 && samples.is_multiple_of(count);
        (whole && scaled && fields.u32(OLD_TIME).ok()? <= 32).then_some(Self::Old)
    }
}

impl Layout {
    /// Whether the fields of a file of `len` bytes fit this version.
    fn fits(&self, fields: Fields<'_>, number: u32, len: u64) -> bool {
        if self.number.is_some_and(|expected| number != expected) {
            return false;
        }
        let Ok(on) = self.channels(fields) else { return false };
        let known = |offset: usize| offset + self.quantity <= fields.0.len();
        let quantity = |offset: usize| !known(offset) || fields.is_quantity(offset);
        // A version without a number is recognised by all of its fields.
        let all = self.number.is_some() || known(self.rate);
        let scales = (0..4).filter(|k| on[*k]).all(|k| quantity(self.scale[k]));
        if !all || !scales || !quantity(self.time_scale) || !quantity(self.rate) {
            return false;
        }
        if !known(self.rate) {
            return on.contains(&true);
        }
        let Ok(length) = fields.u32(self.length) else { return false };
        let analog = if on.contains(&true) { u64::from(length) } else { 0 };
        let bytes = self.bytes(fields, on, analog).saturating_add(self.math_bytes(fields));
        let end = self.first(fields).ok().and_then(|first| first.checked_add(bytes));
        // A file with a number may have other traces only, which are reported when it is opened.
        let traces = bytes > 0 || self.number.is_some() && self.has_others(fields);
        traces && end.is_some_and(|end| end <= len)
    }

    /// Whether digital lines, calculated channels or channels 5 to 8 are on.
    fn has_others(&self, fields: Fields<'_>) -> bool {
        let on = |at: usize| fields.u32(at).is_ok_and(|on| on == 1);
        let math = self.math.is_some_and(|at| (0..4).any(|k| on(at + 4 * k)));
        math || self.digital.is_some_and(on) || self.more.is_some_and(|m| m.on.into_iter().any(on))
    }

    /// Bytes of the calculated channels.
    fn math_bytes(&self, fields: Fields<'_>) -> u64 {
        let (Some(more), Some(switch)) = (self.more, self.math) else { return 0 };
        let length = |k: usize| match fields.u32(switch + 4 * k) {
            Ok(1) => fields.u32(more.math_length[k]).map_or(0, u64::from),
            _ => 0,
        };
        (0..4).map(length).sum::<u64>().saturating_mul(self.size(fields))
    }

    /// Unit of the quantity at `offset`; volts if it is not set.
    pub(crate) fn unit(&self, fields: Fields<'_>, offset: usize) -> String {
        let known = ["V", "A", "", "", "", "W"];
        if self.quantity == 40 {
            return fields.composed_unit(offset).unwrap_or_else(|| "V".into());
        }
        let number = fields.u32(offset + 12).ok().and_then(|n| usize::try_from(n).ok());
        number.and_then(|number| known.get(number)).copied().unwrap_or("V").into()
    }

    /// Which channels are on; fails unless all flags are 0 or 1.
    pub(crate) fn channels(&self, fields: Fields<'_>) -> Result<[bool; 4]> {
        let mut on = [false; 4];
        for (on, offset) in on.iter_mut().zip(self.on) {
            let flag = fields.u32(offset)?;
            if flag > 1 {
                let message = format!("expected 0 or 1, found {flag}");
                return Err(fields.at(offset).malformed("siglent-003", message));
            }
            *on = flag == 1;
        }
        Ok(on)
    }

    /// Bytes of a sample.
    pub(crate) fn size(&self, fields: Fields<'_>) -> u64 {
        let wide = self.width.and_then(|offset| fields.at(offset).u8().ok());
        if wide.unwrap_or(0) == 0 { 1 } else { 2 }
    }

    /// Bytes of all channels of `length` samples.
    fn bytes(&self, fields: Fields<'_>, on: [bool; 4], length: u64) -> u64 {
        let channels = on.into_iter().filter(|on| *on).count() as u64;
        channels.saturating_mul(length).saturating_mul(self.size(fields))
    }

    /// Offset of the first sample.
    pub(crate) fn first(&self, fields: Fields<'_>) -> Result<u64> {
        match self.samples {
            Samples::At(offset) => Ok(offset),
            Samples::Field(at) => fields.u32(at).map(u64::from),
        }
    }
}
