//! The structures of `gsd.h`.

use std::ffi::{c_char, c_int, c_void};

use spile_gsd::wire::Header;

use super::State;

/// Bytes of a name in the header, and of a chunk name before version 2.0.
pub(super) const NAME: usize = 63;

/// `struct gsd_header`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CHeader {
    pub(super) magic: u64,
    pub(super) index_location: u64,
    pub(super) index_allocated_entries: u64,
    pub(super) namelist_location: u64,
    pub(super) namelist_allocated_entries: u64,
    pub(super) schema_version: u32,
    pub(super) gsd_version: u32,
    pub(super) application: [u8; 64],
    pub(super) schema: [u8; 64],
    pub(super) reserved: [u8; 80],
}

impl CHeader {
    pub(super) fn new(header: &Header) -> Self {
        let fixed = |text: &str| {
            let mut bytes = [0; 64];
            let len = text.len().min(NAME);
            bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
            bytes
        };
        let about = header.about();
        Self {
            magic: 0x65df_65df_65df_65df,
            index_location: 0,
            index_allocated_entries: 0,
            namelist_location: 0,
            namelist_allocated_entries: 0,
            schema_version: about.schema_version,
            gsd_version: header.version,
            application: fixed(&about.application),
            schema: fixed(&about.schema),
            reserved: [0; 80],
        }
    }

    /// Copies what changes while the file is open.
    pub(super) fn set_blocks(&mut self, header: &Header) {
        (self.index_location, self.index_allocated_entries) =
            (header.index.location, header.index.allocated);
        let names = header.names;
        self.namelist_location = names.map_or(0, |names| names.location);
        self.namelist_allocated_entries = names.map_or(0, |names| names.allocated);
        self.gsd_version = header.version;
    }
}

/// `struct gsd_index_entry`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CEntry {
    pub(super) frame: u64,
    pub(super) n: u64,
    pub(super) location: i64,
    pub(super) m: u32,
    pub(super) id: u16,
    pub(super) kind: u8,
    pub(super) flags: u8,
}

/// `struct gsd_index_buffer`. `mapped_data` of `file_index` is the state of an open file: the handle has the size
/// of that of the GSD library, so that programs compiled with its header cannot be overwritten.
#[repr(C)]
pub struct CIndex {
    pub(super) data: *mut CEntry,
    pub(super) size: usize,
    pub(super) reserved: usize,
    pub(super) mapped_data: *mut State,
    pub(super) mapped_len: usize,
}

/// `struct gsd_byte_buffer`.
#[repr(C)]
pub struct CBytes {
    pub(super) data: *mut c_char,
    pub(super) size: usize,
    pub(super) reserved: usize,
}

/// `struct gsd_name_buffer`.
#[repr(C)]
pub struct CNames {
    pub(super) data: CBytes,
    pub(super) n_names: usize,
}

/// `struct gsd_name_id_map`.
#[repr(C)]
pub struct CMap {
    pub(super) v: *mut c_void,
    pub(super) size: usize,
}

/// `struct gsd_handle`.
#[repr(C)]
pub struct CHandle {
    pub(super) fd: c_int,
    pub(super) header: CHeader,
    pub(super) file_index: CIndex,
    pub(super) buffer_index: CIndex,
    pub(super) write_buffer: CBytes,
    pub(super) file_names: CNames,
    pub(super) frame_names: CNames,
    pub(super) buffer_frame: u64,
    pub(super) file_frame: u64,
    pub(super) file_size: i64,
    pub(super) open_flags: c_int,
    pub(super) name_map: CMap,
    pub(super) pending_index_entries: u64,
    pub(super) maximum_write_buffer_size: u64,
}
