//! `knee plan`: how many GPUs, which, and at what cost.

use std::path::PathBuf;

use super::args::{Format, PlanArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, write_files};
use super::progress::Bar;
use super::{NO_SCENARIO, Outcome};
use crate::experiment::plan::{Demand, Job, PlanRequest, TEMPLATES, Template, plan};
use crate::report::{self, files};
use crate::scenario::Document;

/// Where files go if no scenario gives the folder a name.
const FOLDER: &str = "output/plan";

pub(super) fn run(args: &PlanArgs, console: &Console) -> Result<Outcome, Failure> {
    let mut common = args.common.clone();
    let mut inputs = if common.scenario == NO_SCENARIO {
        common.out.get_or_insert_with(|| PathBuf::from(FOLDER));
        Inputs::of(&common, "plan", Document::parse("", None)?)?
    } else {
        Inputs::read(&common, "plan")?
    };
    let request = request(args, &inputs)?;
    inputs.note_input(&request.choices());
    let bar = Bar::new(console);
    let result = plan(&request, &inputs.catalog, &bar);
    bar.clear();
    let result = result?;
    for warning in result.warnings() {
        console.warning(&warning);
    }
    // A folder that cannot be written must not cost the answer: it is printed first, then the failure.
    let written =
        write_files(&common, "plan", console, |dir| files::write_plan(dir, &result, inputs.origin()));
    match common.format {
        Format::Table => {
            console.result(&report::plan::table(&result, console.look()))?;
        }
        Format::Json => console.result(&report::plan::json(&result)?)?,
        Format::Csv => console.result(&String::from_utf8_lossy(&report::plan::csv(&result)?))?,
    }
    written?;
    let is_met = result.rows.iter().any(|row| row.gpus().is_some());
    Ok(if is_met { Outcome::Done } else { Outcome::ObjectivesMissed })
}

fn request(args: &PlanArgs, inputs: &Inputs) -> Result<PlanRequest, Failure> {
    let users = match (args.users, args.think_time_s) {
        (Some(users), Some(think_time_s)) => Some(Demand::Users { users, think_time_s }),
        (Some(users), None) => Some(thinking_as_told(users, inputs)?),
        (None, _) => None,
    };
    let demand = args.rate.map(Demand::RatePerS).or(users).or(args.tokens_per_day.map(Demand::TokensPerDay));
    let job = args.job_requests.zip(args.window_h).map(|(requests, window_h)| Job { requests, window_h });
    Ok(PlanRequest {
        document: inputs.document.clone(),
        template: args.template.unwrap_or_else(|| usual_template(job.is_some())),
        demand,
        peak_factor: args.peak_factor,
        job,
        models: args.model.clone(),
        gpus: args.gpu.clone(),
        tensor_parallel_sizes: args.tp.clone(),
        weight_dtypes: args.dtype.clone(),
        vary: args.vary.clone(),
        max_gpus: args.max_gpus,
        api_usd_per_million_tokens: args.api_price_per_m,
    })
}

/// So many users who think as long as those of the scenario.
fn thinking_as_told(users: f64, inputs: &Inputs) -> Result<Demand, Failure> {
    if !inputs.document.has("arrivals.closed.think_time_s") {
        return Err(Failure::NoThinkTime(users));
    }
    let scenario = inputs.document.scenario(&inputs.catalog)?;
    match Demand::of(&scenario.workload.arrivals) {
        Some(Demand::Users { think_time_s, .. }) => Ok(Demand::Users { users, think_time_s }),
        _ => Err(Failure::NoThinkTime(users)),
    }
}

/// A job that nobody waits for is offline work; otherwise most people mean a chat.
fn usual_template(is_job: bool) -> Template {
    let name = if is_job { "offline" } else { "chat" };
    Template::find(name).unwrap_or(TEMPLATES[0])
}
