//! Plans against arithmetic, against separate runs of the fleets they name, and against each other.

use knee::catalog::Catalog;
use knee::experiment::plan::{
    Demand, Economics, Fleet, Job, Outcome, Plan, PlanError, PlanRequest, Row, Template, plan,
};
use knee::experiment::{Silent, SloVerdict, Verdict, run_point};
use knee::report;
use knee::scenario::{Document, Override, RunLength};

fn request(document: &str, gpus: &[&str], demand: Option<Demand>) -> PlanRequest {
    let document =
        if document.is_empty() { Document::parse("", None) } else { Document::load(document) }.unwrap();
    PlanRequest {
        document,
        template: Template::find("chat").unwrap(),
        demand,
        peak_factor: 1.0,
        job: None,
        models: Vec::new(),
        gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
        tensor_parallel_sizes: vec![1],
        weight_dtypes: Vec::new(),
        vary: Vec::new(),
        max_gpus: 512,
        api_usd_per_million_tokens: None,
    }
}

fn planned(request: &PlanRequest) -> Plan {
    plan(request, &Catalog::new(None), &Silent).unwrap()
}

fn fleet(row: &Row) -> &Fleet {
    match &row.outcome {
        Outcome::Fleet(fleet) => fleet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_fleet_meets_the_objectives_and_one_fewer_does_not() {
    // An objective that binds before the fleet saturates.
    let rate_per_s = 130.0;
    let strict = Override::new("class.chat.slo.ttft_p99_ms", "250");
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(rate_per_s)));
    asked.document = asked.document.with_overrides(std::slice::from_ref(&strict)).unwrap();
    let plan = planned(&asked);
    let fleet = fleet(&plan.rows[0]);
    assert_eq!((fleet.gpus, fleet.rates.peak_per_s), (fleet.replicas, rate_per_s));
    let separately = |replicas: u32| {
        let changes = [
            strict.clone(),
            Override::new("deployment.replicas", &replicas.to_string()),
            Override::new("deployment.router", "least_outstanding"),
            Override::new("arrivals.poisson.rate_per_s", &rate_per_s.to_string()),
            Override::new("run.requests", "60000"),
            Override::new("seed", "77"),
        ];
        let document = Document::load("chat-h100").unwrap().with_overrides(&changes).unwrap();
        run_point(&document.scenario(&Catalog::new(None)).unwrap()).unwrap()
    };
    let met = separately(fleet.replicas);
    assert_eq!((met.slo, met.stability.verdict), (SloVerdict::Met, Verdict::Stable));
    assert_ne!(separately(fleet.replicas - 1).slo, SloVerdict::Met);
    assert!(fleet.one_fewer.as_ref().is_some_and(|why| why.contains("TTFT p99")), "{:?}", fleet.one_fewer);

    // The same GPU overnight: fewer do, for each then runs at its peak.
    assert!(fleet.replicas_without_objectives < fleet.replicas);
    let peak = fleet.saturated_per_s.mean * f64::from(fleet.replicas_without_objectives);
    assert!(peak > rate_per_s && peak - fleet.saturated_per_s.mean < rate_per_s);
    let text = report::plan::table(&plan, report::table::Look::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("with no TTFT or TPOT objective each replica runs near its peak"), "{text}");

    // The band is the same question asked of a GPU whose steps are longer or shorter by the profile's error.
    let [of] = plan.profile_errors.as_slice() else { panic!("{:?}", plan.profile_errors) };
    let error = of.error.expect("the profile was scored");
    assert_eq!(Some(error), plan.rows[0].scenario.serving.as_ref().unwrap().profile.largest_held_out_error());
    let mut worse = plan.clone();
    worse.profile_errors[0].error = Some(1.3);
    let told = report::plan::table(&worse, report::table::Look::default());
    assert!(told.contains("with steps 130 % longer") && !told.contains("never scored on"), "{told}");
    let (longer, shorter) = (of.gpus_if_longer.unwrap(), of.gpus_if_shorter.unwrap());
    assert!(shorter <= fleet.gpus && fleet.gpus <= longer, "{of:?}");
    assert!(text.contains("largest held-out error, of qwen3-14b, not of llama-3.1-8b)"), "{text}");
    assert!(text.contains("profiles h100-sxm bf16: calibrated on qwen3-14b, not on llama-3.1-8b"), "{text}");
}

#[test]
fn a_demand_beyond_counting_is_beyond_the_limit() {
    let plan = planned(&request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(1e300))));
    assert!(
        matches!(&plan.rows[0].outcome, Outcome::Never(why) if why.reason.contains("more than the limit"))
    );
}

#[test]
fn money_is_arithmetic() {
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(20.0)));
    asked.document = asked.document.with_overrides(&[Override::new("cost.gpu_hour_usd", "2.5")]).unwrap();
    asked.peak_factor = 2.0;
    let plan = planned(&asked);
    let fleet = fleet(&plan.rows[0]);
    assert_eq!((fleet.rates.mean_per_s, fleet.rates.peak_per_s), (20.0, 40.0));
    let economics = Economics::of(&plan.rows[0]).unwrap();
    let usd = economics.usd.unwrap();
    // The scenario's own price, 2.50.
    assert_eq!(usd.per_hour, 2.5 * f64::from(fleet.gpus));
    assert_eq!(usd.per_month, usd.per_hour * 730.0);
    assert_eq!(economics.gpu_hours_per_day, Some(24.0 * f64::from(fleet.gpus)));
    // 20 requests a second of 512 and 200 tokens on average, paid for at the mean and not at the peak.
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.04;
    assert!((usd.requests_per_usd * usd.per_hour / 72_000.0 - 1.0).abs() < 1e-12);
    assert!(close(usd.per_million_input_tokens, usd.per_hour / (0.072 * 512.0)), "{usd:?}");
    assert!(close(usd.per_million_output_tokens, usd.per_hour / (0.072 * 200.0)), "{usd:?}");
    assert!(close(usd.per_million_tokens, usd.per_hour / (0.072 * 712.0)), "{usd:?}");
    let api = usd.per_million_tokens;
    assert!(close(usd.break_even_tokens_per_day(api), 20.0 * 712.0 * 86_400.0));
    // Another GPU does not have that price.
    let other = planned(&request("chat-h100", &["h200-sxm"], Some(Demand::RatePerS(20.0))));
    assert!(other.rows[0].price.as_ref().unwrap().listed.is_some());
}

#[test]
fn candidates_that_cannot_do_it_are_listed_with_the_reason() {
    let mut asked = request("", &["l4", "h100-sxm"], Some(Demand::RatePerS(1.0)));
    asked.models = vec!["llama-3.1-70b".to_owned(), "llama-3.1-8b".to_owned()];
    let plan = planned(&asked);
    let of = |model: &str| plan.rows.iter().filter(|row| row.candidate.model == model).count();
    assert_eq!((of("llama-3.1-70b"), of("llama-3.1-8b"), plan.misfits.len()), (0, 2, 2));
    assert!(plan.misfits.iter().all(|misfit| misfit.reason.contains("does not fit")), "{:?}", plan.misfits);
    let csv = String::from_utf8(report::plan::csv(&plan).unwrap()).unwrap();
    assert_eq!(csv.lines().count(), 5);

    // A template stood in: the answer says so first, and how far it moves.
    let text =
        report::plan::table(&plan, report::table::Look { today: Some((2026, 11)), ..Default::default() });
    assert!(text.starts_with("ASSUMED, because nothing was said: chat:"), "{text}");
    assert_eq!(plan.other_lengths.len(), 2);
    assert!(text.contains("with double lengths") && text.contains("24 months old"), "{text}");

    // Objectives that an empty system misses are met by no number of replicas.
    let mut never = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(1.0)));
    let slo = Override::new("class.chat.slo", "{ ttft_p99_ms = 1 }");
    never.document = never.document.with_overrides(&[slo]).unwrap();
    let plan = planned(&never);
    let Outcome::Never(unmet) = &plan.rows[0].outcome else { panic!("{:?}", plan.rows[0].outcome) };
    let reason = unmet.to_string();
    assert!(reason.contains("TTFT p99 ≤ 1 ms fails without any load, "), "{reason}");
    assert!(unmet.times_limit.is_some_and(|times| times > 1.0), "{reason}");
}

#[test]
fn of_equal_prices_the_better_founded_fleet_comes_first() {
    // Two GPUs either way: of two of one each the step times are fitted, of one over two they are not.
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(45.0)));
    asked.tensor_parallel_sizes = vec![2, 1];
    let plan = planned(&asked);
    let order: Vec<(u32, Option<u32>, bool)> = plan
        .rows
        .iter()
        .map(|row| (row.candidate.tensor_parallel_size, row.gpus(), row.is_estimated()))
        .collect();
    assert_eq!(order, [(1, Some(2), false), (2, Some(2), true)]);
}

#[test]
fn the_smallest_demand_is_served_by_one_replica() {
    let plan = planned(&request("chat-h100", &["h100-sxm"], Some(Demand::TokensPerDay(1.0))));
    let fleet = fleet(&plan.rows[0]);
    assert_eq!(fleet.replicas, 1);
    assert!(fleet.rates.peak_per_s < 1e-7, "{:?}", fleet.rates);
}

#[test]
fn a_value_that_is_wrong_whatever_the_candidate_is_an_error() {
    let vary = |key: &str, values: &[&str]| {
        let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(2.0)));
        asked.vary = vec![(key.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())];
        plan(&asked, &Catalog::new(None), &Silent)
    };
    let wrong = vary("engine.max_num_seqs", &["64", "abc", "def"]).unwrap_err();
    assert!(matches!(wrong, PlanError::Scenario(_)), "{wrong}");
    let text = wrong.to_string();
    assert!(text.contains("engine.max_num_seqs=abc") && text.contains("engine.max_num_seqs=def"), "{text}");
    assert!(vary("engine.max_num_sequences", &["64"]).is_err());
    // An engine that does not have the scenario's version is no slip of the value: the others are planned.
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(2.0)));
    let vary = |key: &str, values: &[&str]| {
        (key.to_owned(), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    };
    asked.vary = vec![vary("engine.name", &["vllm", "sglang"]), vary("engine.version", &["0.23"])];
    let plan = planned(&asked);
    assert_eq!((plan.rows.len(), plan.misfits.len()), (1, 1));
    assert!(plan.misfits[0].missing_mib.is_none(), "{:?}", plan.misfits);
    let text = report::plan::table(&plan, report::table::Look::default());
    let of = |label: &str| text.lines().find(|line| line.starts_with(label)).map(str::to_owned);
    assert!(
        of("cannot run").is_some_and(|line| line.contains("0.23")) && of("do not fit").is_none(),
        "{text}"
    );
    assert!(text.contains("llama-3.1-8b under vllm 0.23"), "{text}");
    let csv = String::from_utf8(report::plan::csv(&plan).unwrap()).unwrap();
    assert!(csv.contains("cannot run"), "{csv}");
}

#[test]
fn refused_requests_are_not_so_many_times_the_limit() {
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(1.0)));
    for (tokens, input, share) in [
        ("16", "{ constant = 512 }", "every request is refused"),
        ("1024", "{ lognormal = { mean = 512, p99 = 4096 } }", "% of the requests are refused at any load"),
    ] {
        let changes = [
            Override::new("engine.name", "tensorrt-llm"),
            Override::new("engine.version", "auto"),
            Override::new("engine.enable_chunked_prefill", "false"),
            Override::new("engine.max_num_batched_tokens", tokens),
            Override::new("class.chat.input_tokens", input),
            Override::new("engine.max_num_seqs", "16"),
        ];
        asked.document = asked.document.with_overrides(&changes).unwrap();
        let plan = planned(&asked);
        let Outcome::Never(unmet) = &plan.rows[0].outcome else { panic!("{:?}", plan.rows[0].outcome) };
        assert!(
            unmet.reason.contains(share) && unmet.reason.contains("max_num_batched_tokens"),
            "{}",
            unmet.reason
        );
        assert_eq!(unmet.times_limit, None);
    }
}

#[test]
fn a_job_takes_its_work_over_the_saturated_throughput() {
    let mut asked = request("", &["h100-sxm"], None);
    asked.template = Template::find("offline").unwrap();
    asked.job = Some(Job { requests: 100_000.0, window_h: 4.0 });
    let plan = planned(&asked);
    let Outcome::Job(job) = &plan.rows[0].outcome else { panic!("{:?}", plan.rows[0].outcome) };
    let hours = 100_000.0 / job.saturated_per_s.mean / 3600.0 / f64::from(job.replicas);
    assert!(
        (job.hours / hours - 1.0).abs() < 0.03 && job.hours <= 4.0,
        "{} h, at its peak {hours}",
        job.hours
    );
    // A run of the whole of a smaller job by one replica, ramp and drain included.
    let mean_s = job_takes_s(&plan.rows[0], 1, 10_000, 3);
    let predicted_s = 10_000.0 / job.saturated_per_s.mean;
    assert!((mean_s / predicted_s - 1.0).abs() < 0.03, "{mean_s} s, predicted {predicted_s} s");
}

/// Where a window is a few answers long, filling and emptying the batch is most of it.
#[test]
fn the_fleet_of_a_short_job_does_it_in_time_and_one_fewer_does_not() {
    let mut asked = request("", &["h100-sxm"], None);
    asked.template = Template::find("chat").unwrap();
    for (requests, window_s) in [(3000_u32, 30.0), (500, 20.0)] {
        asked.job = Some(Job { requests: f64::from(requests), window_h: window_s / 3600.0 });
        let plan = planned(&asked);
        let Outcome::Job(job) = &plan.rows[0].outcome else { panic!("{:?}", plan.rows[0].outcome) };
        let peak = f64::from(requests) / (job.saturated_per_s.mean * window_s);
        assert!(f64::from(job.replicas) > 1.2 * peak, "{} replicas, {peak} at their peak", job.replicas);
        let takes_s = |replicas| job_takes_s(&plan.rows[0], replicas, u64::from(requests), 20);
        let (enough_s, fewer_s) = (takes_s(job.replicas), takes_s(job.replicas - 1));
        assert!((3600.0 * job.hours / enough_s - 1.0).abs() < 0.1, "{} h, {enough_s} s", job.hours);
        assert!(enough_s <= window_s && fewer_s > 0.93 * window_s, "{enough_s}, {fewer_s} of {window_s} s");
    }
}

/// What a fleet takes for all requests at once, s: mean over replications.
fn job_takes_s(row: &Row, replicas: u32, requests: u64, replications: u32) -> f64 {
    let mut scenario = row.scenario.clone();
    let classes = scenario.workload.classes.clone();
    let arrivals = knee::workload::Arrivals::AllAtOnce;
    scenario.workload = std::sync::Arc::new(knee::workload::Workload { arrivals, classes });
    scenario.system.replicas = replicas;
    scenario.run.length = RunLength::Requests(requests);
    scenario.run.mode = knee::scenario::RunMode::Benchmark;
    scenario.run.replications = replications;
    let run = run_point(&scenario).unwrap();
    run.runs.iter().map(|run| run.window.end_s).sum::<f64>() / f64::from(replications)
}

/// One answer is sequential: no number of GPUs makes it shorter, and one request needs no more than one replica.
#[test]
fn a_window_shorter_than_an_answer_is_met_by_no_number_of_gpus() {
    let mut asked = request("", &["h100-sxm"], None);
    let lengths = [("input_tokens", "{ constant = 1000 }"), ("output_tokens", "{ constant = 2000 }")];
    let mut changes: Vec<Override> =
        lengths.iter().map(|(key, value)| Override::new(&format!("class.0.{key}"), value)).collect();
    changes.push(Override::new("class.0.name", "\"long\""));
    asked.document = asked.document.with_overrides(&changes).unwrap();
    let mut of = |requests: f64, window_s: f64| {
        asked.job = Some(Job { requests, window_h: window_s / 3600.0 });
        planned(&asked).rows.remove(0)
    };
    // Weights of 16 GB at 3.35 TB/s: 2,000 steps of 4.8 ms at the very least, and of 9 ms at most.
    for requests in [1.0, 1e6] {
        let Outcome::Never(unmet) = of(requests, 5.0).outcome else { panic!("{requests} in 5 s") };
        let (_, told) = unmet.reason.split_once("one answer alone takes ").expect("what it takes");
        let alone_s: f64 = told.split(' ').next().unwrap().parse().unwrap();
        assert!((9.6..18.0).contains(&alone_s), "{}", unmet.reason);
    }
    // Nor is it done in less where there is all day.
    for (requests, window_s) in [(1.0, 20.0), (3.0, 20.0), (1.0, 28_800.0)] {
        let Outcome::Job(job) = of(requests, window_s).outcome else { panic!("{requests} in {window_s} s") };
        assert_eq!(job.replicas, 1, "{job:?}");
        assert!((9.6..=20.0).contains(&(3600.0 * job.hours)), "{} h", job.hours);
    }
}

#[test]
fn a_fleet_that_does_not_start_is_no_fleet() {
    // Experts of 1536 columns over eight GPUs: 192 each, no multiple of a block of 128; over four 384, which is one.
    let mut asked = request("", &["h200-sxm"], Some(Demand::RatePerS(1.0)));
    asked.models = vec!["qwen3-235b-a22b".to_owned()];
    asked.weight_dtypes = vec!["fp8".to_owned()];
    asked.tensor_parallel_sizes = vec![8, 4];
    let plan = planned(&asked);
    let runs: Vec<u32> = plan.rows.iter().map(|row| row.candidate.tensor_parallel_size).collect();
    assert_eq!(runs, [4]);
    assert!(plan.warnings().iter().all(|text| !text.contains("does not start")), "{:?}", plan.warnings());
    let text = report::plan::table(&plan, report::table::Look::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("cannot run qwen3-235b-a22b: each of 8 GPUs has 192 columns of"), "{text}");

    // More blocks than the GPU has memory for.
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(1.0)));
    let blocks = Override::new("engine.num_gpu_blocks_override", "200000");
    asked.document = asked.document.with_overrides(&[blocks]).unwrap();
    let plan = planned(&asked);
    assert_eq!((plan.rows.len(), plan.misfits.len()), (0, 1));
    assert!(plan.misfits[0].reason.contains("no engine could start like that"), "{:?}", plan.misfits);
}

/// Lengths of lognormal prompts are known: 0.41 % of them have more than 6,000 tokens.
#[test]
fn the_share_that_is_refused_is_said() {
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(5.0)));
    let changes = [
        Override::new("engine.max_model_len", "6001"),
        Override::new("class.chat.input_tokens", "{ lognormal = { mean = 512, p99 = 4096 } }"),
        Override::new("class.chat.output_tokens", "{ constant = 1 }"),
        Override::new("class.chat.slo", "{ ttft_p95_ms = 2000 }"),
    ];
    asked.document = asked.document.with_overrides(&changes).unwrap();
    let plan = planned(&asked);
    let (share, why) = plan.rows[0].refused().expect("some are too long");
    // ln x ~ N(mu, sigma): mean 512 and p99 4096 give sigma = 1.207 and mu = 5.510 (the smaller root of
    // sigma^2 / 2 - 2.3263 sigma + ln 8 = 0).
    assert!((share / 0.00411 - 1.0).abs() < 0.35, "{share}");
    assert!(why.contains("max_model_len"), "{why}");
    let text = report::plan::table(&plan, report::table::Look::default());
    assert!(text.contains("% of the requests are refused at any load: longer than max_model_len"), "{text}");
    assert!(report::plan::json(&plan).unwrap().contains("refused_fraction"));
}

#[test]
fn what_a_plan_sets_is_not_varied() {
    for (key, instead) in [
        ("deployment.replicas", "how many is the answer"),
        ("engine.tensor_parallel_size", "expected --tp"),
        ("hardware.gpu", "expected --gpu"),
        ("arrivals.poisson.rate_per_s", "expected --rate"),
    ] {
        let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(1.0)));
        asked.vary = vec![(key.to_owned(), vec!["2".to_owned()])];
        let error = plan(&asked, &Catalog::new(None), &Silent).unwrap_err().to_string();
        assert!(error.contains(&format!("`--vary {key}`")) && error.contains(instead), "{error}");
    }
}

#[test]
fn the_same_demand_in_other_words_needs_the_same_fleet() {
    let tokens = 30.0 * 86_400.0;
    let rate = planned(&request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(30.0))));
    let (input, output) = rate.rows[0].scenario.workload.classes[0].lengths.mean_tokens();
    let per_day = Demand::TokensPerDay(tokens * (input + output));
    let day = planned(&request("chat-h100", &["h100-sxm"], Some(per_day)));
    assert_eq!(fleet(&rate.rows[0]).replicas, fleet(&day.rows[0]).replicas);
    assert!((fleet(&day.rows[0]).rates.peak_per_s / 30.0 - 1.0).abs() < 1e-9);
    // The scenario's own arrivals: 12 req/s; a day's profile: its peak.
    let own = planned(&request("chat-h100", &["h100-sxm"], None));
    assert_eq!(fleet(&own.rows[0]).rates.peak_per_s, 12.0);
    let profile = planned(&request("daily-profile", &["l40s"], None));
    assert_eq!(fleet(&profile.rows[0]).rates.peak_per_s, 5.0);
    assert!(fleet(&profile.rows[0]).rates.mean_per_s < 3.0);
}

#[test]
fn bad_requests_are_errors_and_a_plan_does_not_depend_on_threads() {
    let error = |request: &PlanRequest| plan(request, &Catalog::new(None), &Silent).unwrap_err();
    assert!(matches!(error(&request("", &["h100-sxm"], None)), PlanError::NoDemand));
    let demand = Some(Demand::RatePerS(5.0));
    assert!(matches!(error(&request("", &["h100"], demand)), PlanError::Catalog(_)));
    assert!(matches!(error(&request("mm1", &["h100-sxm"], demand)), PlanError::Synthetic));
    let mut asked = request("", &["h100-sxm"], demand);
    asked.vary = vec![("engine.max_seqs".to_owned(), vec!["3".to_owned()])];
    assert!(error(&asked).to_string().contains("did you mean `max_num_seqs`"));
    asked.vary = vec![("engine.max_num_seqs".to_owned(), vec!["16".to_owned(), "256".to_owned()])];
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| report::plan::json(&planned(&asked)).unwrap())
    };
    assert_eq!(with(1), with(4));
}

#[test]
fn an_absurd_demand_is_told_in_words_and_a_candidate_asked_for_twice_is_one() {
    let mut asked = request("chat-h100", &["h100-sxm", "H100-SXM", "h100-sxm"], Some(Demand::RatePerS(1e15)));
    asked.tensor_parallel_sizes = vec![1, 1];
    let plan = planned(&asked);
    assert_eq!((plan.rows.len(), plan.misfits.len()), (1, 0));
    let Outcome::Never(unmet) = &plan.rows[0].outcome else { panic!("{:?}", plan.rows[0].outcome) };
    let gpus = unmet.to_string();
    let gpus: f64 = gpus.split(' ').nth(3).and_then(|number| number.parse().ok()).unwrap();
    assert!((1e13..1e14).contains(&gpus), "{unmet}");
}

/// Another engine takes its own newest version, not the scenario's; a job that is refused in part is not done.
#[test]
fn an_engine_that_is_varied_has_a_version_of_its_own_and_refuses_what_it_refuses() {
    let mut asked = request("overnight-h100", &["h100-sxm"], None);
    asked.models = vec!["llama-3.1-8b".to_owned()];
    asked.weight_dtypes = vec!["fp8".to_owned()];
    asked.job = Some(Job { requests: 10_000.0, window_h: 4.0 });
    asked.vary = vec![("engine.name".to_owned(), vec!["vllm".to_owned(), "tensorrt-llm".to_owned()])];
    let plan = planned(&asked);
    assert!(plan.misfits.is_empty(), "{:?}", plan.misfits);
    for row in &plan.rows {
        let version = &row.scenario.serving.as_ref().unwrap().engine.version;
        match row.candidate.settings[0].1.as_str() {
            "vllm" => {
                assert_eq!(version, "0.23");
                assert!(matches!(row.outcome, Outcome::Job(_)), "{:?}", row.outcome);
            }
            _ => {
                assert_eq!(version, "1.2");
                // Prompts of more than a step's 16,384 tokens, which it does not cut: 3 to 4 % of them.
                let Outcome::Never(unmet) = &row.outcome else { panic!("{:?}", row.outcome) };
                assert!(unmet.reason.contains("% of the requests are refused and never done"), "{unmet}");
            }
        }
    }
}

/// A key given twice has the values of both; what cannot be divided cannot run, however much memory is missing too.
#[test]
fn a_key_varied_twice_has_all_its_values_and_misfits_stand_where_they_belong() {
    let mut asked = request("chat-h100", &["h100-sxm"], Some(Demand::RatePerS(1.0)));
    let value = |value: &str| ("engine.max_num_seqs".to_owned(), vec![value.to_owned()]);
    asked.vary = vec![value("64"), value("128")];
    let settings: Vec<_> = planned(&asked).rows.into_iter().map(|row| row.candidate.settings).collect();
    let key = "engine.max_num_seqs".to_owned();
    assert_eq!(settings, [vec![(key.clone(), "64".to_owned())], vec![(key, "128".to_owned())]]);
    asked.vary.clear();
    asked.models = vec!["llama-3.1-405b".to_owned()];
    asked.tensor_parallel_sizes = vec![1, 3];
    let lacks_memory: Vec<bool> =
        planned(&asked).misfits.iter().map(|misfit| misfit.missing_mib.is_some()).collect();
    assert_eq!(lacks_memory, [true, false]);
}

#[test]
fn a_profile_holds_for_its_own_gpu_and_weights_are_as_published() {
    let with = |name: &str, sets: &[(&str, &str)]| {
        let sets: Vec<Override> = sets.iter().map(|(key, value)| Override::new(key, value)).collect();
        Document::load(name).unwrap().with_overrides(&sets).unwrap()
    };
    let mut asked = request("", &["h100-sxm", "l40s"], Some(Demand::RatePerS(2.0)));
    let named = [("hardware.profile", "h100-sxm-vllm-estimated")];
    asked.document = with("chat-h100", &named);
    let plan = planned(&asked);
    let profile = |gpu: &str| {
        let row = plan.rows.iter().find(|row| row.candidate.gpu == gpu).unwrap();
        row.scenario.serving.as_ref().unwrap().profile.name.clone()
    };
    assert_eq!(
        (profile("h100-sxm"), profile("l40s")),
        ("h100-sxm-vllm-estimated".to_owned(), "l40s-vllm-estimated".to_owned())
    );
    let note = "hardware.profile = \"h100-sxm-vllm-estimated\" is of h100-sxm; the other GPUs take \"auto\"";
    assert!(plan.notes.iter().any(|said| said == note), "{:?}", plan.notes);
    assert!(plan.notes.iter().any(|said| said.contains("least_outstanding")), "{:?}", plan.notes);

    // Too large for one GPU, so nothing is simulated.
    let mut asked = request("moe-8gpu", &["h100-sxm"], Some(Demand::RatePerS(2.0)));
    asked.models = vec!["kimi-k2.5".to_owned(), "qwen3-235b-a22b".to_owned()];
    let plan = planned(&asked);
    let dtypes: Vec<_> = plan.misfits.iter().map(|misfit| misfit.candidate.weight_dtype.as_deref()).collect();
    assert_eq!(dtypes, [Some("int4"), None]);
    assert!(
        plan.notes[0].starts_with("kimi-k2.5 is planned in int4, as it is published"),
        "{:?}",
        plan.notes
    );
    asked.weight_dtypes = vec!["fp8".to_owned()];
    let plan = planned(&asked);
    assert!(plan.notes.len() == 1 && plan.misfits[0].candidate.weight_dtype.as_deref() == Some("fp8"));
}
