//! `[[measurement]]`: deployments and what was measured on them.

use std::sync::Arc;

use super::{Context, deployment, llm};
use crate::catalog::Catalog;
use crate::disk;
use crate::engine::{Server, System};
use crate::scenario::document::Document;
use crate::scenario::keys::{
    Kind, MEASUREMENT_SET, MEASUREMENTS, Table, measured_point, measurement as keys, root,
};
use crate::scenario::measurements::{MeasuredData, MeasuredPoint, Measurement};
use crate::scenario::node::{Entry, Node, Value};
use crate::scenario::problem::{Problem, ScenarioErrors};
use crate::scenario::reader::{Reader, Section};
use crate::units::distinct;

/// The tables that an entry may repeat.
const REPEATED: [&str; 4] = [root::MODEL.name, root::HARDWARE.name, root::ENGINE.name, root::DEPLOYMENT.name];

/// The measurements of a set, and warnings.
pub(in crate::scenario) fn measurements(
    document: &Document,
    catalog: &Catalog,
) -> Result<(Vec<Measurement>, Vec<String>), ScenarioErrors> {
    let context = Context { catalog, lookups: &document.lookups };
    let entries = entry_nodes(&document.root);
    let deployments: Vec<Node> = entries.iter().map(|entry| merged(&document.root, entry)).collect();
    let mut reader = Reader::new(&document.sources, document.base());
    let top = reader.top(&document.root, &MEASUREMENT_SET);
    for key in [&root::NAME, &root::DESCRIPTION] {
        reader.text(&top, key);
    }
    match top.find(&MEASUREMENTS) {
        None => reader.missing(&top, &MEASUREMENTS),
        Some(Node { value: Value::List(_), .. }) if !entries.is_empty() => {}
        Some(node) => {
            let problem = Problem::new(node.span, "`measurement` is not a list of measurements");
            reader.problem(problem.label("write each under a header [[measurement]]"));
        }
    }
    let mut all = Vec::new();
    for (index, (entry, deployment)) in entries.iter().zip(&deployments).enumerate() {
        let before = reader.problems.len();
        let path = format!("measurement.{index}");
        let section = reader.open_node(entry, &MEASUREMENTS, &keys::MEASUREMENT, path);
        let measurement = read_entry(&mut reader, &context, &section, deployment, document);
        debug_assert!(measurement.is_some() || reader.problems.len() > before);
        all.extend(measurement);
    }
    let mut warnings = std::mem::take(&mut reader.warnings);
    warnings.sort();
    warnings.dedup();
    if reader.problems.is_empty() {
        return Ok((all, warnings));
    }
    // What the set shares is read once for every entry, and is wrong once.
    Err(ScenarioErrors::new(distinct(reader.problems), &document.sources))
}

fn entry_nodes(root: &Node) -> &[Node] {
    let list = root.entries().iter().find(|entry| entry.key == MEASUREMENTS.name);
    match list.map(|entry| &entry.node.value) {
        Some(Value::List(entries)) => entries,
        _ => &[],
    }
}

/// The deployment's tables as `entry` sees them: the set's, key by key replaced by its own.
fn merged(root: &Node, entry: &Node) -> Node {
    let mut tables: Vec<Entry> =
        root.entries().iter().filter(|e| REPEATED.contains(&e.key.as_str())).cloned().collect();
    for own in entry.entries().iter().filter(|e| REPEATED.contains(&e.key.as_str())) {
        match tables.iter_mut().find(|shared| shared.key == own.key) {
            None => tables.push(own.clone()),
            Some(shared) => overlay(&mut shared.node, &own.node),
        }
    }
    Node { value: Value::Table(tables), span: entry.span }
}

fn overlay(shared: &mut Node, own: &Node) {
    let (Value::Table(entries), Value::Table(changes)) = (&mut shared.value, &own.value) else {
        *shared = own.clone();
        return;
    };
    for change in changes {
        match entries.iter_mut().find(|entry| entry.key == change.key) {
            Some(entry) => *entry = change.clone(),
            None => entries.push(change.clone()),
        }
    }
}

fn read_entry<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    section: &Section<'d>,
    tables: &'d Node,
    document: &Document,
) -> Option<Measurement> {
    let data = data(reader, section);
    let name = reader.text(section, &keys::NAME);
    let source = reader.text(section, &keys::SOURCE);
    let holdout = reader.boolean(section, &keys::HOLDOUT).unwrap_or(false);
    let top = reader.top(tables, &MEASUREMENT_SET);
    if super::is_synthetic(tables) {
        let problem = Problem::new(top.place(&root::ENGINE), "a synthetic server has nothing to calibrate");
        reader.problem(problem.label("expected an engine that runs a model"));
        return None;
    }
    let (replicas, router) = deployment(reader, &top);
    let (server, serving) = llm::read(reader, context, &top, vec![0])?;
    let data = data?;
    Some(Measurement {
        name: name.unwrap_or_else(|| default_name(&data, document)),
        source: source?,
        system: System { replicas: replicas?, router: router?, server: Server::Llm(Box::new(server)) },
        serving: Arc::new(serving),
        data,
        holdout,
    })
}

fn default_name(data: &MeasuredData, document: &Document) -> String {
    let stem = match data {
        MeasuredData::Requests { file, .. } | MeasuredData::Points { file } => {
            file.file_stem().map(|stem| stem.to_string_lossy().into_owned())
        }
        MeasuredData::Inline(_) => None,
    };
    stem.or_else(|| document.stem().map(str::to_owned)).unwrap_or_else(|| "set".to_owned())
}

/// Exactly one of the three forms that measurements come in.
fn data<'d>(reader: &mut Reader<'d>, section: &Section<'d>) -> Option<MeasuredData> {
    let forms = [&keys::REQUESTS, &keys::POINTS, &keys::POINT];
    let given: Vec<_> = forms.into_iter().filter(|key| section.find(key).is_some()).collect();
    let [form] = given[..] else {
        let message = if given.is_empty() { "nothing was measured" } else { "measured twice" };
        let problem = Problem::new(section.span, message);
        reader.problem(problem.label("expected exactly one of requests, points and point"));
        return None;
    };
    let client_max_in_flight = reader.integer(section, &keys::CLIENT_MAX_IN_FLIGHT);
    if !std::ptr::eq(form, &keys::REQUESTS) && client_max_in_flight.is_some() {
        let place = section.place(&keys::CLIENT_MAX_IN_FLIGHT);
        let problem = Problem::new(place, "`client_max_in_flight` belongs to `requests`");
        reader.problem(problem.label("a load point has its own `concurrency`"));
        return None;
    }
    if std::ptr::eq(form, &keys::POINT) {
        return inline(reader, section).map(MeasuredData::Inline);
    }
    let folder = reader.folder(section.place(form));
    let file = folder.join(reader.text(section, form)?);
    if let Err(error) = disk::must_be_readable(&file) {
        let message = format!("cannot read {}: {error}", file.display());
        let problem = Problem::new(section.place(form), message);
        reader.problem(problem.label("expected a CSV file, its path relative to the set's folder"));
        return None;
    }
    Some(if std::ptr::eq(form, &keys::REQUESTS) {
        MeasuredData::Requests { file, client_max_in_flight }
    } else {
        MeasuredData::Points { file }
    })
}

fn inline<'d>(reader: &mut Reader<'d>, section: &Section<'d>) -> Option<Vec<MeasuredPoint>> {
    let node = section.find(&keys::POINT)?;
    let Value::List(points) = &node.value else {
        let problem = Problem::new(node.span, "`point` is not a list of tables");
        reader.problem(problem.label("write each under a header [[measurement.point]]"));
        return None;
    };
    let before = reader.problems.len();
    let rows = points.iter().enumerate().map(|(index, point)| {
        let path = section.dotted(&format!("point.{index}"));
        let row = reader.open_node(point, &keys::POINT, &measured_point::MEASURED_POINT, path);
        inline_row(reader, &row, &measured_point::MEASURED_POINT)
    });
    let rows = rows.collect();
    (reader.problems.len() == before).then_some(rows)
}

fn inline_row<'d>(reader: &mut Reader<'d>, row: &Section<'d>, table: &'static Table) -> MeasuredPoint {
    let arrival = reader.choice(row, &measured_point::ARRIVAL);
    let numbers = table.keys.iter().filter(|key| !std::ptr::eq(**key, &measured_point::ARRIVAL));
    let values = numbers.filter_map(|key| {
        let value = match key.kind {
            Kind::Integer { .. } => reader.integer::<i64>(row, key).map(|value| value as f64),
            _ => reader.number(row, key),
        };
        Some((key.name, value?))
    });
    let point = MeasuredPoint { arrival, values: values.collect() };
    if let Err(missing) = point.load() {
        let problem = Problem::new(row.span, "a load point without a load");
        reader.problem(problem.label(format!("expected {missing}")));
    }
    if let Some(contradiction) = point.contradiction() {
        let problem = Problem::new(row.span, "a load point that cannot be");
        reader.problem(problem.label(contradiction));
    }
    point
}
