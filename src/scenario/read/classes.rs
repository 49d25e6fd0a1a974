//! `[[class]]`: who sends requests, how long they are, what was promised.

use super::{Context, distribution, slo};
use crate::scenario::keys::{Key, class as keys, list, root};
use crate::scenario::node::{Node, Value};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::workload::{Arrivals, Class, Distribution, Lengths, Slo, Trace};

/// How far the sum of the shares may be from 1.
const SHARE_TOLERANCE: f64 = 1e-6;

pub(super) fn read<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    top: &Section<'d>,
    arrivals: Option<&Arrivals>,
    is_synthetic: bool,
) -> Option<Vec<Class>> {
    let sections = sections(reader, top)?;
    if let Some(Arrivals::Trace(trace)) = arrivals {
        return of_trace(reader, &sections, trace);
    }
    if sections.is_empty() {
        if is_synthetic {
            return Some(vec![whole(Lengths::Independent {
                input: Distribution::Constant { value: 1.0 },
                output: None,
            })]);
        }
        // With broken arrivals nobody knows whether a class is needed.
        if arrivals.is_some() {
            let label = "a class with input_tokens and output_tokens is needed (only a trace brings its own)";
            reader.problem(Problem::new(top.span, "no [[class]]").label(label));
        }
        return None;
    }
    let mut classes = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let name = name(reader, section, index, sections.len());
        let share = share(reader, section, sections.len());
        let priority = reader.integer(section, &keys::PRIORITY);
        let lengths = lengths(reader, context, section, is_synthetic);
        let has_tokens = !matches!(lengths, Some(Lengths::Independent { output: None, .. }));
        let slo = slo::read(reader, section, has_tokens);
        if let (Some(name), Some(share), Some(priority), Some(lengths)) = (name, share, priority, lengths) {
            classes.push(Class { name, share, priority, lengths, slo });
        }
    }
    if classes.len() < sections.len() {
        return None;
    }
    check_names(reader, &sections, &classes);
    check_shares(reader, &sections, &mut classes);
    Some(classes)
}

/// One class that takes everything, for a scenario without any.
fn whole(lengths: Lengths) -> Class {
    Class { name: "default".to_owned(), share: 1.0, priority: 0, lengths, slo: Slo::default() }
}

fn sections<'d>(reader: &mut Reader<'d>, top: &Section<'d>) -> Option<Vec<Section<'d>>> {
    let Some(node) = top.find(&root::CLASS) else {
        return Some(Vec::new());
    };
    let Value::List(items) = &node.value else {
        let label = format!("found {}, expected [[class]] with two brackets", node.describe());
        reader.problem(Problem::new(node.span, "wrong type for `class`").label(label));
        return None;
    };
    if items.len() > usize::from(u16::MAX) {
        let problem = Problem::new(node.span, format!("{} classes are too many", items.len()));
        reader.problem(problem.label(format!("expected at most {}", u16::MAX)));
        return None;
    }
    let open = |(index, item): (usize, &'d Node)| {
        let path = format!("class.{}", crate::scenario::overrides::class_name(item, index));
        reader.open_node(item, &root::CLASS, &keys::CLASS, path)
    };
    Some(items.iter().enumerate().map(open).collect())
}

fn name<'d>(reader: &mut Reader<'d>, section: &Section<'d>, index: usize, count: usize) -> Option<String> {
    match section.find(&keys::NAME) {
        Some(_) => reader.text(section, &keys::NAME),
        None if count == 1 => Some("default".to_owned()),
        None => Some(format!("class-{index}")),
    }
}

fn share<'d>(reader: &mut Reader<'d>, section: &Section<'d>, count: usize) -> Option<f64> {
    if section.find(&keys::SHARE).is_none() {
        if count > 1 {
            reader.missing(section, &keys::SHARE);
            return None;
        }
        return Some(1.0);
    }
    reader.number(section, &keys::SHARE)
}

fn check_names(reader: &mut Reader<'_>, sections: &[Section<'_>], classes: &[Class]) {
    for (index, class) in classes.iter().enumerate() {
        if classes[..index].iter().any(|earlier| earlier.name == class.name) {
            let place = sections[index].place(&keys::NAME);
            let problem = Problem::new(place, format!("two classes are called `{}`", class.name));
            reader.problem(problem.label("class names must differ"));
        }
    }
}

/// Shares must add up to 1; what rounding leaves is divided out.
fn check_shares(reader: &mut Reader<'_>, sections: &[Section<'_>], classes: &mut [Class]) {
    let sum: f64 = classes.iter().map(|class| class.share).sum();
    if (sum - 1.0).abs() <= SHARE_TOLERANCE {
        for class in classes {
            class.share /= sum;
        }
        return;
    }
    // Sums such as 0.9000000000000001 are shown as they were meant.
    let sum = format!("{sum:.6}");
    let sum = sum.trim_end_matches('0').trim_end_matches('.');
    let shares = list(classes.iter().map(|class| format!("{} {}", class.name, class.share)));
    let place = sections.last().and_then(|section| section.place(&keys::SHARE));
    let problem = Problem::new(place, format!("the shares of the classes add up to {sum}, not 1"));
    reader.problem(problem.label(format!("shares: {shares}")));
}

fn lengths<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    section: &Section<'d>,
    is_synthetic: bool,
) -> Option<Lengths> {
    if section.find(&keys::LENGTHS).is_some() {
        return joint(reader, context, section);
    }
    let mut read = |key: &'static Key| match section.find(key) {
        Some(node) => distribution::tokens(reader, context, node, &section.dotted(key.name)).map(Some),
        None if is_synthetic => Some(None),
        None => {
            reader.missing(section, key);
            None
        }
    };
    let (input, output) = (read(&keys::INPUT_TOKENS), read(&keys::OUTPUT_TOKENS));
    Some(Lengths::Independent {
        // A synthetic server does not look at the prompt.
        input: input?.unwrap_or(Distribution::Constant { value: 1.0 }),
        output: output?,
    })
}

/// `lengths = { file = "pairs.csv" }`.
fn joint<'d>(reader: &mut Reader<'d>, context: &Context<'_>, section: &Section<'d>) -> Option<Lengths> {
    let node = section.find(&keys::LENGTHS)?;
    let path = section.dotted(keys::LENGTHS.name);
    for key in [&keys::INPUT_TOKENS, &keys::OUTPUT_TOKENS] {
        if section.find(key).is_some() {
            let message = format!("both `lengths` and `{}` are given", key.name);
            reader.problem(Problem::new(section.place(key), message).label("keep one of them"));
        }
    }
    let file = node.entries().iter().find(|entry| entry.key == "file");
    for entry in node.entries().iter().filter(|entry| entry.key != "file") {
        reader.unknown(entry, &path, ["file"].into_iter());
    }
    let Some(file) = file else {
        let label = format!("found {}, expected {}", node.describe(), keys::LENGTHS.kind.describe());
        reader.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
        return None;
    };
    let name = reader.text_of(&file.node, &path)?;
    match context.lookups.pairs(reader.folder(Some(file.node.span)), &name) {
        Ok(pairs) => Some(Lengths::Joint(pairs)),
        Err(message) => {
            reader.problem(Problem::new(file.node.span, message));
            None
        }
    }
}

/// The classes of a trace: its own names, shares and lengths, with the promises of the `[[class]]` of
/// that name. A trace without names has one class, which takes the promises of the only `[[class]]`.
fn of_trace<'d>(reader: &mut Reader<'d>, sections: &[Section<'d>], trace: &Trace) -> Option<Vec<Class>> {
    let unnamed = trace.class_names.len() == 1 && trace.class_names[0].is_empty();
    if unnamed && sections.len() > 1 {
        let place = sections[1].span;
        let problem = Problem::new(place, format!("{} has no column `class`", trace.name));
        reader.problem(problem.label("so only one [[class]] can apply to it"));
        return None;
    }
    let total = trace.requests.len().max(1) as f64;
    let mut classes: Vec<Class> = (0..)
        .zip(&trace.class_names)
        .map(|(number, name): (u16, &String)| {
            let count = trace.requests.iter().filter(|request| request.class == number).count();
            Class {
                name: if name.is_empty() { "default".to_owned() } else { name.clone() },
                share: count as f64 / total,
                ..whole(Lengths::recorded(&trace.requests, number))
            }
        })
        .collect();
    for (index, section) in sections.iter().enumerate() {
        let name = name(reader, section, index, sections.len())?;
        let priority = reader.integer(section, &keys::PRIORITY);
        let slo = slo::read(reader, section, true);
        for key in [&keys::INPUT_TOKENS, &keys::OUTPUT_TOKENS, &keys::LENGTHS] {
            if section.find(key).is_some() {
                let key = section.dotted(key.name);
                reader.warnings.push(format!("`{key}` is not used: the trace brings its own lengths"));
            }
        }
        let target = if unnamed { classes.first_mut() } else { classes.iter_mut().find(|c| c.name == name) };
        match target {
            Some(class) => {
                class.priority = priority.unwrap_or_default();
                class.slo = slo;
                if unnamed {
                    class.name = name;
                }
            }
            None => {
                let problem =
                    Problem::new(section.place(&keys::NAME), format!("no class `{name}` in {}", trace.name));
                reader.problem(problem.label(format!("its classes: {}", list(&trace.class_names))));
            }
        }
    }
    Some(classes)
}
