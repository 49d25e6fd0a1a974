//! Why a deployment is as fast as it is: where its memory goes, what a step is made of, which resource binds.

mod json;
mod memory;
mod roofline;
mod steps;

use crate::engine::{EngineError, Server};
use crate::experiment::refused_share;
use crate::report::format::percent;
use crate::report::table::{Look, MAX_WIDTH, Tone, headline, wrapped};
use crate::scenario::Scenario;

pub use json::json;
pub use roofline::roofline;
pub use steps::{Resource, mean_step, shares};

/// Why there is nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum NothingToExplain {
    #[error("a synthetic server has no memory and no steps to explain; its service time is in the scenario")]
    Synthetic,
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// That requests are refused whatever the load, if any are.
fn refused(scenario: &Scenario) -> Result<Option<String>, EngineError> {
    Ok(refused_share(scenario)?.map(|(share, why)| {
        format!("REFUSED whatever the load: {} % of this workload's requests ({why}).", percent(share))
    }))
}

/// Memory budget, vLLM's start-up lines, step-time breakdown and what binds, as text.
///
/// # Errors
/// [`NothingToExplain`] for a synthetic server.
pub fn text(scenario: &Scenario, look: Look) -> Result<String, NothingToExplain> {
    let (Server::Llm(server), Some(serving)) = (&scenario.system.server, &scenario.serving) else {
        return Err(NothingToExplain::Synthetic);
    };
    let mut lines = headline(&[scenario], "memory and step time", look);
    lines.push(String::new());
    lines.push(look.paint(Tone::Strong, "Memory of one GPU"));
    lines.extend(memory::budget(&serving.memory, serving));
    lines.push(String::new());
    lines.extend(memory::start_up_lines(server, &serving.memory, look));
    lines.extend(memory::expected_concurrency(scenario, server));
    lines.extend(refused(scenario)?.into_iter().flat_map(|text| wrapped(&text, MAX_WIDTH)));
    lines.push(String::new());
    lines.push(look.paint(Tone::Strong, "Time of one step"));
    lines.extend(steps::table(scenario, server));
    lines.extend(steps::overlap(scenario, server, serving));
    lines.push(String::new());
    lines.extend(steps::notes(server, serving));
    Ok(lines.join("\n") + "\n")
}
