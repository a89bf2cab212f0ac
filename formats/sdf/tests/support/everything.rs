//! A file with all block types.

use std::path::Path;

use spile_core::layout::Extent;
use spile_core::sink::Overwrite;
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{
    BlockType, Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Stitched, Writer,
    write_file,
};

use super::blocks::{doubles, mesh};

fn group(ids: &[&str]) -> Stitched {
    Stitched {
        mesh_id: "grid".into(),
        ids: ids.iter().map(ToString::to_string).collect(),
        ..Stitched::default()
    }
}

/// Writes a file with all block types that occur in files.
pub(crate) fn everything(path: &Path, header: &FileHeader) {
    use BlockType as B;
    use DataType as D;
    let names = || vec!["Steel".to_string(), "Water".to_string()];
    write_file(path, header, Overwrite::Never, |file| {
        let put = |file: &mut Writer<'_>, id: &str, kind, datatype, meta: Meta, data: &[u8]| {
            file.block(id, &format!("Things/{id}"), kind, datatype, &meta, data).unwrap().1
        };
        let info = RunInfo { code_version: 4, commit_id: "abc".into(), ..RunInfo::default() };
        put(file, "run_info", B::RunInfo, D::Other, Meta::RunInfo(info), &[]);
        put(file, "grid", B::PlainMesh, D::Real8, Meta::Mesh(mesh(&[4, 3])), &doubles(7));
        let variable = PlainVariable {
            mult: 2.5,
            units: "V/m".into(),
            mesh_id: "grid".into(),
            dims: vec![3, 2],
            stagger: 0,
        };
        let plain = || Meta::PlainVariable(variable.clone());
        put(file, "ex", B::PlainVariable, D::Real8, plain(), &doubles(6));
        let integers: Vec<u8> = (0..6_i32).flat_map(i32::to_le_bytes).collect();
        put(file, "n", B::PlainVariable, D::Integer4, plain(), &integers);
        let lagrangian = Meta::Mesh(mesh(&[2, 3]));
        put(file, "lag", B::LagrangianMesh, D::Real8, lagrangian, &doubles(12));
        let points = PointMesh { mesh: mesh(&[0, 0]), np: 5, species_id: "e".into() };
        let points =
            Meta::PointMesh(PointMesh { mesh: Mesh { dims: vec![], ..points.mesh }, ..points });
        put(file, "grid/e", B::PointMesh, D::Real8, points, &doubles(10));
        let momentum = Meta::PointVariable(PointVariable {
            mult: 1.0,
            units: "kg.m/s".into(),
            mesh_id: "grid/e".into(),
            np: 5,
            species_id: "e".into(),
        });
        put(file, "px/e", B::PointVariable, D::Real8, momentum, &doubles(5));
        let value = match header.order {
            ByteOrder::Little => 1.5_f64.to_le_bytes(),
            ByteOrder::Big => 1.5_f64.to_be_bytes(),
        };
        put(file, "dt", B::Constant, D::Real8, Meta::Constant(value.to_vec()), &[]);
        put(file, "list", B::Array, D::Real8, Meta::Array(vec![2, 2]), &doubles(4));
        put(file, "labels", B::Array, D::Character, Meta::Array(vec![3, 2]), b"oneTwo");
        put(file, "code", B::Source, D::Character, Meta::Source, b"begin 644 -");
        put(file, "vec", B::StitchedTensor, D::Real8, Meta::Stitched(group(&["ex", "n"])), &[]);
        put(file, "any", B::Stitched, D::Other, Meta::Stitched(group(&["dt", "ex"])), &[]);
        let material = Stitched { names: names(), ..group(&["ex", "n"]) };
        put(file, "mat", B::StitchedMaterial, D::Other, Meta::Stitched(material.clone()), &[]);
        let matvar = Stitched { material_id: "mat".into(), ..group(&["ex", "n"]) };
        put(file, "mv", B::StitchedMatvar, D::Other, Meta::Stitched(matvar.clone()), &[]);
        let species = Stitched { material_name: "Water".into(), names: names(), ..matvar.clone() };
        put(file, "sp", B::StitchedSpecies, D::Other, Meta::Stitched(species.clone()), &[]);
        let obstacles = Stitched { names: names(), ids: vec![], ..matvar.clone() };
        put(file, "ob", B::StitchedObstacleGroup, D::Other, Meta::Stitched(obstacles), &[]);
        for (kind, parent, own) in [
            (B::ContiguousTensor, "ct", group(&[])),
            (B::ContiguousMaterial, "cm", material),
            (B::ContiguousMatvar, "cv", matvar),
            (B::ContiguousSpecies, "cs", species),
            (B::Contiguous, "cc", group(&[])),
        ] {
            let ids = ["a", "b"].map(|part| format!("{parent}/{part}"));
            let owner = Meta::Stitched(Stitched { ids: ids.to_vec(), ..own });
            // Bytes are swapped only for known data types.
            let bytes = if header.order == ByteOrder::Big { vec![7; 96] } else { doubles(12) };
            let Extent { offset, .. } = put(file, parent, kind, D::Other, owner, &bytes);
            for (k, id) in ids.iter().enumerate() {
                let part = Extent { offset: offset + 48 * k as u64, len: 48 };
                let (kind, name) = (B::PlainVariable, format!("Things/{id}"));
                file.member(id, &name, kind, D::Real8, &plain(), part).unwrap();
            }
        }
        let split = Meta::CpuSplit { split_type: 1, dims: vec![0, 3] };
        put(file, "cpu", B::CpuSplit, D::Integer4, split, &integers[..12]);
        let deck = Meta::Datablock {
            mimetype: "text/plain".into(),
            checksum_type: "md5".into(),
            checksum: "de1ccfe589d62b9d6a2ecf38f4389b27".into(),
        };
        put(file, "deck", B::Datablock, D::Character, deck, b"begin:control\nend:control\n");
        for (id, datatype, values) in [
            ("nv4", D::Integer4, [Value::Int(-1), Value::Int(7)]),
            ("nv8", D::Integer8, [Value::Int(1 << 40), Value::Int(0)]),
            ("nr4", D::Real4, [Value::Float(0.5), Value::Float(-1.25)]),
            ("nr8", D::Real8, [Value::Float(0.1), Value::Float(1e300)]),
            ("nl", D::Logical, [Value::Bool(true), Value::Bool(false)]),
            ("nc", D::Character, ["x".into(), "y z".into()]),
        ] {
            let meta =
                Meta::NameValue { names: vec!["p".into(), "q".into()], values: values.into() };
            put(file, id, B::NameValue, datatype, meta, &[]);
        }
        Ok(())
    })
    .unwrap();
}

/// A file header with this revision and byte order.
pub(crate) fn header(revision: u32, order: ByteOrder) -> FileHeader {
    FileHeader {
        revision,
        order,
        code_name: "test".into(),
        step: 42,
        time: 1e-15,
        ..FileHeader::default()
    }
}
