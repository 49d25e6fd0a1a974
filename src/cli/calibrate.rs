//! `knee calibrate`: a profile fitted to measurements.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::Outcome;
use super::args::CalibrateArgs;
use super::console::Console;
use super::error::{Failure, hint};
use super::inputs::{catalog, use_threads};
use super::progress::Bar;
use crate::calibrate::{HoldOut, Options, Parameter, calibrate, profile_toml};
use crate::catalog::Standing;
use crate::disk;
use crate::report::{files, validation};
use crate::scenario::{Document, MeasuredData};
use crate::validate::{cells, check_repeated};

pub(super) fn run(args: &CalibrateArgs, console: &Console) -> Result<Outcome, Failure> {
    use_threads(args.threads)?;
    let options = options(args)?;
    disk::must_be_writable(&args.output)
        .map_err(|source| Failure::NoFile { path: args.output.clone(), source })?;
    let catalog = catalog(&args.data)?;
    let mut all = Vec::new();
    for set in &args.sets {
        let (measurements, warnings) = Document::load_set(set)?.measurements(&catalog)?;
        let files = measurements.iter().filter_map(|measurement| match &measurement.data {
            MeasuredData::Requests { file, .. } | MeasuredData::Points { file } => Some(file.as_path()),
            MeasuredData::Inline(_) => None,
        });
        if files.chain([Path::new(set)]).any(|input| is_same_file(input, &args.output)) {
            let source = io::Error::other("it is one of the files that are read; expected another --output");
            return Err(Failure::NoFile { path: args.output.clone(), source });
        }
        for warning in &warnings {
            console.warning(warning);
        }
        all.extend(cells(&measurements)?);
    }
    // Twice the same is no new data, and the half of it that is held out would have been fitted.
    check_repeated(&all)?;
    let bar = Bar::new(console);
    let result = calibrate(&all, &options, &bar);
    bar.clear();
    let result = result?;
    // A file that cannot be written must not cost the answer.
    let written = files::write_file(&args.output, &profile_toml(&result, &command(args)));
    for fit in result.fits.iter().filter(|fit| fit.standing != Standing::Calibrated) {
        let of = format!("{} weights, {}", fit.weights.dtype, fit.weights.kind.name());
        console.warning(&format!("{of}: {}", fit.warnings.first().map_or("estimated", String::as_str)));
    }
    console.result(&validation::fit(&result, console.look()))?;
    written?;
    console.note(&format!(
        "wrote {}; use it by [hardware] profile = {:?}",
        args.output.display(),
        args.output
    ));
    Ok(Outcome::Done)
}

/// Whether both are there and one and the same.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn options(args: &CalibrateArgs) -> Result<Options, Failure> {
    let also = args.fit.iter().map(|key| {
        Parameter::of_key(key).ok_or_else(|| Failure::NoParameter {
            found: key.clone(),
            hint: hint(key, Parameter::ALL.map(Parameter::key)),
            there_are: Parameter::ALL.map(Parameter::key).join(", "),
        })
    });
    let hold_out = args.hold_out.as_deref().map(str::parse::<HoldOut>).transpose()?;
    Ok(Options { also: also.collect::<Result<_, _>>()?, hold_out })
}

/// What was asked, for the profile's record: what changes the result, without where the files lie.
fn command(args: &CalibrateArgs) -> String {
    let name = |path: &std::path::Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut command = "knee calibrate".to_owned();
    // Writing to a string cannot fail.
    for set in &args.sets {
        let _ = write!(command, " {}", name(set));
    }
    let _ = write!(command, " -o {}", name(&args.output));
    if !args.fit.is_empty() {
        let _ = write!(command, " --fit {}", args.fit.join(","));
    }
    if let Some(rule) = &args.hold_out {
        let _ = write!(command, " --hold-out {rule}");
    }
    command
}
