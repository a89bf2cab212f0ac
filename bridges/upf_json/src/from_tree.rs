//! The pseudopotential of any dataset as JSON.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::{Attrs, Dataset, Error, NodeId, Result, Sink, Tree, Value};
use spile_interchange::{Kept, Losses};

use crate::UpfJson;

/// Rydberg in Hartree.
const HARTREE: f64 = 0.5;

/// Approximate memory of a number in JSON, in bytes.
const NUMBER: u64 = 64;

impl FormatWriter for UpfJson {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let source = Elements::new(content, false)?;
        source.document()?;
        let used = source.used.into_inner();
        let mut losses = Losses::new("upf_to_json");
        let kept = Kept { root_attrs: false, group_attrs: false, array_attrs: false, ..Kept::ALL };
        losses.add(content, &kept, |id, _, _| {
            let known = used.contains(&id).then_some(());
            known.ok_or_else(|| "upf_to_json has no such element".into())
        });
        Ok(losses.into_vec())
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let document = Elements::new(content, true)?.document()?;
        let text = serde_json::to_string(&document).map_err(|e| Error::argument(e.to_string()))?;
        sink.write_all(text.as_bytes())?;
        sink.write_all(b"\n")?;
        Ok(Vec::new())
    }
}

/// The elements of a pseudopotential.
struct Elements<'a> {
    content: &'a Dataset,
    root: NodeId,
    header: &'a Attrs,
    /// Values are read; otherwise the arrays are empty.
    read: bool,
    used: RefCell<HashSet<NodeId>>,
}

/// The error for content without a pseudopotential.
fn unsupported(what: &str) -> Error {
    let message = format!("expected a pseudopotential, found no {what}");
    Error::unsupported("upf-json-020", message)
}

impl<'a> Elements<'a> {
    fn new(content: &'a Dataset, read: bool) -> Result<Self> {
        let tree = content.tree();
        let root = tree.at("UPF").ok_or_else(|| unsupported("group UPF"))?;
        let header = tree.child(root, "PP_HEADER").ok_or_else(|| unsupported("PP_HEADER"))?;
        let header = &tree.node(header).attrs;
        Ok(Self { content, root, header, read, used: RefCell::default() })
    }

    fn tree(&self) -> &'a Tree {
        self.content.tree()
    }

    /// The node at a path below the pseudopotential.
    fn node(&self, path: &str) -> Option<NodeId> {
        path.split('/').try_fold(self.root, |at, name| self.tree().child(at, name))
    }

    fn attrs(&self, path: &str) -> Option<&'a Attrs> {
        self.node(path).map(|id| &self.tree().node(id).attrs)
    }

    /// The values of an array; none unless values are read.
    fn numbers(&self, path: &str) -> Result<Option<Vec<f64>>> {
        let Some(id) = self.node(path).filter(|id| self.tree().array(*id).is_some()) else {
            return Ok(None);
        };
        self.used.borrow_mut().insert(id);
        if !self.read {
            return Ok(Some(Vec::new()));
        }
        let array = self.content.array_at(id)?;
        let count = array.shape().count().unwrap_or(u64::MAX);
        self.content.limits().allow(count.saturating_mul(NUMBER), "the JSON text")?;
        array.values().map(Some)
    }

    /// The values of an array, multiplied by `factor`; those before `most`.
    fn values(&self, path: &str, factor: f64, most: Option<u64>) -> Result<Option<Json>> {
        let Some(mut values) = self.numbers(path)? else { return Ok(None) };
        values.truncate(most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX));
        let numbers: Vec<Json> = values.iter().map(|value| json!(factor * value)).collect();
        Ok(Some(Json::Array(numbers)))
    }

    fn required(&self, path: &str, factor: f64) -> Result<Json> {
        self.values(path, factor, None)?.ok_or_else(|| unsupported(path))
    }

    fn flag(&self, name: &str) -> bool {
        self.header.get_bool(name).unwrap_or(false)
    }

    fn document(&self) -> Result<Json> {
        let number = |name: &str| self.header.get_u64(name).unwrap_or(0);
        let text = |name: &str| self.header.get(name).map(Value::to_string).unwrap_or_default();
        let (projectors, spin_orbit) = (number("number_of_proj"), self.flag("has_so"));
        let mut header = json!({
            "number_of_proj": projectors,
            "core_correction": self.flag("core_correction"),
            "element": text("element").trim(),
            "pseudo_type": text("pseudo_type").trim(),
            "z_valence": self.header.get_f64("z_valence").unwrap_or(0.0),
            "mesh_size": number("mesh_size"),
            "is_ultrasoft": self.flag("is_ultrasoft"),
            "number_of_wfc": number("number_of_wfc"),
            "spin_orbit": spin_orbit,
        });
        if let Some(path) = self.content.source().path() {
            header["original_upf_file"] = json!(path.to_string_lossy());
        }
        let mut all = Map::new();
        all.insert("radial_grid".into(), self.required("PP_MESH/PP_R", 1.0)?);
        if self.flag("core_correction") {
            all.insert("core_charge_density".into(), self.required("PP_NLCC", 1.0)?);
        }
        all.insert("local_potential".into(), self.required("PP_LOCAL", HARTREE)?);
        all.insert("beta_projectors".into(), self.projectors(projectors, spin_orbit)?);
        if let Some(values) = self.values("PP_NONLOCAL/PP_DIJ", HARTREE, None)? {
            all.insert("D_ion".into(), values);
        }
        if self.flag("is_ultrasoft") {
            all.insert("augmentation".into(), self.augmentation(projectors)?);
        }
        if text("pseudo_type").trim() == "PAW" {
            self.paw(projectors, &mut header, &mut all)?;
        }
        let waves = self.waves(number("number_of_wfc"), spin_orbit)?;
        all.insert("atomic_wave_functions".into(), waves);
        all.insert("total_charge_density".into(), self.required("PP_RHOATOM", 1.0)?);
        all.insert("header".into(), header);
        Ok(json!({ "pseudo_potential": all }))
    }

    /// A function with its angular momentum and label.
    fn function(&self, path: &str, momentum: &str, most: Option<u64>) -> Result<Map<String, Json>> {
        let values = self.values(path, 1.0, most)?.ok_or_else(|| unsupported(path))?;
        let mut one = Map::new();
        one.insert("radial_function".into(), values);
        if let Some(attrs) = self.attrs(path) {
            one.extend(attrs.get(momentum).map(|l| ("angular_momentum".into(), number(l))));
            one.extend(attrs.get("label").map(|text| ("label".into(), json!(text.to_string()))));
        }
        Ok(one)
    }

    fn projectors(&self, count: u64, spin_orbit: bool) -> Result<Json> {
        let mut list = Vec::new();
        for k in 1..=count {
            let path = format!("PP_NONLOCAL/PP_BETA.{k}");
            let cut = self.attrs(&path).and_then(|attrs| attrs.get_u64("cutoff_radius_index"));
            let mut one = self.function(&path, "angular_momentum", cut.filter(|cut| *cut > 0))?;
            let spin = self.attrs(&format!("PP_SPIN_ORB/PP_RELBETA.{k}"));
            if let Some(spin) = spin.filter(|_| spin_orbit) {
                let momentum = |name: &str| spin.get_f64(name).map(|value| json!(value));
                one.extend(momentum("lll").map(|l| ("angular_momentum".into(), l)));
                one.extend(momentum("jjj").map(|j| ("total_angular_momentum".into(), j)));
            }
            list.push(Json::Object(one));
        }
        Ok(Json::Array(list))
    }

    /// Augmentation functions of all pairs of projectors and angular momenta. Where the file has one function per
    /// pair, they are that function beyond a radius, and a polynomial below it.
    fn augmentation(&self, count: u64) -> Result<Json> {
        let momentum = |k: u64| {
            let attrs = self.attrs(&format!("PP_NONLOCAL/PP_BETA.{k}"));
            attrs.and_then(|attrs| attrs.get_u64("angular_momentum")).unwrap_or(0)
        };
        let group = "PP_NONLOCAL/PP_AUGMENTATION";
        let expansion = Expansion::read(self, group)?;
        let mut list = Vec::new();
        for i in 1..=count {
            for j in i..=count {
                let (first, second) = (momentum(i), momentum(j));
                let joint = self.numbers(&format!("{group}/PP_QIJ.{i}.{j}"))?;
                for l in (first.abs_diff(second)..=first.saturating_add(second)).step_by(2) {
                    let path = format!("{group}/PP_QIJL.{i}.{j}.{l}");
                    let values = match (self.numbers(&path)?, &joint) {
                        (Some(values), _) => values,
                        (None, Some(joint)) => expansion.apply(joint, (i - 1, j - 1), count, l)?,
                        (None, None) => continue,
                    };
                    list.push(json!({
                        "radial_function": values, "i": i - 1, "j": j - 1, "angular_momentum": l,
                    }));
                }
            }
        }
        Ok(Json::Array(list))
    }

    fn waves(&self, count: u64, spin_orbit: bool) -> Result<Json> {
        let mut list = Vec::new();
        for k in 1..=count {
            let path = format!("PP_PSWFC/PP_CHI.{k}");
            let mut one = self.function(&path, "l", None)?;
            let occupation = self.attrs(&path).and_then(|attrs| attrs.get_f64("occupation"));
            one.extend(occupation.map(|value| ("occupation".into(), json!(value))));
            let spin = self.attrs(&format!("PP_SPIN_ORB/PP_RELWFC.{k}")).filter(|_| spin_orbit);
            let total = spin.and_then(|spin| spin.get_f64("jchi"));
            one.extend(total.map(|j| ("total_angular_momentum".into(), json!(j))));
            list.push(Json::Object(one));
        }
        Ok(Json::Array(list))
    }

    fn paw(&self, count: u64, header: &mut Json, all: &mut Map<String, Json>) -> Result<()> {
        let augmentation = self.attrs("PP_NONLOCAL/PP_AUGMENTATION");
        if let Some(cut) = augmentation.and_then(|attrs| attrs.get_u64("cutoff_r_index")) {
            header["cutoff_radius_index"] = json!(cut);
        }
        if let Some(energy) = self.attrs("PP_PAW").and_then(|attrs| attrs.get_f64("core_energy")) {
            header["paw_core_energy"] = json!(HARTREE * energy);
        }
        let mut data = Map::new();
        for (key, path, factor) in [
            ("aug_integrals", "PP_NONLOCAL/PP_AUGMENTATION/PP_Q", 1.0),
            ("aug_multipoles", "PP_NONLOCAL/PP_AUGMENTATION/PP_MULTIPOLES", 1.0),
            ("occupations", "PP_PAW/PP_OCCUPATIONS", 1.0),
            ("ae_core_charge_density", "PP_PAW/PP_AE_NLCC", 1.0),
            ("ae_local_potential", "PP_PAW/PP_AE_VLOC", HARTREE),
        ] {
            data.insert(key.into(), self.required(path, factor)?);
        }
        for (key, name) in [("ae_wfc", "PP_AEWFC"), ("ps_wfc", "PP_PSWFC")] {
            let path = |k: u64| format!("PP_FULL_WFC/{name}.{k}");
            let functions =
                (1..=count).map(|k| Ok(Json::Object(self.function(&path(k), "l", None)?)));
            data.insert(key.into(), Json::Array(functions.collect::<Result<_>>()?));
        }
        all.insert("paw_data".into(), Json::Object(data));
        Ok(())
    }
}

/// The augmentation functions at small radii: `r^(l + 2)` times a polynomial of `r^2`.
struct Expansion {
    radii: Vec<f64>,
    /// Number of coefficients of a polynomial.
    terms: u64,
    /// Of all terms, angular momenta and pairs of projectors, in this order.
    coefficients: Vec<f64>,
    /// The radius of each angular momentum below which the polynomial applies.
    inner: Vec<f64>,
}

impl Expansion {
    fn read(content: &Elements<'_>, group: &str) -> Result<Self> {
        let terms = content.attrs(group).and_then(|attrs| attrs.get_u64("nqf")).unwrap_or(0);
        let array = |name: &str| content.numbers(&format!("{group}/{name}"));
        Ok(Self {
            radii: content.numbers("PP_MESH/PP_R")?.unwrap_or_default(),
            terms,
            coefficients: array("PP_QFCOEF")?.unwrap_or_default(),
            inner: array("PP_RINNER")?.unwrap_or_default(),
        })
    }

    /// The function `joint` of the projectors `i` and `j` of `count`, for the angular momentum `l`.
    fn apply(&self, joint: &[f64], (i, j): (u64, u64), count: u64, l: u64) -> Result<Vec<f64>> {
        let momenta = self.inner.len() as u64;
        let inner = usize::try_from(l).ok().and_then(|l| self.inner.get(l).copied());
        let Some(inner) = inner.filter(|_| self.terms > 0 && !joint.is_empty()) else {
            return Ok(joint.to_vec());
        };
        let number = j.checked_mul(count).and_then(|row| row.checked_add(i));
        let first = number.and_then(|pair| pair.checked_mul(momenta)?.checked_add(l));
        let first = first.and_then(|number| number.checked_mul(self.terms));
        let range = first.and_then(|first| {
            let last = usize::try_from(first.checked_add(self.terms)?).ok()?;
            self.coefficients.get(usize::try_from(first).ok()?..last)
        });
        let Some([constant, others @ ..]) = range else {
            return Err(unsupported("PP_QFCOEF of all projectors"));
        };
        let below = |r: f64| {
            let powers = others.iter().zip(1_u32..);
            let sum = powers.fold(*constant, |sum, (c, n)| sum + c * (r * r).powf(n.into()));
            sum * r.powf(l as f64 + 2.0)
        };
        let values = joint.iter().zip(&self.radii);
        Ok(values.map(|(q, r)| if *r < inner { below(*r) } else { *q }).collect())
    }
}

/// A number of an attribute.
fn number(value: &Value) -> Json {
    match value {
        Value::Int(number) => json!(number),
        Value::UInt(number) => json!(number),
        other => f64::try_from(other).map_or(Json::Null, |number| json!(number)),
    }
}
