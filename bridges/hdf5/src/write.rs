//! Writer of new files: objects with their attributes are collected in a plan, which assigns addresses
//! and writes all metadata.

mod chunks;
pub(crate) mod datatype;

use spile_core::error::Result;
use spile_core::sink::Sink;

use crate::wire::header::kind;
use crate::wire::{SIGNATURE, checksum};
pub(crate) use chunks::Chunking;
use datatype::Bytes;

/// Alignment of the data of datasets, in bytes.
const ALIGNMENT: u64 = 64;

/// Length of the superblock in bytes.
const SUPERBLOCK: u64 = 48;

/// The undefined address.
const NONE: u64 = u64::MAX;

/// Largest number of attributes of an object; their creation order has 16 bits.
pub(crate) const MAX_ATTRIBUTES: usize = 65_000;

/// Largest length of a message body in bytes; its length field has 16 bits.
pub(crate) const MAX_MESSAGE: usize = 65_000;

/// Largest number of objects in a global heap collection; their indices have 16 bits.
const HEAP_OBJECTS: usize = 60_000;

/// Smallest length of a global heap collection in bytes.
const HEAP_BYTES: usize = 4096;

/// An object of the global heap: the bytes of a string, or one reference.
#[derive(Clone, Debug)]
pub(crate) enum HeapObject {
    Text(Vec<u8>),
    Object(usize),
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Raw(Vec<u8>),
    /// Variable-length elements: number of items and index of the heap object; `None` is empty.
    Heap(Vec<Option<(u32, usize)>>),
    /// References to dimensions: object and dimension.
    Uses(Vec<(usize, u32)>),
}

/// An attribute.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) kind: Bytes,
    /// Empty for a scalar.
    pub(crate) dims: Vec<u64>,
    pub(crate) data: Data,
}

/// The type of a dataset.
#[derive(Clone, Debug)]
pub(crate) enum DatasetType {
    Own(Bytes),
    /// The object of a named datatype.
    Committed(usize),
}

/// Data in an external file: its name, and offset and length of each part.
#[derive(Clone, Debug)]
pub(crate) struct ExternalData {
    pub(crate) file: String,
    pub(crate) parts: Vec<(u64, u64)>,
}

/// The target of a link.
#[derive(Clone, Debug)]
pub(crate) enum LinkTarget {
    Object(usize),
    /// A path: a soft link.
    Path(String),
}

/// The kind of an object.
#[derive(Clone, Debug)]
pub(crate) enum ObjectKind {
    /// Names and targets of the links.
    Group(Vec<(String, LinkTarget)>),
    Dataset {
        kind: DatasetType,
        dims: Vec<u64>,
        bytes: u64,
        external: Option<ExternalData>,
    },
    Type(Bytes),
}

/// An object with its attributes.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    /// Set for chunked datasets; others are contiguous.
    pub(crate) chunking: Option<Chunking>,
    pub(crate) attributes: Vec<Attribute>,
}

/// The plan of a file; object 0 is the root group.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilePlan {
    pub(crate) objects: Vec<Object>,
    pub(crate) heap_objects: Vec<HeapObject>,
    /// Length of the block before the HDF5 file; the caller writes it.
    pub(crate) user_block: u64,
}

/// Addresses of all structures.
pub(crate) struct Addresses {
    headers: Vec<u64>,
    /// Data of contiguous datasets, index of chunked ones; `NONE` for other objects.
    data: Vec<u64>,
    /// Local heaps with names of external files; `NONE` for other objects.
    names: Vec<u64>,
    heaps: Vec<u64>,
    end: u64,
}

impl FilePlan {
    /// Adds an object and returns its number.
    pub(crate) fn add(&mut self, kind: ObjectKind) -> usize {
        self.objects.push(Object { kind, chunking: None, attributes: Vec::new() });
        self.objects.len() - 1
    }

    /// Adds a link to `child` to a group.
    pub(crate) fn link(&mut self, group: usize, name: &str, child: usize) {
        self.link_to(group, name, LinkTarget::Object(child));
    }

    /// Adds a link to a group.
    pub(crate) fn link_to(&mut self, group: usize, name: &str, target: LinkTarget) {
        if let ObjectKind::Group(links) = &mut self.objects[group].kind {
            links.push((name.to_string(), target));
        }
    }

    /// Adds an attribute to an object.
    pub(crate) fn attach(
        &mut self,
        object: usize,
        name: &str,
        kind: Bytes,
        dims: Vec<u64>,
        data: Data,
    ) {
        let attribute = Attribute { name: name.into(), kind, dims, data };
        self.objects[object].attributes.push(attribute);
    }

    /// Adds an object to the global heap and returns its number.
    pub(crate) fn add_heap_object(&mut self, object: HeapObject) -> usize {
        self.heap_objects.push(object);
        self.heap_objects.len() - 1
    }

    /// Assigns the addresses of everything but chunks and extends the file to its length without them.
    pub(crate) fn start(&self, sink: &Sink) -> Result<Addresses> {
        let addresses = self.assign_addresses();
        sink.set_len(self.user_block + addresses.end)?;
        Ok(addresses)
    }

    /// File offset of the data of a contiguous dataset that has some.
    pub(crate) fn data_offset(&self, addresses: &Addresses, object: usize) -> Option<u64> {
        let at = Some(addresses.data[object]).filter(|at| *at != NONE);
        at.map(|at| self.user_block + at)
    }

    /// Writes all metadata, after the chunks.
    pub(crate) fn finish(&self, sink: &Sink, addresses: &Addresses) -> Result<()> {
        // Addresses count from the end of the user block.
        let base = self.user_block;
        let write = |at: u64, bytes: &[u8]| sink.write_all_at(base + at, bytes);
        write(0, &superblock(base, addresses.headers[0], addresses.end))?;
        let mut buffer = Vec::new();
        let mut start = SUPERBLOCK;
        for (k, object) in self.objects.iter().enumerate() {
            // Headers are contiguous; they are written in large blocks.
            if buffer.len() > 1 << 20 {
                write(start, &buffer)?;
                start += buffer.len() as u64;
                buffer.clear();
            }
            buffer.resize((addresses.headers[k] - start) as usize, 0);
            buffer.extend(header(object, k, addresses));
        }
        write(start, &buffer)?;
        for (k, at) in addresses.heaps.iter().enumerate() {
            write(*at, &self.heap(k, addresses))?;
        }
        for (k, at) in addresses.names.iter().enumerate().filter(|(_, at)| **at != NONE) {
            write(*at, &self.local_heap(k, *at))?;
        }
        sink.set_len(base + addresses.end)
    }

    fn assign_addresses(&self) -> Addresses {
        let count = self.objects.len();
        let mut addresses = Addresses {
            headers: vec![0; count],
            data: vec![NONE; count],
            names: vec![NONE; count],
            heaps: vec![0; self.heap_objects.len().div_ceil(HEAP_OBJECTS)],
            end: SUPERBLOCK,
        };
        // Lengths do not depend on the addresses.
        let headers: Vec<u64> =
            (0..count).map(|k| header(&self.objects[k], k, &addresses).len() as u64).collect();
        for (k, len) in headers.into_iter().enumerate() {
            addresses.headers[k] = addresses.end;
            addresses.end = (addresses.end + len).next_multiple_of(8);
        }
        for k in 0..addresses.heaps.len() {
            let len = self.heap(k, &addresses).len() as u64;
            addresses.heaps[k] = addresses.end;
            addresses.end += len;
        }
        for (k, object) in self.objects.iter().enumerate() {
            let ObjectKind::Dataset { bytes, external, .. } = &object.kind else { continue };
            if external.is_some() {
                addresses.names[k] = addresses.end;
                addresses.end += self.local_heap(k, 0).len() as u64;
            } else if *bytes > 0 && object.chunking.is_none() {
                addresses.data[k] = addresses.end.next_multiple_of(ALIGNMENT);
                addresses.end = addresses.data[k] + bytes;
            }
        }
        addresses
    }

    /// A global heap collection.
    fn heap(&self, number: usize, addresses: &Addresses) -> Bytes {
        let first = number * HEAP_OBJECTS;
        let own = &self.heap_objects[first..self.heap_objects.len().min(first + HEAP_OBJECTS)];
        let mut out = b"GCOL\x01\0\0\0".to_vec();
        out.extend([0; 8]);
        for (k, object) in own.iter().enumerate() {
            let address;
            let bytes: &[u8] = match object {
                HeapObject::Text(bytes) => bytes,
                HeapObject::Object(object) => {
                    address = addresses.headers[*object].to_le_bytes();
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
        // Object 0 is the free space, including its own header.
        let free = (end - out.len()) as u64;
        out.extend([0; 8]);
        out.extend(free.to_le_bytes());
        out.resize(end, 0);
        out[8..16].copy_from_slice(&(end as u64).to_le_bytes());
        out
    }

    /// The local heap with the name of an external file.
    fn local_heap(&self, number: usize, at: u64) -> Bytes {
        let ObjectKind::Dataset { external: Some(external), .. } = &self.objects[number].kind
        else {
            return Vec::new();
        };
        let mut names = vec![0; 8];
        names.extend(external.file.bytes());
        names.push(0);
        names.resize(names.len().next_multiple_of(8), 0);
        let mut out = b"HEAP\0\0\0\0".to_vec();
        out.extend((names.len() as u64).to_le_bytes());
        // No free list.
        out.extend(1_u64.to_le_bytes());
        out.extend((at + 32).to_le_bytes());
        out.extend(names);
        out
    }
}

/// An object header of version 2.
fn header(object: &Object, number: usize, addresses: &Addresses) -> Bytes {
    let mut body = Vec::new();
    match &object.kind {
        ObjectKind::Group(links) => {
            let count = links.len() as u64;
            // netCDF requires tracked creation order.
            let mut info = vec![0, 3];
            info.extend(count.to_le_bytes());
            (0..3).for_each(|_| info.extend(NONE.to_le_bytes()));
            message(&mut body, kind::LINK_INFO, 0, 0, &info);
            message(&mut body, kind::GROUP_INFO, 0, 0, &[0, 0]);
            for (order, (name, target)) in links.iter().enumerate() {
                let link = link(name, order as u64, target, addresses);
                message(&mut body, kind::LINK, 0, 0, &link);
            }
        }
        ObjectKind::Dataset { kind: own, dims, bytes, external } => {
            message(&mut body, kind::DATASPACE, 0, 0, &space(dims));
            match own {
                DatasetType::Own(kind) => message(&mut body, kind::DATATYPE, 1, 0, kind),
                DatasetType::Committed(of) => {
                    message(&mut body, kind::DATATYPE, 3, 0, &shared(addresses.headers[*of]));
                }
            }
            // No fill value; incremental or late allocation.
            let allocation = if object.chunking.is_some() { 0x0b } else { 0x0a };
            message(&mut body, kind::FILL_VALUE, 1, 0, &[3, allocation]);
            if let Some(chunking) = &object.chunking {
                let layout = chunking.layout(addresses.data[number]);
                message(&mut body, kind::LAYOUT, 0, 0, &layout);
                if let Some(pipeline) = chunking.pipeline() {
                    message(&mut body, kind::FILTERS, 1, 0, &pipeline);
                }
            } else {
                let mut layout = vec![3, 1];
                layout.extend(addresses.data[number].to_le_bytes());
                layout.extend(bytes.to_le_bytes());
                message(&mut body, kind::LAYOUT, 0, 0, &layout);
            }
            if let Some(external) = external {
                let files = external_files(external, addresses.names[number]);
                message(&mut body, kind::EXTERNAL, 0, 0, &files);
            }
        }
        ObjectKind::Type(kind) => message(&mut body, kind::DATATYPE, 1, 0, kind),
    }
    if !object.attributes.is_empty() {
        let count = object.attributes.len() as u16;
        let mut info = vec![0, 1];
        info.extend(count.to_le_bytes());
        (0..2).for_each(|_| info.extend(NONE.to_le_bytes()));
        message(&mut body, kind::ATTRIBUTE_INFO, 0, 0, &info);
    }
    for (order, attribute) in object.attributes.iter().enumerate() {
        let encoded = encode_attribute(attribute, addresses);
        message(&mut body, kind::ATTRIBUTE, 0, order as u16, &encoded);
    }
    // Version 2, sizes of four bytes, attribute creation order tracked.
    let mut out = b"OHDR\x02\x06".to_vec();
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
    out.extend(checksum(&out).to_le_bytes());
    out
}

/// An attribute message of version 3.
fn encode_attribute(attribute: &Attribute, addresses: &Addresses) -> Bytes {
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
        Data::Heap(heap_objects) => {
            for object in heap_objects {
                let (count, heap, index) = match object {
                    Some((count, object)) => {
                        let index = (object % HEAP_OBJECTS) as u32 + 1;
                        (*count, addresses.heaps[object / HEAP_OBJECTS], index)
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
                out.extend(addresses.headers[*object].to_le_bytes());
                out.extend(dim.to_le_bytes());
                out.extend([0; 4]);
            }
        }
    }
    out
}

fn superblock(base: u64, root: u64, end: u64) -> Bytes {
    let mut out = SIGNATURE.to_vec();
    out.extend([2, 8, 8, 0]);
    // The end counts from byte 0 of the file.
    for address in [base, NONE, base + end, root] {
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

fn link(name: &str, order: u64, target: &LinkTarget, addresses: &Addresses) -> Bytes {
    // Name length of four bytes, creation order, character set (UTF-8); the type of a link that is not hard.
    let mut out = match target {
        LinkTarget::Object(_) => vec![1, 0x16],
        LinkTarget::Path(_) => vec![1, 0x1e, 1],
    };
    out.extend(order.to_le_bytes());
    out.push(1);
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name.bytes());
    match target {
        LinkTarget::Object(object) => out.extend(addresses.headers[*object].to_le_bytes()),
        LinkTarget::Path(path) => {
            out.extend((path.len() as u16).to_le_bytes());
            out.extend(path.bytes());
        }
    }
    out
}

/// A reference to a shared message.
fn shared(address: u64) -> Bytes {
    let mut out = vec![3, 2];
    out.extend(address.to_le_bytes());
    out
}

/// An external data files message.
fn external_files(external: &ExternalData, heap: u64) -> Bytes {
    let count = external.parts.len() as u16;
    let mut out = vec![1, 0, 0, 0];
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(heap.to_le_bytes());
    for (offset, len) in &external.parts {
        for number in [8, *offset, *len] {
            out.extend(number.to_le_bytes());
        }
    }
    out
}
