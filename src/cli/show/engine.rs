//! An engine: what its versions do and default to.

use super::Page;
use crate::catalog::{Catalog, CatalogError};
use crate::report::format::{chosen, count};
use crate::report::table::Columns;

/// The GPU whose defaults are shown: they depend on its memory.
const EXAMPLE_GPU: &str = "h100-sxm";

pub(super) fn describe(catalog: &Catalog, name: &str) -> Result<String, CatalogError> {
    if name == "synthetic" {
        return Ok("synthetic: a server without model or GPU, for queueing theory and first steps\n\n\
                   [engine] servers, service_time or requests_per_s, queue_limit; see `knee show scenario worked-example`\n"
            .to_owned());
    }
    let gpu = catalog.hardware(EXAMPLE_GPU)?;
    let tabled = catalog.engine_versions().into_iter().find(|(engine, _)| engine == name);
    let newest = match (catalog.engine(name, None, &gpu), &tabled) {
        (Ok(newest), _) => newest,
        // Known, and known not to be simulated: the reason is the answer.
        (Err(refusal), Some((engine, versions))) => {
            let mut page = Page::new(engine.clone());
            page.line("versions", versions.join(", "));
            page.line("note", refusal.to_string());
            return Ok(page.text());
        }
        (Err(unknown), None) => return Err(unknown),
    };
    let versions = tabled.map_or(vec![newest.version.clone()], |(_, versions)| versions);
    let header = [
        "from\nversion",
        "pipelined\nscheduling",
        "full-prompt\ngate",
        "memory\nutilisation",
        "max batched\ntokens",
        "max\nsequences",
        "prefix\ncaching",
    ];
    let mut table = Columns::new(&header.map(String::from), 1);
    let on = |flag: bool| if flag { "on" } else { "off" }.to_owned();
    for version in versions {
        let defaults = catalog.engine(name, Some(&version), &gpu)?;
        table.row(&[
            version,
            on(defaults.async_scheduling),
            on(defaults.full_prompt_gate),
            chosen(defaults.gpu_memory_utilization),
            count(u64::from(defaults.max_num_batched_tokens)),
            count(u64::from(defaults.max_num_seqs)),
            on(defaults.enable_prefix_caching),
        ]);
    }
    let mut page = Page::new(format!("{}: defaults by version on {}", newest.engine, gpu.title));
    page.lines(table.lines());
    page.lines([String::new()]);
    page.line("source", &newest.source);
    Ok(page.text())
}
