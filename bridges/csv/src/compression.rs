//! Compressed tables: gzip, Zstandard and bzip2, recognised by their first bytes; the first two are also written.
//! Text in UTF-16.

use std::io::{self, Read, Write};
use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::format::{self, Compressor};
use spile_core::limits::Limits;
use spile_core::source::{ReadAt, Source};

/// Compression of the entire file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    /// Only read.
    Bzip2,
}

/// Bytes decoded at once.
const CHUNK: usize = 1 << 20;

impl Compression {
    /// Recognises compressed data.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            _ => None,
        }
    }

    /// The compression of a new file, from its name: `x.csv.gz`, `x.csv.zst`.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "gz" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    fn decoder<'a>(self, stored: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(stored)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(stored)?),
            Self::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(stored)),
        })
    }

    /// What can be decoded of the beginning of a file.
    pub(crate) fn beginning(self, head: &[u8]) -> Vec<u8> {
        let mut text = vec![0; 4 * head.len()];
        let mut len = 0;
        if let Ok(mut decoder) = self.decoder(head) {
            while let Ok(got) = decoder.read(&mut text[len..]) {
                len += got;
                if got == 0 {
                    break;
                }
            }
        }
        text.truncate(len);
        text
    }

    /// The compression of a new file at `path`; the name and `options` must not contradict each other.
    pub(crate) fn of_new(
        path: &Path,
        options: Option<format::Compression>,
    ) -> Result<Option<Self>> {
        let by_name = Self::of_name(path);
        let asked = match options.map(|own| own.compressor) {
            None => by_name,
            Some(Compressor::None) => None,
            Some(Compressor::Gzip) => Some(Self::Gzip),
            Some(Compressor::Zstd) => Some(Self::Zstd),
            Some(_) => return Err(Error::argument("csv files are compressed with gzip or zstd")),
        };
        if asked != by_name && by_name.is_some() {
            let message = "the compression differs from that of the file name";
            return Err(Error::argument(message).hint("names end with .csv, .csv.gz or .csv.zst"));
        }
        Ok(asked)
    }

    /// A writer of a new file at `path`. Its result is complete after `Encoder::finish`.
    pub(crate) fn encoder<W: Write>(
        path: &Path,
        options: Option<format::Compression>,
        out: W,
    ) -> Result<Encoder<W>> {
        let level = options.and_then(|own| own.level);
        Ok(match Self::of_new(path, options)? {
            None => Encoder::None(out),
            Some(Self::Gzip | Self::Bzip2) => {
                let level = level.and_then(|level| u32::try_from(level).ok());
                let level = level.map_or_else(Default::default, flate2::Compression::new);
                Encoder::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            Some(Self::Zstd) => {
                Encoder::Zstd(zstd::stream::write::Encoder::new(out, level.unwrap_or(0))?)
            }
        })
    }
}

/// A writer that may compress.
pub(crate) enum Encoder<W: Write> {
    None(W),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Encoder<W> {
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None(out) => out.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::None(_) => Ok(()),
            Self::Gzip(encoder) => encoder.finish().map(|_| ()),
            Self::Zstd(encoder) => encoder.finish().map(|_| ()),
        }
    }
}

/// Text in UTF-16, which begins with a byte order mark, as UTF-8; `None` for other text. An incomplete character at
/// the end is replaced.
pub(crate) fn from_utf16(bytes: &[u8]) -> Option<String> {
    let (mark, rest) = bytes.split_first_chunk::<2>()?;
    let unit = match mark {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let units = rest.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    Some(text.collect())
}

/// The source as UTF-8 without compression; decoded in memory, which is charged to the limit of memory.
pub(crate) fn open_decoded(source: Source, limits: &Limits) -> Result<Source> {
    let source = open_decompressed(source, limits)?;
    let mut head = [0; 2];
    let got = source.read_at_most(0, &mut head)?;
    if from_utf16(&head[..got]).is_none() {
        return Ok(source);
    }
    limits.allow(source.len().saturating_mul(3), "the text in UTF-16")?;
    let text = from_utf16(&source.read_vec(0, source.len())?).unwrap_or_default();
    let name = source.path().map(Path::to_path_buf);
    Ok(Source::foreign(name, text.len() as u64, Box::new(Memory(text.into_bytes()))))
}

/// A source with lines in Latin-1 as UTF-8, decoded in memory, which is charged to the limit of memory.
pub(crate) fn from_latin1(source: &Source, limits: &Limits) -> Result<Source> {
    limits.allow(source.len().saturating_mul(3), "the text in Latin-1")?;
    let bytes = source.read_vec(0, source.len())?;
    let mut text = String::with_capacity(bytes.len());
    // Programs append lines in other encodings.
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        match std::str::from_utf8(line) {
            Ok(line) => text.push_str(line),
            Err(_) => text.extend(line.iter().map(|b| char::from(*b))),
        }
    }
    let name = source.path().map(Path::to_path_buf);
    Ok(Source::foreign(name, text.len() as u64, Box::new(Memory(text.into_bytes()))))
}

/// The source, or its decompressed content in memory, which is charged to the limit of memory.
fn open_decompressed(source: Source, limits: &Limits) -> Result<Source> {
    let mut head = [0; 4];
    let got = source.read_at_most(0, &mut head)?;
    let Some(compression) = Compression::of(&head[..got]) else { return Ok(source) };
    let broken = |e: io::Error| {
        // Errors of the source are not those of the data.
        match e.downcast::<Error>() {
            Ok(own) => own,
            Err(e) => {
                Error::malformed("csv-006", format!("the compressed data is invalid: {e}")).at(0)
            }
        }
    };
    let stored = Sequential { source: &source, at: 0 };
    let mut decoder = compression.decoder(io::BufReader::new(stored)).map_err(broken)?;
    let mut text = Vec::new();
    loop {
        limits.allow((text.len() + CHUNK) as u64, "the decompressed table")?;
        let from = text.len();
        text.resize(from + CHUNK, 0);
        let got = decoder.read(&mut text[from..]).map_err(broken)?;
        text.truncate(from + got);
        if got == 0 {
            break;
        }
    }
    let name = source.path().map(Path::to_path_buf);
    Ok(Source::foreign(name, text.len() as u64, Box::new(Memory(text))))
}

/// Reads a source from the beginning to the end.
struct Sequential<'a> {
    source: &'a Source,
    at: u64,
}

impl Read for Sequential<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read_at_most(self.at, buffer).map_err(io::Error::other)?;
        self.at += got as u64;
        Ok(got)
    }
}

struct Memory(Vec<u8>);

impl ReadAt for Memory {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let len = buffer.len().min(self.0.len() - from);
        buffer[..len].copy_from_slice(&self.0[from..from + len]);
        Ok(len)
    }
}
