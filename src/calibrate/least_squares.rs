//! Robust nonlinear least squares for a residual that is a simulation: Levenberg and Marquardt's method
//! on Huber's loss, within bounds.
//!
//! A simulated residual is a staircase in its parameters (a request falls into one step or the next), so
//! derivatives are central differences over steps of per cents, and where no damping helps any more the
//! steps are halved ([`approach`]). What the slopes cannot see any more, a simplex that needs none walks down
//! ([`settle`], Nelder and Mead). Everything that can run at once is asked for at once: both sides of all parameters,
//! then all dampings. The method draws nothing and sums in a fixed order, so results do not depend on
//! threads. Marquardt (1963), J. SIAM 11(2); Huber (1964), Ann. Math. Stat. 35(1);
//! Nelder and Mead (1965), Computer J. 7(4).

/// Log errors beyond this count linearly, not squared: 10 %.
const HUBER: f64 = 0.10;
/// Damping relative to the diagonal: nearly Gauss-Newton's step to nearly the gradient.
const DAMPINGS: [f64; 5] = [1e-4, 1e-2, 0.1, 1.0, 10.0];
const MAX_ITERATIONS: u32 = 25;
/// Halvings of the difference steps before giving up.
const MAX_HALVINGS: u32 = 2;
/// Relative gain in the loss below which a step is no gain.
const GAIN: f64 = 1e-3;
/// Rounds of the simplex per parameter.
const SIMPLEX_ROUNDS: usize = 15;
/// Longest step of a parameter, in units of its own scale (its logarithm).
const LONGEST_STEP: f64 = 1.0;

/// A problem: residuals at points of the parameter space, each with a weight.
pub(super) trait Problem {
    type Error;
    /// Residuals at each of `points`, in their order.
    fn residuals(&self, points: &[Vec<f64>]) -> Result<Vec<Vec<f64>>, Self::Error>;
    /// Weights of the residuals: how much an observation each of them is.
    fn weights(&self) -> &[f64];
    /// Lower and upper bound of each parameter.
    fn bounds(&self) -> &[(f64, f64)];
    /// Step of finite differences of each parameter.
    fn steps(&self) -> &[f64];
}

/// Where the minimum was found.
#[derive(Clone, Debug)]
pub(super) struct Minimum {
    pub point: Vec<f64>,
    pub residuals: Vec<f64>,
    /// `jacobian[i][j]`: derivative of residual i by parameter j.
    pub jacobian: Vec<Vec<f64>>,
}

/// The best of what descends from each of `starts` reach: near enough to a minimum to tell what the data
/// says of each parameter.
pub(super) fn approach<P: Problem>(problem: &P, starts: &[Vec<f64>]) -> Result<Minimum, P::Error> {
    let mut best: Option<(f64, Vec<f64>, Vec<f64>)> = None;
    for start in starts {
        let (point, residuals) = descend(problem, start)?;
        let loss = loss(&residuals, problem.weights());
        if best.as_ref().is_none_or(|(least, ..)| loss < *least) {
            best = Some((loss, point, residuals));
        }
    }
    let (_, point, residuals) = best.unwrap_or_default();
    with_slopes(problem, point, residuals)
}

/// The minimum that a simplex reaches from `start`.
pub(super) fn settle<P: Problem>(problem: &P, start: &[f64]) -> Result<Minimum, P::Error> {
    let (point, residuals) = simplex(problem, start)?;
    with_slopes(problem, point, residuals)
}

fn with_slopes<P: Problem>(problem: &P, point: Vec<f64>, residuals: Vec<f64>) -> Result<Minimum, P::Error> {
    // At full steps: what a standard error needs is the slope over the range that noise moves it.
    let jacobian = jacobian(problem, &point, 1.0)?;
    Ok(Minimum { point, residuals, jacobian })
}

/// Levenberg and Marquardt's descent from `start`: the point reached and its residuals.
fn descend<P: Problem>(problem: &P, start: &[f64]) -> Result<(Vec<f64>, Vec<f64>), P::Error> {
    let weights = problem.weights();
    let mut point = clamped(start, problem.bounds());
    let mut residuals = problem.residuals(std::slice::from_ref(&point))?.swap_remove(0);
    let mut halvings = 0;
    for _ in 0..MAX_ITERATIONS {
        let jacobian = jacobian(problem, &point, 0.5_f64.powi(halvings as i32))?;
        let (normal, gradient) = normal_equations(&jacobian, &residuals, weights);
        let candidates: Vec<Vec<f64>> = DAMPINGS
            .iter()
            .filter_map(|damping| step(&normal, &gradient, *damping))
            .map(|step| {
                let moved: Vec<f64> = point.iter().zip(&step).map(|(x, dx)| x + dx).collect();
                clamped(&moved, problem.bounds())
            })
            .collect();
        let tried = problem.residuals(&candidates)?;
        let losses = tried.iter().map(|residuals| loss(residuals, weights));
        let best = losses.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some((index, best)) if best < loss(&residuals, weights) * (1.0 - GAIN) => {
                point.clone_from(&candidates[index]);
                residuals.clone_from(&tried[index]);
            }
            _ if halvings < MAX_HALVINGS => halvings += 1,
            _ => break,
        }
    }
    Ok((point, residuals))
}

/// Nelder and Mead's simplex around `start`, as wide as the difference steps. Reflection, expansion and
/// both contractions are tried at once, so that a round takes as long as one of them.
fn simplex<P: Problem>(problem: &P, start: &[f64]) -> Result<(Vec<f64>, Vec<f64>), P::Error> {
    let bounds = problem.bounds();
    let mut points = vec![start.to_vec()];
    points.extend(problem.steps().iter().enumerate().map(|(index, step)| {
        let mut corner = start.to_vec();
        // Inwards where a bound is near.
        corner[index] += if start[index] + step > bounds[index].1 { -step } else { *step };
        clamped(&corner, bounds)
    }));
    let ranked = |points: Vec<Vec<f64>>| -> Result<Vec<Corner>, P::Error> {
        let residuals = problem.residuals(&points)?;
        Ok(points.into_iter().zip(residuals).map(|(at, r)| (loss(&r, problem.weights()), at, r)).collect())
    };
    let mut corners = ranked(points)?;
    for _ in 0..SIMPLEX_ROUNDS * start.len() {
        corners.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(worst) = corners.pop() else { break };
        let Some(second) = corners.last().map(|corner| corner.0) else {
            corners.push(worst);
            break;
        };
        if worst.0 <= corners[0].0 * (1.0 + GAIN) {
            corners.push(worst);
            break;
        }
        let along = |factor: f64| {
            let move_one = |index: usize| {
                let centre = corners.iter().map(|c| c.1[index]).sum::<f64>() / corners.len() as f64;
                centre + factor * (worst.1[index] - centre)
            };
            clamped(&(0..start.len()).map(move_one).collect::<Vec<f64>>(), bounds)
        };
        let tried = ranked([-1.0, -2.0, -0.5, 0.5].map(along).to_vec())?;
        let best = tried.into_iter().reduce(|best, one| if one.0 < best.0 { one } else { best });
        match best {
            Some(best) if best.0 < second.min(worst.0) => corners.push(best),
            _ => {
                // Nothing along the line: everything moves half-way towards the best.
                corners.push(worst);
                let centre = corners[0].1.clone();
                let half = |c: &Corner| c.1.iter().zip(&centre).map(|(a, b)| f64::midpoint(*a, *b)).collect();
                let moved = ranked(corners[1..].iter().map(half).collect())?;
                corners.truncate(1);
                corners.extend(moved);
            }
        }
    }
    corners.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, point, residuals) = corners.swap_remove(0);
    Ok((point, residuals))
}

/// A corner of the simplex: loss, place, residuals.
type Corner = (f64, Vec<f64>, Vec<f64>);

/// Weighted Huber loss.
fn loss(residuals: &[f64], weights: &[f64]) -> f64 {
    let huber = |r: f64| if r.abs() <= HUBER { r * r / 2.0 } else { HUBER * (r.abs() - HUBER / 2.0) };
    residuals.iter().zip(weights).map(|(r, w)| w * huber(*r)).sum()
}

/// The weight that makes a square out of Huber's loss at `residual`.
pub(super) fn huber_weight(residual: f64) -> f64 {
    if residual.abs() <= HUBER { 1.0 } else { HUBER / residual.abs() }
}

fn clamped(point: &[f64], bounds: &[(f64, f64)]) -> Vec<f64> {
    point.iter().zip(bounds).map(|(x, (low, high))| x.clamp(*low, *high)).collect()
}

/// Central differences; one-sided where a bound is near.
fn jacobian<P: Problem>(problem: &P, point: &[f64], fraction: f64) -> Result<Vec<Vec<f64>>, P::Error> {
    let mut sides = Vec::with_capacity(2 * point.len());
    for (index, step) in problem.steps().iter().enumerate() {
        for sign in [-1.0, 1.0] {
            let mut moved = point.to_vec();
            moved[index] += sign * step * fraction;
            sides.push(clamped(&moved, problem.bounds()));
        }
    }
    let values = problem.residuals(&sides)?;
    let rows = values.first().map_or(0, Vec::len);
    let slope = |row: usize, column: usize| {
        let (low, high) = (2 * column, 2 * column + 1);
        let width = sides[high][column] - sides[low][column];
        (values[high][row] - values[low][row]) / width
    };
    Ok((0..rows).map(|row| (0..point.len()).map(|column| slope(row, column)).collect()).collect())
}

/// `J' W J` and `J' W r` with Huber's weights at `residuals`.
pub(super) fn normal_equations(
    jacobian: &[Vec<f64>],
    residuals: &[f64],
    weights: &[f64],
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let size = jacobian.first().map_or(0, Vec::len);
    let mut normal = vec![vec![0.0; size]; size];
    let mut gradient = vec![0.0; size];
    for ((row, residual), weight) in jacobian.iter().zip(residuals).zip(weights) {
        let weight = weight * huber_weight(*residual);
        for (i, slope) in row.iter().enumerate() {
            gradient[i] += weight * slope * residual;
            for (j, other) in row.iter().enumerate() {
                normal[i][j] += weight * slope * other;
            }
        }
    }
    (normal, gradient)
}

/// The damped step downhill; `None` where nothing depends on the parameters.
fn step(normal: &[Vec<f64>], gradient: &[f64], damping: f64) -> Option<Vec<f64>> {
    let largest = (0..gradient.len()).map(|i| normal[i][i]).fold(0.0, f64::max);
    let mut damped = normal.to_vec();
    for (i, row) in damped.iter_mut().enumerate() {
        // A parameter without influence must not make the system singular.
        row[i] += damping * row[i] + 1e-9 * largest;
    }
    let step = solve(damped, gradient.to_vec())?;
    Some(step.iter().map(|dx| (-dx).clamp(-LONGEST_STEP, LONGEST_STEP)).collect())
}

/// Solves a linear system by Gaussian elimination with partial pivoting; `None` if it is singular.
pub(super) fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (done, below) = matrix.split_at_mut(column + 1);
        let pivot_row = &done[column];
        for (offset, row) in below.iter_mut().enumerate() {
            let factor = row[column] / pivot_row[column];
            for (cell, pivot) in row.iter_mut().zip(pivot_row).skip(column) {
                *cell -= factor * pivot;
            }
            right[column + 1 + offset] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| matrix[row][k] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right.iter().all(|x| x.is_finite()).then_some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley as residuals (10 (y - x^2), 1 - x), scaled so that they are of the order of
    /// log errors; its minimum is at (1, 1).
    struct Rosenbrock {
        bounds: [(f64, f64); 2],
    }

    impl Problem for Rosenbrock {
        type Error = std::convert::Infallible;
        fn residuals(&self, points: &[Vec<f64>]) -> Result<Vec<Vec<f64>>, Self::Error> {
            let at = |p: &Vec<f64>| vec![0.1 * (p[1] - p[0] * p[0]), 0.01 * (1.0 - p[0])];
            Ok(points.iter().map(at).collect())
        }
        fn weights(&self) -> &[f64] {
            &[1.0, 1.0]
        }
        fn bounds(&self) -> &[(f64, f64)] {
            &self.bounds
        }
        fn steps(&self) -> &[f64] {
            &[1e-3, 1e-3]
        }
    }

    fn minimise(problem: &Rosenbrock, starts: &[Vec<f64>]) -> Minimum {
        settle(problem, &approach(problem, starts).unwrap().point).unwrap()
    }

    #[test]
    fn it_finds_a_minimum_in_a_curved_valley() {
        let problem = Rosenbrock { bounds: [(-5.0, 5.0); 2] };
        let minimum = minimise(&problem, &[vec![-1.2, 1.0]]);
        assert!((minimum.point[0] - 1.0).abs() < 0.05, "{:?}", minimum.point);
        assert!((minimum.point[1] - 1.0).abs() < 0.1, "{:?}", minimum.point);
    }

    #[test]
    fn it_stays_within_bounds() {
        let problem = Rosenbrock { bounds: [(-5.0, 0.5), (-5.0, 5.0)] };
        let minimum = minimise(&problem, &[vec![-1.2, 1.0]]);
        assert!((minimum.point[0] - 0.5).abs() < 0.05, "{:?}", minimum.point);
        assert!(minimum.point[0] <= 0.5);
    }

    #[test]
    fn a_linear_system_is_solved() {
        let x = solve(vec![vec![0.0, 2.0], vec![3.0, 1.0]], vec![4.0, 5.0]).unwrap();
        assert_eq!(x, [1.0, 2.0]);
        assert!(solve(vec![vec![1.0, 1.0], vec![1.0, 1.0]], vec![1.0, 2.0]).is_none());
    }
}
