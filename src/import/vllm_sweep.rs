//! A folder that `vllm bench sweep serve` wrote.
//!
//! `SERVE--max_num_seqs=4-BENCH--max_concurrency=2/run=0.json` is one run; `summary.json` beside it repeats
//! its runs and is not read. The settings in the folder's name are also in each file, except those of
//! the server that `vllm bench serve` cannot know.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::ImportError;
use super::numbers::small_count;
use super::point::ServerFacts;
use super::tree::{At, Node};
use super::{Format, Imported, check, vllm_bench};
use crate::disk;

pub(super) fn read(folder: &Path) -> Result<Imported, ImportError> {
    let name = folder.display().to_string();
    let files = runs(folder)?;
    if files.is_empty() {
        let expected = "files `run=0.json` that `vllm bench sweep` writes, here or in folders below";
        return Err(ImportError::file(&name, "a folder without them", expected));
    }
    let why = format!("a folder with {} files run=N.json", files.len());
    let mut into = Imported::new(&name, Format::VllmSweep, why);
    for path in files {
        let text =
            disk::read_to_string(&path).map_err(|source| ImportError::Read { path: path.clone(), source })?;
        let file = path.display().to_string();
        let node = Node::json(&file, &text)?;
        let before = into.points.len();
        vllm_bench::read_one(&mut into, &At::root(&file, None, &node))?;
        let label = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        let facts = settings(&path);
        for point in &mut into.points[before..] {
            point.label.clone_from(&label);
            point.server.fill_from(&facts);
        }
    }
    into.understand("each run=N.json is one load point; ttft, tpot, itl and e2el are ours, in ms");
    into.leave_out("summary.json: it repeats the runs");
    check::arithmetic(&mut into);
    Ok(into)
}

/// The `run=N.json` of a folder and of the folders below it, sorted; links are not followed.
fn runs(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let failed = |source| ImportError::Read { path: folder.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let kind = entry.file_type().map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() {
            found.extend(runs(&path)?);
        } else if name.starts_with("run=") && name.ends_with(".json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The server's settings in a name such as `SERVE--max_num_seqs=4-BENCH--...`.
fn settings(run: &Path) -> ServerFacts {
    let folder = run.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let serve = folder.split("-BENCH--").next().unwrap_or("").trim_start_matches("SERVE--");
    let value = |key: &str| {
        let pairs = serve.split('-').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    };
    let count = |key: &str| value(key)?.parse().ok().and_then(small_count);
    ServerFacts {
        engine: Some("vllm".to_owned()),
        tensor_parallel_size: count("tensor_parallel_size"),
        max_num_seqs: count("max_num_seqs"),
        max_num_batched_tokens: count("max_num_batched_tokens"),
        ..ServerFacts::default()
    }
}
