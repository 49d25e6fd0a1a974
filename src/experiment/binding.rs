//! What a system runs out of under load, in words.

use super::point::Point;
use crate::cost::StepTerms;
use crate::engine::Server;
use crate::metrics::ReplicaSummary;

/// How close to its limit a resource counts as used up.
const USED_UP: f64 = 0.97;

/// The resource that `point`'s replicas ran out of, or are nearest to running out of.
#[must_use]
pub fn in_words(point: &Point) -> String {
    let replicas: Vec<&ReplicaSummary> = point.runs.iter().flat_map(|run| &run.replicas).collect();
    let count = replicas.len().max(1) as f64;
    let mean = |of: fn(&ReplicaSummary) -> f64| replicas.iter().map(|r| of(r)).sum::<f64>() / count;
    let busy = mean(|r| r.busy);
    let server = match &point.scenario.system.server {
        Server::Synthetic(server) => {
            let servers = if server.servers == 1 { "the server is" } else { "the servers are" };
            return format!("{servers} busy {:.0} % of the time", busy * 100.0);
        }
        Server::Llm(server) => server,
    };
    let (kv, running) = (mean(|r| r.kv_use), mean(|r| r.running));
    let (each, seqs) = (server.batcher.max_num_seqs, f64::from(server.total_seqs()));
    let time = replicas.first().map_or_else(String::new, |replica| {
        let terms = server.mean_terms(&replica.mean_step);
        let (term, share) = largest(&terms);
        format!("; a step's largest part is {term} ({:.0} %)", share * 100.0)
    });
    let what = if kv > USED_UP || mean(|r| r.preemptions as f64) > 0.01 * mean(|r| r.completed as f64) {
        format!("KV cache: {:.0} % of the blocks in use on average", kv * 100.0)
    } else if running > USED_UP * seqs {
        format!("max_num_seqs = {each}: all sequence slots in use")
    } else {
        format!("GPU time: steps run {:.0} % of the time", busy * 100.0)
    };
    what + &time
}

/// The largest term of a step and its share.
fn largest(terms: &StepTerms) -> (&'static str, f64) {
    let linear = if terms.linear_compute_s > terms.linear_memory_s {
        "matrix multiplication (compute)"
    } else {
        "reading weights (memory bandwidth)"
    };
    let attention = if terms.attention_compute_s > terms.kv_s {
        "attention (compute)"
    } else {
        "reading the KV cache (memory bandwidth)"
    };
    let parts = [
        ("host and launch overhead", terms.overhead_s + terms.launch_s),
        ("per-sequence overhead", terms.sequences_s),
        (linear, terms.linear_s),
        ("the output head", terms.head_s),
        (attention, terms.attention_s),
        ("communication between GPUs", terms.communication_s),
    ];
    let total = terms.total_s();
    let (name, value) = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("nothing", 0.0));
    (name, if total > 0.0 { value / total } else { 0.0 })
}
