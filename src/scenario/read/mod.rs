//! From a document to a [`Scenario`]: one file per part of it.

mod arrivals;
mod classes;
mod data_parallel;
mod distribution;
mod engines;
mod fit;
mod llm;
mod measurements;
mod run;
mod slices;
mod slo;
mod speculative;
mod sweep;
mod synthetic;
mod varying;

use std::sync::Arc;

use super::document::Document;
use super::keys::{cost, deployment, engine, root};
use super::lookups::Lookups;
use super::node::{Node, Value};
use super::problem::{Problem, ScenarioErrors};
use super::reader::{Reader, Section};
use super::{Axis, Scenario, Serving, SweepMode};
use crate::catalog::Catalog;
use crate::engine::{RouterPolicy, Server, System};
use crate::workload::Workload;

pub(super) use measurements::measurements;

/// What resolving a scenario may look up.
struct Context<'d> {
    catalog: &'d Catalog,
    lookups: &'d Lookups,
}

/// Reads everything, collecting problems; builds the scenario if there are none.
pub(super) fn scenario(document: &Document, catalog: &Catalog) -> Result<Scenario, ScenarioErrors> {
    let context = Context { catalog, lookups: &document.lookups };
    let mut reader = Reader::new(&document.sources, document.base());
    let scenario = read(&mut reader, &context, document);
    match scenario {
        Some(mut scenario) if reader.problems.is_empty() => {
            scenario.warnings = reader.warnings;
            scenario.cannot_start = reader.cannot_start;
            Ok(scenario)
        }
        _ => Err(ScenarioErrors::new(reader.problems, &document.sources)),
    }
}

/// Reads only the sweep's axes.
pub(super) fn axes(document: &Document) -> Result<(Vec<Axis>, SweepMode), ScenarioErrors> {
    let mut reader = Reader::new(&document.sources, document.base());
    let top = reader.top(&document.root, &root::ROOT);
    let seed = reader.integer(&top, &root::SEED).unwrap_or_default();
    let axes = sweep::read(&mut reader, &top, is_synthetic(&document.root), seed);
    sweep::check_together(&mut reader, &top);
    match axes {
        Some(axes) if reader.problems.is_empty() => Ok(axes),
        _ => Err(ScenarioErrors::new(reader.problems, &document.sources)),
    }
}

/// `None` only if a problem was recorded.
fn read<'d>(reader: &mut Reader<'d>, context: &Context<'_>, document: &'d Document) -> Option<Scenario> {
    let top = reader.top(&document.root, &root::ROOT);
    let name = reader.text(&top, &root::NAME).or_else(|| document.stem().map(str::to_owned));
    if let Some(bad) = name.as_ref().filter(|name| !is_printable(name)) {
        let place = top.place(&root::NAME);
        let count = bad.chars().count();
        let found = if count > 60 { format!("{count} characters") } else { format!("{bad:?}") };
        let label = format!("found {found}, expected 1 to 200 characters, none of them a control character");
        reader.problem(Problem::new(place, "impossible value for `name`").label(label));
    }
    let description = reader.text(&top, &root::DESCRIPTION);
    let seed = reader.integer(&top, &root::SEED);
    let is_synthetic = is_synthetic(&document.root);

    let arrivals = arrivals::read(reader, context, &top);
    let classes = classes::read(reader, context, &top, arrivals.as_ref(), is_synthetic);
    let run = run::read(reader, &top, arrivals.as_ref());
    // A seed that is wrong is reported as such; any will do to go on.
    let sweep = sweep::read(reader, &top, is_synthetic, seed.unwrap_or_default());
    let (replicas, router) = deployment(reader, &top);
    let given_price = price(reader, &top);

    let (server, serving) = if is_synthetic {
        (synthetic::read(reader, context, &top), None)
    } else {
        let priorities = classes.iter().flatten().map(|class| class.priority).collect();
        let (server, serving) = llm::read(reader, context, &top, priorities).unzip();
        (server.map(|server| Server::Llm(Box::new(server))), serving)
    };

    let gpus_per_replica = serving.as_ref().map_or(0, Serving::gpus);
    let catalog_price = serving
        .as_ref()
        .and_then(|s| s.hardware.price.as_ref())
        .map(|price| (price.usd_per_gpu_hour, format!("{}, {}", price.source, price.date)));
    let (sweep, sweep_mode) = sweep?;
    Some(Scenario {
        name: name.unwrap_or_else(|| "scenario".to_owned()),
        description: description?,
        path: document.path.clone(),
        seed: seed?,
        system: System { replicas: replicas?, router: router?, server: server? },
        workload: Arc::new(Workload { arrivals: arrivals?, classes: classes? }),
        run: run?,
        sweep,
        sweep_mode,
        price: given_price.map(|usd| (usd, "the scenario".to_owned())).or(catalog_price),
        gpus: gpus_per_replica.saturating_mul(replicas?),
        serving: serving.map(std::sync::Arc::new),
        warnings: Vec::new(),
        cannot_start: Vec::new(),
    })
}

/// Names are printed on terminals.
fn is_printable(name: &str) -> bool {
    (1..=200).contains(&name.chars().count()) && !name.chars().any(char::is_control)
}

/// Which of the two engine tables applies; looked up first, because classes depend on it.
fn is_synthetic(root: &Node) -> bool {
    let find = |node: &Node, key: &str| node.entries().iter().find(|e| e.key == key).map(|e| e.node.clone());
    let name = find(root, root::ENGINE.name).and_then(|engine| find(&engine, engine::NAME.name));
    matches!(name.map(|node| node.value), Some(Value::Text(name)) if name == "synthetic")
}

fn deployment<'d>(reader: &mut Reader<'d>, top: &Section<'d>) -> (Option<u32>, Option<RouterPolicy>) {
    let section = reader.open(top, &root::DEPLOYMENT, &deployment::DEPLOYMENT);
    let replicas = reader.integer(&section, &deployment::REPLICAS);
    let router = reader.choice(&section, &deployment::ROUTER).map(|router| match router {
        "random" => RouterPolicy::Random,
        "least_outstanding" => RouterPolicy::LeastOutstanding,
        "power_of_two" => RouterPolicy::PowerOfTwo,
        _ => RouterPolicy::RoundRobin,
    });
    (replicas, router)
}

fn price<'d>(reader: &mut Reader<'d>, top: &Section<'d>) -> Option<f64> {
    let section = reader.open(top, &root::COST, &cost::COST);
    reader.number(&section, &cost::GPU_HOUR_USD)
}
