//! The atoms or particles of a dataset, found by their [semantics](crate::semantics): what writers of
//! trajectory and structure formats need besides the [cell](crate::Dataset::cell).

use std::collections::HashMap;

use crate::semantics::Quantity;
use crate::{
    Array, ArrayDesc, Axes, Dataset, Kind, NodeId, Order, Result, Role, Selection, convert,
};

/// The arrays that describe the atoms, from metadata alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomArrays {
    /// The point set.
    pub point_set: Option<String>,
    /// Positions, with three columns.
    pub positions: NodeId,
    /// Species of each atom: names, or codes.
    pub species: Option<NodeId>,
    /// Names of the codes.
    pub names: Option<NodeId>,
    /// Other arrays with one row per atom, in file order; codes of species are among them.
    pub columns: Vec<NodeId>,
}

/// Species of the atoms of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Species {
    /// Different names.
    pub names: Vec<String>,
    /// For each atom the index of its name.
    pub codes: Vec<u32>,
}

impl Species {
    /// The name of the species of atom `k`.
    pub fn name(&self, k: usize) -> Option<&str> {
        self.names.get(*self.codes.get(k)? as usize).map(String::as_str)
    }
}

/// A per-atom quantity of a frame.
#[derive(Clone)]
pub struct AtomColumn {
    /// Its node.
    pub node: NodeId,
    /// Its values: one row per atom, of one or more numbers.
    pub array: Array,
}

/// The atoms of a frame; [`Dataset::atoms`] returns them.
#[derive(Clone)]
pub struct Atoms {
    /// Number of atoms.
    pub count: u64,
    /// Positions, of shape (`count`, 3).
    pub positions: Array,
    /// Species, where known.
    pub species: Option<Species>,
    /// Other quantities, in file order.
    pub columns: Vec<AtomColumn>,
}

impl Dataset {
    /// The arrays that describe atoms: the first array of positions with three columns, and the arrays of
    /// its point set. `None` if there are no such positions.
    pub fn atom_arrays(&self) -> Option<AtomArrays> {
        let quantity = |desc: &ArrayDesc| desc.semantics().quantity;
        let (positions, _, desc) = self.arrays().find(|(_, _, desc)| {
            let is_table = matches!(desc.shape.lengths(), [_, 3]);
            quantity(desc) == Some(Quantity::Position) && is_table && desc.dtype.is_real()
        })?;
        let point_set = desc.semantics().point_set.clone();
        let mut found =
            AtomArrays { point_set, positions, species: None, names: None, columns: Vec::new() };
        for (id, _, desc) in self.arrays().filter(|(id, ..)| *id != positions) {
            let meaning = desc.semantics();
            if meaning.point_set != found.point_set {
                continue;
            }
            if meaning.quantity == Some(Quantity::SpeciesNames) && found.names.is_none() {
                found.names = Some(id);
            }
            let per_atom = matches!(meaning.role, Role::Points | Role::Log)
                && meaning.mesh == Some(positions)
                && matches!(desc.shape.rank(), 1 | 2);
            if !per_atom {
                continue;
            }
            if meaning.quantity == Some(Quantity::Species) && found.species.is_none() {
                found.species = Some(id);
            }
            if found.species != Some(id) || desc.dtype.kind() != Kind::Text {
                found.columns.push(id);
            }
        }
        Some(found)
    }

    /// The atoms in frame number `frame`, for a dataset without frames its only ones. A quantity that the
    /// frame does not contain has the values that the format [defines](Dataset::effective_array_in_frame) for
    /// such a frame; quantities that do not have one row per atom are left out. `None` if the frame has no
    /// positions.
    pub fn atoms(&self, frame: u64) -> Result<Option<Atoms>> {
        let Some(arrays) = self.atom_arrays() else { return Ok(None) };
        let Some(positions) = self.effective_array_in_frame(arrays.positions, frame)? else {
            return Ok(None);
        };
        let [count, 3] = *positions.shape().lengths() else { return Ok(None) };
        let mut columns = Vec::new();
        for node in &arrays.columns {
            let Some(array) = self.effective_array_in_frame(*node, frame)? else { continue };
            if array.shape().lengths().first() == Some(&count) {
                columns.push(AtomColumn { node: *node, array });
            }
        }
        let species = self.species(&arrays, frame, count)?;
        Ok(Some(Atoms { count, positions, species, columns }))
    }

    fn species(&self, arrays: &AtomArrays, frame: u64, count: u64) -> Result<Option<Species>> {
        let open = |id: Option<NodeId>| match id {
            Some(id) => self.effective_array_in_frame(id, frame),
            None => Ok(None),
        };
        // A code and a share of the names.
        self.limits().allow(count.saturating_mul(8), "the species of atoms")?;
        let names = match open(arrays.names)? {
            Some(names) => texts(&names)?,
            None => Vec::new(),
        };
        let own = open(arrays.species)?.filter(|own| own.shape().lengths() == [count]);
        let Some(own) = own else {
            // Without codes, all atoms are of the first species.
            let one = |_| Species { names, codes: vec![0; count as usize] };
            return Ok(arrays.names.map(one));
        };
        let mut species = Species { names, codes: Vec::new() };
        if own.dtype().kind() == Kind::Text {
            let mut known: HashMap<String, u32> = HashMap::new();
            species.names.clear();
            for name in texts(&own)? {
                let next = species.names.len() as u32;
                let code = *known.entry(name).or_insert_with_key(|name| {
                    species.names.push(name.clone());
                    next
                });
                species.codes.push(code);
            }
        } else if own.dtype().is_real() {
            let codes = own.read_f64(&Selection::all(), Axes::Order(Order::C))?;
            species.codes = codes.iter().map(|code| *code as u32).collect();
        } else {
            return Ok(None);
        }
        Ok(Some(species))
    }
}

/// The texts of an array of text, or of rows of characters; each up to its first NUL, without blanks at the end.
fn texts(array: &Array) -> Result<Vec<String>> {
    let width = match *array.shape().lengths() {
        [_] => array.dtype().size(),
        [_, columns] if array.dtype().size() == 1 => usize::try_from(columns).unwrap_or(usize::MAX),
        _ => return Ok(Vec::new()),
    };
    let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
    Ok(bytes.chunks(width.max(1)).map(convert::text_of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    use crate::limits::Limits;
    use crate::semantics::Semantics;
    use crate::shape::Shape;
    use crate::source::Source;
    use crate::tree::{ROOT, Tree};

    /// Two atoms; `species` is the type, the shape and the bytes of their species.
    fn dataset(species: Option<(DType, &[u8])>, names: Option<&[u8]>) -> Dataset {
        let mut tree = Tree::new(&Limits::default());
        let mut add = |name: &str, dtype: DType, lengths: &[u64], bytes: &[u8], quantity, mesh| {
            let mut meaning = Semantics::role(Role::Points);
            (meaning.point_set, meaning.quantity) = (Some("set".into()), quantity);
            meaning.mesh = mesh;
            let desc = ArrayDesc::inline(dtype, Shape::new(lengths), bytes);
            tree.add_array(ROOT, name, desc.with_semantics(meaning)).unwrap()
        };
        let positions = add("x", DType::U8, &[2, 3], &[0; 6], Some(Quantity::Position), None);
        add("mass", DType::U8, &[2], &[1, 2], Some(Quantity::Mass), Some(positions));
        add("box", DType::U8, &[2], &[1, 2], None, None);
        if let Some((dtype, bytes)) = species {
            add("kind", dtype, &[2], bytes, Some(Quantity::Species), Some(positions));
        }
        if let Some(names) = names {
            add("names", DType::I8, &[2, 3], names, Some(Quantity::SpeciesNames), None);
        }
        Dataset::new(Source::memory([]), tree)
    }

    #[test]
    fn atoms_have_the_arrays_of_their_point_set() {
        let with_codes = dataset(Some((DType::U8, &[1, 0])), Some(b"He\0Ar\0"));
        let atoms = with_codes.atoms(0).unwrap().unwrap();
        let species = atoms.species.unwrap();
        assert_eq!((species.name(0), species.name(1)), (Some("Ar"), Some("He")));
        let node = |column: &AtomColumn| with_codes.tree().node(column.node).name.clone();
        let names: Vec<String> = atoms.columns.iter().map(node).collect();
        assert_eq!((atoms.count, names), (2, vec!["mass".to_string(), "kind".to_string()]));
    }

    #[test]
    fn species_are_texts_or_codes_or_the_first_name() {
        let names = |dataset: Dataset| -> Option<Vec<String>> {
            let species = dataset.atoms(0).unwrap().unwrap().species?;
            (0..2).map(|k| species.name(k).map(Into::into)).collect()
        };
        let text = dataset(Some((DType::text(2), b"H O ")), None);
        assert_eq!(names(text).unwrap(), ["H", "O"]);
        assert_eq!(names(dataset(None, Some(b"He\0Ar\0"))).unwrap(), ["He", "He"]);
        assert_eq!(names(dataset(None, None)), None);
        // A code without a name.
        let unknown = dataset(Some((DType::U8, &[0, 7])), Some(b"He\0Ar\0"));
        let species = unknown.atoms(0).unwrap().unwrap().species.unwrap();
        assert_eq!((species.name(0), species.name(1)), (Some("He"), None));
    }
}
