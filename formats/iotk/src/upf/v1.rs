//! UPF v1: named sections whose content is known by its position. Numbers are read from the text of the
//! file; a projector is zero after its cut-off, as in v2.

mod scanner;

use spile_core::{
    ArrayDesc, Attrs, DType, Error, ErrorKind, NodeId, ROOT, Report, Result, Shape, Tree, Value,
};

use self::scanner::{Scanner, field};
use super::{ROOT_NAME, VERSION};
use crate::element_data::describe_data;
use crate::index::Element;
use crate::read::File;
use crate::wire::Tag;

/// Builds the tree. Sections that cannot be read are reported with iotk-046 and shown as text.
pub(super) fn to_tree(file: &File, report: &mut Report) -> Result<Tree> {
    let mut tree = Tree::new(file.limits());
    let root = tree.add_group(ROOT, ROOT_NAME)?;
    tree.push_attr(root, "version", VERSION)?;
    let mut builder = Builder { file, tree, root, header: Header::default() };
    for id in file.index().roots() {
        let element = &file.index().elements()[*id];
        let Err(error) = builder.add_section(element) else { continue };
        if error.kind() == ErrorKind::Limit {
            return Err(error);
        }
        let (name, at) = (element.tag.name_lossy(), error.offset().unwrap_or(element.offset));
        let finding = report.error("iotk-046", format!("{}; shown as text", error.message()));
        finding.in_object(format!("{ROOT_NAME}/{name}")).at(at);
        builder.add_raw(root, element)?;
    }
    Ok(builder.tree)
}

/// Values of `PP_HEADER` on which the other sections depend.
#[derive(Default)]
struct Header {
    mesh: usize,
    wavefunctions: usize,
    projectors: usize,
    l_max: usize,
}

struct Builder<'a> {
    file: &'a File,
    tree: Tree,
    root: NodeId,
    header: Header,
}

impl<'a> Builder<'a> {
    fn add_section(&mut self, element: &'a Element) -> Result<()> {
        match element.tag.name() {
            b"PP_HEADER" => self.add_header(element),
            b"PP_MESH" => {
                let group = self.tree.add_group(self.root, "PP_MESH")?;
                self.tree.push_attr(group, "mesh", self.header.mesh as u64)?;
                self.children(element).try_for_each(|child| self.add_function(group, child))
            }
            b"PP_LOCAL" | b"PP_NLCC" | b"PP_RHOATOM" => self.add_function(self.root, element),
            b"PP_NONLOCAL" => self.add_nonlocal(element),
            b"PP_PSWFC" => self.add_wavefunctions(element),
            b"PP_ADDINFO" => self.add_spin_orbit(element),
            b"PP_GIPAW_RECONSTRUCTION_DATA" => self.add_gipaw(element),
            // Some files have the reconstruction data inside.
            b"PP_PAW" if element.data.is_empty() => {
                self.children(element).try_for_each(|child| self.add_section(child))
            }
            _ => self.add_raw(self.root, element),
        }
    }

    /// Adds a section as it is: its text, or a group with the texts of its parts.
    fn add_raw(&mut self, parent: NodeId, element: &'a Element) -> Result<()> {
        let name = element.tag.name_lossy();
        let group = !element.children.is_empty() || element.data.len() != 1;
        let target = if group { self.tree.add_group(parent, &name)? } else { parent };
        let (form, bytes) = (self.file.form(), self.file.bytes());
        for data in &element.data {
            let text = describe_data(&Tag::default(), None, data, form, bytes)?;
            self.tree.add_array(target, if group { "text" } else { &name }, text.array)?;
        }
        self.children(element).try_for_each(|child| self.add_raw(target, child))
    }

    fn children(&self, element: &'a Element) -> impl Iterator<Item = &'a Element> + use<'a> {
        let index = self.file.index();
        element.children.iter().map(|id| &index.elements()[*id])
    }

    fn child(&self, element: &'a Element, name: &str) -> Option<&'a Element> {
        self.children(element).find(|child| child.tag.name() == name.as_bytes())
    }

    fn root_element(&self, name: &str) -> Option<&'a Element> {
        let index = self.file.index();
        let mut roots = index.roots().iter().map(|id| &index.elements()[*id]);
        roots.find(|element| element.tag.name() == name.as_bytes())
    }

    fn scan(&self, element: &Element) -> Result<Scanner> {
        Scanner::new(self.file, element)
    }

    fn add_header(&mut self, element: &'a Element) -> Result<()> {
        let mut text = self.scan(element)?;
        let _version = text.line()?;
        let symbol: String = field(&text.line()?, 0)?;
        let kind: String = field(&text.line()?, 0)?;
        let correction: String = field(&text.line()?, 0)?;
        let functional = text.line()?;
        // The columns after the functional have a comment.
        let functional = functional.get(..20).unwrap_or(&functional).trim().to_string();
        let valence: f64 = field(&text.line()?, 0)?;
        let energy: f64 = field(&text.line()?, 0)?;
        let cutoffs = text.line()?;
        // Pseudopotentials without projectors have -1.
        let l_max: i64 = field(&text.line()?, 0)?;
        self.header.l_max = usize::try_from(l_max).unwrap_or(0);
        self.header.mesh = field(&text.line()?, 0)?;
        let counts = text.line()?;
        self.header.wavefunctions = field(&counts, 0)?;
        self.header.projectors = field(&counts, 1)?;
        let ultrasoft = kind == "US" || kind == "PAW";
        let has = |name: &[u8]| {
            self.file.index().elements().iter().any(|element| element.tag.name() == name)
        };
        let spin_orbit = has(b"PP_ADDINFO");
        let gipaw = has(b"PP_GIPAW_RECONSTRUCTION_DATA");
        let mut attrs = self.about(spin_orbit)?;
        let number = |count: usize| Value::UInt(count as u64);
        for (name, value) in [
            ("element", Value::from(symbol)),
            ("pseudo_type", kind.as_str().into()),
            ("is_ultrasoft", Value::Bool(ultrasoft)),
            ("is_paw", Value::Bool(kind == "PAW")),
            ("is_coulomb", Value::Bool(kind == "1/r")),
            ("has_so", Value::Bool(spin_orbit)),
            ("has_wfc", Value::Bool(false)),
            ("has_gipaw", Value::Bool(gipaw)),
            ("paw_as_gipaw", Value::Bool(false)),
            ("core_correction", Value::Bool(correction.to_ascii_uppercase().contains('T'))),
            ("functional", functional.into()),
            ("z_valence", Value::Float(valence)),
            ("total_psenergy", Value::Float(energy)),
            ("wfc_cutoff", Value::Float(field(&cutoffs, 0)?)),
            ("rho_cutoff", Value::Float(field(&cutoffs, 1)?)),
            ("l_max", Value::Int(l_max)),
            ("l_max_rho", number(self.header.l_max.saturating_mul(2))),
            ("mesh_size", number(self.header.mesh)),
            ("number_of_wfc", number(self.header.wavefunctions)),
            ("number_of_proj", number(self.header.projectors)),
        ] {
            attrs.push(name, value);
        }
        let group = self.tree.add_group(self.root, "PP_HEADER")?;
        self.tree.set_attrs(group, attrs)
    }

    /// The attributes of the header that v1 has as free text in `PP_INFO`: generator, author, date,
    /// relativistic treatment.
    fn about(&self, spin_orbit: bool) -> Result<Attrs> {
        let text = match self.root_element("PP_INFO") {
            Some(info) => self.scan(info)?.text(),
            None => String::new(),
        };
        let lower = text.to_ascii_lowercase();
        let after = |key: &str, until: &str| {
            let from = lower.find(key)? + key.len();
            let rest = text.get(from..)?.lines().next()?;
            let end = rest.to_ascii_lowercase().find(until).unwrap_or(rest.len());
            Some(rest.get(..end)?.trim().to_string())
        };
        let first = text.lines().map(str::trim).find(|line| !line.is_empty());
        let relativistic = match () {
            () if spin_orbit || lower.contains("fully-relativistic") => "full",
            () if lower.contains("full-relativistic") => "full",
            () if lower.contains("scalar-relativistic") => "scalar",
            () => "no",
        };
        Ok(Attrs::from([
            ("generated", Value::from(first.unwrap_or_default())),
            ("author", after("author:", "generation date:").unwrap_or_default().into()),
            ("date", after("generation date:", "\n").unwrap_or_default().into()),
            ("relativistic", relativistic.into()),
        ]))
    }

    /// Adds a section with one number per point of the mesh.
    fn add_function(&mut self, parent: NodeId, element: &'a Element) -> Result<()> {
        let mut text = self.scan(element)?;
        let values = text.reals(self.header.mesh)?;
        self.tree.add_array(parent, &element.tag.name_lossy(), values)?;
        Ok(())
    }

    /// Adds an array with attributes.
    fn add_array(
        &mut self,
        parent: NodeId,
        name: &str,
        array: ArrayDesc,
        attrs: Attrs,
    ) -> Result<()> {
        let id = self.tree.add_array(parent, name, array)?;
        self.tree.set_attrs(id, attrs)
    }

    /// Adds numbers that are not next to each other in the file.
    fn add_values(&mut self, parent: NodeId, name: &str, values: &[f64]) -> Result<()> {
        self.tree.charge(8 * values.len() as u64, "the matrices of a pseudopotential")?;
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let shape = Shape::new([values.len() as u64]);
        let array = ArrayDesc::inline(DType::F64, shape, bytes);
        self.tree.add_array(parent, name, array).map(drop)
    }

    fn add_nonlocal(&mut self, element: &'a Element) -> Result<()> {
        let betas: Vec<&Element> =
            self.children(element).filter(|child| child.tag.name() == b"PP_BETA").collect();
        let count = self.header.projectors;
        if betas.len() != count {
            let message = format!("expected {count} elements PP_BETA, found {}", betas.len());
            return Err(Error::malformed("iotk-046", message));
        }
        let group = self.tree.add_group(self.root, "PP_NONLOCAL")?;
        let mut momenta = Vec::new();
        for (k, beta) in betas.into_iter().enumerate() {
            let mut text = self.scan(beta)?;
            let line = text.line()?;
            let l: usize = field(&line, 1)?;
            momenta.push(l);
            let cutoff: usize = field(&text.line()?, 0)?;
            // Without a mesh its number of points is only a claim.
            let has_mesh = self.tree.at("UPF/PP_MESH/PP_R").is_some();
            let points = if has_mesh { self.header.mesh } else { cutoff };
            let values = text.padded_reals(cutoff, points)?;
            // Old files have no radii and labels.
            let radii = text.line().unwrap_or_default();
            let label: String = text.line().and_then(|line| field(&line, 0)).unwrap_or_default();
            let radius = |at| Value::Float(field(&radii, at).unwrap_or(0.0));
            let attrs = Attrs::from([
                ("index", Value::UInt(k as u64 + 1)),
                ("label", label.into()),
                ("angular_momentum", Value::UInt(l as u64)),
                ("cutoff_radius_index", Value::UInt(cutoff as u64)),
                ("cutoff_radius", radius(0)),
                ("ultrasoft_cutoff_radius", radius(1)),
            ]);
            self.add_array(group, &format!("PP_BETA.{}", k + 1), values, attrs)?;
        }
        if let Some(element) = self.child(element, "PP_DIJ") {
            let matrix = self.read_matrix(element, count)?;
            self.add_values(group, "PP_DIJ", &matrix)?;
        }
        match self.child(element, "PP_QIJ") {
            Some(charges) => self.add_augmentation(group, charges, &momenta),
            None => Ok(()),
        }
    }

    /// The matrix D: the number of elements that are not zero, and a line for each.
    fn read_matrix(&self, element: &Element, count: usize) -> Result<Vec<f64>> {
        let mut text = self.scan(element)?;
        let elements: usize = field(&text.line()?, 0)?;
        let mut matrix = self.zeros(count.saturating_mul(count))?;
        for _ in 0..elements {
            let line = text.line()?;
            let (i, j): (usize, usize) = (field(&line, 0)?, field(&line, 1)?);
            if !(1..=count).contains(&i) || !(1..=count).contains(&j) {
                let message = format!("expected indices up to {count}, found {i} and {j}");
                return Err(Error::malformed("iotk-046", message));
            }
            let value = field(&line, 2)?;
            matrix[(i - 1) * count + j - 1] = value;
            matrix[(j - 1) * count + i - 1] = value;
        }
        Ok(matrix)
    }

    fn zeros(&self, count: usize) -> Result<Vec<f64>> {
        let bytes = (count as u64).saturating_mul(8);
        self.file.limits().allow(bytes, "the matrices of a pseudopotential")?;
        Ok(vec![0.0; count])
    }

    /// Adds the augmentation charges: for each pair of projectors a line with the indices, the
    /// integral, the function, and the coefficients of its expansion at small radii.
    fn add_augmentation(
        &mut self,
        parent: NodeId,
        element: &'a Element,
        momenta: &[usize],
    ) -> Result<()> {
        let with_l = self.file.index().elements().iter().any(|e| e.tag.name() == b"PP_QIJ_WITH_L");
        let count = momenta.len();
        let mut text = self.scan(element)?;
        let terms: usize = field(&text.line()?, 0)?;
        let momenta_count = self.header.l_max.saturating_mul(2).saturating_add(1);
        let group = self.tree.add_group(parent, "PP_AUGMENTATION")?;
        self.tree.push_attr(group, "q_with_l", with_l)?;
        self.tree.push_attr(group, "nqf", terms as u64)?;
        self.tree.push_attr(group, "nqlc", momenta_count as u64)?;
        let mut integrals = self.zeros(count.saturating_mul(count))?;
        let mut expansions = self.children(element).filter(|e| e.tag.name() == b"PP_QFCOEF");
        let mut coefficients = Vec::new();
        let mut functions = Vec::new();
        for i in 0..count {
            for j in i..count {
                let _indices = text.line()?;
                let integral = field(&text.line()?, 0)?;
                integrals[i * count + j] = integral;
                integrals[j * count + i] = integral;
                let composite = Value::UInt((j * (j + 1) / 2 + i + 1) as u64);
                let mut attrs = Attrs::from([
                    ("first_index", Value::UInt(i as u64 + 1)),
                    ("second_index", Value::UInt(j as u64 + 1)),
                    ("composite_index", composite),
                ]);
                if with_l {
                    for l in momenta[i].abs_diff(momenta[j])..=momenta[i].saturating_add(momenta[j])
                    {
                        let mut attrs = attrs.clone();
                        attrs.push("angular_momentum", l as u64);
                        let name = format!("PP_QIJL.{}.{}.{l}", i + 1, j + 1);
                        functions.push((name, text.reals(self.header.mesh)?, attrs));
                    }
                } else {
                    let name = format!("PP_QIJ.{}.{}", i + 1, j + 1);
                    let attrs = std::mem::take(&mut attrs);
                    functions.push((name, text.reals(self.header.mesh)?, attrs));
                }
                if terms > 0
                    && let Some(expansion) = expansions.next()
                {
                    let values =
                        self.scan(expansion)?.values(terms.saturating_mul(momenta_count))?;
                    coefficients.push(((i, j), values));
                }
            }
        }
        self.add_values(group, "PP_Q", &integrals)?;
        if let Some(((_, _), first)) = coefficients.first() {
            let each = first.len();
            let mut all = self.zeros(each.saturating_mul(count).saturating_mul(count))?;
            for ((i, j), values) in &coefficients {
                for at in [(j * count + i) * each, (i * count + j) * each] {
                    all[at..at + each].copy_from_slice(values);
                }
            }
            self.add_values(group, "PP_QFCOEF", &all)?;
        }
        if let Some(radii) = self.child(element, "PP_RINNER") {
            let mut text = self.scan(radii)?;
            let pairs = text.values(momenta_count.saturating_mul(2))?;
            let radii: Vec<f64> = pairs.iter().skip(1).step_by(2).copied().collect();
            self.add_values(group, "PP_RINNER", &radii)?;
        }
        for (name, values, attrs) in functions {
            self.add_array(group, &name, values, attrs)?;
        }
        Ok(())
    }

    /// Adds the wavefunctions: for each a line with label, angular momentum and occupation.
    fn add_wavefunctions(&mut self, element: &'a Element) -> Result<()> {
        let mut text = self.scan(element)?;
        let mut all = Vec::new();
        for k in 0..self.header.wavefunctions {
            let line = text.line()?;
            let attrs = Attrs::from([
                ("index", Value::UInt(k as u64 + 1)),
                ("label", field::<String>(&line, 0)?.into()),
                ("l", Value::UInt(field(&line, 1)?)),
                ("occupation", Value::Float(field(&line, 2)?)),
                // As Quantum ESPRESSO numbers the states of v1.
                ("n", Value::UInt(field::<u64>(&line, 1)?.saturating_add(1))),
            ]);
            all.push((text.reals(self.header.mesh)?, attrs));
        }
        let group = self.tree.add_group(self.root, "PP_PSWFC")?;
        for (k, (values, attrs)) in all.into_iter().enumerate() {
            self.add_array(group, &format!("PP_CHI.{}", k + 1), values, attrs)?;
        }
        Ok(())
    }

    /// Adds the total angular momenta of wavefunctions and projectors, and the parameters of the mesh.
    fn add_spin_orbit(&mut self, element: &'a Element) -> Result<()> {
        let mut text = self.scan(element)?;
        let mut groups = Vec::new();
        for k in 0..self.header.wavefunctions {
            let line = text.line()?;
            let attrs = Attrs::from([
                ("index", Value::UInt(k as u64 + 1)),
                ("els", field::<String>(&line, 0)?.into()),
                ("nn", Value::UInt(field(&line, 1)?)),
                ("lchi", Value::UInt(field(&line, 2)?)),
                ("jchi", Value::Float(field(&line, 3)?)),
                ("oc", Value::Float(field(&line, 4)?)),
            ]);
            groups.push((format!("PP_RELWFC.{}", k + 1), attrs));
        }
        for k in 0..self.header.projectors {
            let line = text.line()?;
            let attrs = Attrs::from([
                ("index", Value::UInt(k as u64 + 1)),
                ("lll", Value::UInt(field(&line, 0)?)),
                ("jjj", Value::Float(field(&line, 1)?)),
            ]);
            groups.push((format!("PP_RELBETA.{}", k + 1), attrs));
        }
        let mesh = text.line()?;
        if let Some(group) = self.tree.child(self.root, "PP_MESH") {
            for (at, name) in ["xmin", "rmax", "zmesh", "dx"].into_iter().enumerate() {
                self.tree.push_attr(group, name, field::<f64>(&mesh, at)?)?;
            }
        }
        let parent = self.tree.add_group(self.root, "PP_SPIN_ORB")?;
        for (name, attrs) in groups {
            let group = self.tree.add_group(parent, &name)?;
            self.tree.set_attrs(group, attrs)?;
        }
        Ok(())
    }

    fn add_gipaw(&mut self, element: &'a Element) -> Result<()> {
        let group = self.tree.add_group(self.root, "PP_GIPAW")?;
        // Readers of v2 expect the potentials after the orbitals.
        let is_local = |child: &&Element| child.tag.name() == b"PP_GIPAW_LOCAL_DATA";
        let (local, others): (Vec<&Element>, Vec<&Element>) =
            self.children(element).partition(is_local);
        for child in others.into_iter().chain(local) {
            match child.tag.name() {
                b"PP_GIPAW_FORMAT_VERSION" => {
                    let version: f64 = field(&self.scan(child)?.line()?, 0)?;
                    self.tree.push_attr(group, "gipaw_data_format", version as i64)?;
                }
                b"PP_GIPAW_CORE_ORBITALS" => self.add_core_orbitals(group, child)?,
                b"PP_GIPAW_LOCAL_DATA" => {
                    let local = self.tree.add_group(group, "PP_GIPAW_VLOCAL")?;
                    for potential in self.children(child) {
                        self.add_function(local, potential)?;
                    }
                }
                b"PP_GIPAW_ORBITALS" => self.add_valence_orbitals(group, child)?,
                _ => self.add_raw(group, child)?,
            }
        }
        Ok(())
    }

    fn add_core_orbitals(&mut self, parent: NodeId, element: &'a Element) -> Result<()> {
        let group = self.tree.add_group(parent, "PP_GIPAW_CORE_ORBITALS")?;
        let orbitals = element.children.len() as u64;
        self.tree.push_attr(group, "number_of_core_orbitals", orbitals)?;
        for (k, orbital) in self.children(element).enumerate() {
            let mut text = self.scan(orbital)?;
            let line = text.line()?;
            let attrs = Attrs::from([
                ("index", Value::UInt(k as u64 + 1)),
                ("label", field::<String>(&line, 4)?.into()),
                ("n", Value::Float(field(&line, 0)?)),
                ("l", Value::Float(field(&line, 1)?)),
            ]);
            let values = text.reals(self.header.mesh)?;
            self.add_array(group, &format!("PP_GIPAW_CORE_ORBITAL.{}", k + 1), values, attrs)?;
        }
        Ok(())
    }

    fn add_valence_orbitals(&mut self, parent: NodeId, element: &'a Element) -> Result<()> {
        let group = self.tree.add_group(parent, "PP_GIPAW_ORBITALS")?;
        let named = |name: &str| {
            let name = name.as_bytes().to_vec();
            self.children(element).filter(move |child| child.tag.name() == name)
        };
        let pairs: Vec<(&Element, &Element)> =
            named("PP_GIPAW_AE_ORBITAL").zip(named("PP_GIPAW_PS_ORBITAL")).collect();
        self.tree.push_attr(group, "number_of_valence_orbitals", pairs.len() as u64)?;
        for (k, (all_electron, pseudo)) in pairs.into_iter().enumerate() {
            let mut text = self.scan(all_electron)?;
            let mut pseudo_text = self.scan(pseudo)?;
            let (line, radii) = (text.line()?, pseudo_text.line()?);
            let attrs = Attrs::from([
                ("index", Value::UInt(k as u64 + 1)),
                ("label", field::<String>(&line, 0)?.into()),
                ("l", Value::UInt(field(&line, 1)?)),
                ("cutoff_radius", Value::Float(field(&radii, 0)?)),
                ("ultrasoft_cutoff_radius", Value::Float(field(&radii, 1)?)),
            ]);
            let orbital = self.tree.add_group(group, &format!("PP_GIPAW_ORBITAL.{}", k + 1))?;
            self.tree.set_attrs(orbital, attrs)?;
            let values = text.reals(self.header.mesh)?;
            self.tree.add_array(orbital, "PP_GIPAW_WFS_AE", values)?;
            let values = pseudo_text.reals(self.header.mesh)?;
            self.tree.add_array(orbital, "PP_GIPAW_WFS_PS", values)?;
        }
        Ok(())
    }
}
