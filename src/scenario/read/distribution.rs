//! Distributions: `512`, `{ constant = 512 }`, `{ lognormal = { mean = 512, p99 = 4096 } }` and so on.

use std::sync::Arc;

use super::Context;
use crate::nearest::{did_you_mean, nearest};
use crate::scenario::forms::{FORMS, Form, Parameter};
use crate::scenario::keys::{Kind, NOT_NEGATIVE, list};
use crate::scenario::node::{Entry, Node, Value};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, dotted};
use crate::workload::Distribution;

/// Where the unit of a distribution's numbers is written.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// Tokens have none.
    Tokens,
    /// The key ends in `_s`; parameters may repeat it.
    InKey,
    /// Parameters end in `_s`.
    InParameters,
}

/// Token counts.
pub(super) fn tokens(
    reader: &mut Reader<'_>,
    context: &Context<'_>,
    node: &Node,
    path: &str,
) -> Option<Distribution> {
    read(reader, context, node, path, Unit::Tokens)
}

/// Times of a key that ends in `_s`.
pub(super) fn seconds(
    reader: &mut Reader<'_>,
    context: &Context<'_>,
    node: &Node,
    path: &str,
) -> Option<Distribution> {
    read(reader, context, node, path, Unit::InKey)
}

/// Times of a key without a unit: `{ exponential = { mean_s = 0.05 } }`.
pub(super) fn times_with_unit(
    reader: &mut Reader<'_>,
    context: &Context<'_>,
    node: &Node,
    path: &str,
) -> Option<Distribution> {
    read(reader, context, node, path, Unit::InParameters)
}

fn read(
    reader: &mut Reader<'_>,
    context: &Context<'_>,
    node: &Node,
    path: &str,
    unit: Unit,
) -> Option<Distribution> {
    match &node.value {
        Value::Integer(_) | Value::Float(_) if unit != Unit::InParameters => {
            let value = reader.number_of(node, &Kind::Number(NOT_NEGATIVE), path)?;
            Some(Distribution::Constant { value })
        }
        Value::Table(entries) => {
            let [entry] = entries.as_slice() else {
                let place = entries.get(1).map_or(node.span, |second| second.key_span);
                let message = format!("`{path}` names {} distributions", entries.len());
                reader
                    .problem(Problem::new(place, message).label("exactly one is needed").help(forms_help()));
                return None;
            };
            let Some(form) = FORMS.iter().find(|form| form.name == entry.key) else {
                unknown_form(reader, entry, path);
                return None;
            };
            let path = dotted(path, form.name);
            if form.name == "constant" && !matches!(entry.node.value, Value::Table(_)) {
                return constant(reader, &entry.node, &path, unit);
            }
            let parameters = Parameters::read(reader, form, &entry.node, path, unit)?;
            parameters.distribution(reader, context, &entry.node)
        }
        _ => {
            let expected = match unit {
                Unit::Tokens => "a number of tokens or a distribution of them",
                Unit::InKey => "a number of seconds or a distribution of them",
                Unit::InParameters => "a distribution such as { exponential = { mean_s = 0.05 } }",
            };
            let label = format!("found {}, expected {expected}", node.describe());
            let problem = Problem::new(node.span, format!("wrong type for `{path}`")).label(label);
            reader.problem(problem.help(forms_help()));
            None
        }
    }
}

/// `{ constant = 512 }`: the short form, where no unit is needed inside.
fn constant(reader: &mut Reader<'_>, node: &Node, path: &str, unit: Unit) -> Option<Distribution> {
    if unit == Unit::InParameters {
        let label = "the unit is missing; write { constant = { value_s = ... } }";
        reader.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
        return None;
    }
    let value = reader.number_of(node, &Kind::Number(NOT_NEGATIVE), path)?;
    Some(Distribution::Constant { value })
}

fn forms_help() -> String {
    format!("distributions: {}", list(FORMS.iter().map(|form| form.name)))
}

fn unknown_form(reader: &mut Reader<'_>, entry: &Entry, path: &str) {
    let near = did_you_mean(&nearest(&entry.key, FORMS.iter().map(|form| form.name)));
    let label = near.unwrap_or_else(|| "no such distribution".to_owned());
    let message = format!("unknown distribution `{}` for `{path}`", entry.key);
    reader.problem(Problem::new(entry.key_span, message).label(label).help(forms_help()));
}

/// The parameters of one distribution, checked one by one.
struct Parameters<'n> {
    form: &'static Form,
    path: String,
    unit: Unit,
    /// In the order of the form; numbers only.
    numbers: Vec<Option<f64>>,
    entries: &'n [Entry],
}

impl<'n> Parameters<'n> {
    fn read(
        reader: &mut Reader<'_>,
        form: &'static Form,
        node: &'n Node,
        path: String,
        unit: Unit,
    ) -> Option<Self> {
        let Value::Table(entries) = &node.value else {
            let names = list(form.parameters.iter().map(|p| spelled(p, unit)));
            let label = format!("found {}, expected a table of: {names}", node.describe());
            reader.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
            return None;
        };
        let before = reader.problems.len();
        for entry in entries {
            if !form.parameters.iter().any(|parameter| is_called(parameter, &entry.key, unit)) {
                let names: Vec<String> = form.parameters.iter().map(|p| spelled(p, unit)).collect();
                reader.unknown(entry, &path, names.iter().map(String::as_str));
            }
        }
        let mut parameters = Self { form, path, unit, numbers: Vec::new(), entries };
        for parameter in form.parameters {
            let number = parameters.number(reader, parameter, node);
            parameters.numbers.push(number);
        }
        (reader.problems.len() == before).then_some(parameters)
    }

    fn find(&self, parameter: &Parameter) -> Option<&'n Node> {
        let mut entries = self.entries.iter();
        entries.find(|entry| is_called(parameter, &entry.key, self.unit)).map(|entry| &entry.node)
    }

    fn number(&self, reader: &mut Reader<'_>, parameter: &Parameter, node: &Node) -> Option<f64> {
        let path = dotted(&self.path, &spelled(parameter, self.unit));
        match (self.find(parameter), parameter.kind) {
            (Some(value), Kind::Number(_)) => reader.number_of(value, &parameter.kind, &path),
            (Some(value), Kind::Integer { .. }) => {
                reader.integer_of(value, &parameter.kind, &path).map(|value| value as f64)
            }
            (Some(_), _) => None,
            (None, _) => {
                if parameter.required {
                    let label = format!("expected {}", parameter.kind.describe());
                    reader.problem(Problem::new(node.span, format!("missing key `{path}`")).label(label));
                }
                None
            }
        }
    }

    /// The value of a parameter that [`Parameters::read`] found; a required one is always there.
    fn get(&self, name: &str) -> Option<f64> {
        let at = self.form.parameters.iter().position(|parameter| parameter.name == name)?;
        self.numbers.get(at).copied().flatten()
    }

    fn distribution(
        &self,
        reader: &mut Reader<'_>,
        context: &Context<'_>,
        node: &Node,
    ) -> Option<Distribution> {
        let max = self.get("max").unwrap_or(f64::INFINITY);
        let refuse = |reader: &mut Reader<'_>, label: String| {
            let message = format!("impossible value for `{}`", self.path);
            reader.problem(Problem::new(node.span, message).label(label));
            None
        };
        match self.form.name {
            "constant" => Some(Distribution::Constant { value: self.get("value")? }),
            "uniform" => match self.get("min")? {
                min if min <= max => Some(Distribution::Uniform { min, max }),
                min => refuse(reader, format!("min = {min} is above max = {max}")),
            },
            "range_ratio" => {
                let (mean, ratio) = (self.get("mean")?, self.get("ratio")?);
                let (min, max) = (mean * (1.0 - ratio), mean * (1.0 + ratio));
                Some(match self.unit {
                    // As vLLM's random data set rounds it.
                    Unit::Tokens => Distribution::Uniform { min: libm::floor(min), max: libm::ceil(max) },
                    Unit::InKey | Unit::InParameters => Distribution::Uniform { min, max },
                })
            }
            "exponential" => Some(Distribution::Exponential { mean: self.get("mean")? }),
            "normal" => {
                let (mean, std, min) = (self.get("mean")?, self.get("std")?, self.get("min").unwrap_or(0.0));
                if min > max {
                    return refuse(reader, format!("min = {min} is above max = {max}"));
                }
                Some(Distribution::Normal { mean, std, min, max })
            }
            "lognormal" => {
                let built = Distribution::lognormal(self.get("mean")?, self.get("p99")?, max);
                built.map_or_else(|error| refuse(reader, error.to_string()), Some)
            }
            "gamma" => Some(Distribution::Gamma { mean: self.get("mean")?, cv: self.get("cv")? }),
            // Its range keeps the maximum within 20 bits.
            "zipf" => Some(Distribution::zipf(max as u32, self.get("exponent")?)),
            _ => self.empirical(reader, context, node),
        }
    }

    /// `{ quantiles = [[0, 10], [0.5, 200], [1, 4000]] }` or `{ file = "lengths.csv" }`.
    fn empirical(&self, reader: &mut Reader<'_>, context: &Context<'_>, node: &Node) -> Option<Distribution> {
        let [quantiles, file] = self.form.parameters else {
            return None;
        };
        match (self.find(quantiles), self.find(file)) {
            (Some(list), None) => {
                let quantiles = self.quantiles(reader, list)?;
                Some(Distribution::Empirical { quantiles: Arc::new(quantiles) })
            }
            (None, Some(file)) => {
                let name = reader.text_of(file, &dotted(&self.path, "file"))?;
                match context.lookups.quantiles(reader.folder(Some(file.span)), &name) {
                    Ok(quantiles) => Some(Distribution::Empirical { quantiles }),
                    Err(message) => {
                        reader.problem(Problem::new(file.span, message));
                        None
                    }
                }
            }
            _ => {
                let label = format!("give either `{}` or `file`", spelled(quantiles, self.unit));
                reader.problem(Problem::new(node.span, format!("incomplete `{}`", self.path)).label(label));
                None
            }
        }
    }

    fn quantiles(&self, reader: &mut Reader<'_>, node: &Node) -> Option<Vec<(f64, f64)>> {
        let path = dotted(&self.path, "quantiles");
        let mut points: Vec<(f64, f64)> = Vec::new();
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            _ => &[],
        };
        for item in items {
            let pair = match &item.value {
                Value::List(pair) => pair.as_slice(),
                _ => &[],
            };
            let [p, value] = pair else {
                let label = format!("found {}, expected [probability, value]", item.describe());
                reader.problem(Problem::new(item.span, format!("wrong type for `{path}`")).label(label));
                return None;
            };
            let kind = Kind::Number(NOT_NEGATIVE);
            let point = (reader.number_of(p, &kind, &path)?, reader.number_of(value, &kind, &path)?);
            if points.last().is_some_and(|last| point.0 <= last.0 || point.1 < last.1) {
                let label = "probabilities rise from point to point and values do not fall";
                reader
                    .problem(Problem::new(item.span, format!("impossible value for `{path}`")).label(label));
                return None;
            }
            points.push(point);
        }
        match (points.first(), points.last()) {
            (Some((0.0, _)), Some((1.0, _))) => Some(points),
            _ => {
                let label = "expected [probability, value] points from probability 0 to probability 1";
                reader
                    .problem(Problem::new(node.span, format!("impossible value for `{path}`")).label(label));
                None
            }
        }
    }
}

/// How a parameter is written under `unit`.
fn spelled(parameter: &Parameter, unit: Unit) -> String {
    let suffix = if parameter.has_unit && unit == Unit::InParameters { "_s" } else { "" };
    format!("{}{suffix}", parameter.name)
}

fn is_called(parameter: &Parameter, key: &str, unit: Unit) -> bool {
    let with_suffix = parameter.has_unit && key.strip_suffix("_s") == Some(parameter.name);
    let bare = key == parameter.name;
    match unit {
        Unit::Tokens => bare,
        Unit::InKey => bare || with_suffix,
        Unit::InParameters => {
            if parameter.has_unit {
                with_suffix
            } else {
                bare
            }
        }
    }
}
