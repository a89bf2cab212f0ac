//! The C interface on any file: the calls of a program that trusts only what the functions return.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr::{null, null_mut};

use spile_c::gsd::layout::CHandle;
use spile_c::gsd::read::{
    gsd_find_chunk, gsd_find_matching_chunk_name, gsd_get_nframes, gsd_read_chunk,
};
use spile_c::gsd::write::{gsd_end_frame, gsd_write_chunk};
use spile_c::gsd::{gsd_close, gsd_open, gsd_sizeof_type};
use spile_c::scda::{
    read::{
        scda_fread_array_data, scda_fread_block_data, scda_fread_inline_data,
        scda_fread_section_header, scda_fread_varray_data, scda_fread_varray_sizes,
    },
    scda_fclose, scda_fopen,
};

use super::inputs;

/// Larger data, in bytes, are skipped.
const LARGEST: u64 = 1 << 20;

/// Chunks that are read.
const CHUNKS: usize = 64;

/// `struct gsd_index_entry` of `gsd.h`.
#[repr(C)]
struct Entry {
    frame: u64,
    n: u64,
    location: i64,
    m: u32,
    id: u16,
    kind: u8,
    flags: u8,
}

pub fn run(data: &[u8]) {
    let (file, control) = inputs::split(data);
    let folder = inputs::folder();
    let path = folder.path().join("c_abi");
    if std::fs::write(&path, file).is_err() {
        return;
    }
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return };
    if control[0] & 1 == 0 { gsd(&path, control) } else { scda(&path, control) }
}

fn gsd(path: &CString, control: [u8; 4]) {
    let mut memory = MaybeUninit::<CHandle>::uninit();
    let handle = memory.as_mut_ptr();
    let flags = c_int::from(control[1] % 4);
    // SAFETY: the pointers are valid; the handle is used only after it was opened.
    unsafe {
        if gsd_open(handle, path.as_ptr(), flags) != 0 {
            return;
        }
        let frames = gsd_get_nframes(handle);
        let mut name = null::<c_char>();
        for k in 0..CHUNKS {
            name = gsd_find_matching_chunk_name(handle, c"".as_ptr(), name);
            if name.is_null() {
                break;
            }
            let frame = (k as u64 * 7).checked_rem(frames).unwrap_or(0);
            let chunk = gsd_find_chunk(handle, frame, name);
            let Some(entry) = chunk.cast::<Entry>().as_ref() else { continue };
            let size = gsd_sizeof_type(entry.kind.into()) as u64;
            let count = entry.n.checked_mul(entry.m.into()).and_then(|n| n.checked_mul(size));
            let Some(bytes) = count.filter(|bytes| *bytes <= LARGEST) else { continue };
            let mut values = vec![0_u8; bytes as usize];
            gsd_read_chunk(handle, values.as_mut_ptr().cast(), chunk);
        }
        let values = [0_u8; 16];
        let kind = c_int::from(control[2] % 12);
        let n = 16_u64.checked_div(gsd_sizeof_type(kind) as u64).unwrap_or(0);
        gsd_write_chunk(handle, c"x".as_ptr(), kind, n, 1, 0, values.as_ptr().cast());
        gsd_end_frame(handle);
        gsd_close(handle);
    }
}

fn scda(path: &CString, control: [u8; 4]) {
    let (mut error, mut user): (c_int, [c_char; 59]) = (0, [0; 59]);
    // SAFETY: the pointers are valid and have the lengths that the functions ask for.
    unsafe {
        let file =
            scda_fopen(null(), path.as_ptr(), b'r' as c_char, user.as_mut_ptr(), &raw mut error);
        if file.is_null() {
            return;
        }
        for _ in 0..CHUNKS {
            let (mut kind, mut count, mut size): (c_char, u64, u64) = (0, 0, 0);
            let mut decode = c_int::from(control[1] & 1);
            let done = scda_fread_section_header(
                file,
                &raw mut kind,
                &raw mut count,
                &raw mut size,
                user.as_mut_ptr(),
                &raw mut decode,
                &raw mut error,
            );
            if done.is_null() {
                // The file is closed.
                return;
            }
            if kind == 0 {
                break;
            }
            let bytes = count.max(1).saturating_mul(size.max(8));
            let skip = bytes > LARGEST || control[2] & 1 == 1;
            let mut values = vec![0_u8; if skip { 0 } else { bytes.max(32) as usize }];
            let into = if skip { null_mut() } else { values.as_mut_ptr().cast() };
            // Sometimes counts that are not those of the section.
            let counts = [count ^ u64::from(control[3] & 1)];
            let done = match kind as u8 {
                b'I' => scda_fread_inline_data(file, into, 0, &raw mut error),
                b'B' => scda_fread_block_data(file, into, size, 0, &raw mut error),
                b'A' => {
                    let counts = counts.as_ptr();
                    scda_fread_array_data(file, into, counts, size, 0, &raw mut error)
                }
                b'V' => {
                    let known = count <= LARGEST && counts[0] == count;
                    let mut sizes = vec![0_u64; if known { count as usize } else { 0 }];
                    let to = if known { sizes.as_mut_ptr() } else { null_mut() };
                    let counts = counts.as_ptr();
                    let done = scda_fread_varray_sizes(file, to, counts, &raw mut error);
                    let total = sizes.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
                    let read = known && !done.is_null() && total <= LARGEST && !skip;
                    let mut values = vec![0_u8; if read { total.max(1) as usize } else { 0 }];
                    let into = if read { values.as_mut_ptr().cast() } else { null_mut() };
                    let sums = [total];
                    if done.is_null() {
                        done
                    } else {
                        scda_fread_varray_data(
                            file,
                            into,
                            counts,
                            sizes.as_ptr(),
                            sums.as_ptr(),
                            0,
                            &raw mut error,
                        )
                    }
                }
                _ => null_mut(),
            };
            if done.is_null() {
                return;
            }
        }
        scda_fclose(file, &raw mut error);
    }
}
