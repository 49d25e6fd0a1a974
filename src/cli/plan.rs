//! `knee plan`: how many GPUs, which, and at what cost.

use super::args::{Format, PlanArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, write_files};
use super::progress::Bar;
use super::{NO_SCENARIO, Outcome};
use crate::experiment::plan::{Demand, Job, PlanRequest, TEMPLATES, Template, plan};
use crate::report::{self, files};
use crate::scenario::Document;

/// The folder's name where no scenario gives one.
const FOLDER: &str = "plan";

pub(super) fn run(args: &PlanArgs, console: &Console) -> Result<Outcome, Failure> {
    let mut common = args.common.clone();
    let mut inputs = if common.scenario == NO_SCENARIO {
        common.scenario = FOLDER.to_owned();
        Inputs::of(&common, Document::parse("", None)?)?
    } else {
        Inputs::read(&common)?
    };
    let request = request(args, &inputs.document);
    inputs.note_input(&request.choices());
    let bar = Bar::new(console);
    let result = plan(&request, &inputs.catalog, &bar);
    bar.clear();
    let result = result?;
    for warning in result.warnings() {
        console.warning(&warning);
    }
    // A folder that cannot be written must not cost the answer: it is printed first, then the failure.
    let written = write_files(&common, console, |dir| files::write_plan(dir, &result, inputs.origin("plan")));
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

fn request(args: &PlanArgs, document: &Document) -> PlanRequest {
    let users = args.users.zip(args.think_time_s);
    let demand = args
        .rate
        .map(Demand::RatePerS)
        .or(users.map(|(users, think_time_s)| Demand::Users { users, think_time_s }))
        .or(args.tokens_per_day.map(Demand::TokensPerDay));
    let job = args.job_requests.zip(args.window_h).map(|(requests, window_h)| Job { requests, window_h });
    PlanRequest {
        document: document.clone(),
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
    }
}

/// A job that nobody waits for is offline work; otherwise most people mean a chat.
fn usual_template(is_job: bool) -> Template {
    let name = if is_job { "offline" } else { "chat" };
    Template::find(name).unwrap_or(TEMPLATES[0])
}
