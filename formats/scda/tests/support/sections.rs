//! Test sections, split over any number of ranks. Used by the tests on threads and on MPI.

use std::path::Path;

use proptest::prelude::*;
use spile_core::comm::Comm;
use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_scda::wire::Kind;
use spile_scda::{Cursor, Elements, Options, Slots, Writer};

/// Data of a section on all ranks.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Inline([u8; 32]),
    Block(Vec<u8>),
    /// Number and size of the elements.
    Array(u64, u64, Vec<u8>),
    Varray(Vec<Vec<u8>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) user: Vec<u8>,
    pub(crate) content: Content,
    pub(crate) encode: bool,
}

impl Item {
    /// The elements.
    fn elements(&self) -> Vec<&[u8]> {
        match &self.content {
            Content::Inline(data) => vec![data],
            Content::Block(data) => vec![data],
            Content::Array(number, 0, _) => vec![&[]; *number as usize],
            Content::Array(_, size, data) => data.chunks(*size as usize).collect(),
            Content::Varray(elements) => elements.iter().map(Vec::as_slice).collect(),
        }
    }
}

/// Form in which a rank passes its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Contiguous,
    Indirect,
    Fetched,
}

/// Number of elements of each rank if `number` elements are split at `cuts`; it may be 0.
pub(crate) fn partition(number: u64, ranks: usize, cuts: &[u64]) -> Vec<u64> {
    let mut ends: Vec<u64> = (0..ranks - 1).map(|k| cuts[k % cuts.len()] % (number + 1)).collect();
    ends.sort_unstable();
    ends.push(number);
    let mut start = 0;
    ends.iter().map(|end| end - std::mem::replace(&mut start, *end)).collect()
}

/// Writes a file on all ranks.
pub(crate) fn write(
    comm: &dyn Comm,
    path: &Path,
    user: &[u8],
    items: &[Item],
    options: Options,
    cuts: &[u64],
    form: Form,
) -> Result<()> {
    let mut file = Writer::create(comm, path, user, options)?;
    let (rank, ranks) = (comm.rank(), comm.size());
    for (k, item) in items.iter().enumerate() {
        let root = k % ranks;
        let here = rank == root;
        let elements = item.elements();
        let counts = partition(elements.len() as u64, ranks, cuts);
        let first = counts[..rank].iter().sum::<u64>() as usize;
        let mine = &elements[first..first + counts[rank] as usize];
        let joined = mine.concat();
        let fetch = |at: u64, out: &mut [u8]| {
            out.copy_from_slice(&joined[at as usize..at as usize + out.len()]);
            Ok(())
        };
        let data = match form {
            Form::Contiguous => Elements::Contiguous(&joined),
            Form::Indirect => Elements::Indirect(mine),
            Form::Fetched => Elements::Fetched(joined.len() as u64, &fetch),
        };
        match &item.content {
            Content::Inline(data) => file.inline(&item.user, root, here.then_some(data))?,
            Content::Block(data) => {
                let mine = here.then_some(data.as_slice());
                file.block(&item.user, root, data.len() as u64, mine, item.encode)?;
            }
            Content::Array(_, size, _) => {
                file.array(&item.user, &counts, *size, data, item.encode)?;
            }
            Content::Varray(_) => {
                let sizes: Vec<u64> = mine.iter().map(|e| e.len() as u64).collect();
                file.varray(&item.user, &counts, &sizes, data, item.encode)?;
            }
        }
    }
    file.close()
}

/// Reads a file on all ranks and compares it with `items`. Every third section is skipped. If
/// `indirect`, each element is read into its own buffer, and the last of several ranks reads nothing.
pub(crate) fn compare(comm: &dyn Comm, path: &Path, items: &[Item], cuts: &[u64], indirect: bool) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut cursor = Cursor::open(comm, path, &Limits::default()).unwrap();
    for (k, item) in items.iter().enumerate() {
        let header = cursor.next(true).unwrap().unwrap();
        assert_eq!((&header.user, header.decoded), (&item.user, item.encode));
        if k % 3 == 2 {
            continue;
        }
        let root = k % ranks;
        let elements = item.elements();
        let counts = partition(elements.len() as u64, ranks, cuts);
        let first = counts[..rank].iter().sum::<u64>() as usize;
        let mine = &elements[first..first + counts[rank] as usize];
        let mut buffers: Vec<Vec<u8>> = mine.iter().map(|e| vec![0xAA; e.len()]).collect();
        let mut slots: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        let reads = ranks == 1 || rank + 1 < ranks;
        match header.kind {
            Kind::Inline | Kind::Block => {
                let data = match header.kind {
                    Kind::Inline => cursor.inline(root).unwrap().map(|data| data.to_vec()),
                    _ => cursor.block(root).unwrap(),
                };
                assert_eq!(data.as_deref(), (rank == root).then_some(elements[0]));
                continue;
            }
            Kind::Array => {
                assert_eq!(header.count as usize, elements.len());
                if !indirect {
                    assert_eq!(cursor.array(&counts).unwrap(), mine.concat());
                    continue;
                }
                cursor.array_into(&counts, reads.then_some(Slots::Indirect(&mut slots))).unwrap();
            }
            Kind::Varray => {
                let sizes = cursor.sizes(&counts).unwrap();
                assert!(sizes.iter().copied().eq(mine.iter().map(|e| e.len() as u64)));
                if !indirect {
                    assert_eq!(cursor.varray(&counts).unwrap(), mine.concat());
                    continue;
                }
                cursor.varray_into(&counts, reads.then_some(Slots::Indirect(&mut slots))).unwrap();
            }
        }
        assert!(!reads || buffers == mine);
        assert!(reads || buffers.iter().flatten().all(|byte| *byte == 0xAA));
    }
    assert_eq!(cursor.next(true).unwrap(), None);
}

/// Reads all sections up to the first error and returns their number.
pub(crate) fn read_sections(comm: &dyn Comm, path: &Path, decode: bool) -> Result<u64> {
    let limits = Limits::default().with_memory(16 << 20);
    let mut cursor = Cursor::open(comm, path, &limits)?;
    let mut sections = 0;
    while let Some(header) = cursor.next(decode)? {
        let counts = partition(header.count, comm.size(), &[1, 7]);
        match header.kind {
            // Skipping only adds up the sizes.
            _ if sections % 4 == 3 => cursor.skip()?,
            Kind::Inline => drop(cursor.inline(0)?),
            Kind::Block => drop(cursor.block(0)?),
            Kind::Array => drop(cursor.array(&counts)?),
            Kind::Varray => {
                cursor.sizes(&counts)?;
                cursor.varray(&counts)?;
            }
        }
        sections += 1;
    }
    Ok(sections)
}

/// Writes and reads more than 4 GiB of one rank in one call each.
pub(crate) fn large(comm: &dyn Comm, folder: &Path) {
    let path = folder.join("large.scda");
    let bytes = (4_u64 << 30) + 10;
    let last = comm.size() - 1;
    // The last rank has more than a 32-bit counter can count.
    let mut counts = vec![3; comm.size()];
    counts[last] = bytes;
    let mine = counts[comm.rank()] as usize;
    let marked = |at: usize| (at * 31 / 4096) as u8;
    let mut data = vec![0; mine];
    data.chunks_mut(4096).enumerate().for_each(|(k, part)| part[0] = marked(k * 4096));
    let mut writer = Writer::create(comm, &path, b"", Options::default()).unwrap();
    writer.array(b"large", &counts, 1, Elements::Contiguous(&data), false).unwrap();
    writer.inline(b"last", 0, Some(&[b'.'; 32])).unwrap();
    writer.close().unwrap();
    data.fill(0xEE);
    let mut cursor = Cursor::open(comm, &path, &Limits::default()).unwrap();
    cursor.next(true).unwrap().unwrap();
    cursor.array_into(&counts, Some(Slots::Contiguous(&mut data))).unwrap();
    let right = |(k, part): (usize, &[u8])| {
        part[0] == marked(k * 4096) && part[1..].iter().all(|byte| *byte == 0)
    };
    assert!(data.chunks(4096).enumerate().all(right));
    assert_eq!(cursor.next(true).unwrap().unwrap().user, b"last");
    let last_section = cursor.inline(0).unwrap();
    assert!(last_section.is_none_or(|data| data == [b'.'; 32]));
}

/// Any section whose user string is not reserved for compression.
pub(crate) fn any_item() -> impl Strategy<Value = Item> {
    let bytes = |n| proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n')], 0..n);
    let content = prop_oneof![
        any::<[u8; 32]>().prop_map(Content::Inline),
        bytes(200).prop_map(Content::Block),
        (0_u64..20, bytes(300)).prop_map(|(size, mut data)| {
            let number = data.len() as u64 / size.max(1);
            data.truncate((number * size) as usize);
            Content::Array(number, size, data)
        }),
        proptest::collection::vec(bytes(40), 0..20).prop_map(Content::Varray),
    ];
    let user = proptest::collection::vec(any::<u8>(), 0..=58)
        .prop_filter("reserved for compression", |user| !user.ends_with(b"compressed scda 00"));
    (user, content, any::<bool>()).prop_map(|(user, content, encode)| {
        let encode = encode && !matches!(content, Content::Inline(_));
        Item { user, content, encode }
    })
}

/// Any form.
pub(crate) fn any_form() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::Contiguous), Just(Form::Indirect), Just(Form::Fetched)]
}
