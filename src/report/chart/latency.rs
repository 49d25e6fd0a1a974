//! Latency percentiles against load: where waiting begins, and where it breaks a promise.
//!
//! One class on one curve shows its percentiles. Several classes show each class' own tail against its own limit;
//! several curves (a grid with one load axis) show one tail each.

use super::frame::palette::{BLUE, CURVES, GREEN, GREY, SHADE, VERMILLION, WHITE};
use super::picture::{At, Rgb, WIDTH, text_width};
use super::{
    EndLabel, Frame, LABEL_SIZE, Line, Picture, Scale, end_of, load_axis_name, marks, subtitle, title,
    unstable_from,
};
use crate::experiment::{Point, SweepResult};
use crate::metrics::Latency;
use crate::report::fold::{self, Part};
use crate::report::{format, grid, provenance, reading};
use crate::workload::{Class, Metric};

/// Room that the names of lines need inside the frame.
const NAMES_WIDTH: f64 = 170.0;
/// Curves that a title can name one by one.
const MOST_IN_A_TITLE: usize = 3;
/// Right margin beside the longest name.
const NAMES_MARGIN: f64 = 34.0;
const LINES: [Line; 3] = [Line::Thick, Line::Dashed, Line::Thin];

type Pick = fn(&Latency) -> f64;

/// One line: a statistic of a metric.
struct Series {
    metric: Metric,
    part: Part,
    name: String,
    colour: Rgb,
    line: Line,
    /// Load and milliseconds.
    values: Vec<(f64, f64)>,
    /// Load and the ends of the interval; of tails only.
    intervals: Vec<(f64, f64, f64)>,
}

/// The chart; `None` for a sweep without one load axis, with more lines than can be told apart, or none of whose points
/// has a latency.
#[must_use]
pub fn latency(result: &SweepResult, linear: bool) -> Option<Picture> {
    let unit = grid::load_unit(result)?;
    let series = all_series(result)?;
    let goals = goals(result, &series);
    let frame = frame(result, &series, &goals, linear)?;
    let curve = reading::curve(result);

    let mut picture = Picture::default();
    let finding = curve.map_or_else(|| combinations_finding(result), reading::finding);
    title(&mut picture, &finding, &subtitle(&provenance::scenarios(result)));
    let unstable = curve.and_then(unstable_from);
    if let Some(from) = unstable {
        frame.unstable(&mut picture, from);
    }
    frame.axes(&mut picture, &load_axis_name(unit, &frame.x), "latency, ms (log scale)");
    for goal in &goals {
        let y = frame.y_at(goal.limit_ms);
        picture.dashed(&[(frame.left, y), (frame.right, y)], goal.colour, 2.0, 5.0);
    }
    if let Some(reading) = curve {
        frame.marks(&mut picture, &marks(reading));
    }
    for series in &series {
        frame.whiskers(&mut picture, &series.intervals, series.colour);
        frame.curve(&mut picture, &series.values, series.colour, series.line);
    }
    let mut taken = name_lines(&series, &goals, unstable, &frame, &mut picture);
    if let Some(from) = unstable {
        taken.extend(series.iter().flat_map(|series| &series.values).map(|(x, y)| frame.at(*x, *y)));
        frame.name_unstable(&mut picture, from, &taken);
    }
    Some(picture)
}

/// A frame that holds every value and limit, with room for the names at its right.
fn frame(result: &SweepResult, series: &[Series], goals: &[Goal], linear: bool) -> Option<Frame> {
    let mut loads: Vec<f64> = result.points.iter().filter_map(|point| grid::load(result, point)).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let limits = goals.iter().map(|goal| goal.limit_ms);
    let shown = || series.iter().flat_map(|series| series.values.iter().map(|pair| pair.1));
    let smallest = shown().chain(limits.clone()).filter(|ms| *ms > 0.0).reduce(f64::min)?;
    let largest = shown().chain(limits).reduce(f64::max)?;
    let names = series.iter().map(|series| &series.name).chain(goals.iter().map(|goal| &goal.text));
    let widest = names.map(|name| text_width(name, LABEL_SIZE, true)).fold(0.0, f64::max);
    let frame = Frame::new(Scale::of_loads(&loads, linear), Scale::log(smallest, largest));
    Some(Frame { right: frame.right.min(f64::from(WIDTH) - widest - NAMES_MARGIN), ..frame })
}

/// One column of names, right of every line's end and inside the unstable region; the objectives' in the margin, or in
/// the same column if that is where the lines end. Gives the places inside the frame that are taken by names.
fn name_lines(
    series: &[Series],
    goals: &[Goal],
    unstable: Option<f64>,
    frame: &Frame,
    picture: &mut Picture,
) -> Vec<At> {
    let label = |series: &Series| {
        let (x, y) = end_of(&series.values)?;
        let bold = series.line == Line::Thick;
        Some(EndLabel { at: frame.at(x, y), text: series.name.clone(), colour: series.colour, bold })
    };
    let mut labels: Vec<EndLabel> = series.iter().filter_map(label).collect();
    let goal_names = goals.iter().map(|goal| EndLabel {
        at: (frame.right, frame.y_at(goal.limit_ms)),
        text: goal.text.clone(),
        colour: goal.colour,
        bold: false,
    });
    let region = unstable.map_or(0.0, |from| frame.x_at(from));
    let ends = labels.iter().fold(region, |column, label| column.max(label.at.0));
    let inside = unstable.is_some() && frame.right - ends > NAMES_WIDTH;
    let column = if inside { ends } else { frame.right };
    for label in &mut labels {
        label.at.0 = column;
    }
    if !inside {
        labels.extend(goal_names);
        frame.end_labels(picture, labels, WHITE);
        return Vec::new();
    }
    let taken = labels.iter().map(|label| (label.at.0 + NAMES_WIDTH / 2.0, label.at.1)).collect();
    frame.end_labels(picture, labels, SHADE);
    frame.end_labels(picture, goal_names.collect(), WHITE);
    taken
}

/// The lines of the chart; `None` where there are more than can be told apart.
fn all_series(result: &SweepResult) -> Option<Vec<Series>> {
    let curves = grid::curves(result);
    let classes = &result.base.workload.classes;
    if classes.len() < 2 {
        return match curves.as_slice() {
            [only] => Some(percentiles(result, &only.points)),
            several if several.len() <= CURVES.len() => Some(tails_of_curves(result, several)),
            _ => None,
        };
    }
    if classes.len() > CURVES.len() || curves.len() > LINES.len() {
        return None;
    }
    let mut all = Vec::new();
    for (curve, line) in curves.iter().zip(LINES) {
        for (index, class) in classes.iter().enumerate() {
            for metric in promised(class, result) {
                let name = format!("{} {} p99", class.name, reading::metric_name(metric));
                let name = if curve.name.is_empty() { name } else { format!("{name}, {}", curve.name) };
                let style = (name, CURVES[index], line);
                all.extend(series(result, &curve.points, Part::Class(index), metric, style, true));
            }
        }
    }
    Some(all)
}

/// The metrics that a class was promised, each once; where it was promised nothing, the first that everybody asks for.
fn promised(class: &Class, result: &SweepResult) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = class.slo.objectives.iter().map(|objective| objective.metric).collect();
    metrics.sort();
    metrics.dedup();
    if metrics.is_empty() {
        let has = |metric: &Metric| result.points.iter().any(|point| fold::has_metric(point, *metric));
        metrics.extend([Metric::Ttft, Metric::E2e].into_iter().find(has));
    }
    metrics
}

fn tails_of_curves(result: &SweepResult, curves: &[grid::Curve<'_>]) -> Vec<Series> {
    let metrics =
        result.base.workload.classes.first().map_or(vec![Metric::E2e], |class| promised(class, result));
    let mut all = Vec::new();
    for (curve, colour) in curves.iter().zip(CURVES) {
        for (metric, line) in metrics.iter().zip(LINES) {
            let name = format!("{} p99, {}", reading::metric_name(*metric), curve.name);
            all.extend(series(result, &curve.points, Part::All, *metric, (name, colour, line), true));
        }
    }
    all
}

/// Median and tail of the three latencies that users feel.
fn percentiles(result: &SweepResult, points: &[&Point]) -> Vec<Series> {
    let metrics = [(Metric::E2e, GREEN), (Metric::Ttft, BLUE), (Metric::Tpot, VERMILLION)];
    let mut all = Vec::new();
    for (metric, colour) in metrics {
        for (statistic, line, tail) in [("p50", Line::Thin, false), ("p99", Line::Thick, true)] {
            let name = format!("{} {statistic}", reading::metric_name(metric));
            all.extend(series(result, points, Part::All, metric, (name, colour, line), tail));
        }
    }
    all
}

/// The p99 (`tail`) or p50 of a metric along a curve; `None` where no point has it.
fn series(
    result: &SweepResult,
    points: &[&Point],
    part: Part,
    metric: Metric,
    (name, colour, line): (String, Rgb, Line),
    tail: bool,
) -> Option<Series> {
    let pick: Pick = if tail { |latency| latency.p99_s } else { |latency| latency.p50_s };
    let (mut values, mut intervals) = (Vec::new(), Vec::new());
    for point in points {
        let load = grid::load(result, point);
        let ms = fold::latency(point, part, metric, pick).map(|value| format::in_ms(&value));
        if let (Some(load), Some(ms)) = (load, ms.filter(|ms| ms.mean > 0.0)) {
            values.push((load, ms.mean));
            if tail && ms.half_width.is_some_and(|half| half > 0.0) {
                intervals.push((load, ms.lower(), ms.upper()));
            }
        }
    }
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    (!values.is_empty()).then_some(Series { metric, part, name, colour, line, values, intervals })
}

/// A promise as a line across the chart.
struct Goal {
    limit_ms: f64,
    text: String,
    colour: Rgb,
}

/// Every objective on a metric that is drawn, once, in the colour of what it is to hold for.
fn goals(result: &SweepResult, series: &[Series]) -> Vec<Goal> {
    let classes = &result.base.workload.classes;
    let several_curves = grid::is_grid(result);
    let mut goals: Vec<Goal> = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        let part = if classes.len() > 1 { Part::Class(index) } else { Part::All };
        for objective in &class.slo.objectives {
            let mut text = reading::objective(objective, class.slo.attainment);
            if classes.len() > 1 {
                text = format!("{}: {text}", class.name);
            }
            let drawn = series.iter().find(|one| one.metric == objective.metric && one.part == part);
            if let Some(series) = drawn
                && goals.iter().all(|goal| goal.text != text)
            {
                let shared = several_curves && part == Part::All;
                let colour = if shared { GREY } else { series.colour };
                goals.push(Goal { limit_ms: objective.limit_s * 1e3, text, colour });
            }
        }
    }
    goals
}

/// To which load the objectives hold, for each curve of a grid; where nothing was promised, where it is unstable.
fn combinations_finding(result: &SweepResult) -> String {
    let mut curves: Vec<(Option<f64>, String)> = grid::curves(result)
        .iter()
        .zip(&result.combinations)
        .map(|(curve, combination)| {
            let reading = &combination.reading;
            let held = match &reading.capacity {
                Some(capacity) => capacity.guaranteed,
                None => reading.stability_limit.as_ref().and_then(|limit| limit.last_stable),
            };
            let load = held.map_or("no load".to_owned(), |load| reading::load(load, reading.load_unit));
            (held, format!("{load} with {}", curve.name))
        })
        .collect();
    let promised = result.combinations.iter().any(|one| one.reading.capacity.is_some());
    let what = if promised { "Objectives hold to" } else { "Stable to" };
    if curves.len() > MOST_IN_A_TITLE {
        // A load that none holds is below all others.
        curves.sort_by(|a, b| a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0)));
        return format!("{what} between {} and {}", curves[0].1, curves[curves.len() - 1].1);
    }
    let parts: Vec<String> = curves.into_iter().map(|(_, text)| text).collect();
    format!("{what} {}", parts.join(", "))
}
