//! Computed arrays.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::shape::Order;
use spile_core::sink::Overwrite;
use spile_core::wire::ByteOrder;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{BlockType, File, Mesh, Meta, PlainVariable, write_file};

#[path = "support/blocks.rs"]
mod blocks;
use blocks::{doubles, mesh};
#[path = "support/opened.rs"]
mod opened;
use opened::derived;

/// Shape and values of an array of a file opened with computed arrays.
fn read_derived(path: &Path, name: &str, part: &str) -> (Vec<u64>, Vec<f64>) {
    let view = derived(path, Limits::default());
    let array = view.array(name).unwrap();
    let values = array.read_f64(&part.parse().unwrap(), Axes::Order(Order::F)).unwrap();
    (array.shape().lengths().to_vec(), values)
}

#[test]
fn cylindrical_and_spherical_meshes_have_cartesian_coordinates() {
    let temp = tempfile::tempdir().unwrap();
    for (order, geometry) in [(ByteOrder::Little, 2), (ByteOrder::Big, 3)] {
        let path = temp.path().join(format!("{geometry}.sdf"));
        let header = FileHeader { order, ..FileHeader::default() };
        let (r, theta, last) = ([1.0, 2.0], [0.25, 0.5, 1.0], [0.0, 3.0, 4.0, 5.0]);
        let nodes = r.iter().chain(&theta).chain(&last);
        let data: Vec<u8> = nodes.flat_map(|v: &f64| v.to_le_bytes()).collect();
        write_file(&path, &header, Overwrite::Never, |file| {
            let mults = vec![10.0, 1.0, 0.5];
            let meta = Meta::Mesh(Mesh { geometry, mults, ..mesh(&[2, 3, 4]) });
            let (kind, real) = (BlockType::PlainMesh, DataType::Real8);
            file.block("grid", "Grid", kind, real, &meta, &data)?;
            Ok(())
        })
        .unwrap();
        for (k, name) in ["X", "Y", "Z"].into_iter().enumerate() {
            let (shape, found) = read_derived(&path, &format!("Grid_cartesian/{name}"), ":, :, :");
            assert_eq!(shape, [2, 3, 4]);
            let mut expected = Vec::new();
            for last in last.map(|v| v * 0.5) {
                for theta in theta {
                    for r in r.map(|v| v * 10.0) {
                        let point = if geometry == 2 {
                            [r * theta.cos(), r * theta.sin(), last]
                        } else {
                            let rho = r * theta.sin();
                            [rho * last.cos(), rho * last.sin(), r * theta.cos()]
                        };
                        expected.push(point[k]);
                    }
                }
            }
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 * b.abs().max(1.0);
            assert!(found.len() == 24 && found.iter().zip(&expected).all(near), "{name} {found:?}");
        }
    }
}

/// A sparse field of 60 GB: only the selected averages are computed.
#[test]
fn averages_of_a_field_larger_than_memory_are_computed_in_pieces() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("large.sdf");
    let dims = [2001_u64, 2001, 1876];
    write_file(&path, &FileHeader::default(), Overwrite::Never, |file| {
        let axes = doubles(dims.iter().sum());
        let (kind, real) = (BlockType::PlainMesh, DataType::Real8);
        file.block("grid", "Grid", kind, real, &Meta::Mesh(mesh(&dims)), &axes)?;
        let meta = Meta::PlainVariable(PlainVariable {
            mult: 1.0,
            units: "T".into(),
            mesh_id: "grid".into(),
            dims: vec![1; 3],
            stagger: 7,
        });
        let kind = BlockType::PlainVariable;
        file.block("bx", "Bx", kind, real, &meta, &[0; 8])?;
        Ok(())
    })
    .unwrap();
    // Enlarge the last block with a hole in the file; remove the summary.
    let small = File::open(&path, &Limits::default()).unwrap();
    let data = small.find("bx").next().unwrap().header.data_location;
    let meta = data - (72 + 4 * 3 + 4);
    let bytes = 8 * dims.iter().product::<u64>();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let put = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).unwrap();
    put(64, &0_u32.to_le_bytes());
    put(meta - 136 + 48, &bytes.to_le_bytes());
    for (k, n) in (0..).zip(dims) {
        put(meta + 72 + 4 * k, &(n as u32).to_le_bytes());
    }
    file.set_len(data + bytes).unwrap();
    let node = 1000 + 2001 * (1000 + 2001 * 1800);
    put(data + 8 * node, &8.0_f64.to_le_bytes());
    let (shape, found) = read_derived(&path, "Bx_centred", "998:1002, 999:1001, 1799:1801");
    assert_eq!(shape, [2000, 2000, 1875]);
    // Each of the eight cells around the node gets an eighth of its value.
    let mut expected = vec![0.0; 16];
    for k in [1, 2, 5, 6, 9, 10, 13, 14] {
        expected[k] = 1.0;
    }
    assert_eq!(found, expected);
}
