//! A file in outline: objects with their attributes, whose places follow from their sizes.

use spile_core::error::Result;
use spile_core::sink::Sink;

use super::types::Bytes;
use crate::header::kind;
use crate::wire::{SIGNATURE, checksum};

/// Every dataset's data begin at a multiple of this.
const ALIGNMENT: u64 = 64;

/// The superblock's length.
const SUPERBLOCK: u64 = 48;

/// No address.
const NONE: u64 = u64::MAX;

/// A message's body is counted with 16 bits.
pub(super) const LONGEST: usize = 65_000;

/// Objects of one collection; their numbers have 16 bits.
const HEAP_OBJECTS: usize = 60_000;

/// A collection is at least as long.
const HEAP_BYTES: usize = 4096;

/// Bytes of a heap, or a list of one reference.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Text(Vec<u8>),
    Object(usize),
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Raw(Vec<u8>),
    /// Numbers of slots, with the lengths that their elements count; nothing is an empty text.
    Slots(Vec<Option<(u32, usize)>>),
    /// Objects, and which dimension of theirs.
    Uses(Vec<(usize, u32)>),
}

/// An attribute.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) kind: Bytes,
    /// No lengths: a single value.
    pub(super) dims: Vec<u64>,
    pub(super) data: Data,
}

/// The type of a dataset.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    Own(Bytes),
    /// A type that is an object.
    Committed(usize),
}

/// Raw data in other files: their name, first byte and length of each part.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    pub(super) file: String,
    pub(super) parts: Vec<(u64, u64)>,
}

/// What an object is.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Names and numbers of what is in it.
    Group(Vec<(String, usize)>),
    Dataset {
        kind: Stored,
        dims: Vec<u64>,
        bytes: u64,
        elsewhere: Option<Elsewhere>,
    },
    Type(Bytes),
}

/// An object with its attributes.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) what: What,
    pub(super) attributes: Vec<Attribute>,
}

/// A file that is being planned; object 0 is the root.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    pub(super) objects: Vec<Object>,
    pub(super) slots: Vec<Slot>,
}

/// Where everything is.
struct Places {
    headers: Vec<u64>,
    /// Data of datasets; `NONE` where there are none.
    data: Vec<u64>,
    /// Names of other files.
    names: Vec<u64>,
    heaps: Vec<u64>,
    end: u64,
}

impl Outline {
    pub(super) fn add(&mut self, what: What) -> usize {
        self.objects.push(Object { what, attributes: Vec::new() });
        self.objects.len() - 1
    }

    /// Links `child` into a group under a name.
    pub(super) fn link(&mut self, group: usize, name: &str, child: usize) {
        if let What::Group(links) = &mut self.objects[group].what {
            links.push((name.to_string(), child));
        }
    }

    pub(super) fn slot(&mut self, slot: Slot) -> usize {
        self.slots.push(slot);
        self.slots.len() - 1
    }

    /// Writes all but the data; gives where the data of each object go.
    pub(super) fn write(&self, sink: &Sink) -> Result<Vec<Option<u64>>> {
        let places = self.place();
        sink.write_all_at(0, &superblock(places.headers[0], places.end))?;
        let mut buffer = Vec::new();
        let mut start = SUPERBLOCK;
        for (k, object) in self.objects.iter().enumerate() {
            // Headers follow each other; many are written at once.
            if buffer.len() > 1 << 20 {
                sink.write_all_at(start, &buffer)?;
                start += buffer.len() as u64;
                buffer.clear();
            }
            buffer.resize((places.headers[k] - start) as usize, 0);
            buffer.extend(header(object, k, &places));
        }
        sink.write_all_at(start, &buffer)?;
        for (k, at) in places.heaps.iter().enumerate() {
            sink.write_all_at(*at, &self.heap(k, &places))?;
        }
        for (k, at) in places.names.iter().enumerate().filter(|(_, at)| **at != NONE) {
            sink.write_all_at(*at, &self.local_heap(k, *at))?;
        }
        sink.set_len(places.end)?;
        Ok(places.data.into_iter().map(|at| (at != NONE).then_some(at)).collect())
    }

    fn place(&self) -> Places {
        let count = self.objects.len();
        let mut places = Places {
            headers: vec![0; count],
            data: vec![NONE; count],
            names: vec![NONE; count],
            heaps: vec![0; self.slots.len().div_ceil(HEAP_OBJECTS)],
            end: SUPERBLOCK,
        };
        // Lengths do not depend on the addresses.
        let headers: Vec<u64> =
            (0..count).map(|k| header(&self.objects[k], k, &places).len() as u64).collect();
        for (k, len) in headers.into_iter().enumerate() {
            places.headers[k] = places.end;
            places.end = (places.end + len).next_multiple_of(8);
        }
        for k in 0..places.heaps.len() {
            let len = self.heap(k, &places).len() as u64;
            places.heaps[k] = places.end;
            places.end += len;
        }
        for (k, object) in self.objects.iter().enumerate() {
            let What::Dataset { bytes, elsewhere, .. } = &object.what else { continue };
            if elsewhere.is_some() {
                places.names[k] = places.end;
                places.end += self.local_heap(k, 0).len() as u64;
            } else if *bytes > 0 {
                places.data[k] = places.end.next_multiple_of(ALIGNMENT);
                places.end = places.data[k] + bytes;
            }
        }
        places
    }

    /// A collection of the global heap.
    fn heap(&self, number: usize, places: &Places) -> Bytes {
        let first = number * HEAP_OBJECTS;
        let own = &self.slots[first..self.slots.len().min(first + HEAP_OBJECTS)];
        let mut out = b"GCOL\x01\0\0\0".to_vec();
        out.extend([0; 8]);
        for (k, slot) in own.iter().enumerate() {
            let address;
            let bytes: &[u8] = match slot {
                Slot::Text(bytes) => bytes,
                Slot::Object(object) => {
                    address = places.headers[*object].to_le_bytes();
                    &address
                }
            };
            out.extend((k as u16 + 1).to_le_bytes());
            out.extend([1, 0, 0, 0, 0, 0]);
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        let end = (out.len() + 16).next_multiple_of(HEAP_BYTES);
        // Object 0 is what is free, itself included.
        let free = (end - out.len()) as u64;
        out.extend([0; 8]);
        out.extend(free.to_le_bytes());
        out.resize(end, 0);
        out[8..16].copy_from_slice(&(end as u64).to_le_bytes());
        out
    }

    /// The names of other files, as old groups keep theirs.
    fn local_heap(&self, number: usize, at: u64) -> Bytes {
        let What::Dataset { elsewhere: Some(other), .. } = &self.objects[number].what else {
            return Vec::new();
        };
        let mut names = vec![0; 8];
        names.extend(other.file.bytes());
        names.push(0);
        names.resize(names.len().next_multiple_of(8), 0);
        let mut out = b"HEAP\0\0\0\0".to_vec();
        out.extend((names.len() as u64).to_le_bytes());
        // Nothing is free.
        out.extend(1_u64.to_le_bytes());
        out.extend((at + 32).to_le_bytes());
        out.extend(names);
        out
    }
}

/// An object header of version 2.
fn header(object: &Object, number: usize, places: &Places) -> Bytes {
    let mut body = Vec::new();
    match &object.what {
        What::Group(links) => {
            let count = links.len() as u64;
            // Links are kept in the order in which they were made; netCDF insists.
            let mut info = vec![0, 3];
            info.extend(count.to_le_bytes());
            (0..3).for_each(|_| info.extend(NONE.to_le_bytes()));
            message(&mut body, kind::LINK_INFO, 0, 0, &info);
            message(&mut body, kind::GROUP_INFO, 0, 0, &[0, 0]);
            for (order, (name, child)) in links.iter().enumerate() {
                let link = link(name, order as u64, places.headers[*child]);
                message(&mut body, kind::LINK, 0, 0, &link);
            }
        }
        What::Dataset { kind: own, dims, bytes, elsewhere } => {
            message(&mut body, kind::SPACE, 0, 0, &space(dims));
            match own {
                Stored::Own(kind) => message(&mut body, kind::TYPE, 1, 0, kind),
                Stored::Committed(of) => {
                    message(&mut body, kind::TYPE, 3, 0, &shared(places.headers[*of]));
                }
            }
            // Never filled: everything is written. Space is found late; outside it is there.
            message(&mut body, kind::FILL, 1, 0, &[3, 0x0a]);
            let mut layout = vec![3, 1];
            layout.extend(places.data[number].to_le_bytes());
            layout.extend(bytes.to_le_bytes());
            message(&mut body, kind::LAYOUT, 0, 0, &layout);
            if let Some(other) = elsewhere {
                message(&mut body, kind::EXTERNAL, 0, 0, &files(other, places.names[number]));
            }
        }
        What::Type(kind) => message(&mut body, kind::TYPE, 1, 0, kind),
    }
    if !object.attributes.is_empty() {
        let count = object.attributes.len() as u16;
        let mut info = vec![0, 1];
        info.extend(count.to_le_bytes());
        (0..2).for_each(|_| info.extend(NONE.to_le_bytes()));
        message(&mut body, kind::ATTRIBUTE_INFO, 0, 0, &info);
    }
    for (order, attribute) in object.attributes.iter().enumerate() {
        let encoded = encode_attribute(attribute, places);
        message(&mut body, kind::ATTRIBUTE, 0, order as u16, &encoded);
    }
    // Version 2, sizes of four bytes, order of attributes kept.
    let mut out = b"OHDR\x02\x06".to_vec();
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
    out.extend(checksum(&out).to_le_bytes());
    out
}

/// Version 3.
fn encode_attribute(attribute: &Attribute, places: &Places) -> Bytes {
    let space = space(&attribute.dims);
    let name_len = attribute.name.len() as u16 + 1;
    let mut out = vec![3, 0];
    for len in [name_len, attribute.kind.len() as u16, space.len() as u16] {
        out.extend(len.to_le_bytes());
    }
    // UTF-8.
    out.push(1);
    out.extend(attribute.name.bytes());
    out.push(0);
    out.extend_from_slice(&attribute.kind);
    out.extend(space);
    match &attribute.data {
        Data::Raw(bytes) => out.extend_from_slice(bytes),
        Data::Slots(slots) => {
            for slot in slots {
                let (count, heap, index) = match slot {
                    Some((count, slot)) => {
                        let index = (slot % HEAP_OBJECTS) as u32 + 1;
                        (*count, places.heaps[slot / HEAP_OBJECTS], index)
                    }
                    None => (0, 0, 0),
                };
                out.extend(count.to_le_bytes());
                out.extend(heap.to_le_bytes());
                out.extend(index.to_le_bytes());
            }
        }
        Data::Uses(uses) => {
            for (object, dim) in uses {
                out.extend(places.headers[*object].to_le_bytes());
                out.extend(dim.to_le_bytes());
                out.extend([0; 4]);
            }
        }
    }
    out
}

fn superblock(root: u64, end: u64) -> Bytes {
    let mut out = SIGNATURE.to_vec();
    out.extend([2, 8, 8, 0]);
    for address in [0, NONE, end, root] {
        out.extend(address.to_le_bytes());
    }
    out.extend(checksum(&out).to_le_bytes());
    out
}

fn message(out: &mut Bytes, kind: u16, flags: u8, order: u16, body: &[u8]) {
    out.push(kind as u8);
    out.extend((body.len() as u16).to_le_bytes());
    out.push(flags);
    out.extend(order.to_le_bytes());
    out.extend_from_slice(body);
}

/// A dataspace of version 2.
fn space(dims: &[u64]) -> Bytes {
    let mut out = vec![2, dims.len() as u8, 0, u8::from(!dims.is_empty())];
    out.extend(dims.iter().flat_map(|n| n.to_le_bytes()));
    out
}

fn link(name: &str, order: u64, address: u64) -> Bytes {
    // Names with lengths of four bytes, an order, a character set: UTF-8.
    let mut out = vec![1, 0x16];
    out.extend(order.to_le_bytes());
    out.push(1);
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name.bytes());
    out.extend(address.to_le_bytes());
    out
}

/// A message that is kept in another header.
fn shared(address: u64) -> Bytes {
    let mut out = vec![3, 2];
    out.extend(address.to_le_bytes());
    out
}

/// The list of other files.
fn files(other: &Elsewhere, heap: u64) -> Bytes {
    let count = other.parts.len() as u16;
    let mut out = vec![1, 0, 0, 0];
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(heap.to_le_bytes());
    for (offset, len) in &other.parts {
        for number in [8, *offset, *len] {
            out.extend(number.to_le_bytes());
        }
    }
    out
}
