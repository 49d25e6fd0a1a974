//! The loads of a server in the published file, and the measurement set that holds them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::servers::{Server, Source};

/// Lengths are drawn uniformly from this share of the nominal ones up.
const SHORTEST: f64 = 0.8;
/// Prompts that each user sends.
const PROMPTS_A_USER: u32 = 10;
/// From how many users the scripts take the longer `scheduler_recv_interval`.
const MANY_USERS: u32 = 16;
/// The GPUs of one node.
const NODE: u32 = 8;

/// One point of a curve: TTFT and TPOT of a closed loop of `users`.
#[derive(Clone, Copy)]
pub struct Load {
    pub source: &'static Source,
    pub gpus: u32,
    pub expert_parallel: bool,
    pub input: u32,
    pub output: u32,
    pub users: u32,
    ttft_ms: f64,
    tpot_ms: f64,
}

/// What a split does with a load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Fitted,
    HeldOut,
    Unused,
}

/// The columns of the file that are read.
struct Columns(BTreeMap<String, usize>);

impl Columns {
    fn get<'r>(&self, row: &'r csv::StringRecord, name: &str) -> &'r str {
        let at = self.0.get(name).unwrap_or_else(|| panic!("the file has no column `{name}`"));
        row.get(*at).unwrap_or_default()
    }

    fn count(&self, row: &csv::StringRecord, name: &str) -> Option<u32> {
        self.get(row, name).parse().ok()
    }
}

/// The loads of `server`, in a fixed order. A load that several source files hold, or that was measured
/// several times, is the median of what differs; of ranks the slowest, since some of theirs drafted tokens.
pub fn loads(server: &'static Server, file: &Path) -> Vec<Load> {
    let mut table =
        csv::Reader::from_path(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let header = table.headers().expect("a header").iter().enumerate();
    let columns = Columns(header.map(|(at, name)| (name.to_owned(), at)).collect());
    let mut found: BTreeMap<_, Vec<Load>> = BTreeMap::new();
    for row in table.records() {
        let row = row.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if let Some((place, load)) = load(server, &columns, &row) {
            let key = (place, load.gpus, load.expert_parallel, load.input, load.output, load.users);
            let same = found.entry(key).or_default();
            if !same.iter().any(|one| (one.ttft_ms, one.tpot_ms) == (load.ttft_ms, load.tpot_ms)) {
                same.push(load);
            }
        }
    }
    let one = |same: Vec<Load>| Load {
        ttft_ms: median(same.iter().map(|load| load.ttft_ms)),
        tpot_ms: median(same.iter().map(|load| load.tpot_ms)),
        ..same[0]
    };
    let slowest = |same: Vec<Load>| same.into_iter().max_by(|a, b| a.tpot_ms.total_cmp(&b.tpot_ms));
    let loads = found.into_values();
    if server.ranks { loads.filter_map(slowest).collect() } else { loads.map(one).collect() }
}

/// The load of a row with the place of its source, if it is the server's: aggregated, on one node, with or without
/// data-parallel attention as the server, with known users.
fn load(server: &'static Server, columns: &Columns, row: &csv::StringRecord) -> Option<(usize, Load)> {
    let text = |name| columns.get(row, name);
    let (system, backend) = (text("system"), text("backend"));
    if (system, backend, text("mode")) != (server.system, server.backend, "agg") {
        return None;
    }
    let ranks = columns.count(row, "attention_dp_size").unwrap_or(1);
    if (ranks > 1) != server.ranks || text("pp_size") != "1" {
        return None;
    }
    let (shards, groups) = (columns.count(row, "moe_tp_size")?, columns.count(row, "moe_ep_size")?);
    let mut gpus = ranks * columns.count(row, "tp_size")?;
    // Some source files write n GPUs with n groups of experts as n x n GPUs; others have the same figures
    // as those of n.
    if (gpus > NODE || server.ranks) && shards == groups && gpus == shards * groups {
        gpus = groups;
    }
    let is_source = |source: &Source| {
        let expert_parallel = groups > 1 || source.always_expert_parallel;
        source.paths.contains(&text("model_path"))
            && source.precision == text("precision")
            && source.versions.is_none_or(|versions| versions.contains(&text("backend_version")))
            && (source.deployments.is_empty() || source.deployments.contains(&(gpus, expert_parallel)))
    };
    let place = server.models.iter().position(is_source)?;
    let ms = |name| text(name).parse::<f64>().ok().filter(|ms| *ms > 0.0);
    let load = Load {
        source: &server.models[place],
        gpus,
        expert_parallel: groups > 1 || server.models[place].always_expert_parallel,
        input: columns.count(row, "isl")?,
        output: columns.count(row, "osl")?,
        users: columns.count(row, "concurrency")?,
        ttft_ms: ms("silicon_ttft_ms")?,
        tpot_ms: ms("silicon_tpot_ms")?,
    };
    (gpus <= NODE).then_some((place, load))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

/// `loads` as a measurement set: an entry for each deployment, fitted and held out apart.
pub fn set(server: &Server, loads: &[Load], roles: &[Role]) -> String {
    let mut text = format!(
        "# Published concurrency curves; written by tests/holdout.\nname = {:?}\n[hardware]\ngpu = {:?}\n",
        server.name, server.gpu
    );
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    for (load, role) in loads.iter().zip(roles).filter(|(_, role)| **role != Role::Unused) {
        let points = entries.entry(deployment(load, *role)).or_default();
        points.push_str(&point(server, load));
    }
    for (deployment, points) in entries {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[[measurement]]\n{deployment}{points}");
    }
    text
}

/// The head of an entry: name, source, model and engine.
fn deployment(load: &Load, role: Role) -> String {
    let Source { model, weights, engine, recv_interval, budget, batch_wait, .. } = load.source;
    let groups = if load.expert_parallel { " EP" } else { "" };
    let mut option = if load.expert_parallel { "enable_expert_parallel = true\n" } else { "" }.to_owned();
    if let Some((few, many)) = recv_interval {
        let interval = if load.users < MANY_USERS { few } else { many };
        // Writing to a string cannot fail.
        let _ = writeln!(option, "scheduler_recv_interval = {interval}");
    }
    if let Some(tokens) = budget.tokens(load.input, load.users) {
        let _ = writeln!(option, "max_num_batched_tokens = {tokens}");
    }
    if *batch_wait && (load.input, load.output) == (1024, 1024) && load.gpus < 8 {
        option += "batch_wait_timeout_iters = 20\nbatch_wait_max_tokens_ratio = 0.9\n";
    }
    // Qwen3 on H100 was measured with another load generator.
    let measured_by = if model.starts_with("qwen3-") {
        "NVIDIA AIConfigurator"
    } else {
        "SemiAnalysis InferenceX, as shipped by NVIDIA AIConfigurator"
    };
    format!(
        "name = \"{model}-{weights} TP{gpus}{groups}\"\n\
         source = \"{measured_by}\"\n\
         holdout = {is_held_out}\n\
         [measurement.model]\nname = \"{model}\"\nweight_dtype = \"{weights}\"\n\
         [measurement.engine]\n{engine}tensor_parallel_size = {gpus}\n{option}",
        gpus = load.gpus,
        is_held_out = role == Role::HeldOut,
    )
}

fn point(server: &Server, load: &Load) -> String {
    let mut text = format!(
        "[[measurement.point]]\nconcurrency = {}\ncompleted = {}\nttft_mean_ms = {}\ntpot_mean_ms = {}\n",
        load.users,
        PROMPTS_A_USER * load.users,
        load.ttft_ms,
        load.tpot_ms
    );
    for (name, nominal) in [("input", load.input), ("output", load.output)] {
        let longest = f64::from(nominal);
        let shortest = if server.fixed_lengths { longest } else { (SHORTEST * longest).round() };
        let mean = if server.fixed_lengths { longest } else { 0.5 * (1.0 + SHORTEST) * longest };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name}_tokens_mean = {mean}\n{name}_tokens_min = {shortest}\n{name}_tokens_max = {longest}"
        );
    }
    text
}
