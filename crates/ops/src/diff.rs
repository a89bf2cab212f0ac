//! Differences of two files: objects, attributes, descriptions of arrays, and values.

mod values;

use std::collections::HashSet;

use serde::Serialize;
use spile_core::{
    Array, ArrayDesc, Attrs, Axes, ByteOrder, Coord, Dataset, Error, FrameAxis, FrameTable, Linear,
    Node, Result, Selection, Semantics, Slice, Tree,
};

use crate::json::Real;
use crate::pick::Pick;
use values::Gap;

/// What counts as a difference.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Absolute tolerance: values are equal if `|a - b| <= atol + rtol * |b|`.
    pub atol: f64,
    /// Relative tolerance, as a fraction of the second value.
    pub rtol: f64,
    /// Tolerance in units in the last place of the less precise type.
    pub ulp: u64,
    /// NaN equals NaN.
    pub nan_equal: bool,
    /// Compares values and shapes only, not types, attributes, dimensions and coordinates.
    pub values_only: bool,
    /// Objects and frames that are compared.
    pub pick: Pick,
    /// Objects that are not compared.
    pub ignore: Option<Pick>,
    /// Paths in the first file and in the second.
    pub renamed: Vec<(String, String)>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            atol: 0.0,
            rtol: 0.0,
            ulp: 0,
            nan_equal: true,
            values_only: false,
            pick: Pick::default(),
            ignore: None,
            renamed: Vec::new(),
        }
    }
}

impl Rules {
    fn allows(&self, distance: f64, second: f64) -> bool {
        distance <= self.atol + self.rtol * second
    }

    fn is_exact(&self) -> bool {
        self.atol == 0.0 && self.rtol == 0.0 && self.ulp == 0
    }

    fn wants(&self, path: &str) -> bool {
        let ignored = self.ignore.as_ref().is_some_and(|ignore| ignore.wants(path));
        self.pick.wants(path) && !ignored
    }

    fn wants_node(&self, node: &Node) -> bool {
        let ignored = self.ignore.as_ref().is_some_and(|ignore| ignore.wants_node(node));
        self.pick.wants_node(node) && !ignored
    }

    /// The path in the second file of a path in the first, by its own new name or that of a group above it.
    fn second_path(&self, path: &str) -> String {
        let below = |(from, to): &(String, String)| {
            let rest = path.strip_prefix(from.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
        };
        self.renamed.iter().find_map(below).unwrap_or_else(|| path.into())
    }
}

/// The differences of two files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diff {
    /// Number of arrays in both files.
    pub arrays: u64,
    /// The differences: structure first, then values, largest relative difference first.
    pub differences: Vec<Row>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Path of the object in the first file; empty for the root.
    pub path: String,
    /// What is different: `first only`, `second only`, `kind`, `frames`, `type`, `shape`, `map`,
    /// `dimensions`, `coordinates`, `meaning`, `attribute`, `values`, `unreadable`.
    pub what: &'static str,
    /// The frame with the largest difference, or the only one that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// The attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the first file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// What the second file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
    /// Statistics of differing values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Apart>,
}

/// Values that differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apart {
    /// Number of differing elements.
    pub differ: u64,
    /// Number of elements.
    pub count: u64,
    /// The largest absolute difference; absent for text and bytes, null in JSON if one value is NaN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<Real>,
    /// That difference as a fraction of the larger value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<Real>,
    /// Its index.
    pub index: Vec<u64>,
    /// The coordinates at that index, where known.
    pub at: Vec<Option<Real>>,
}

impl Row {
    pub(crate) fn new(
        path: &str,
        what: &'static str,
        first: Option<String>,
        second: Option<String>,
    ) -> Self {
        let path = path.into();
        Self { path, what, frame: None, name: None, first, second, values: None }
    }
}

/// Compares two files. Byte order, element order and compression are not differences, nor is the form of a
/// coordinate: a uniform one and an array with exactly its points are equal.
pub fn diff(first: &Dataset, second: &Dataset, rules: &Rules) -> Result<Diff> {
    let ids = |pick: &Pick| pick.with_ids_of(first.tree()).with_ids_of(second.tree());
    let (pick, ignore) = (ids(&rules.pick), rules.ignore.as_ref().map(ids));
    let rules = &Rules { pick, ignore, ..rules.clone() };
    let missing = HashSet::new();
    let mut work = Work { files: [first, second], rules, missing, diff: Diff::default() };
    work.files()?;
    let (one, two) = (first.tree(), second.tree());
    let mut met = HashSet::new();
    for (_, node) in one.iter().filter(|(_, node)| rules.wants_node(node)) {
        match two.at(&rules.second_path(&node.path)) {
            Some(id) => {
                met.insert(id);
                let done = work.nodes(node, two.node(id));
                done.map_err(|e| e.in_object(format!("\"{}\"", node.path)))?;
            }
            None => work.only(node, "first only"),
        }
    }
    work.missing.clear();
    for (id, node) in two.iter().filter(|(_, node)| rules.wants_node(node)) {
        if !met.contains(&id) {
            work.only(node, "second only");
        }
    }
    let mut diff = work.diff;
    // Structure first, then values by relative difference.
    diff.differences.sort_by(|a, b| {
        let far = |row: &Row| {
            let values = row.values.as_ref();
            values.map(|v| v.relative.map_or(f64::INFINITY, |r| r.0))
        };
        match (far(a), far(b)) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    });
    Ok(diff)
}

struct Work<'a> {
    files: [&'a Dataset; 2],
    rules: &'a Rules,
    /// Groups in only one of the files.
    missing: HashSet<String>,
    diff: Diff,
}

impl Work<'_> {
    fn add(&mut self, row: Row) {
        self.diff.differences.push(row);
    }

    fn only(&mut self, node: &Node, what: &'static str) {
        let above = node.path.rsplit_once('/').map_or("", |(above, _)| above);
        // Objects in a missing group are not listed.
        if !self.missing.contains(above) {
            self.add(Row::new(&node.path, what, None, None));
        }
        if node.array.is_none() {
            self.missing.insert(node.path.clone());
        }
    }

    /// Compares the attributes of the roots, and the frame axes.
    fn files(&mut self) -> Result<()> {
        let [one, two] = self.files.map(Dataset::tree);
        if !self.rules.values_only && self.rules.wants("") {
            self.attrs("", one.attrs(), two.attrs());
        }
        let count = |tree: &Tree| tree.frames().map(|axis| axis.len());
        if count(one) != count(two) {
            let text = |tree: &Tree| Some(count(tree).map_or("none".into(), |n| n.to_string()));
            self.add(Row::new("", "frames", text(one), text(two)));
            return Ok(());
        }
        let (Some(one), Some(two)) = (one.frames(), two.frames()) else { return Ok(()) };
        if self.rules.values_only {
            return Ok(());
        }
        // One row for all frames: the first that differs.
        for frame in self.rules.pick.frames(one.len())? {
            let moment =
                |axis: &dyn FrameAxis| -> Result<_> { Ok((axis.step(frame)?, axis.time(frame)?)) };
            let (a, b) = (moment(&**one)?, moment(&**two)?);
            let same_time = match (a.1, b.1) {
                (Some(a), Some(b)) => {
                    self.rules.allows((a - b).abs(), b.abs())
                        || (a.is_nan() && b.is_nan())
                        || a == b
                }
                (a, b) => a == b,
            };
            if a.0 != b.0 || !same_time {
                let text = |(step, time): (Option<u64>, Option<f64>)| {
                    let step = step.map(|step| format!("step {step}"));
                    let time = time.map(|time| format!("time {time}"));
                    let known: Vec<String> = step.into_iter().chain(time).collect();
                    if known.is_empty() { "no step or time".into() } else { known.join(", ") }
                };
                let row = Row::new("", "frames", Some(text(a)), Some(text(b)));
                self.add(Row { frame: Some(frame), ..row });
                break;
            }
        }
        Ok(())
    }

    fn nodes(&mut self, one: &Node, two: &Node) -> Result<()> {
        let kind = |node: &Node| Some(if node.array.is_some() { "array" } else { "group" }.into());
        if !self.rules.values_only {
            self.attrs(&one.path, &one.attrs, &two.attrs);
        }
        match (&one.array, &two.array) {
            (Some(first), Some(second)) => self.arrays(&one.path, first, second),
            (None, None) => Ok(()),
            _ => {
                self.add(Row::new(&one.path, "kind", kind(one), kind(two)));
                Ok(())
            }
        }
    }

    fn attrs(&mut self, path: &str, first: &Attrs, second: &Attrs) {
        let names = first.iter().chain(second.iter().filter(|(name, _)| !first.contains(name)));
        for (name, _) in names {
            let both = [first.get(name), second.get(name)];
            if !matches!(both, [Some(a), Some(b)] if a.same(b)) {
                let [first, second] = both.map(|value| value.map(ToString::to_string));
                let row = Row::new(path, "attribute", first, second);
                self.add(Row { name: Some(name.into()), ..row });
            }
        }
    }

    fn arrays(&mut self, path: &str, first: &ArrayDesc, second: &ArrayDesc) -> Result<()> {
        let [one, two] = self.files.map(Dataset::tree);
        let (a, b) = (one.resolve(first)?, two.resolve(second)?);
        self.diff.arrays += 1;
        if !self.rules.values_only {
            self.described(path, first, second, [a, b]);
        }
        let frames = |desc: &ArrayDesc| desc.layout.frames().map(|table| table.len());
        match (frames(a), frames(b)) {
            (None, None) => {
                let arrays = [(self.files[0], first), (self.files[1], second)]
                    .map(|(file, desc)| file.open_array(desc));
                let [a, b] = arrays;
                self.values(path, None, &a?, &b?, first)
            }
            (Some(_), Some(_)) => {
                let tables = [a, b].into_iter().filter_map(|desc| desc.layout.frames());
                let tables: Vec<&dyn FrameTable> = tables.map(|table| &**table).collect();
                // Frames that neither array has are equal.
                for frame in self.rules.pick.frames_of(&tables)? {
                    let frame = frame?;
                    self.frame(path, frame, first, second).map_err(|e| e.in_frame(frame))?;
                }
                Ok(())
            }
            (a, b) => {
                let text = |n: Option<u64>| Some(n.map_or("none".into(), |n| n.to_string()));
                self.add(Row::new(path, "frames", text(a), text(b)));
                // An array with one frame and one without frames may have the same values.
                if a.or(b) == Some(1) { self.frame(path, 0, first, second) } else { Ok(()) }
            }
        }
    }

    fn frame(
        &mut self,
        path: &str,
        frame: u64,
        first: &ArrayDesc,
        second: &ArrayDesc,
    ) -> Result<()> {
        let open = |file: &Dataset, desc| file.open_array_in_frame(desc, frame);
        match (open(self.files[0], first)?, open(self.files[1], second)?) {
            (Some(a), Some(b)) => self.values(path, Some(frame), &a, &b, first),
            (None, None) => Ok(()),
            (a, _) => {
                let what = if a.is_some() { "first only" } else { "second only" };
                self.add(Row { frame: Some(frame), ..Row::new(path, what, None, None) });
                Ok(())
            }
        }
    }

    /// Compares the descriptions of two arrays, except for their shapes.
    fn described(
        &mut self,
        path: &str,
        first: &ArrayDesc,
        second: &ArrayDesc,
        [a, b]: [&ArrayDesc; 2],
    ) {
        let mut row = |what, first: String, second: String| {
            if first != second {
                self.diff.differences.push(Row::new(path, what, Some(first), Some(second)));
            }
        };
        // Byte order is not content.
        let dtype = |desc: &ArrayDesc| desc.dtype.with_order(ByteOrder::Little).to_string();
        row("type", dtype(a), dtype(b));
        let map = |desc: &ArrayDesc| match desc.map {
            None => "none".into(),
            Some(Linear { intercept, slope, origin: 0.0 }) => format!("{intercept} + {slope} x"),
            Some(Linear { intercept, slope, origin }) => {
                format!("{intercept} + {slope} (x - {origin})")
            }
        };
        row("map", map(a), map(b));
        let dims = |desc: &ArrayDesc| desc.dims.join(", ");
        row("dimensions", dims(first), dims(second));
        let [one, two] = self.files.map(Dataset::tree);
        let coords = |desc: &ArrayDesc, tree: &Tree, rules: Option<&Rules>| -> Vec<String> {
            let words = desc.coords.iter().map(|coord| match coord {
                Coord::None => "none".into(),
                Coord::Uniform { start, step } => format!("{start} + {step} k"),
                Coord::Node(id) => {
                    let path = &tree.node(*id).path;
                    rules.map_or_else(|| path.clone(), |rules| rules.second_path(path))
                }
            });
            words.collect()
        };
        let files = self.files;
        let texts = [coords(first, one, Some(self.rules)), coords(second, two, None)];
        let same = |k: usize| texts[0][k] == texts[1][k] || same_points(files, k, [first, second]);
        if texts[0].len() != texts[1].len() || !(0..texts[0].len()).all(same) {
            let [a, b] = texts.map(|texts| texts.join(", "));
            row("coordinates", a, b);
        }
        let meaning = |desc: &ArrayDesc, tree: &Tree, rules: Option<&Rules>| {
            let Semantics { role, mesh, centring, component, point_set, missing, .. } =
                desc.semantics();
            let mesh = mesh.map(|id| tree.node(id).path.as_str());
            let mesh = mesh.map(|path| rules.map_or_else(|| path.into(), |r| r.second_path(path)));
            format!("{} {mesh:?} {centring:?} {component:?} {point_set:?} {missing:?}", role.name())
        };
        let (a, b) = (meaning(first, one, Some(self.rules)), meaning(second, two, None));
        if a != b {
            // An array without semantics has none.
            let known = |text: String, desc: &ArrayDesc| {
                (*desc.semantics() != Semantics::default()).then_some(text)
            };
            self.add(Row::new(path, "meaning", known(a, first), known(b, second)));
        }
    }

    fn values(
        &mut self,
        path: &str,
        frame: Option<u64>,
        first: &Array,
        second: &Array,
        desc: &ArrayDesc,
    ) -> Result<()> {
        if first.shape() != second.shape() {
            let shapes = [first, second].map(|array| Some(array.shape().to_string()));
            let [one, two] = shapes;
            self.add(Row { frame, ..Row::new(path, "shape", one, two) });
            return Ok(());
        }
        let Gap { differ, worst: Some(worst) } = values::compare(first, second, self.rules)? else {
            return Ok(());
        };
        let at = self.coordinates(desc, &worst.index, frame);
        let size = |text: &str| text.parse::<f64>().ok().filter(|v| v.is_finite()).map(f64::abs);
        let larger = size(&worst.first).into_iter().chain(size(&worst.second)).fold(0.0, f64::max);
        let relative = worst
            .distance
            .map(|distance| Real(if larger > 0.0 { distance / larger } else { f64::INFINITY }));
        let apart = Apart {
            differ,
            count: first.shape().count().unwrap_or(0),
            distance: worst.distance.map(Real),
            relative,
            index: worst.index,
            at,
        };
        let row = Row::new(path, "values", Some(worst.first), Some(worst.second));
        let row = Row { frame, values: Some(apart), ..row };
        // One row for all frames: that of the largest difference.
        let known = self.diff.differences.iter_mut();
        let known = known.rev().find(|r| r.values.is_some() && r.path == path && frame.is_some());
        match known {
            None => self.add(row),
            Some(known) => {
                let total = |r: &Row| r.values.as_ref().map_or([0; 2], |v| [v.differ, v.count]);
                let totals = [total(known), total(&row)];
                let far = |r: &Row| r.values.as_ref().and_then(|v| v.distance).map(|d| d.0);
                if far(&row) > far(known) {
                    *known = row;
                }
                if let Some(values) = &mut known.values {
                    values.differ = totals[0][0] + totals[1][0];
                    values.count = totals[0][1] + totals[1][1];
                }
            }
        }
        Ok(())
    }

    /// The coordinates at an index of the first file.
    fn coordinates(
        &self,
        desc: &ArrayDesc,
        index: &[u64],
        frame: Option<u64>,
    ) -> Vec<Option<Real>> {
        let file = self.files[0];
        let point = |coord: &Coord, k: u64| match coord {
            Coord::None => None,
            Coord::Uniform { start, step } => Some(start + k as f64 * step),
            Coord::Node(id) => {
                let array = file.array_in_frame(*id, frame.unwrap_or(0));
                let place = Selection(vec![Slice::Index(i64::try_from(k).ok()?)]);
                array.ok()??.read_f64(&place, Axes::Stored).ok()?.first().copied()
            }
        };
        desc.coords.iter().zip(index).map(|(coord, k)| point(coord, *k).map(Real)).collect()
    }
}

/// Whether the coordinates of dimension `k` have the same points, if at least one of them is an array.
/// Uniform points are `start + k * step` in float64; all points have to be equal exactly.
fn same_points(files: [&Dataset; 2], k: usize, arrays: [&ArrayDesc; 2]) -> bool {
    let coords = arrays.map(|desc| &desc.coords[k]);
    let is_array = |coord: &&Coord| matches!(coord, Coord::Node(_));
    if coords.contains(&&Coord::None) || !coords.iter().any(is_array) {
        return false;
    }
    let points = |n: usize| -> Result<Vec<f64>> {
        let shape = &files[n].tree().resolve(arrays[n])?.shape;
        files[n].points(coords[n], shape.lengths().get(k).copied().unwrap_or(0))
    };
    matches!((points(0), points(1)), (Ok(a), Ok(b)) if a == b)
}

/// Parses `old=new`.
pub fn renaming(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => {
            let clean = |path: &str| path.trim_matches('/').to_string();
            Ok((clean(from), clean(to)))
        }
        _ => Err(Error::argument(format!("expected old=new, found \"{text}\""))),
    }
}
