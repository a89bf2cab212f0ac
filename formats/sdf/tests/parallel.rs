//! The parallel writer writes the same bytes as the serial writer on any number of ranks.

#[path = "support/dump.rs"]
mod dump;

use dump::Dump;
use proptest::prelude::*;
use spile_core::comm::{Comm as _, Threads};
use spile_core::error::{ErrorKind, Result};
use spile_core::sink::Overwrite;
use spile_core::wire::ByteOrder;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{BlockType, Meta, Part, PlainVariable, SharedWriter};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_file_does_not_depend_on_the_number_of_ranks(
        dims in proptest::collection::vec(1_u64..9, 1..=3), particles in 0_u64..50,
        big in any::<bool>(), revision in 1_u32..=4, across in any::<bool>())
    {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let dump = Dump { dims, particles, order, revision };
        let folder = tempfile::tempdir().unwrap();
        let alone = folder.path().join("alone.sdf");
        dump.write_alone(&alone).unwrap();
        let want = std::fs::read(&alone).unwrap();
        for ranks in [1, 2, 3, 4, 7] {
            let path = folder.path().join(format!("{ranks}.sdf"));
            let done = Threads::run(ranks, |comm| dump.write_parts(comm, &path, across));
            done.into_iter().collect::<Result<Vec<()>>>().unwrap();
            prop_assert!(std::fs::read(&path).unwrap() == want, "{} ranks", ranks);
        }
    }
}

#[test]
fn a_wrong_part_on_one_rank_fails_on_all_ranks_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("never.sdf");
    let meta = |dims: &[u64]| {
        Meta::PlainVariable(PlainVariable { dims: dims.to_vec(), ..PlainVariable::default() })
    };
    // Part of rank 1 of two for its half of a 4 x 2 field: start, count and dimensions; bytes.
    let cases: [([&[u64]; 3], usize); 5] = [
        ([&[0, 1], &[4, 1], &[4, 2]], 31),
        ([&[0, 2], &[4, 1], &[4, 2]], 32),
        ([&[0, 1], &[3, 1], &[4, 2]], 24),
        ([&[0], &[4], &[4, 2]], 32),
        ([&[0, 1], &[4, 1], &[4, 3]], 32),
    ];
    for ([start, count, dims], bytes) in cases {
        let errors = Threads::run(2, |comm| {
            let header = FileHeader::default();
            let mut file = SharedWriter::create(comm, &path, &header, Overwrite::Never).unwrap();
            let data = vec![0; if comm.rank() == 1 { bytes } else { 32 }];
            let (part, meta) = if comm.rank() == 1 {
                (Part { start, count, data: &data }, meta(dims))
            } else {
                (Part { start: &[0, 0], count: &[4, 1], data: &data }, meta(&[4, 2]))
            };
            let kind = (BlockType::PlainVariable, DataType::Real8);
            file.variable("ex", "Ex", kind, &meta, part).unwrap_err()
        });
        assert!(errors.iter().all(|e| e.kind() == ErrorKind::Argument), "{errors:?}");
        assert_eq!(errors[0].to_string(), errors[1].to_string());
        assert!(!path.exists());
    }
}
