//! B-trees: version 1 (section III.A.1) indexes old groups and chunks, version 2 (section III.A.2)
//! links, attributes and chunks.

use spile_core::error::Result;

use super::{Context, bytes_for};

/// More levels than a tree of 64-bit addresses can have.
const MAX_DEPTH: u16 = 32;

/// Calls `each` with the key and the child address of every leaf entry of a version 1 B-tree. `kind` is
/// the node type, `key` the size of a key in bytes.
pub(crate) fn for_each_v1(
    ctx: &Context,
    address: u64,
    kind: u8,
    key: usize,
    each: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    v1_node(ctx, address, kind, key, None, each)
}

fn v1_node(
    ctx: &Context,
    address: u64,
    kind: u8,
    key: usize,
    expected: Option<u8>,
    each: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let prefix_len = 8 + 2 * ctx.sizes.offset;
    let prefix = ctx.read(address, prefix_len as u64, "B-tree node")?;
    let mut fields = ctx.fields(&prefix, address);
    fields.expect(*b"TREE")?;
    let (found, level, count) = (fields.u8()?, fields.u8()?, fields.u16()?);
    // Levels decrease by one, so there are no cycles.
    if found != kind || expected.is_some_and(|e| e != level) || u16::from(level) > MAX_DEPTH {
        return Err(ctx.malformed(address, "B-tree node of an unexpected type or level"));
    }
    let entry = key + ctx.sizes.offset;
    let len = prefix_len + usize::from(count) * entry + key;
    let bytes = ctx.read_structure(address, len as u64, "B-tree node")?;
    let mut fields = ctx.fields(&bytes, address);
    fields.skip(prefix_len)?;
    for _ in 0..count {
        let key_bytes = fields.take(key)?;
        let child = fields.required_address("B-tree child")?;
        match level.checked_sub(1) {
            None => each(key_bytes, child)?,
            Some(below) => v1_node(ctx, child, kind, key, Some(below), each)?,
        }
    }
    Ok(())
}

/// A version 2 B-tree.
pub(crate) struct BTreeV2<'a> {
    ctx: &'a Context,
    pub(crate) kind: u8,
    pub(crate) record: usize,
    node: u64,
    depth: u16,
    root: Option<u64>,
    count: u64,
    name: &'static str,
    /// For each level from the leaves up: largest number of records in a subtree, and the size in bytes
    /// of such a number.
    levels: Vec<(u64, usize)>,
    count_bytes: usize,
}

impl<'a> BTreeV2<'a> {
    /// Reads the header at `address`; `name` names the tree in errors and regions.
    pub(crate) fn open(ctx: &'a Context, address: u64, name: &'static str) -> Result<Self> {
        let sizes = ctx.sizes;
        let len = 22 + sizes.offset + sizes.length;
        let bytes = ctx.read_checked(address, len as u64, b"BTHD", name)?;
        let mut fields = ctx.fields(&bytes, address + 4);
        fields.version(&[0], "B-tree")?;
        let kind = fields.u8()?;
        let node = u64::from(fields.u32()?);
        let record = usize::from(fields.u16()?);
        let depth = fields.u16()?;
        fields.skip(2)?;
        let root = fields.address()?;
        let count = u64::from(fields.u16()?);
        if record == 0 || node < 10 + record as u64 || depth > MAX_DEPTH {
            return Err(ctx.malformed(address, "B-tree with invalid sizes"));
        }
        let leaf = (node - 10) / record as u64;
        let count_bytes = bytes_for(leaf);
        let mut levels = vec![(leaf, 0)];
        for level in 1..=usize::from(depth) {
            let (below, below_bytes) = levels[level - 1];
            let pointer = (sizes.offset + count_bytes + below_bytes) as u64;
            let capacity = node.saturating_sub(10 + pointer);
            let most = capacity / (record as u64 + pointer);
            if most == 0 {
                return Err(ctx.malformed(address, "B-tree nodes are too small for a record"));
            }
            let all = (most + 1).saturating_mul(below).saturating_add(most);
            levels.push((all, bytes_for(all)));
        }
        Ok(Self { ctx, kind, record, node, depth, root, count, name, levels, count_bytes })
    }

    /// Calls `each` with every record, in order, and the address of its node.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
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
            Some(below) => self.ctx.sizes.offset + self.count_bytes + self.levels[below].1,
        };
        let records = count.saturating_mul(self.record as u64);
        let pointers = if level == 0 { 0 } else { (count + 1) * pointer as u64 };
        let len = records.saturating_add(pointers).saturating_add(10);
        if len > self.node {
            return Err(self.ctx.malformed(address, "B-tree node has more records than fit"));
        }
        let signature = if level == 0 { b"BTLF" } else { b"BTIN" };
        let bytes = self.ctx.read_checked(address, len, signature, self.name)?;
        let mut fields = self.ctx.fields(&bytes, address + 4);
        fields.version(&[0], "B-tree node")?;
        if fields.u8()? != self.kind {
            return Err(self.ctx.malformed(address, "B-tree node of another tree type"));
        }
        let all = fields.take(records as usize)?;
        let mut all = all.chunks_exact(self.record);
        let Some(below) = depth.checked_sub(1) else {
            return all.try_for_each(|record| each(record, address));
        };
        // One child before each record and one after the last.
        for _ in 0..=count {
            let child = fields.required_address("B-tree child")?;
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
