//! `spile spectrum` and `spile spectrogram`.

use spile::semantics::Role;
use spile::tree::NodeId;
use spile_ops::spectrum::{Settings, Window, spectrogram, welch};
use spile_ops::{Pick, subset};

use super::plot::{self, PlotArgs};
use crate::cmd::prelude::*;

/// Power spectra of traces by Welch's method: the average over overlapping segments.
///
/// Without -o the spectra are drawn in the terminal. -o writes a picture (.svg, .png), or the spectra as arrays in the
/// format of the extension. Parameters have the meaning of scipy.signal.welch.
#[derive(Debug, Args)]
pub(crate) struct SpectrumArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// Power spectrum of a trace over time: the short-time Fourier transform.
///
/// Without -o it is drawn in the terminal. -o writes a picture (.svg, .png), or an array [time, frequency] in the format
/// of the extension. Parameters have the meaning of scipy.signal.spectrogram.
#[derive(Debug, Args)]
pub(crate) struct SpectrogramArgs {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
struct CommonArgs {
    /// File; - is standard input
    file: PathBuf,
    /// Array [default: all traces]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Part of a named dimension: time=0:100000
    #[arg(long, value_name = "DIM=A:B:C")]
    slice: Vec<String>,
    /// Samples per segment [default: a power of two by the length of the trace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    segment: Option<u64>,
    /// Samples that neighbouring segments share [default: half of a segment]
    #[arg(long, value_name = "N")]
    overlap: Option<u64>,
    /// Window: hann, hamming, blackman, blackmanharris, flattop or boxcar
    #[arg(long, value_name = "NAME", default_value = "hann")]
    window: Window,
    /// Keep the mean of each segment
    #[arg(long)]
    keep_mean: bool,
    /// Power instead of power per frequency interval: the square of an effective value at each frequency
    #[arg(long)]
    power: bool,
    /// Sampling rate [default: from the coordinate]
    #[arg(long, value_name = "HZ")]
    rate: Option<f64>,
    /// Output: a picture (.svg, .png) or a file of arrays
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
    /// Linear power axis or colour scale
    #[arg(long)]
    linear: bool,
    /// Logarithmic frequency axis of a spectrum
    #[arg(long)]
    log_x: bool,
    /// Draw the spectra of channels above each other
    #[arg(long)]
    stack: bool,
    /// Title [default: name of the file]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Limits of the x axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = plot::parse_limits, allow_hyphen_values = true)]
    x_range: Option<(f64, f64)>,
    /// Limits of the y axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = plot::parse_limits, allow_hyphen_values = true)]
    y_range: Option<(f64, f64)>,
    /// Limits of the power
    #[arg(long, value_name = "LOW:HIGH", value_parser = plot::parse_limits, allow_hyphen_values = true)]
    range: Option<(f64, f64)>,
    /// Width of the picture in pixels, or of the plot in characters
    #[arg(long, value_name = "N")]
    width: Option<u32>,
    /// Height of the picture in pixels, or of the plot in lines
    #[arg(long, value_name = "N")]
    height: Option<u32>,
    /// Colours: light, dark, or print
    #[arg(long, value_name = "NAME", value_enum, default_value_t = plot::ThemeName::Light, hide_possible_values = true, hide_default_value = true)]
    theme: plot::ThemeName,
    /// Use characters in the terminal
    #[arg(long, conflicts_with = "output")]
    text: bool,
}

/// Computes a dataset of spectra.
type Transform = fn(&Dataset, &[NodeId], &Settings) -> Result<Dataset>;

pub(crate) fn spectrum(args: &SpectrumArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    args.common.run(welch, false, context, out)
}

pub(crate) fn over_time(
    args: &SpectrogramArgs,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    args.common.run(spectrogram, true, context, out)
}

impl CommonArgs {
    fn run(
        &self,
        transform: Transform,
        heatmap: bool,
        context: &Context,
        out: &mut Output,
    ) -> Result<Exit> {
        let settings = Settings {
            segment: self.segment,
            overlap: self.overlap,
            window: self.window,
            detrend: !self.keep_mean,
            density: !self.power,
            rate: self.rate,
        };
        let compute = || {
            let mut file = context.open(&self.file)?;
            if !self.slice.is_empty() {
                let pick = Pick::new(&[])?.with_slices(&self.slice)?;
                file = subset::subset(&file, &pick)?;
            }
            let arrays = self.arrays(&file)?;
            transform(&file, &arrays, &settings)
        };
        let spectra = compute().map_err(|e| e.with_path(&self.file))?;
        match &self.output {
            Some(path) if !plot::is_picture(path) => self.write(&spectra, path, context, out),
            _ => plot::show(&self.plot(heatmap), spectra, context, out),
        }
    }

    /// The named array, or all traces, or the only array.
    fn arrays(&self, file: &Dataset) -> Result<Vec<NodeId>> {
        let tree = file.tree();
        if let Some(name) = &self.name {
            let id = tree.find(name)?;
            return match tree.array(id) {
                Some(_) => Ok(vec![id]),
                None => Err(Error::argument(format!("\"{name}\" is a group; specify an array"))),
            };
        }
        let main = || tree.main_arrays().map(|(id, _, desc)| (id, desc));
        let traces = main().filter(|(_, desc)| desc.semantics().role == Role::Trace);
        let traces: Vec<NodeId> = traces.map(|(id, _)| id).collect();
        if !traces.is_empty() {
            return Ok(traces);
        }
        super::cat::only_array(tree)?;
        Ok(main().map(|(id, _)| id).take(1).collect())
    }

    /// Writes the spectra as arrays.
    fn write(
        &self,
        spectra: &Dataset,
        path: &Path,
        context: &Context,
        out: &mut Output,
    ) -> Result<Exit> {
        use spile_ops::convert::{convert, plan, target};
        let format = target(&spile::REGISTRY, None, path)?;
        let options = spile::format::WriteOptions::default();
        let plan = plan(format, spectra, path, &options)?;
        let overwrite = overwrite(self.overwrite);
        let found = convert(format, spectra, &plan, path, &options, overwrite, false)?;
        super::convert::print_losses(&self.file, plan.losses.iter().chain(&found), context);
        if context.json {
            let name = path.to_string_lossy();
            out.object(&[("file", json!(name)), ("format", json!(format.info().name))])?;
        }
        Ok(Exit::Yes)
    }

    fn plot(&self, heatmap: bool) -> PlotArgs {
        PlotArgs {
            file: self.file.clone(),
            output: self.output.clone(),
            overwrite: self.overwrite,
            width: self.width,
            height: self.height,
            title: self.title.clone(),
            heatmap,
            log: !self.linear,
            log_x: self.log_x && !heatmap,
            stack: self.stack,
            range: self.range,
            x_range: self.x_range,
            y_range: self.y_range,
            theme: self.theme,
            text: self.text,
            ..PlotArgs::default()
        }
    }
}
