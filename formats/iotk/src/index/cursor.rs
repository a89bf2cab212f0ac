//! Search by name, by the rule of the library.

use super::Index;

/// A position in an index, moved as a Fortran program moves through a file: inside an element, after
/// the element that was read last.
///
/// A name is searched from the position to the end of the element, then backward to its beginning,
/// never inside other elements. Each search is one hash lookup; the file is not read again.
#[derive(Clone)]
pub struct Cursor<'a> {
    index: &'a Index,
    inside: Option<usize>,
    /// The last element found at this level.
    last: Option<usize>,
}

impl<'a> Cursor<'a> {
    /// A cursor before the first element.
    pub fn new(index: &'a Index) -> Self {
        Self { index, inside: None, last: None }
    }

    /// The enclosing element, or `None` at the outermost level.
    pub fn inside(&self) -> Option<usize> {
        self.inside
    }

    /// Finds an element at this level and moves after it. Returns `None` and does not move if there
    /// is no such element.
    pub fn scan(&mut self, name: &str) -> Option<usize> {
        let found = self.index.named(self.inside, name);
        let next = found.partition_point(|id| Some(*id) <= self.last);
        let hit = found.get(next).or_else(|| found[..next].last()).copied()?;
        self.last = Some(hit);
        Some(hit)
    }

    /// Finds an element at this level and enters it. Returns `None` if there is none or it is empty.
    pub fn begin(&mut self, name: &str) -> Option<usize> {
        let hit = self.scan(name).filter(|id| !self.index.elements[*id].empty)?;
        (self.inside, self.last) = (Some(hit), None);
        Some(hit)
    }

    /// Leaves the enclosing element; false at the outermost level.
    pub fn end(&mut self) -> bool {
        let Some(inside) = self.inside else { return false };
        (self.inside, self.last) = (self.index.elements[inside].parent, Some(inside));
        true
    }
}
