//! Trees that find things: version 1 (section III.A.1) for old groups and chunks, version 2
//! (section III.A.2) for names in heaps and chunks of growing datasets.

use spile_core::error::Result;

use crate::header::last_word;
use crate::wire::{Ground, bytes_for, verify};

/// Levels that no tree of 64-bit addresses exceeds.
const DEEPEST: u16 = 32;

/// Calls `each` with the key and the child of every entry at the bottom of a tree of version 1.
/// Nodes have `kind`, keys `key` bytes.
pub(crate) fn each_first(
    ground: &Ground,
    address: u64,
    kind: u8,
    key: usize,
    each: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    first_node(ground, address, kind, key, None, each)
}

fn first_node(
    ground: &Ground,
    address: u64,
    kind: u8,
    key: usize,
    expected: Option<u8>,
    each: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let prefix_len = 8 + 2 * ground.sizes.offset;
    let prefix = ground.fetch(address, prefix_len as u64, "B-tree node")?;
    let mut fields = ground.fields(&prefix, address);
    fields.expect(*b"TREE")?;
    let (found, level, count) = (fields.u8()?, fields.u8()?, fields.u16()?);
    // Levels fall by one, so there are no circles.
    if found != kind || expected.is_some_and(|e| e != level) || u16::from(level) > DEEPEST {
        return Err(ground.broken(address, "a B-tree node that does not belong here"));
    }
    let entry = key + ground.sizes.offset;
    let len = prefix_len + usize::from(count) * entry + key;
    let bytes = ground.structure(address, len as u64, "B-tree node")?;
    let mut fields = ground.fields(&bytes, address);
    fields.skip(prefix_len)?;
    for _ in 0..count {
        let key_bytes = fields.take(key)?;
        let child = fields.needed("a child of a B-tree")?;
        match level.checked_sub(1) {
            None => each(key_bytes, child)?,
            Some(below) => first_node(ground, child, kind, key, Some(below), each)?,
        }
    }
    Ok(())
}

/// A tree of version 2.
pub(crate) struct SecondTree<'a> {
    ground: &'a Ground,
    pub(crate) kind: u8,
    pub(crate) record: usize,
    node: u64,
    depth: u16,
    root: Option<u64>,
    count: u64,
    name: &'static str,
    /// For each level from the leaves up: most records of a subtree, and bytes of such a number.
    levels: Vec<(u64, usize)>,
    count_bytes: usize,
}

impl<'a> SecondTree<'a> {
    pub(crate) fn open(ground: &'a Ground, address: u64, name: &'static str) -> Result<Self> {
        let sizes = ground.sizes;
        let len = 22 + sizes.offset + sizes.length;
        let bytes = ground.structure(address, len as u64, name)?;
        let mut fields = ground.fields(&bytes, address);
        fields.expect(*b"BTHD")?;
        fields.version(&[0], "a B-tree")?;
        let kind = fields.u8()?;
        let node = u64::from(fields.u32()?);
        let record = usize::from(fields.u16()?);
        let depth = fields.u16()?;
        fields.skip(2)?;
        let root = fields.address()?;
        let count = u64::from(fields.u16()?);
        verify(&bytes[..len - 4], last_word(&bytes), ground.place(address), name)?;
        if record == 0 || node < 10 + record as u64 || depth > DEEPEST {
            return Err(ground.broken(address, "a B-tree with impossible sizes"));
        }
        let leaf = (node - 10) / record as u64;
        let count_bytes = bytes_for(leaf);
        let mut levels = vec![(leaf, 0)];
        for level in 1..=usize::from(depth) {
            let (below, below_bytes) = levels[level - 1];
            let pointer = (sizes.offset + count_bytes + below_bytes) as u64;
            let room = node.saturating_sub(10 + pointer);
            let most = room / (record as u64 + pointer);
            if most == 0 {
                return Err(ground.broken(address, "nodes of a B-tree that hold nothing"));
            }
            let all = (most + 1).saturating_mul(below).saturating_add(most);
            levels.push((all, bytes_for(all)));
        }
        Ok(Self { ground, kind, record, node, depth, root, count, name, levels, count_bytes })
    }

    /// Calls `each` with every record, in order, and the address of its node.
    pub(crate) fn each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        match self.root {
            Some(root) => self.walk(root, self.depth, self.count, each),
            None => Ok(()),
        }
    }

    fn walk(
        &self,
        address: u64,
        depth: u16,
        count: u64,
        each: &mut dyn FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let level = usize::from(depth);
        let pointer = match level.checked_sub(1) {
            None => 0,
            Some(below) => self.ground.sizes.offset + self.count_bytes + self.levels[below].1,
        };
        let records = count.saturating_mul(self.record as u64);
        let pointers = if level == 0 { 0 } else { (count + 1) * pointer as u64 };
        let len = records.saturating_add(pointers).saturating_add(10);
        if len > self.node {
            return Err(self.ground.broken(address, "more records than a node holds"));
        }
        let bytes = self.ground.structure(address, len, self.name)?;
        let mut fields = self.ground.fields(&bytes, address);
        fields.expect(if level == 0 { *b"BTLF" } else { *b"BTIN" })?;
        fields.version(&[0], "a B-tree node")?;
        if fields.u8()? != self.kind {
            return Err(self.ground.broken(address, "a node of another kind of B-tree"));
        }
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), self.ground.place(address), self.name)?;
        let all = fields.take(records as usize)?;
        let mut all = all.chunks_exact(self.record);
        let Some(below) = depth.checked_sub(1) else {
            return all.try_for_each(|record| each(record, address));
        };
        // A child stands before each record, and one behind the last.
        for _ in 0..=count {
            let child = fields.needed("a child of a B-tree")?;
            let own = fields.uint(self.count_bytes)?;
            fields.uint(self.levels[usize::from(below)].1)?;
            self.walk(child, below, own, each)?;
            if let Some(record) = all.next() {
                each(record, address)?;
            }
        }
        Ok(())
    }
}
