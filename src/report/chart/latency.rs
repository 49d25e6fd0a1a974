//! Latency percentiles against load: where waiting begins, and where it breaks a promise.

use super::frame::palette::{BLUE, GREEN, SHADE, VERMILLION, WHITE};
use super::picture::Rgb;
use super::{
    EndLabel, Frame, Line, Picture, Scale, by_load, end_of, load_axis_name, marks, subtitle, title,
    unstable_from,
};
use crate::experiment::{Point, SweepResult};
use crate::metrics::Latency;
use crate::report::fold::{self, Part};
use crate::report::reading;
use crate::workload::Metric;

/// Room that the names of lines need inside the frame.
const NAMES_WIDTH: f64 = 170.0;

type Pick = fn(&Latency) -> f64;

/// One line: a statistic of a metric.
struct Series {
    metric: Metric,
    name: String,
    colour: Rgb,
    tail: bool,
    /// Load and milliseconds.
    values: Vec<(f64, f64)>,
}

/// The chart; `None` for a sweep that is no curve, or none of whose points has a latency.
#[must_use]
pub fn latency(result: &SweepResult) -> Option<Picture> {
    let reading = reading::curve(result)?;
    let points = by_load(result);
    let series = all_series(&points);
    let goals = goals(result, &series);
    let limits = goals.iter().map(|goal| goal.limit_ms);
    let shown = || series.iter().flat_map(|series| series.values.iter().map(|pair| pair.1));
    let smallest = shown().chain(limits.clone()).filter(|ms| *ms > 0.0).reduce(f64::min)?;
    let largest = shown().chain(limits).reduce(f64::max)?;
    let frame = Frame::new(Scale::linear_to(points.last()?.0), Scale::log(smallest, largest));

    let mut picture = Picture::default();
    title(&mut picture, &reading::finding(reading), &subtitle(&result.base));
    let unstable = unstable_from(reading);
    if let Some(from) = unstable {
        frame.unstable(&mut picture, from);
    }
    frame.axes(&mut picture, load_axis_name(reading), "latency, ms (log scale)");
    for goal in &goals {
        let y = frame.y_at(goal.limit_ms);
        picture.dashed(&[(frame.left, y), (frame.right, y)], goal.colour, 2.0, 5.0);
    }
    frame.marks(&mut picture, &marks(reading));
    let mut labels = Vec::new();
    for series in &series {
        let line = if series.tail { Line::Thick } else { Line::Thin };
        frame.curve(&mut picture, &series.values, series.colour, line);
        labels.extend(end_of(&series.values).map(|(x, y)| EndLabel {
            at: frame.at(x, y),
            text: series.name.clone(),
            colour: series.colour,
            bold: series.tail,
        }));
    }
    let goal_names = goals.iter().map(|goal| EndLabel {
        at: (frame.right - 6.0, frame.y_at(goal.limit_ms)),
        text: goal.text.clone(),
        colour: goal.colour,
        bold: false,
    });
    // One column of names, right of every line's end and inside the unstable region; the objectives' in the margin, or
    // in the same column if that is where the lines end.
    let region = unstable.map_or(0.0, |from| frame.x_at(from));
    let column = labels.iter().fold(region, |column, label| column.max(label.at.0));
    for label in &mut labels {
        label.at.0 = column;
    }
    if frame.right - column > NAMES_WIDTH {
        frame.end_labels(&mut picture, labels, SHADE);
        frame.end_labels(&mut picture, goal_names.collect(), WHITE);
    } else {
        labels.extend(goal_names);
        frame.end_labels(&mut picture, labels, WHITE);
    }
    Some(picture)
}

fn all_series(points: &[(f64, &Point)]) -> Vec<Series> {
    let statistics: [(&str, Pick, bool); 2] =
        [("p50", |latency| latency.p50_s, false), ("p99", |latency| latency.p99_s, true)];
    let metrics = [(Metric::E2e, GREEN), (Metric::Ttft, BLUE), (Metric::Tpot, VERMILLION)];
    let mut all = Vec::new();
    for (metric, colour) in metrics {
        for (statistic, pick, tail) in statistics {
            let ms = |(load, point): &(f64, &Point)| {
                let value = fold::latency(point, Part::All, metric, pick)?;
                Some((*load, value.mean * 1e3))
            };
            let values: Vec<(f64, f64)> = points.iter().filter_map(ms).filter(|pair| pair.1 > 0.0).collect();
            if !values.is_empty() {
                let name = format!("{} {statistic}", reading::metric_name(metric));
                all.push(Series { metric, name, colour, tail, values });
            }
        }
    }
    all
}

/// A promise as a line across the chart.
struct Goal {
    limit_ms: f64,
    text: String,
    colour: Rgb,
}

/// Every objective on a metric that is drawn, once, in the metric's colour.
fn goals(result: &SweepResult, series: &[Series]) -> Vec<Goal> {
    let mut goals: Vec<Goal> = Vec::new();
    for class in &result.base.workload.classes {
        for objective in &class.slo.objectives {
            let text = reading::objective(objective, class.slo.attainment);
            let drawn = series.iter().find(|series| series.metric == objective.metric);
            if let Some(series) = drawn
                && goals.iter().all(|goal| goal.text != text)
            {
                goals.push(Goal { limit_ms: objective.limit_s * 1e3, text, colour: series.colour });
            }
        }
    }
    goals
}
