//! Measurement sets: what was measured on which deployment, for fitting and checking profiles.
//!
//! A set is written with a scenario's own tables (`[model]`, `[hardware]`, `[engine]`, `[deployment]`),
//! shared by all its entries or repeated, key by key, inside one, and read by the scenario's reader; so
//! that a mistake in it points at its line.

use std::path::PathBuf;
use std::sync::Arc;

use super::node::Value;
use super::{Document, ScenarioErrors, Serving, read};
use crate::catalog::Catalog;
use crate::engine::System;
use crate::units::plain;

/// One entry of a measurement set: a deployment and what was measured on it.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub name: String,
    pub source: String,
    /// The deployment, ready for the engine, with the profile that the set asks for.
    pub system: System,
    pub serving: Arc<Serving>,
    pub data: MeasuredData,
    /// Scored, never fitted.
    pub holdout: bool,
}

/// What was measured, and where it stands.
#[derive(Clone, Debug)]
pub enum MeasuredData {
    /// A CSV with a row a request; replayed at the send times, or as a closed loop of so many.
    Requests { file: PathBuf, client_max_in_flight: Option<u32> },
    /// A CSV with a row a load point.
    Points { file: PathBuf },
    /// Load points written in the set.
    Inline(Vec<MeasuredPoint>),
}

/// The most requests, or users, of a load point that is simulated.
const MOST_REQUESTS: f64 = 1e7;

/// A load point as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredPoint {
    /// How requests were sent, where it says so: one of the choices of the column `arrival`.
    pub arrival: Option<&'static str>,
    /// Columns and their values; a default where the column is absent or empty.
    pub values: Vec<(&'static str, f64)>,
}

impl MeasuredPoint {
    #[must_use]
    pub fn get(&self, column: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| *name == column).map(|(_, value)| *value)
    }

    /// How requests were sent, and by how much (users, requests per second; nothing if all at once).
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn load(&self) -> Result<(&'static str, f64), &'static str> {
        let (users, rate) = (self.get("concurrency"), self.get("rate_per_s"));
        let arrival =
            self.arrival.unwrap_or(if users.is_some() && rate.is_none() { "closed" } else { "poisson" });
        match arrival {
            "all_at_once" => Ok((arrival, 0.0)),
            "closed" => users.map(|users| (arrival, users)).ok_or("a concurrency"),
            _ => rate.map(|rate| (arrival, rate)).ok_or("a rate_per_s, or a concurrency"),
        }
    }

    /// What of it cannot be, in words: a mean outside of its range, or more requests than are simulated.
    #[must_use]
    pub fn contradiction(&self) -> Option<String> {
        for side in ["input", "output"] {
            let of = |what: &str| self.get(&format!("{side}_tokens_{what}"));
            let Some(mean) = of("mean") else { continue };
            let (min, max) = (of("min").unwrap_or(mean), of("max").unwrap_or(mean));
            // Bounds are whole tokens.
            if min > mean + 0.5 || mean > max + 0.5 || max < min {
                let range = format!("{side}_tokens from {min} to {max} with a mean of {mean}");
                return Some(format!("{range}; expected {side}_tokens_min ≤ mean ≤ max"));
            }
        }
        let later = |a: &str, b: &str| {
            let (first, second) = (self.get(a)?, self.get(b)?);
            let (a_is, b_is) = (plain(first), plain(second));
            (first > second).then(|| format!("{a} = {a_is}, {b} = {b_is}; expected {a} ≤ {b}"))
        };
        let ordered =
            ["mean", "p50", "p99"].map(|what| (format!("ttft_{what}_ms"), format!("e2e_{what}_ms")));
        let quantiles = ["ttft", "tpot", "e2e"].map(|of| (format!("{of}_p50_ms"), format!("{of}_p99_ms")));
        if let Some(what) = ordered.iter().chain(&quantiles).find_map(|(a, b)| later(a, b)) {
            return Some(what);
        }
        let output = self.get("output_tokens_max").or(self.get("output_tokens_mean"));
        if let Some(output) = output.filter(|output| *output < 1.5)
            && let Some((column, _)) = self.values.iter().find(|(column, _)| column.starts_with("tpot_"))
        {
            return Some(format!(
                "{column} of answers of {output} token; expected 2 tokens or more, or no TPOT"
            ));
        }
        ["completed", "concurrency"].into_iter().find_map(|column| {
            let count = self.get(column).filter(|count| *count > MOST_REQUESTS)?;
            Some(format!("{column} = {}; expected at most {}", plain(count), plain(MOST_REQUESTS)))
        })
    }
}

impl Document {
    /// What it is called: its `name`, else its file's stem.
    #[must_use]
    pub fn title(&self) -> String {
        let name = self.root.entries().iter().find(|entry| entry.key == "name");
        match name.map(|entry| &entry.node.value) {
            Some(Value::Text(name)) => name.clone(),
            _ => self.stem().unwrap_or("set").to_owned(),
        }
    }

    /// The measurements of this document, read as a measurement set; and warnings.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once. The files it names must be there, and are not opened.
    pub fn measurements(&self, catalog: &Catalog) -> Result<(Vec<Measurement>, Vec<String>), ScenarioErrors> {
        read::measurements(self, catalog)
    }
}

/// The columns of a file of load points, in the order in which they are documented: name, meaning and
/// the values that are possible.
pub fn point_columns() -> impl Iterator<Item = &'static super::keys::Key> {
    super::keys::measured_point::MEASURED_POINT.keys.iter().copied()
}
