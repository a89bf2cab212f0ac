//! Yokogawa DL and WE: raw samples (`X.wvf`) with a description as text (`X.hdr`).
//!
//! No file of an instrument was available: reading is experimental.

use std::path::{Path, PathBuf};

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Region, RegionKind, Score};
use spile_core::recording::{self, Record, Recording, SEGMENT, within};
use spile_core::{
    ArrayDesc, ByteOrder, DType, Error, Extent, Extents, Format, Kind, Layout, Limits, OpenOptions,
    Order, Parsed, Result, Shape, Source,
};

/// Longest description in bytes.
const LONGEST: u64 = 1 << 20;

/// Most traces of a file.
const MOST_TRACES: u64 = 4096;

/// The Yokogawa format, for the registry.
pub struct Yokogawa;

static INFO: FormatInfo = FormatInfo {
    name: "yokogawa",
    title: "Yokogawa oscilloscope waveforms, .hdr with .wvf (experimental)",
    users: "laboratories with Yokogawa DL and WE instruments",
    specification: "WVF File Access Toolkit, IM 707713-61E",
    extensions: &["hdr", "wvf"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Yokogawa {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        let text = |line: &[u8]| line.trim_ascii() == b"$PublicInfo";
        let is_description = head.bytes.split(|b| *b == b'\n').take(20).any(text);
        if is_description { 95 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        let source = description_of(source)?;
        let samples = samples_of(&source)?;
        let start = source.len();
        let len = options.limits.allow(start.min(LONGEST).saturating_mul(4), "the description")?;
        let text = source.read_vec(0, len as u64 / 4)?;
        let own = source.path().map(Path::to_path_buf).unwrap_or_default();
        let source = Source::joined(&own, &[own.clone(), samples])?;
        let description = Description::parse(&String::from_utf8_lossy(&text));
        let recording = description.and_then(|d| d.recording(&source, start, &options.limits));
        recording.map_err(recording::in_header)?.parsed(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for Yokogawa {}

/// The description, which is beside the file if that has the extension of samples. Fails if it does not exist.
fn description_of(source: Source) -> Result<Source> {
    let is_samples = |path: &&Path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("wvf"));
    let Some(path) = source.path().filter(is_samples) else { return Ok(source) };
    let mut candidates = ["hdr", "HDR"].map(|extension| path.with_extension(extension)).into_iter();
    let found = candidates.find(|other| other.is_file());
    let missing = || {
        let message = "Yokogawa samples without their description: no file of the same name with the extension .hdr";
        Error::unsupported("yokogawa-007", message).at(0)
    };
    Source::open(found.ok_or_else(missing)?)
}

/// The file of the samples, beside the description. Fails if it does not exist.
fn samples_of(source: &Source) -> Result<PathBuf> {
    let path = source.path().filter(|path| source.parts().is_empty() && path.is_file());
    let found = path.and_then(|path| {
        let candidates = ["wvf", "WVF"].map(|extension| path.with_extension(extension));
        candidates.into_iter().find(|other| other.is_file())
    });
    found.ok_or_else(|| {
        let message = "Yokogawa waveform without its samples: no file of the same name with the extension .wvf";
        Error::unsupported("yokogawa-002", message).at(0)
    })
}

/// A line of a section: its name, its text and the columns of its values.
struct Field<'a> {
    name: &'a str,
    /// Position in the line, and value.
    values: Vec<(usize, &'a str)>,
}

/// A section such as `$Group1`, with its fields.
struct Section<'a> {
    title: &'a str,
    fields: Vec<Field<'a>>,
}

impl<'a> Section<'a> {
    fn values(&self, name: &str) -> &[(usize, &'a str)] {
        self.fields.iter().find(|field| field.name == name).map_or(&[], |field| &field.values)
    }

    fn text(&self, name: &str) -> Result<&'a str> {
        let missing = || Error::malformed("yokogawa-003", format!("{}: no {name}", self.title));
        self.values(name).first().map(|(_, value)| *value).ok_or_else(missing)
    }

    fn number(&self, name: &str) -> Result<u64> {
        let text = self.text(name)?;
        text.parse().map_err(|_| {
            let message = format!("{}: {name} is not a number: {text}", self.title);
            Error::malformed("yokogawa-003", message)
        })
    }

    /// The value of trace `k` of `count`, whose column starts at `column`: not all traces have one.
    fn value(&self, name: &str, k: usize, count: usize, column: usize) -> Option<&'a str> {
        let values = self.values(name);
        let found = if values.len() == count {
            values.get(k)
        } else {
            values.iter().find(|(at, _)| *at == column)
        };
        found.map(|(_, value)| *value).filter(|value| *value != "?")
    }

    /// The number of trace `k`, which must exist.
    fn real(&self, name: &str, k: usize) -> Result<f64> {
        let number = self.values(name).get(k).and_then(|(_, value)| value.parse().ok());
        number.ok_or_else(|| {
            let message = format!("{}: no number {} of {name}", self.title, k + 1);
            Error::malformed("yokogawa-003", message)
        })
    }
}

/// A trace of a group.
struct Trace {
    name: String,
    dtype: DType,
    /// Samples of a block.
    samples: u64,
    scaling: (f64, f64),
    grid: (f64, f64),
    units: [String; 2],
    attrs: Vec<(&'static str, f64)>,
    trigger_time: String,
}

struct Group {
    blocks: u64,
    traces: Vec<Trace>,
}

/// The description of the samples.
struct Description {
    model: String,
    /// Bytes before the first sample.
    offset: u64,
    /// Whether all traces of a block are stored together; otherwise all blocks of a trace.
    by_block: bool,
    groups: Vec<Group>,
}

impl Description {
    fn parse(text: &str) -> Result<Self> {
        let mut sections: Vec<Section<'_>> = Vec::new();
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(title) = trimmed.strip_prefix('$') {
                sections.push(Section { title, fields: Vec::new() });
            } else if let (Some(section), false) = (sections.last_mut(), trimmed.is_empty()) {
                let start = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
                let mut words = line.split_ascii_whitespace();
                let name = words.next().unwrap_or("");
                let values = words.map(|word| (start(word), word)).collect();
                if section.values(name).is_empty() {
                    section.fields.push(Field { name, values });
                }
            }
        }
        let public = sections.iter().find(|section| section.title == "PublicInfo");
        let public = public.ok_or_else(|| {
            Error::not_this_format("yokogawa-001", "no section $PublicInfo of Yokogawa").at(0)
        })?;
        let model = public.text("Model")?.to_string();
        let order = match public.text("Endian")?.to_ascii_lowercase().as_str() {
            "big" => ByteOrder::Big,
            _ => ByteOrder::Little,
        };
        let layout = public.text("DataFormat")?;
        let by_block = layout.eq_ignore_ascii_case("block");
        if !by_block && !layout.eq_ignore_ascii_case("trace") {
            let message = format!("Yokogawa {model}: unsupported arrangement {layout}");
            return Err(Error::unsupported("yokogawa-004", message));
        }
        let is_group = |section: &&Section<'_>| {
            let number = section.title.strip_prefix("Group");
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let mut groups = Vec::new();
        let mut total = 0;
        for section in sections.iter().filter(is_group) {
            total += section.number("TraceNumber")?.min(MOST_TRACES);
            if total > MOST_TRACES {
                let message = format!("more than {MOST_TRACES} traces");
                return Err(Error::malformed("yokogawa-003", message));
            }
            groups.push(Group::read(section, &model, order)?);
        }
        Ok(Self { model, offset: public.number("DataOffset")?, by_block, groups })
    }

    /// The traces as records; the samples start at byte `start` of `source`.
    fn recording(&self, source: &Source, start: u64, limits: &Limits) -> Result<Recording> {
        let mut found = Recording::default();
        let mut at = start.saturating_add(self.offset);
        for (number, group) in self.groups.iter().enumerate() {
            let sizes: Vec<u64> = group.traces.iter().map(Trace::bytes).collect();
            let block = sizes.iter().copied().fold(0, u64::saturating_add);
            let mut before = 0_u64;
            for (trace, size) in group.traces.iter().zip(sizes) {
                let (first, distance) = if self.by_block {
                    (at.saturating_add(before), block)
                } else {
                    (at.saturating_add(before.saturating_mul(group.blocks)), size)
                };
                before = before.saturating_add(size);
                let array = trace.array(source, [first, distance, group.blocks], limits)?;
                let name = match self.groups.len() {
                    1 => trace.name.clone(),
                    _ => format!("{}_{}", trace.name, number + 1),
                };
                let mut record = Record::new(name, array)
                    .scaled(trace.scaling.0, trace.scaling.1)
                    .on_grid(trace.grid.0, trace.grid.1, &trace.units[1])
                    .attr("units", trace.units[0].as_str())
                    .attr("instrument", self.model.as_str())
                    .attr("trigger_time", trace.trigger_time.as_str());
                for (name, value) in &trace.attrs {
                    record = record.attr(name, *value);
                }
                found.records.push(record);
            }
            at = at.saturating_add(block.saturating_mul(group.blocks));
        }
        let end = start.saturating_add(self.offset).min(source.len());
        found.headers = vec![
            Region::new(0, start, RegionKind::Text, "description", ""),
            Region::new(start, end - start, RegionKind::Header, "before the samples", ""),
        ];
        if at < source.len() {
            let message = format!("{} bytes after the samples", source.len() - at);
            found.report.note("yokogawa-006", message).at(at);
        }
        found.attrs.push("model", self.model.as_str());
        found.summary.push("model", self.model.as_str());
        Ok(found)
    }
}

impl Group {
    fn read(section: &Section<'_>, model: &str, order: ByteOrder) -> Result<Self> {
        let count = section.number("TraceNumber")? as usize;
        let types = section.values("VDataType");
        let mut traces = Vec::new();
        for k in 0..count {
            let (column, code) = types.get(k).copied().unwrap_or((0, ""));
            let dtype = dtype(code, order).ok_or_else(|| {
                let message = format!("Yokogawa {model}: unsupported type of samples {code:?}");
                Error::unsupported("yokogawa-004", message)
            })?;
            let value = |name: &str| section.value(name, k, count, column);
            let day = value("Date").or_else(|| value("Date1")).unwrap_or("");
            let clock = value("Time").or_else(|| value("Time1")).unwrap_or("");
            let settings = [
                ("illegal_value", "VIllegalData"),
                ("maximum", "VMaxData"),
                ("minimum", "VMinData"),
                ("overrange_above", "VPlusOverData"),
                ("overrange_below", "VMinusOverData"),
            ];
            let setting =
                |(attr, name): (&'static str, &str)| Some((attr, value(name)?.parse().ok()?));
            traces.push(Trace {
                name: match section.values("TraceName").get(k) {
                    Some((_, name)) => (*name).to_string(),
                    None => format!("CH{}", k + 1),
                },
                dtype,
                samples: section.real("BlockSize", k)? as u64,
                scaling: (section.real("VOffset", k)?, section.real("VResolution", k)?),
                grid: (section.real("HOffset", k)?, section.real("HResolution", k)?),
                units: [value("VUnit").unwrap_or("").into(), value("HUnit").unwrap_or("s").into()],
                attrs: settings.into_iter().filter_map(setting).collect(),
                trigger_time: [day.replace('/', "-").as_str(), clock]
                    .join("T")
                    .trim_matches('T')
                    .into(),
            });
        }
        Ok(Self { blocks: section.number("BlockNumber")?, traces })
    }
}

impl Trace {
    /// Bytes of a block.
    fn bytes(&self) -> u64 {
        self.samples.saturating_mul(self.dtype.size() as u64)
    }

    /// The samples of `blocks` blocks, the first at byte `first` and the others `distance` bytes apart.
    fn array(
        &self,
        source: &Source,
        [first, distance, blocks]: [u64; 3],
        limits: &Limits,
    ) -> Result<ArrayDesc> {
        let size = self.bytes();
        let last = distance.checked_mul(blocks.saturating_sub(1)).and_then(|n| n.checked_add(size));
        let len = if blocks == 0 { 0 } else { last.unwrap_or(u64::MAX) };
        within(source, first, len, "the samples", "yokogawa-005")?;
        let extents = if distance == size || blocks < 2 || size == 0 {
            Extents::one(first, size.saturating_mul(blocks))
        } else {
            limits.allow(blocks.saturating_mul(48), "the list of blocks")?;
            let part = |k: u64| Extent { offset: first + k * distance, len: size };
            Extents::several((0..blocks).map(part).collect())?
        };
        let shape = match blocks {
            1 => Shape::new([self.samples]),
            _ => Shape::new([blocks, self.samples]),
        };
        let layout = Layout::Plain { extents, order: Order::C };
        let mut array = ArrayDesc::new(self.dtype, shape, layout);
        if blocks != 1 {
            array.dims[0] = SEGMENT.into();
        }
        Ok(array)
    }
}

/// Type of a code such as `IS2`, `IU1`, `FS4` or, for logic lines, `B2`.
fn dtype(code: &str, order: ByteOrder) -> Option<DType> {
    let code = code.to_ascii_uppercase();
    let digits = code.find(|c: char| c.is_ascii_digit())?;
    let size: u32 = code[digits..].parse().ok()?;
    let kind = match &code[..digits] {
        "IS" => Kind::Int,
        "IU" | "B" => Kind::UInt,
        "FS" | "FU" if matches!(size, 4 | 8) => Kind::Float,
        _ => return None,
    };
    DType::new(kind, size, order)
}
