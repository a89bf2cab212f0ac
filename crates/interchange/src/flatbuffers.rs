//! FlatBuffers: tables, vectors, strings and structures. Reading checks every position; a position outside of the
//! buffer is a field that does not exist.

/// A table in a buffer.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn fixed<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The position that the offset at `at` refers to.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(fixed(bytes, at)?) as usize)
}

impl<'a> Table<'a> {
    /// The root table of a buffer.
    pub fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes, at: follow(bytes, 0)? })
    }

    /// The position of a field; `None` if it has its default value.
    fn field(self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(fixed(self.bytes, self.at)?);
        let fields = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let len = u16::from_le_bytes(fixed(self.bytes, fields)?) as usize;
        let slot = 4 + 2 * number;
        if slot + 2 > len {
            return None;
        }
        let offset = u16::from_le_bytes(fixed(self.bytes, fields.checked_add(slot)?)?);
        (offset != 0).then(|| self.at.saturating_add(offset.into()))
    }

    /// A field of type u8; `None` if it has its default value.
    pub fn u8(self, number: usize) -> Option<u8> {
        self.bytes.get(self.field(number)?).copied()
    }

    /// A field of type i16; `None` if it has its default value.
    pub fn i16(self, number: usize) -> Option<i16> {
        Some(i16::from_le_bytes(fixed(self.bytes, self.field(number)?)?))
    }

    /// A field of type i32; `None` if it has its default value.
    pub fn i32(self, number: usize) -> Option<i32> {
        Some(i32::from_le_bytes(fixed(self.bytes, self.field(number)?)?))
    }

    /// A field of type i64; `None` if it has its default value.
    pub fn i64(self, number: usize) -> Option<i64> {
        Some(i64::from_le_bytes(fixed(self.bytes, self.field(number)?)?))
    }

    /// A field that is a table; `None` without it.
    pub fn table(self, number: usize) -> Option<Self> {
        Some(Self { bytes: self.bytes, at: follow(self.bytes, self.field(number)?)? })
    }

    /// Number of elements of a vector and the position of the first, if all of `size` bytes are in the buffer.
    fn vector(self, number: usize, size: usize) -> Option<(usize, usize)> {
        let at = follow(self.bytes, self.field(number)?)?;
        let count = u32::from_le_bytes(fixed(self.bytes, at)?) as usize;
        let end = at.checked_add(4)?.checked_add(count.checked_mul(size)?)?;
        (end <= self.bytes.len()).then_some((count, at + 4))
    }

    /// A field that is a string; `None` without it.
    pub fn text(self, number: usize) -> Option<String> {
        let (len, at) = self.vector(number, 1)?;
        Some(String::from_utf8_lossy(&self.bytes[at..at + len]).into_owned())
    }

    /// The tables of a vector; empty without it.
    pub fn tables(self, number: usize) -> Vec<Self> {
        let (count, at) = self.vector(number, 4).unwrap_or_default();
        let table =
            |k: usize| Some(Self { bytes: self.bytes, at: follow(self.bytes, at + 4 * k)? });
        (0..count).filter_map(table).collect()
    }

    /// The structures of a vector; empty without it.
    pub fn structs<const N: usize>(self, number: usize) -> &'a [[u8; N]] {
        let (count, at) = self.vector(number, N).unwrap_or_default();
        self.bytes[at..at + count * N].as_chunks().0
    }
}

/// A field to be written.
pub enum Item {
    /// An unsigned integer of 8 bits.
    U8(u8),
    /// An integer of 16 bits.
    I16(i16),
    /// An integer of 32 bits.
    I32(i32),
    /// An integer of 64 bits.
    I64(i64),
    /// A string.
    Text(String),
    /// A table: its fields by number.
    Table(Vec<(usize, Item)>),
    /// A vector of tables.
    Tables(Vec<Vec<(usize, Item)>>),
    /// Structures of this many bytes with 64-bit members.
    Structs(Vec<u8>, usize),
}

impl Item {
    /// Size of the field in its table.
    fn size(&self) -> usize {
        match self {
            Self::U8(_) => 1,
            Self::I16(_) => 2,
            Self::I64(_) => 8,
            _ => 4,
        }
    }
}

/// Encodes a root table; its length is a multiple of 8.
pub fn write(root: Vec<(usize, Item)>) -> Vec<u8> {
    let mut out = vec![0; 4];
    let at = write_table(root, &mut out);
    out[..4].copy_from_slice(&(at as u32).to_le_bytes());
    pad(&mut out, 8, 0);
    out
}

/// Appends zeros until the position after `extra` more bytes is a multiple of `align`.
fn pad(out: &mut Vec<u8>, align: usize, extra: usize) {
    while !(out.len() + extra).is_multiple_of(align) {
        out.push(0);
    }
}

fn write_table(mut fields: Vec<(usize, Item)>, out: &mut Vec<u8>) -> usize {
    let slots = fields.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    // Large fields first, so that all are aligned after an offset of 4 bytes and 4 of padding.
    fields.sort_by_key(|(_, item)| std::cmp::Reverse(item.size()));
    let (mut places, mut len) = (vec![0_u16; slots], 8_usize);
    for (number, item) in &fields {
        places[*number] = len as u16;
        len += item.size();
    }
    pad(out, 2, 0);
    let head = out.len();
    out.extend((4 + 2 * slots as u16).to_le_bytes());
    out.extend((len as u16).to_le_bytes());
    for place in &places {
        out.extend(place.to_le_bytes());
    }
    pad(out, 8, 0);
    let at = out.len();
    out.resize(at + len, 0);
    out[at..at + 4].copy_from_slice(&((at - head) as i32).to_le_bytes());
    for (number, item) in fields {
        let place = at + usize::from(places[number]);
        let bytes = match item {
            Item::U8(value) => value.to_le_bytes().to_vec(),
            Item::I16(value) => value.to_le_bytes().to_vec(),
            Item::I32(value) => value.to_le_bytes().to_vec(),
            Item::I64(value) => value.to_le_bytes().to_vec(),
            other => ((write_object(other, out) - place) as u32).to_le_bytes().to_vec(),
        };
        out[place..place + bytes.len()].copy_from_slice(&bytes);
    }
    at
}

/// Writes an object that is referred to, and returns its position.
fn write_object(item: Item, out: &mut Vec<u8>) -> usize {
    pad(out, 4, 0);
    match item {
        Item::Table(fields) => write_table(fields, out),
        Item::Tables(tables) => {
            let at = out.len();
            out.extend((tables.len() as u32).to_le_bytes());
            let first = out.len();
            out.resize(first + 4 * tables.len(), 0);
            for (k, fields) in tables.into_iter().enumerate() {
                let (place, target) = (first + 4 * k, write_table(fields, out));
                out[place..place + 4].copy_from_slice(&((target - place) as u32).to_le_bytes());
            }
            at
        }
        Item::Structs(bytes, size) => {
            pad(out, 8, 4);
            let at = out.len();
            out.extend(((bytes.len() / size) as u32).to_le_bytes());
            out.extend(bytes);
            at
        }
        Item::Text(text) => {
            let at = out.len();
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
            out.push(0);
            at
        }
        _ => out.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_written_and_damage_is_no_panic() {
        let inner = vec![(0, Item::Text("größe".into())), (3, Item::I64(-5))];
        let bytes = write(vec![
            (0, Item::I16(4)),
            (1, Item::U8(7)),
            (2, Item::Tables(vec![inner, Vec::new()])),
            (4, Item::Structs((0..32).collect(), 16)),
        ]);
        let read = |bytes: &[u8]| {
            let root = Table::root(bytes)?;
            let tables = root.tables(2);
            let first = tables.first()?;
            let structs = root.structs::<16>(4).to_vec();
            Some((root.i16(0)?, root.u8(1)?, first.text(0)?, first.i64(3)?, first.i32(1), structs))
        };
        let (a, b, text, c, none, structs) = read(&bytes).unwrap();
        assert_eq!((a, b, text.as_str(), c, none, structs.len()), (4, 7, "größe", -5, None, 2));
        for k in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[k] = value;
                let _ = read(&damaged);
                let _ = read(&bytes[..k]);
            }
        }
    }
}
