//! `spile sdf track`, `spile sdf histogram`, `spile sdf energy`.

use spile::Source;
use spile::dtype::DType;
use spile::format::write_file;
use spile::layout::{ArrayDesc, Coord};
use spile::shape::Shape;
use spile::sink::Overwrite;
use spile::tree::{ROOT, Tree};
use spile_ops::convert;
use spile_ops::particles::{self, HistogramOptions, IdIndex, Species};
use spile_ops::pick::Pick;

use crate::cmd::prelude::*;

/// Number of bins along each axis by default.
const BINS: usize = 100;

/// Follow particles through the dumps of a run.
///
/// Writes arrays over time and particle identifier, for example as NetCDF or CSV; frames without a particle have
/// NaN. The particles are given by their identifiers, or are those with the largest momentum, or the largest value of an
/// expression, in one dump.
///
/// Expressions have the variables of the species (x, y, z, px, weight, ek, ...), + - * / ^, comparisons, functions
/// (sqrt, abs, exp, log, log10, sin, cos, tan, atan, atan2, hypot, min, max, floor) and the constants pi, c, q_e, m_e, m_p,
/// epsilon_0 and mu_0 in SI units.
#[derive(Debug, Args)]
pub(crate) struct TrackArgs {
    /// Folder, pattern or file
    run: PathBuf,
    /// Species or subset: Electron, subset_hot/Electron
    species: String,
    /// Identifiers of the particles
    #[arg(long, value_name = "ID", value_delimiter = ',', group = "which")]
    ids: Vec<u64>,
    /// The N particles with the largest momentum
    #[arg(long, value_name = "N", group = "which")]
    fastest: Option<usize>,
    /// The N particles with the largest value of the expression of --by
    #[arg(long, value_name = "N", group = "which", requires = "by")]
    top: Option<usize>,
    /// Expression to select by
    #[arg(long, value_name = "EXPRESSION", requires = "top", allow_hyphen_values = true)]
    by: Option<String>,
    /// Dump in which particles are selected; -1 is the last
    #[arg(long, value_name = "N", default_value_t = -1, allow_hyphen_values = true)]
    frame: i64,
    /// Variables or expressions to write [default: all variables]
    #[arg(long, value_name = "EXPRESSION", value_delimiter = ',')]
    variables: Vec<String>,
    /// Keep an index of the identifiers of all dumps, by default in the folder of the run (SPECIES.spileids). If it is there
    /// and the run has not changed, particles are found without reading all identifiers
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true)]
    #[allow(clippy::option_option, reason = "an option with an optional value")]
    index: Option<Option<PathBuf>>,
    #[command(flatten)]
    file: NewFileArgs,
}

/// Count particles in bins of one or more expressions.
///
/// Sums the statistical weights of the particles of a species: an energy spectrum, a phase space, or a movie of
/// them. Particles are read in blocks, so memory does not depend on their number. `spile plot` shows the
/// output. Expressions are described in `spile sdf track --help`.
#[derive(Debug, Args)]
pub(crate) struct HistogramArgs {
    /// Folder, pattern or file
    run: PathBuf,
    /// Species or subset: Electron, subset_hot/Electron
    species: String,
    /// Expression along each axis: x 'px / (m_e * c)'
    #[arg(required = true, value_name = "EXPRESSION")]
    axes: Vec<String>,
    /// Number of bins along the axes: 200, 200x100 [default: 100]
    #[arg(long, value_name = "N[xM]", value_delimiter = 'x')]
    bins: Vec<usize>,
    /// Limits of an axis, in the order of the axes; - for those of the values
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    range: Vec<String>,
    /// Weight of a particle [default: the variable weight, otherwise 1]
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    weight: Option<String>,
    /// Count only particles for which the expression is not 0: 'px > 0'
    #[arg(long = "where", value_name = "EXPRESSION", allow_hyphen_values = true)]
    filter: Option<String>,
    /// Select frames as a slice: 5, -1, 0:100, 0:100:10 [default: all]
    #[arg(long, value_name = "A:B:C", allow_hyphen_values = true)]
    frames: Option<String>,
    #[command(flatten)]
    file: NewFileArgs,
}

/// Print energies over time.
///
/// Columns are the energies that the dumps contain, the energy of each component of the electric and magnetic field,
/// and the kinetic energy of each species, from its particle energies, or from its momenta and its mass.
#[derive(Debug, Args)]
pub(crate) struct EnergyArgs {
    /// Folder, pattern or file
    run: PathBuf,
    /// Mass of the particles of a species in electron masses, for species without particle energies
    #[arg(long, value_name = "SPECIES=MASS", value_parser = parse_mass)]
    mass: Vec<(String, f64)>,
    /// Write a file instead of printing
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    overwrite: bool,
}

fn parse_mass(text: &str) -> std::result::Result<(String, f64), String> {
    const ELECTRON: f64 = 9.109_383_701_5e-31;
    let mass = |text: &str| text.parse::<f64>().ok().filter(|mass| *mass > 0.0 && mass.is_finite());
    let parsed =
        text.split_once('=').and_then(|(name, value)| Some((name.into(), mass(value)? * ELECTRON)));
    parsed.ok_or_else(|| "expected SPECIES=MASS with a positive mass".to_string())
}

pub(super) fn track(args: &TrackArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let target = args.file.file()?;
    let run = context.open(&args.run)?;
    let species = Species::find(&run, &args.species).map_err(|e| e.with_path(&args.run))?;
    let frame = frame(species.frames(), args.frame)?;
    let ids = match (args.fastest, args.top, &args.by) {
        (Some(count), ..) => particles::fastest(&species, count, frame)?,
        (_, Some(count), Some(by)) => particles::top(&species, count, by, frame)?,
        _ if args.ids.is_empty() => {
            return Err(Error::argument("no particles were selected")
                .hint("give --ids, or --fastest N, or --top N --by EXPRESSION"));
        }
        _ => args.ids.clone(),
    };
    let index = match &args.index {
        None => None,
        Some(path) => {
            let path = match path {
                Some(path) => path.clone(),
                None => particles::index_path(&run, &species).ok_or_else(|| {
                    Error::argument("this run is in no folder").hint("give the path of the index")
                })?,
            };
            Some(IdIndex::open_or_create(&path, &species).map_err(|e| e.with_path(&path))?)
        }
    };
    let tracks = particles::track(&species, &ids, &args.variables, index.as_ref())
        .map_err(|e| e.with_path(&args.run))?;
    let mut made = Made::new(&run)?;
    let frames: Vec<u64> = (0..species.frames()).collect();
    let time = made.time(&run, &frames)?;
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let axis =
        made.axis("id", "", ArrayDesc::inline(DType::U64, Shape::new([ids.len() as u64]), bytes))?;
    let found = tracks.columns.iter().map(|(_, _, values)| values);
    let found = found.flat_map(|values| values.iter()).any(|value| !value.is_nan());
    for (name, unit, values) in &tracks.columns {
        made.array(name, unit, values, &[("time", Coord::Node(time)), ("id", Coord::Node(axis))])?;
    }
    if !found {
        context.warn(&args.run, "no dump has these particles");
    }
    made.save(target, args.file.overwrite(), context, out)
}

pub(super) fn histogram(args: &HistogramArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let target = args.file.file()?;
    let run = context.open(&args.run)?;
    let species = Species::find(&run, &args.species).map_err(|e| e.with_path(&args.run))?;
    let pick = args
        .frames
        .as_deref()
        .map_or(Ok(Pick::default()), |text| Pick::default().with_frames(text))?;
    let frames: Vec<u64> = pick.frames(species.frames())?.collect();
    let options = HistogramOptions {
        axes: args.axes.clone(),
        bins: if args.bins.is_empty() { vec![BINS] } else { args.bins.clone() },
        ranges: args.range.iter().map(|text| range(text)).collect::<Result<_>>()?,
        weight: args.weight.clone(),
        filter: args.filter.clone(),
        frames: frames.clone(),
    };
    let found = particles::histogram(&species, &options).map_err(|e| e.with_path(&args.run))?;
    let mut made = Made::new(&run)?;
    let time = made.time(&run, &frames)?;
    let mut dims = vec![("time", Coord::Node(time))];
    for (text, bins) in args.axes.iter().zip(&found.bins) {
        let centres: Vec<f64> =
            (0..bins.count).map(|k| 0.5 * (bins.edge(k) + bins.edge(k + 1))).collect();
        let bytes: Vec<u8> = centres.iter().flat_map(|v| v.to_le_bytes()).collect();
        let desc = ArrayDesc::inline(DType::F64, Shape::new([centres.len() as u64]), bytes);
        let axis = made.axis(text, &species.unit(text), desc)?;
        dims.push((text.as_str(), Coord::Node(axis)));
    }
    let values: Vec<f64> = found.values.concat();
    made.array("count", "", &values, &dims)?;
    made.save(target, args.file.overwrite(), context, out)
}

pub(super) fn energy(args: &EnergyArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let run = context.open(&args.run)?;
    let masses: Vec<(&str, f64)> =
        args.mass.iter().map(|(name, mass)| (name.as_str(), *mass)).collect();
    let found = spile_ops::energies(&run, &masses).map_err(|e| e.with_path(&args.run))?;
    if found.is_empty() {
        return Err(Error::argument("the dumps contain no energies, fields or particle energies")
            .with_path(&args.run));
    }
    let frames: Vec<u64> = (0..run.tree().frames().map_or(1, |axis| axis.len())).collect();
    let times = times(&run, &frames)?;
    if let Some(target) = &args.output {
        let mut made = Made::new(&run)?;
        let time = made.time(&run, &frames)?;
        for energy in &found {
            made.array(&energy.name, &energy.unit, &energy.values, &[("time", Coord::Node(time))])?;
        }
        return made.save(not_standard_output(target)?, overwrite(args.overwrite), context, out);
    }
    if context.json {
        out.object(&[
            ("file", json!(args.run.to_string_lossy())),
            ("times", json!(times)),
            ("energies", json!(found)),
        ])?;
        return Ok(Exit::Yes);
    }
    for (k, time) in times.iter().enumerate() {
        if k == 0 {
            let title = |e: &spile_ops::energies::Energy| match e.unit.as_str() {
                "" => e.name.clone(),
                unit if e.name.ends_with(&format!("({unit})")) => e.name.clone(),
                unit => format!("{} ({unit})", e.name),
            };
            let titles: Vec<String> =
                found.iter().map(|energy| text::one_line(&title(energy)).into_owned()).collect();
            writeln!(out, "time (s)\t{}", titles.join("\t"))?;
        }
        let values: Vec<String> =
            found.iter().map(|energy| text::short(energy.values[k])).collect();
        writeln!(out, "{}\t{}", text::short(*time), values.join("\t"))?;
    }
    Ok(Exit::Yes)
}

/// Number of a frame; negative ones count from the end.
fn frame(count: u64, number: i64) -> Result<u64> {
    let found =
        if number < 0 { count.checked_add_signed(number) } else { Some(number.unsigned_abs()) };
    found.filter(|number| *number < count).ok_or_else(|| {
        Error::argument(format!("no frame {number}: the dataset has {count} frames"))
    })
}

/// Limits of an axis: `LOW:HIGH`, or `-` for those of the values.
fn range(text: &str) -> Result<Option<(f64, f64)>> {
    if text == "-" {
        return Ok(None);
    }
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let limits = text.split_once(':').and_then(|(a, b)| Some((number(a)?, number(b)?)));
    let limits = limits.filter(|(a, b)| a < b);
    limits
        .map(Some)
        .ok_or_else(|| Error::argument(format!("--range {text}: expected LOW:HIGH or -")))
}

/// The times of frames; their numbers if times are not known.
fn times(run: &Dataset, frames: &[u64]) -> Result<Vec<f64>> {
    let Some(axis) = run.tree().frames() else {
        return Ok(vec![run.attrs().get_f64("time").unwrap_or(0.0)]);
    };
    let times = frames.iter().map(|k| axis.time(*k)).collect::<Result<Option<Vec<f64>>>>()?;
    Ok(times.unwrap_or_else(|| frames.iter().map(|k| *k as f64).collect()))
}

/// A new dataset with the results.
struct Made {
    tree: Tree,
}

impl Made {
    fn new(run: &Dataset) -> Result<Self> {
        let mut tree = Tree::new(run.limits());
        tree.set_attrs(ROOT, run.attrs().clone())?;
        Ok(Self { tree })
    }

    /// Adds a coordinate of a dimension with its name.
    fn axis(&mut self, name: &str, unit: &str, mut desc: ArrayDesc) -> Result<spile::tree::NodeId> {
        let name = name.replace('/', "_");
        desc.dims = vec![name.clone()];
        let id = self.tree.add_array(ROOT, &name, desc)?;
        if !unit.is_empty() {
            self.tree.push_attr(id, "units", unit)?;
        }
        Ok(id)
    }

    /// Adds the times of frames.
    fn time(&mut self, run: &Dataset, frames: &[u64]) -> Result<spile::tree::NodeId> {
        let bytes: Vec<u8> = times(run, frames)?.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.axis(
            "time",
            "s",
            ArrayDesc::inline(DType::F64, Shape::new([frames.len() as u64]), bytes),
        )
    }

    /// Adds values over dimensions with coordinates; a name that is in use gets the suffix `_values`.
    fn array(
        &mut self,
        name: &str,
        unit: &str,
        values: &[f64],
        dims: &[(&str, Coord)],
    ) -> Result<()> {
        let lengths: Vec<u64> = dims
            .iter()
            .filter_map(|(_, coord)| {
                self.tree.array(coord.node()?)?.shape.lengths().first().copied()
            })
            .collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut desc = ArrayDesc::inline(DType::F64, Shape::new(lengths), bytes);
        desc.dims = dims.iter().map(|(name, _)| name.replace('/', "_")).collect();
        desc.coords = dims.iter().map(|(_, coord)| coord.clone()).collect();
        let name = name.replace('/', "_");
        let taken = self.tree.at(&name).is_some();
        let id = self.tree.add_array(
            ROOT,
            &if taken { format!("{name}_values") } else { name },
            desc,
        )?;
        if !unit.is_empty() {
            self.tree.push_attr(id, "units", unit)?;
        }
        Ok(())
    }

    /// Writes the dataset in the format of the file name.
    fn save(
        self,
        target: &Path,
        replace: Overwrite,
        context: &Context,
        out: &mut Output,
    ) -> Result<Exit> {
        let format = convert::target(&spile::REGISTRY, None, target)?;
        let content = Dataset::new(Source::memory(Vec::new()), self.tree);
        let arrays = content.arrays().count() as u64;
        write_file(format, &content, target, replace)?;
        let name = target.to_string_lossy();
        if context.json {
            out.object(&[
                ("output", json!(name)),
                ("format", json!(format.info().name)),
                ("arrays", json!(arrays)),
            ])?;
        } else if !context.quiet {
            let (title, count) = (format.info().title, text::count(arrays, "array"));
            writeln!(out, "{}: {title}, {count}", text::one_line(&name))?;
        }
        Ok(Exit::Yes)
    }
}
