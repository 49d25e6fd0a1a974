//! Engine defaults by version: one table of data per engine, because what differs between versions is
//! figures, not code.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::files::{File, GIB, gib_to_bytes, stem};
use super::scheduler::{KvShare, Scheduler, SglangScheduler, StaticReserve, TensorRtLlmScheduler};
use super::{CatalogError, Hardware};
use crate::units::{Bytes, Tokens};

/// Behaviour and defaults of one engine version on one GPU.
#[derive(Clone, Debug)]
pub struct EngineDefaults {
    /// `vllm`, `sglang`, `tensorrt-llm`.
    pub engine: String,
    /// The table entry used, and what was asked for if that is not in the table.
    pub version: String,
    pub asked_version: Option<String>,
    /// All versions in the table, ascending.
    pub known_versions: Vec<String>,
    pub scheduler: Scheduler,
    /// What `gpu_memory_utilization` is a share of; and, where that share is not a constant, what it
    /// follows from (`gpu_memory_utilization` then holds for one GPU and the default budget).
    pub kv_share: KvShare,
    pub static_reserve: Option<StaticReserve>,
    pub max_num_seqs: u32,
    pub max_num_batched_tokens: Tokens,
    pub gpu_memory_utilization: f64,
    pub block_size: Tokens,
    /// Pipelined (async) scheduling.
    pub async_scheduling: bool,
    pub full_prompt_gate: bool,
    /// The `watermark` option exists from this version on.
    pub watermark_option: bool,
    pub watermark: f64,
    pub enable_prefix_caching: bool,
    pub enable_chunked_prefill: bool,
    /// Activation peak: this many bytes-of-f32 copies of max_num_seqs x vocabulary.
    pub sampler_copies: f64,
    /// Activation peak: this many bf16 copies of max_num_batched_tokens x hidden size, beside the sampler's.
    pub hidden_copies: f64,
    /// Memory outside PyTorch per GPU, without and with tensor parallelism.
    pub non_torch_bytes: Bytes,
    pub non_torch_tp_bytes: Bytes,
    /// Whether an estimate of CUDA-graph memory is subtracted from the pool, and that estimate.
    pub subtracts_graphs: bool,
    pub graph_estimate_bytes: Bytes,
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineFile {
    engine: String,
    source: String,
    /// Why the engine as a whole cannot be simulated.
    not_built: Option<String>,
    block_size: Option<Tokens>,
    enable_prefix_caching: Option<bool>,
    enable_chunked_prefill: Option<bool>,
    #[serde(default)]
    kv_share: KvShare,
    /// Which scheduler it has; neither: vLLM's.
    sglang: Option<SglangScheduler>,
    #[serde(default)]
    tensorrt_llm: bool,
    #[serde(default)]
    refused: Vec<Refused>,
    #[serde(default)]
    memory: Vec<MemoryRow>,
    #[serde(default)]
    version: Vec<VersionRow>,
    #[serde(default)]
    budget: BTreeMap<String, Vec<BudgetRow>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    versions: Vec<String>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryRow {
    from: String,
    sampler_copies: f64,
    hidden_copies: f64,
    non_torch_gib: f64,
    non_torch_tp_gib: f64,
    graph_estimate_gib: Option<f64>,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionRow {
    versions: Vec<String>,
    async_scheduling: bool,
    full_prompt_gate: bool,
    watermark_option: bool,
    gpu_memory_utilization: f64,
    #[serde(default)]
    retract_to_headroom: bool,
    budget: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetRow {
    #[serde(default)]
    min_memory_gib: f64,
    /// GPUs, by the start of their name, that the row does not hold for.
    #[serde(default)]
    except: Vec<String>,
    max_num_batched_tokens: Tokens,
    max_num_seqs: u32,
    reserve: Option<StaticReserve>,
}

/// Bounds of what an engine's file may hold of memory.
const COPIES: (f64, f64) = (0.0, 1e3);
const GIBS: (f64, f64) = (0.0, 1e3);
const MIBS: (f64, f64) = (0.0, 1e6);
const GPU_GIB: (f64, f64) = (0.0, 1e5);
const COUNTS: (f64, f64) = (1.0, 1e9);
const RATIOS: (f64, f64) = (0.0, 100.0);

/// What lifts a version that is not known, be it one of the engine that stood there before.
pub(super) const OR_NEWEST: &str = "engine.version = \"auto\" takes the newest";

/// An engine's table, read and ordered.
pub(super) struct EngineTable<'a> {
    file: &'a File,
    table: EngineFile,
}

impl<'a> EngineTable<'a> {
    pub fn read(file: &'a File) -> Result<Self, CatalogError> {
        let table: EngineFile = file.parse("engines")?;
        for row in &table.version {
            file.fraction("version.gpu_memory_utilization", row.gpu_memory_utilization)?;
        }
        for row in &table.memory {
            file.within("memory.sampler_copies", row.sampler_copies, COPIES)?;
            file.within("memory.hidden_copies", row.hidden_copies, COPIES)?;
            file.within("memory.non_torch_gib", row.non_torch_gib, GIBS)?;
            file.within("memory.non_torch_tp_gib", row.non_torch_tp_gib, GIBS)?;
            file.within("memory.graph_estimate_gib", row.graph_estimate_gib.unwrap_or(0.0), GIBS)?;
        }
        for (name, rows) in &table.budget {
            rows.iter().try_for_each(|row| check_budget(file, &format!("budget.{name}"), row))?;
        }
        check_names(file, &table)?;
        if let Some(sglang) = &table.sglang {
            check_sglang(file, sglang)?;
        }
        Ok(Self { file, table })
    }

    /// Versions in the table, ascending.
    pub fn versions(&self) -> Vec<String> {
        let mut versions: Vec<String> =
            self.table.version.iter().flat_map(|row| row.versions.iter().cloned()).collect();
        versions.sort_by(|a, b| compare(a, b));
        versions
    }

    /// Whether `version` is in the table.
    pub fn has(&self, version: &str) -> bool {
        self.versions().iter().any(|known| compare(known, version).is_eq())
    }

    /// Whether `version` is newer than all in the table.
    pub fn is_beyond(&self, version: &str) -> bool {
        is_version(version) && self.versions().iter().all(|known| compare(known, version).is_lt())
    }

    /// Defaults of `asked` (the newest if `None`) on `gpu`; a version not in the table takes the nearest
    /// lower one.
    pub fn defaults(&self, asked: Option<&str>, gpu: &Hardware) -> Result<EngineDefaults, CatalogError> {
        let engine = &self.table.engine;
        if let Some(reason) = &self.table.not_built {
            return Err(CatalogError::Refused { what: engine.clone(), reason: reason.clone() });
        }
        let versions = self.versions();
        let used = match asked {
            None => versions.last().ok_or_else(|| self.file.invalid("it has no versions"))?,
            Some(asked) => self.nearest_lower(asked, &versions)?,
        };
        let asked_version = asked.filter(|asked| minor(asked) != minor(used)).map(str::to_owned);
        // A candidate has its release's defaults, but may have values of its own in a profile.
        let candidate = asked.filter(|asked| asked_version.is_none() && candidate(asked).is_some());
        let row = self.table.version.iter().find(|row| row.versions.contains(used));
        let row = row.ok_or_else(|| self.file.invalid("it has no versions"))?;
        let memory = self.table.memory.iter().filter(|row| compare(&row.from, used).is_le());
        let memory = memory.max_by(|a, b| compare(&a.from, &b.from));
        let memory =
            memory.ok_or_else(|| self.file.invalid(&format!("no `memory` row covers version {used}")))?;
        let budget = self.budget(&row.budget, gpu)?;
        let scheduler = match self.table.sglang {
            Some(sglang) => {
                Scheduler::Sglang(SglangScheduler { retract_to_headroom: row.retract_to_headroom, ..sglang })
            }
            None if self.table.tensorrt_llm => Scheduler::TensorRtLlm(TensorRtLlmScheduler::default()),
            None => Scheduler::Vllm,
        };
        let gpu_memory_utilization = budget.reserve.map_or(row.gpu_memory_utilization, |reserve| {
            reserve.fraction(gpu.memory_bytes, budget.max_num_batched_tokens, 1, 1)
        });
        Ok(EngineDefaults {
            engine: engine.clone(),
            version: candidate.unwrap_or(used).to_owned(),
            asked_version,
            known_versions: versions.clone(),
            scheduler,
            kv_share: self.table.kv_share,
            static_reserve: budget.reserve,
            max_num_seqs: budget.max_num_seqs,
            max_num_batched_tokens: budget.max_num_batched_tokens,
            gpu_memory_utilization,
            block_size: self.table.block_size.unwrap_or(16).max(1),
            async_scheduling: row.async_scheduling,
            full_prompt_gate: row.full_prompt_gate,
            watermark_option: row.watermark_option,
            watermark: 0.0,
            enable_prefix_caching: self.table.enable_prefix_caching.unwrap_or(true),
            enable_chunked_prefill: self.table.enable_chunked_prefill.unwrap_or(true),
            sampler_copies: memory.sampler_copies,
            hidden_copies: memory.hidden_copies,
            non_torch_bytes: gib_to_bytes(memory.non_torch_gib),
            non_torch_tp_bytes: gib_to_bytes(memory.non_torch_tp_gib),
            subtracts_graphs: memory.graph_estimate_gib.is_some(),
            graph_estimate_bytes: gib_to_bytes(memory.graph_estimate_gib.unwrap_or(0.0)),
            source: format!("{}; memory: {}", self.table.source, memory.source),
        })
    }

    fn nearest_lower<'v>(&self, asked: &str, versions: &'v [String]) -> Result<&'v String, CatalogError> {
        let what = format!("{} {asked}", self.table.engine);
        let Some(wanted) = minor(asked) else {
            let hint = format!("versions are {}; {OR_NEWEST}", versions.join(", "));
            return Err(CatalogError::NotFound { kind: "engine version", name: asked.to_owned(), hint });
        };
        let refused =
            self.table.refused.iter().find(|row| row.versions.iter().any(|v| minor(v) == Some(wanted)));
        if let Some(refused) = refused {
            return Err(CatalogError::Refused { what, reason: refused.reason.clone() });
        }
        versions.iter().rev().find(|version| compare(version, asked).is_le()).ok_or_else(|| {
            let oldest = versions.first().map_or("none", String::as_str);
            CatalogError::Refused {
                what,
                reason: format!("the oldest version simulated is {oldest}; {OR_NEWEST}"),
            }
        })
    }

    fn budget(&self, name: &str, gpu: &Hardware) -> Result<&BudgetRow, CatalogError> {
        let rows = self.table.budget.get(name).into_iter().flatten();
        let holds = |row: &&BudgetRow| {
            gpu.memory_bytes as f64 >= row.min_memory_gib * GIB
                && !row.except.iter().any(|gpus| gpu.name.starts_with(gpus.as_str()))
        };
        let budget = rows.into_iter().find(holds);
        budget.ok_or_else(|| self.file.invalid(&format!("no row of `budget.{name}` holds for {}", gpu.name)))
    }
}

/// What is looked for by name later: where a name is none, what it stands for would never be found.
fn check_names(file: &File, table: &EngineFile) -> Result<(), CatalogError> {
    let stem = stem(Path::new(&file.path));
    if table.engine != stem {
        let message = format!("`engine` is {:?}; expected {stem:?}, as the file is called", table.engine);
        return Err(file.invalid_in("engine", &message));
    }
    let rows =
        table.version.iter().map(|row| &row.versions).enumerate().map(|(at, row)| ("version", at, row));
    let refused =
        table.refused.iter().map(|row| &row.versions).enumerate().map(|(at, row)| ("refused", at, row));
    for (list, at, versions) in rows.chain(refused) {
        if versions.is_empty() || !versions.iter().all(|version| is_version(version)) {
            let message = format!("`{list}.versions` is {versions:?}; expected versions such as [\"0.23\"]");
            return Err(file.invalid_in(&format!("{list}.{at}.versions"), &message));
        }
    }
    if let Some((at, row)) = table.memory.iter().enumerate().find(|(_, row)| !is_version(&row.from)) {
        let message = format!("`memory.from` is {:?}; expected a version such as \"0.8\"", row.from);
        return Err(file.invalid_in(&format!("memory.{at}.from"), &message));
    }
    let has_budget = |row: &VersionRow| table.budget.contains_key(&row.budget);
    if let Some((at, row)) = table.version.iter().enumerate().find(|(_, row)| !has_budget(row)) {
        let there_are: Vec<&str> = table.budget.keys().map(String::as_str).collect();
        let message = format!(
            "`version.budget` is {:?}; expected the name of a table `budget.NAME`: {}",
            row.budget,
            there_are.join(", ")
        );
        return Err(file.invalid_in(&format!("version.{at}.budget"), &message));
    }
    Ok(())
}

fn check_sglang(file: &File, sglang: &SglangScheduler) -> Result<(), CatalogError> {
    for (key, value, range) in [
        ("max_prefill_tokens", f64::from(sglang.max_prefill_tokens), COUNTS),
        ("scheduler_recv_interval", f64::from(sglang.scheduler_recv_interval), COUNTS),
        ("schedule_conservativeness", sglang.schedule_conservativeness, RATIOS),
        ("init_new_token_ratio", sglang.init_new_token_ratio, RATIOS),
        ("min_new_token_ratio_factor", sglang.min_new_token_ratio_factor, RATIOS),
        ("new_token_ratio_decay_steps", f64::from(sglang.new_token_ratio_decay_steps), COUNTS),
        // Another order would panic where a value is kept between the two.
        (
            "min_running_requests",
            f64::from(sglang.min_running_requests),
            (1.0, f64::from(sglang.max_running_requests)),
        ),
    ] {
        file.within(&format!("sglang.{key}"), value, range)?;
    }
    Ok(())
}

fn check_budget(file: &File, key: &str, row: &BudgetRow) -> Result<(), CatalogError> {
    file.within(&format!("{key}.min_memory_gib"), row.min_memory_gib, GPU_GIB)?;
    let tokens = f64::from(row.max_num_batched_tokens);
    file.within(&format!("{key}.max_num_batched_tokens"), tokens, COUNTS)?;
    file.within(&format!("{key}.max_num_seqs"), f64::from(row.max_num_seqs), COUNTS)?;
    let Some(reserve) = row.reserve else { return Ok(()) };
    for (name, mib) in [
        ("constant_mib", reserve.constant_mib),
        ("constant_tp4_mib", reserve.constant_tp4_mib),
        ("per_chunk_token_mib", reserve.per_chunk_token_mib),
        ("per_gpu_mib", reserve.per_gpu_mib),
        ("at_least_mib", reserve.at_least_mib),
        ("per_rank_mib", reserve.per_rank_mib),
        ("per_rank_tp4_mib", reserve.per_rank_tp4_mib),
    ] {
        file.within(&format!("{key}.reserve.{name}"), mib, MIBS)?;
    }
    Ok(())
}

/// Major and minor number of a version as published (`0.19.0`, `v0.8.5`, `1.0.0rc3`).
fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim().trim_start_matches('v').split('.');
    let digits = |part: &str| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().ok()
    };
    let major = digits(parts.next()?)?;
    Some((major, parts.next().map_or(Some(0), digits)?))
}

/// Whether it starts with a major number, or with major and minor.
pub(super) fn is_version(version: &str) -> bool {
    minor(version).is_some()
}

impl EngineDefaults {
    /// Whether the version simulated is `version` or a later one.
    #[must_use]
    pub fn is_from(&self, version: &str) -> bool {
        compare(&self.version, version).is_ge()
    }
}

/// Order of two versions by major and minor number.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    minor(a).cmp(&minor(b))
}

/// Number of a release candidate: 3 of `1.0.0rc3`.
fn candidate(version: &str) -> Option<u32> {
    let version = version.to_ascii_lowercase();
    let (_, number) = version.split_once("rc")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Whether `version` is `last` or an earlier one. Where `last` is a release candidate, the release and later candidates of
/// its minor version are not.
pub(super) fn is_up_to(version: &str, last: &str) -> bool {
    match (compare(version, last), candidate(last)) {
        (Ordering::Equal, Some(last)) => candidate(version).is_some_and(|number| number <= last),
        (order, _) => order.is_le(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_not_by_text() {
        assert_eq!(compare("0.9.1", "0.10.0"), Ordering::Less);
        assert_eq!(minor("1.0.0rc3"), Some((1, 0)));
        assert_eq!(minor("v0.19.2"), Some((0, 19)));
        assert_eq!(minor("1"), Some((1, 0)));
        let up_to = |version| is_up_to(version, "1.0.0rc3");
        assert!(["0.21.0", "1.0.0rc1", "1.0.0rc3", "1.0.0RC3"].into_iter().all(up_to));
        assert!(!["1.0", "1.0.0", "1.0.0rc4", "1.1.0rc2"].into_iter().any(up_to));
        assert!(is_up_to("0.13.2", "0.13") && !is_up_to("0.14", "0.13"));
        for nonsense in ["", "x", "0.x", "main"] {
            assert_eq!(minor(nonsense), None, "{nonsense}");
        }
    }
}
