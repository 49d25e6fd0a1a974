//! M/D/1: one server, constant service time, with the whole distribution of the wait.
//!
//! Erlang's formula (1909) alternates in sign and breaks down for long waits. Used here: G. J. Franx, "A
//! simple solution for the M/D/c waiting time distribution", Operations Research Letters 29 (2001)
//! 221-229, whose terms are all positive, on state probabilities from V. Ramaswami's positive recursion,
//! "A stable recursion for the steady state vector in Markov chains of M/G/1 type", Stochastic Models 4
//! (1988) 183-188.

use super::{Means, Mg1, QueueError};

/// States computed one by one; by then the ratio of neighbours is constant to the last bit.
const STATES: usize = 512;
/// A Poisson variate of mean below 1 exceeds this with probability below 1e-30.
const POISSON_TERMS: usize = 30;

/// Poisson arrivals at one server with constant service time.
#[derive(Clone, Debug, PartialEq)]
pub struct Md1 {
    arrival_per_s: f64,
    service_s: f64,
    /// P(more than n in the system), n = 0..STATES.
    tails: Vec<f64>,
    /// Its ratio from one n to the next, beyond.
    decay: f64,
}

impl Md1 {
    /// `service_s`: the service time of every customer.
    ///
    /// # Errors
    /// A parameter out of range, or utilisation at or above 1.
    pub fn new(arrival_per_s: f64, service_s: f64) -> Result<Self, QueueError> {
        Mg1::new(arrival_per_s, service_s, 0.0)?;
        let (tails, decay) = system_tails(arrival_per_s * service_s);
        Ok(Self { arrival_per_s, service_s, tails, decay })
    }

    /// Averages; mean wait rho / (2 (1 - rho)) service times.
    #[must_use]
    pub fn means(&self) -> Means {
        let utilisation = self.arrival_per_s * self.service_s;
        Means::new(
            self.arrival_per_s,
            1,
            self.service_s,
            self.service_s * utilisation / (2.0 * (1.0 - utilisation)),
        )
    }

    /// P(wait > `t_s`), for `t_s` >= 0.
    #[must_use]
    pub fn wait_tail(&self, t_s: f64) -> f64 {
        // Between (k - 1) and k service times, k >= 1: the customers who arrive in the rest of the k-th
        // are Poisson; the wait exceeds t if together with those who queue they number at least k.
        let k = libm::floor(t_s / self.service_s) + 1.0;
        let rest_s = (k * self.service_s - t_s).clamp(0.0, self.service_s);
        let arriving = self.arrival_per_s * rest_s;
        poisson(arriving).iter().zip(0..).map(|(p, j)| p * self.queued_tail(k - 1.0 - f64::from(j))).sum()
    }

    /// The time that a fraction `q` (0 to 1) of waits does not exceed, in seconds, to nine digits; 0
    /// where so many do not wait at all, infinite at 1.
    #[must_use]
    pub fn wait_quantile(&self, q: f64) -> f64 {
        if q >= 1.0 {
            return f64::INFINITY;
        }
        let exceeded = |t_s: f64| self.wait_tail(t_s) > 1.0 - q;
        if !exceeded(0.0) {
            return 0.0;
        }
        let mut high_s = self.service_s;
        while exceeded(high_s) && high_s.is_finite() {
            high_s *= 2.0;
        }
        let mut low_s = 0.0;
        while high_s - low_s > 1e-10 * high_s {
            let middle_s = low_s + (high_s - low_s) / 2.0;
            if exceeded(middle_s) {
                low_s = middle_s;
            } else {
                high_s = middle_s;
            }
        }
        high_s
    }

    /// P(more than `m` wait) = P(more than m + 1 in the system); `m` is whole, possibly negative or huge.
    fn queued_tail(&self, m: f64) -> f64 {
        let (n, last) = (m + 1.0, STATES - 1);
        if m < 0.0 {
            1.0
        } else if n <= last as f64 {
            self.tails[n as usize]
        } else {
            self.tails[last] * libm::pow(self.decay, n - last as f64)
        }
    }
}

/// P(N > n) for n = 0..STATES and the ratio at which it goes on.
fn system_tails(utilisation: f64) -> (Vec<f64>, f64) {
    let arrivals = poisson(utilisation);
    // P(at least m arrivals in a service time), summed from the small end.
    let mut at_least = [0.0; POISSON_TERMS + 1];
    for m in (0..POISSON_TERMS).rev() {
        at_least[m] = at_least[m + 1] + arrivals[m];
    }
    // Departures see p; the cut below state j is crossed downwards by a service without arrivals, upwards
    // from state i by one with at least j - i + 1 (from an empty system, j) arrivals.
    let mut p = vec![0.0; STATES + 1];
    p[0] = 1.0 - utilisation;
    for j in 1..=STATES {
        let from_empty = at_least.get(j).map_or(0.0, |a| a * p[0]);
        let from_below: f64 =
            (1..j).rev().zip(2..POISSON_TERMS).map(|(i, arriving)| p[i] * at_least[arriving]).sum();
        p[j] = (from_empty + from_below) / arrivals[0];
    }
    let decay = if p[STATES - 1] > 0.0 { p[STATES] / p[STATES - 1] } else { 0.0 };
    let mut tail = p[STATES] / (1.0 - decay);
    let mut tails = vec![0.0; STATES];
    for n in (0..STATES).rev() {
        tails[n] = tail;
        tail += p[n];
    }
    (tails, decay)
}

/// Probabilities of 0, 1, 2, ... arrivals where `mean` (at most 1) are expected.
fn poisson(mean: f64) -> [f64; POISSON_TERMS] {
    let mut p = [libm::exp(-mean); POISSON_TERMS];
    for j in 1..POISSON_TERMS {
        p[j] = p[j - 1] * mean / j as f64;
    }
    p
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_close;
    use super::*;

    /// Erlang's formula of 1909, good to a dozen digits for short waits.
    fn erlang_1909(utilisation: f64, t: f64) -> f64 {
        let mut sum = 0.0;
        for k in 0..=t.floor() as i32 {
            let x = utilisation * (t - f64::from(k));
            let factorial: f64 = (1..=k).map(f64::from).product();
            sum += x.exp() * (-x).powi(k) / factorial;
        }
        (1.0 - utilisation) * sum
    }

    #[test]
    fn agrees_with_erlangs_formula() {
        for utilisation in [0.1, 0.5, 0.8, 0.95] {
            let queue = Md1::new(utilisation, 1.0).unwrap();
            for t in [0.0, 0.4, 1.0, 1.7, 3.0, 4.25, 6.5] {
                let difference = 1.0 - queue.wait_tail(t) - erlang_1909(utilisation, t);
                assert!(difference.abs() < 1e-11, "{utilisation} {t}: {difference}");
            }
        }
    }

    /// The integral of the tail is the Pollaczek-Khinchine mean, up to the heaviest loads.
    #[test]
    fn the_tail_integrates_to_the_mean() {
        for (utilisation, horizon) in [(0.3, 40), (0.8, 200), (0.99, 4_000)] {
            let queue = Md1::new(utilisation / 0.02, 0.02).unwrap();
            let step = 0.02 / 50.0;
            let integral: f64 =
                (0..horizon * 50).map(|i| queue.wait_tail((f64::from(i) + 0.5) * step) * step).sum();
            assert_close(integral, queue.means().wait_s, 1e-4);
            let pollaczek_khinchine = Mg1::new(utilisation / 0.02, 0.02, 0.0).unwrap().means();
            assert_close(queue.means().wait_s, pollaczek_khinchine.wait_s, 1e-12);
        }
    }

    #[test]
    fn states_add_up_to_the_mean_number() {
        for utilisation in [0.05, 0.5, 0.9, 0.99] {
            let queue = Md1::new(utilisation, 1.0).unwrap();
            let beyond = queue.tails[STATES - 1] * queue.decay / (1.0 - queue.decay);
            assert_close(queue.tails.iter().sum::<f64>() + beyond, queue.means().in_system, 1e-11);
            assert_close(queue.tails[0], utilisation, 1e-11);
        }
    }

    #[test]
    fn quantiles_invert_tails() {
        let queue = Md1::new(9.5, 0.1).unwrap();
        for q in [0.1, 0.5, 0.99, 0.999_999] {
            assert_close(queue.wait_tail(queue.wait_quantile(q)), 1.0 - q, 1e-6);
        }
        assert_eq!(queue.wait_quantile(0.04), 0.0);
        assert_eq!(queue.wait_quantile(1.0), f64::INFINITY);
        // As close to saturation as numbers get: an answer, be it infinite, not a hang.
        assert!(Md1::new(1.0 - f64::EPSILON, 1.0).unwrap().wait_quantile(0.99) > 1e6);
        assert!(queue.wait_tail(1e9) < 1e-300 && queue.wait_tail(1e300) == 0.0);
    }
}
