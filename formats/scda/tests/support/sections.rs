//! Sections to write and to compare, cut into parts for any number of ranks. The tests on threads
//! and those on MPI share this.

use std::path::Path;

use proptest::prelude::*;
use spile_core::comm::Comm;
use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_scda::wire::Kind;
use spile_scda::{Cursor, Elements, Options, Slots, Writer};

/// What a section holds, before it is cut.
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
    /// The elements one by one.
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

/// How a rank hands its elements over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Contiguous,
    Indirect,
    Fetched,
}

/// The elements of each rank when `number` elements are cut at `cuts`; ranks may get none.
pub(crate) fn share(number: u64, ranks: usize, cuts: &[u64]) -> Vec<u64> {
    let mut ends: Vec<u64> = (0..ranks - 1).map(|k| cuts[k % cuts.len()] % (number + 1)).collect();
    ends.sort_unstable();
    ends.push(number);
    let mut start = 0;
    ends.iter().map(|end| end - std::mem::replace(&mut start, *end)).collect()
}

/// Writes a file, each rank its part.
pub(crate) fn write(
    comm: &dyn Comm,
    path: &Path,
    user: &[u8],
    items: &[Item],
    options: Options,
    cuts: &[u64],
    way: Way,
) -> Result<()> {
    let mut file = Writer::create(comm, path, user, options)?;
    let (rank, ranks) = (comm.rank(), comm.size());
    for (k, item) in items.iter().enumerate() {
        let root = k % ranks;
        let here = rank == root;
        let elements = item.elements();
        let counts = share(elements.len() as u64, ranks, cuts);
        let first = counts[..rank].iter().sum::<u64>() as usize;
        let mine = &elements[first..first + counts[rank] as usize];
        let joined = mine.concat();
        let fetch = |at: u64, out: &mut [u8]| {
            out.copy_from_slice(&joined[at as usize..at as usize + out.len()]);
            Ok(())
        };
        let data = match way {
            Way::Contiguous => Elements::Contiguous(&joined),
            Way::Indirect => Elements::Indirect(mine),
            Way::Fetched => Elements::Fetched(joined.len() as u64, &fetch),
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

/// Reads a file, each rank its part, and compares it with what was written. Every third section
/// is passed over; where `apart`, each element is read into memory of its own, and the last rank
/// wants none.
pub(crate) fn compare(comm: &dyn Comm, path: &Path, items: &[Item], cuts: &[u64], apart: bool) {
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
        let counts = share(elements.len() as u64, ranks, cuts);
        let first = counts[..rank].iter().sum::<u64>() as usize;
        let mine = &elements[first..first + counts[rank] as usize];
        let mut room: Vec<Vec<u8>> = mine.iter().map(|e| vec![0xAA; e.len()]).collect();
        let mut slots: Vec<&mut [u8]> = room.iter_mut().map(Vec::as_mut_slice).collect();
        let wanted = ranks == 1 || rank + 1 < ranks;
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
                if !apart {
                    assert_eq!(cursor.array(&counts).unwrap(), mine.concat());
                    continue;
                }
                cursor.array_into(&counts, wanted.then_some(Slots::Indirect(&mut slots))).unwrap();
            }
            Kind::Varray => {
                let sizes = cursor.sizes(&counts).unwrap();
                assert!(sizes.iter().copied().eq(mine.iter().map(|e| e.len() as u64)));
                if !apart {
                    assert_eq!(cursor.varray(&counts).unwrap(), mine.concat());
                    continue;
                }
                cursor.varray_into(&counts, wanted.then_some(Slots::Indirect(&mut slots))).unwrap();
            }
        }
        assert!(!wanted || room == mine);
        assert!(wanted || room.iter().flatten().all(|byte| *byte == 0xAA));
    }
    assert_eq!(cursor.next(true).unwrap(), None);
}

/// Reads everything there is, as far as it goes.
pub(crate) fn walk(comm: &dyn Comm, path: &Path, decode: bool) -> Result<u64> {
    let limits = Limits::default().with_memory(16 << 20);
    let mut cursor = Cursor::open(comm, path, &limits)?;
    let mut sections = 0;
    while let Some(header) = cursor.next(decode)? {
        let counts = share(header.count, comm.size(), &[1, 7]);
        match header.kind {
            // Skipping takes another way through the sizes.
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

/// More than 4 GiB of one rank, in one call each way.
pub(crate) fn large(comm: &dyn Comm, folder: &Path) {
    let path = folder.join("large.scda");
    let bytes = (4_u64 << 30) + 10;
    let last = comm.size() - 1;
    // The first rank has little, the last one has more than any counter of 32 bits holds.
    let mut counts = vec![3; comm.size()];
    counts[last] = bytes;
    let mine = counts[comm.rank()] as usize;
    let marked = |at: usize| (at * 31 / 4096) as u8;
    let mut data = vec![0; mine];
    data.chunks_mut(4096).enumerate().for_each(|(k, part)| part[0] = marked(k * 4096));
    let mut writer = Writer::create(comm, &path, b"", Options::default()).unwrap();
    writer.array(b"large", &counts, 1, Elements::Contiguous(&data), false).unwrap();
    writer.inline(b"behind", 0, Some(&[b'.'; 32])).unwrap();
    writer.close().unwrap();
    data.fill(0xEE);
    let mut cursor = Cursor::open(comm, &path, &Limits::default()).unwrap();
    cursor.next(true).unwrap().unwrap();
    cursor.array_into(&counts, Some(Slots::Contiguous(&mut data))).unwrap();
    let right = |(k, part): (usize, &[u8])| {
        part[0] == marked(k * 4096) && part[1..].iter().all(|byte| *byte == 0)
    };
    assert!(data.chunks(4096).enumerate().all(right));
    assert_eq!(cursor.next(true).unwrap().unwrap().user, b"behind");
    let behind = cursor.inline(0).unwrap();
    assert!(behind.is_none_or(|data| data == [b'.'; 32]));
}

/// Any section whose user string does not announce compression: it would have to keep its word.
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
        .prop_filter("announces compression", |user| !user.ends_with(b"compressed scda 00"));
    (user, content, any::<bool>()).prop_map(|(user, content, encode)| {
        let encode = encode && !matches!(content, Content::Inline(_));
        Item { user, content, encode }
    })
}

/// One of the ways.
pub(crate) fn any_way() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Contiguous), Just(Way::Indirect), Just(Way::Fetched)]
}
