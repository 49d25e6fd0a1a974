//! Keys that a plan sets itself: a row that names another value of one would be of a fleet that was not simulated.

use super::{PlanError, PlanRequest};

/// Keys, and what says them instead.
const SET_BY_PLAN: [(&str, &str); 10] = [
    ("model.name", "--model"),
    ("model.weight_dtype", "--dtype"),
    ("hardware.gpu", "--gpu"),
    ("engine.tensor_parallel_size", "--tp"),
    ("deployment.replicas", "nothing: how many is the answer, of at most --max-gpus GPUs"),
    ("run.mode", "nothing: a fleet is run in its steady state, a job saturated"),
    ("run.requests", "nothing: runs are as long as the fleet needs"),
    ("run.duration_s", "nothing: runs are as long as the fleet needs"),
    ("run.replications", "nothing: there are 5 to 15"),
    ("run.warmup", "nothing: it is found"),
];
/// Of the arrivals only how irregular they are is the scenario's.
const ARRIVALS: &str = "arrivals";
const OF_THE_SCENARIO: [&str; 2] = ["arrivals.gamma.burstiness", "arrivals.weibull.shape"];
const DEMAND: &str = "--rate, --users with --think-time-s, or --tokens-per-day";

/// That no key is varied which the plan sets.
pub(super) fn check(request: &PlanRequest) -> Result<(), PlanError> {
    match request.vary.iter().find_map(|(key, _)| Some((key, instead_of(key)?))) {
        Some((key, instead)) => Err(PlanError::Varied { key: key.clone(), instead }),
        None => Ok(()),
    }
}

/// What says `key`, or a table that it is in, instead of `--vary`; `None` if a plan leaves it alone.
fn instead_of(key: &str) -> Option<&'static str> {
    let is_in = |outer: &str, key: &str| {
        key.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if is_in(ARRIVALS, key) {
        return (!OF_THE_SCENARIO.contains(&key)).then_some(DEMAND);
    }
    SET_BY_PLAN.into_iter().find(|(own, _)| is_in(key, own)).map(|(_, instead)| instead)
}

#[cfg(test)]
mod tests {
    use super::instead_of;

    #[test]
    fn what_a_plan_sets_is_not_varied() {
        assert_eq!(instead_of("engine.tensor_parallel_size"), Some("--tp"));
        assert_eq!(instead_of("hardware"), Some("--gpu"));
        assert!(instead_of("arrivals.poisson.rate_per_s").is_some_and(|told| told.contains("--rate")));
        for own in ["engine.max_num_seqs", "arrivals.gamma.burstiness", "hardware.profile", "model.nam"] {
            assert_eq!(instead_of(own), None, "{own}");
        }
    }
}
