//! How far do fitted profiles carry? Fits on parts of published concurrency curves, scored on the rest.
//!
//! ```text
//! KNEE_DATA=... cargo test --release --test holdout -- --ignored --nocapture
//! ```
//!
//! `KNEE_DATA` is a folder with `points/concurrency_curves.csv`, the curves that NVIDIA AIConfigurator ships, and
//! `points/measured.csv`, which has offline throughputs that NVIDIA publishes, and runs of GPUStack's lab.
//! `KNEE_SERVER`: only servers whose name contains this; `KNEE_SPLIT`: only splits whose name does;
//! `KNEE_SETS`: a folder into which the measurement sets are written, one for each server and split, so that
//! `knee calibrate` runs the same fit, and the profiles that it would write; `KNEE_LOADS`: every
//! load is printed; `KNEE_FIT`: parameters to fit instead of the server's own (`memory,half_tokens`). A row takes 20 to
//! 600 s of CPU time and the whole table some hours, so it is not among the default tests; each row is printed when it
//! is known.

mod curves;
mod measured;
mod servers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use curves::{Load, Role, loads, set};
use knee::calibrate::{Options, Parameter, calibrate, impossible, profile_toml};
use knee::catalog::Catalog;
use knee::experiment::Silent;
use knee::rng::{Purpose, stream};
use knee::scenario::Document;
use knee::validate::{Cell, ErrorRow, Figure, Scored, cells, error_table};
use servers::{SERVERS, Server};

/// Most loads that a fit takes: their number times the runs of a search is what a fit costs.
const MOST_FITTED: usize = 16;
/// The same of a profile that is shipped.
const MOST_SHIPPED: usize = 40;
/// Largest of the smaller deployments, and of the fewer users.
const FEW_GPUS: u32 = 2;
const FEW_USERS: u32 = 16;

/// A way of dividing a server's loads into fitted and held-out ones.
#[derive(Clone, Copy, Debug)]
enum Split {
    /// Nothing is fitted: the shipped profile on every load, those included that it was fitted on.
    Shipped,
    /// Nothing is fitted: what an estimated profile makes of the GPU's kernels.
    Kernels,
    /// What profiles are shipped from. Up to [`MOST_SHIPPED`] loads all are fitted, and what is held out is three random
    /// halves, each scored after a fit on the other; of more, the rest is held out.
    All,
    /// A random half, drawn in each stratum.
    Half(u64),
    /// Fitted on 1 and 2 GPUs (the fewest there are, if more), scored on more.
    Gpus,
    /// Fitted on all but the longest prompts.
    Prompts,
    /// Fitted on up to 16 users.
    Users,
    /// Fitted on one model, scored on the other.
    Model(usize),
}

impl Split {
    const ALL: [Self; 11] = [
        Self::Shipped,
        Self::Kernels,
        Self::All,
        Self::Half(1),
        Self::Half(2),
        Self::Half(3),
        Self::Gpus,
        Self::Prompts,
        Self::Users,
        Self::Model(0),
        Self::Model(1),
    ];

    /// As it stands in the table.
    fn name(self, server: &Server) -> String {
        match self {
            Self::Shipped => "shipped profile, all loads".to_owned(),
            Self::Kernels => "kernel values, all loads".to_owned(),
            Self::All => "as shipped".to_owned(),
            Self::Half(seed) => format!("random half {seed}"),
            Self::Gpus => "fewer to more GPUs".to_owned(),
            Self::Prompts => "shorter to longest prompts".to_owned(),
            Self::Users => "up to 16 to more users".to_owned(),
            Self::Model(place) => {
                let model = server.models.get(place).map_or("-", |source| source.model);
                format!("{model} to the other model")
            }
        }
    }

    /// What it does with each of `loads`; `None` where one side would be empty.
    fn roles(self, server: &Server, loads: &[Load]) -> Option<Vec<Role>> {
        if server.ranks && !matches!(self, Self::Shipped | Self::Kernels) {
            return None;
        }
        if server.models.is_empty() {
            return matches!(self, Self::Shipped | Self::Kernels | Self::All).then(Vec::new);
        }
        let seed = if let Self::Half(seed) = self { seed } else { 1 };
        let least_gpus = loads.iter().map(|load| load.gpus).min()?;
        let longest = loads.iter().map(|load| load.input).max()?;
        let may_be_fitted = |load: &Load| match self {
            Self::Shipped | Self::Kernels => false,
            Self::All | Self::Half(_) => true,
            Self::Gpus => load.gpus <= FEW_GPUS.max(least_gpus),
            Self::Prompts => load.input < longest,
            Self::Users => load.users <= FEW_USERS,
            Self::Model(place) => {
                server.models.len() > 1
                    && server.models.get(place).is_some_and(|source| std::ptr::eq(source, load.source))
            }
        };
        let most = match self {
            Self::All => MOST_SHIPPED,
            Self::Half(_) => MOST_FITTED.min(loads.len() / 2),
            _ => MOST_FITTED,
        };
        let fitted = drawn(loads, &may_be_fitted, most, seed);
        let role = |at: usize| match self {
            _ if fitted.contains(&at) => Role::Fitted,
            // What could have been fitted and was not is no test of reaching further.
            Self::Shipped | Self::Kernels | Self::All | Self::Half(_) => Role::HeldOut,
            _ if may_be_fitted(&loads[at]) => Role::Unused,
            _ => Role::HeldOut,
        };
        let roles: Vec<Role> = (0..loads.len()).map(role).collect();
        let is_asked = matches!(self, Self::Shipped | Self::Kernels) || !fitted.is_empty();
        (is_asked && (matches!(self, Self::All) || roles.contains(&Role::HeldOut))).then_some(roles)
    }
}

/// Places of `count` loads that may be taken, drawn in turn from each stratum of model, GPUs and lengths.
fn drawn(loads: &[Load], may: &dyn Fn(&Load) -> bool, count: usize, seed: u64) -> Vec<usize> {
    let mut draws = stream(seed, Purpose::HoldOut, 0);
    let mut strata: BTreeMap<_, Vec<(f64, usize)>> = BTreeMap::new();
    for (at, load) in loads.iter().enumerate().filter(|(_, load)| may(load)) {
        let key = (load.source.model, load.gpus, load.expert_parallel, load.input, load.output);
        strata.entry(key).or_default().push((draws.uniform(), at));
    }
    let mut strata: Vec<(f64, Vec<(f64, usize)>)> =
        strata.into_values().map(|stratum| (draws.uniform(), stratum)).collect();
    strata.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, stratum) in &mut strata {
        stratum.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let deepest = strata.iter().map(|(_, stratum)| stratum.len()).max().unwrap_or(0);
    let turns = (0..deepest).flat_map(|turn| strata.iter().filter_map(move |(_, s)| Some(s.get(turn)?.1)));
    turns.take(count).collect()
}

fn read(text: &str) -> Vec<Cell> {
    let document = Document::parse(text, None).expect("TOML");
    let (measurements, _) =
        document.measurements(&Catalog::new(None)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    cells(&measurements).expect("points")
}

/// Medians of TTFT and TPOT in per cent, as table cells.
fn words(errors: &[ErrorRow]) -> [String; 2] {
    [Figure::TtftMean, Figure::TpotMean].map(|figure| {
        let row = errors.iter().find(|row| row.figure == figure);
        row.map_or_else(|| "-".to_owned(), |row| format!("{:.1}", row.median_percent))
    })
}

fn row(server: &Server, split: Split, roles: &[Role], fitted: &[ErrorRow], held_out: &[ErrorRow]) -> String {
    let count = |role: Role| roles.iter().filter(|one| **one == role).count();
    // Without curves, the single rows.
    let single = server.measured.filter(|_| roles.is_empty()).map_or(0, |measured| measured.loads);
    let is_fitted = !matches!(split, Split::Shipped | Split::Kernels);
    let of_fit = if is_fitted { count(Role::Fitted) + single } else { 0 };
    // Of three halves about every load is held out once.
    let out = if count(Role::HeldOut) == 0 { roles.len() + single } else { count(Role::HeldOut) };
    let ([ttft_in, tpot_in], [ttft_out, tpot_out]) = (words(fitted), words(held_out));
    format!(
        "| {} | {} | {}, {} | {ttft_in} | {ttft_out} | {tpot_in} | {tpot_out} |",
        server.name,
        split.name(server),
        of_fit,
        out
    )
}

/// Each load of a fit or a score with its signed errors, if `KNEE_LOADS` asks for them.
fn print_loads(title: &str, scored: &[Scored]) {
    if std::env::var_os("KNEE_LOADS").is_none() {
        return;
    }
    for one in scored {
        let error = |figure| one.error_percent(figure).unwrap_or(f64::NAN);
        let measured = |figure| one.cell.measured.get(figure).unwrap_or(f64::NAN);
        println!(
            "    {title} {}: TTFT {:.0} ms {:+.1} %, TPOT {:.2} ms {:+.1} %, {:.2} req/s {:+.1} %",
            one.cell.name(),
            measured(Figure::TtftMean),
            error(Figure::TtftMean),
            measured(Figure::TpotMean),
            error(Figure::TpotMean),
            measured(Figure::RequestThroughput),
            error(Figure::RequestThroughput)
        );
    }
}

fn print_throughput(part: &str, errors: &[ErrorRow]) {
    if let Some(row) = errors.iter().find(|row| row.figure == Figure::RequestThroughput) {
        println!("    throughput {part}: {} loads, median {:.1} %", row.cells, row.median_percent);
    }
}

fn run(server: &Server, split: Split, roles: &[Role], text: &str, file: Option<&Path>) -> String {
    let cells = read(text);
    if let Split::Shipped | Split::Kernels = split {
        let simulated = |cell: &Cell| {
            let serving = cell.serving();
            let system = if let Split::Shipped = split {
                &cell.measurement.system
            } else {
                let weights = serving.model.weights(serving.weight_dtype);
                &cell.system_with(&serving.hardware.estimated_values(&serving.engine.engine, weights))
            };
            cell.simulate(system).expect("a run").figures
        };
        let scored: Vec<Scored> = cells
            .iter()
            .map(|cell| Scored { cell: cell.clone(), simulated: simulated(cell), regime: None })
            .collect();
        print_loads("scored", &scored);
        let errors = error_table(&scored);
        print_throughput("scored", &errors);
        return row(server, split, roles, &[], &errors);
    }
    let asked = std::env::var("KNEE_FIT").ok();
    let also: Vec<Parameter> = asked.as_ref().map_or_else(
        || server.also.to_vec(),
        |keys| keys.split(',').map(|key| Parameter::of_key(key).expect("a parameter")).collect(),
    );
    let options = Options { also: also.clone(), hold_out: None };
    let result = calibrate(&cells, &options, &Silent).expect("a fit");
    let fit = &result.fits[0];
    if let Some(file) = file {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let also: Vec<&str> = also.iter().map(|parameter| parameter.key()).collect();
        let fit = if also.is_empty() { String::new() } else { format!(" --fit {}", also.join(",")) };
        let command = format!("knee calibrate {name} -o profile.toml{fit}");
        fs::write(file.with_extension("profile.toml"), profile_toml(&result, &command)).expect("a profile");
    }
    if std::env::var_os("KNEE_LOADS").is_some() {
        for one in &fit.parameters {
            println!(
                "    {} = {:.4} +/- {:?}, {}",
                one.parameter.key(),
                one.value,
                one.standard_error,
                one.status.name()
            );
        }
    }
    print_loads("fitted", &fit.fitted);
    print_throughput("fitted", &fit.errors);
    print_throughput("held out", &fit.held_out_errors);
    row(server, split, roles, &fit.errors, &fit.held_out_errors)
}

/// The measurement set of a server's curves and of its rows of `points/measured.csv`.
fn whole_set(server: &Server, split: Split, loads: &[Load], roles: &[Role], curves: &Path) -> String {
    let text = set(server, loads, roles);
    let Some(measured) = server.measured else { return text };
    let is_held_out = |place: usize| match split {
        Split::All => false,
        Split::Half(_) => place % 2 == 1,
        _ => true,
    };
    let file = curves.with_file_name("measured.csv");
    text + &measured::entries(measured, server.weights(), is_held_out, &file)
}

fn data() -> Option<PathBuf> {
    let found = std::env::var_os("KNEE_DATA")
        .map(|folder| PathBuf::from(folder).join("points/concurrency_curves.csv"));
    if found.is_none() {
        println!("skipped: KNEE_DATA is not set");
    }
    found
}

#[test]
#[ignore = "takes an hour or two and published measurements (KNEE_DATA)"]
fn table_of_hold_outs() {
    let Some(file) = data() else { return };
    let asked = |variable: &str, name: &str| {
        std::env::var(variable).map_or(true, |part| name.contains(part.as_str()))
    };
    let sets = std::env::var_os("KNEE_SETS").map(PathBuf::from);
    println!(
        "| profile | split | loads fitted, held out | TTFT fitted % | TTFT held out % | TPOT fitted % | TPOT held out % |"
    );
    for server in SERVERS.iter().filter(|server| asked("KNEE_SERVER", server.name)) {
        let loads = loads(server, &file);
        for split in Split::ALL.into_iter().filter(|split| asked("KNEE_SPLIT", &split.name(server))) {
            let Some(roles) = split.roles(server, &loads) else { continue };
            let text = whole_set(server, split, &loads, &roles, &file);
            let path = sets.as_ref().map(|folder| {
                fs::create_dir_all(folder).expect("a folder for the sets");
                let words = format!("{} {}", server.name, split.name(server)).replace(',', "");
                let path = folder.join(words.replace(' ', "-") + ".toml");
                fs::write(&path, &text).expect("a set");
                path
            });
            let start = Instant::now();
            let row = run(server, split, &roles, &text, path.as_deref());
            println!("{row} {:.0} s", start.elapsed().as_secs_f64());
        }
    }
}

/// The file, or the rules by which rows are chosen, changed if the counts did.
#[test]
fn every_server_has_the_loads_that_are_documented() {
    let Some(file) = data() else { return };
    for server in SERVERS {
        let loads = loads(server, &file);
        assert_eq!(loads.len(), server.loads, "{}", server.name);
        if let Some(measured) = server.measured {
            let rows = measured::rows(measured, &file.with_file_name("measured.csv"));
            assert_eq!(rows.len(), measured.loads, "{}", server.name);
        }
        for split in Split::ALL {
            let Some(roles) = split.roles(server, &loads) else { continue };
            let cells = read(&whole_set(server, split, &loads, &roles, &file));
            let used = roles.iter().filter(|role| **role != Role::Unused).count();
            assert_eq!(cells.len(), used + server.measured.map_or(0, |measured| measured.loads));
            for cell in cells {
                assert_eq!(impossible(&cell), None, "{}", cell.name());
            }
        }
    }
}
