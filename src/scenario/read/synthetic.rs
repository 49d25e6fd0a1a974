//! `engine.name = "synthetic"`: servers without a model, for queueing theory and worked examples.

use super::{Context, distribution};
use crate::engine::{Server, SyntheticServer};
use crate::scenario::keys::{engine, root, synthetic as keys};
use crate::scenario::node::Node;
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::workload::Distribution;

pub(super) fn read<'d>(reader: &mut Reader<'d>, context: &Context<'_>, top: &Section<'d>) -> Option<Server> {
    for table in [&root::MODEL, &root::HARDWARE] {
        if let Some(node) = top.find(table) {
            let problem = Problem::new(node.span, format!("a synthetic server has no [{}]", table.name));
            reader.problem(problem.label("leave the table out, or choose another engine"));
        }
    }
    let before = reader.problems.len();
    let section = reader.open(top, &root::ENGINE, &keys::SYNTHETIC);
    explain_foreign_keys(reader, before);
    let servers = reader.integer(&section, &keys::SERVERS);
    let service_time_s = service_time(reader, context, &section);
    let queue_limit = reader.integer(&section, &keys::QUEUE_LIMIT);
    Some(Server::Synthetic(SyntheticServer {
        servers: servers?,
        service_time_s: service_time_s?,
        queue_limit,
    }))
}

/// A key that real engines have is not misspelt; it has no meaning here.
fn explain_foreign_keys(reader: &mut Reader<'_>, from: usize) {
    for problem in &mut reader.problems[from..] {
        let is_foreign = |name: &str| problem.message == format!("unknown key `engine.{name}`");
        if engine::ENGINE.keys.iter().any(|key| is_foreign(key.name)) {
            problem.label = "a synthetic server has no such option".to_owned();
        }
    }
}

fn service_time<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    section: &Section<'d>,
) -> Option<Distribution> {
    let given: (Option<&Node>, Option<&Node>) =
        (section.find(&keys::SERVICE_TIME), section.find(&keys::REQUESTS_PER_S));
    match given {
        (Some(node), None) => distribution::times_with_unit(reader, context, node, "engine.service_time"),
        (None, Some(_)) => {
            let per_s = reader.number(section, &keys::REQUESTS_PER_S)?;
            Some(Distribution::Constant { value: 1.0 / per_s })
        }
        (Some(_), Some(second)) => {
            let message = "both `engine.service_time` and `engine.requests_per_s` are given";
            reader.problem(Problem::new(second.span, message).label("keep one of them"));
            None
        }
        (None, None) => {
            let problem = Problem::new(section.span, "missing key `engine.service_time`");
            reader.problem(problem.label("give `service_time` or `requests_per_s`"));
            None
        }
    }
}
