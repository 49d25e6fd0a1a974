//! The key whose highest good value is looked for.

use super::CapacityError;
use crate::catalog::Catalog;
use crate::experiment::reading::load_unit;
use crate::scenario::{AxisValue, Document, Override, RunLength, Scenario};
use crate::workload::Arrivals;

const USERS: &str = "arrivals.closed.users";
/// Of these the fewest that do are looked for.
const REPLICAS: &str = "deployment.replicas";
/// Fewest requests of a run, for each user.
const REQUESTS_A_USER: u64 = 10;

/// A scenario key that is a load, or acts like one: the more, the worse. Of replicas, of which fewer are worse, the load
/// is one over their number: the share of the requests that each has.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadAxis {
    /// Dotted key, such as `arrivals.poisson.rate_per_s`.
    pub key: String,
    /// `req/s`, `users`, or the last part of the key.
    pub unit: String,
    /// Whether it takes whole numbers only.
    pub whole: bool,
    /// Whether a load is one over the key's value.
    pub fewest: bool,
    /// Where the search may begin.
    pub start: f64,
    /// How many requests the scenario asks for, where the load is users: more users need more.
    requests: Option<u64>,
}

impl LoadAxis {
    /// `key`, or the scenario's own load: its rate or its users.
    ///
    /// # Errors
    /// If the scenario has no load to vary, or `key` does not take numbers.
    pub fn of(
        document: &Document,
        catalog: &Catalog,
        base: &Scenario,
        key: Option<&str>,
    ) -> Result<Self, CapacityError> {
        let rate = |kind: &str, rate_per_s: f64| (format!("arrivals.{kind}.rate_per_s"), rate_per_s);
        let own = match &base.workload.arrivals {
            Arrivals::Poisson { rate_per_s } => Some(rate("poisson", *rate_per_s)),
            Arrivals::Gamma { rate_per_s, .. } => Some(rate("gamma", *rate_per_s)),
            Arrivals::Weibull { rate_per_s, .. } => Some(rate("weibull", *rate_per_s)),
            Arrivals::Constant { rate_per_s } => Some(rate("constant", *rate_per_s)),
            Arrivals::Closed { users, .. } => Some((USERS.to_owned(), f64::from(*users))),
            Arrivals::Mmpp(_) | Arrivals::Profile(_) | Arrivals::Trace(_) | Arrivals::AllAtOnce => None,
        };
        let (key, start) = match (key, own) {
            (Some(key), Some((own, start))) if key == own => (own, start),
            (Some(REPLICAS), _) => (REPLICAS.to_owned(), f64::from(base.system.replicas)),
            (Some(key), _) => (key.to_owned(), 1.0),
            (None, Some(own)) => own,
            (None, None) => return Err(no_load(&base.workload.arrivals)),
        };
        let unit = match load_unit(&key) {
            Some(unit) => unit.to_owned(),
            None => key.rsplit('.').next().unwrap_or_default().to_owned(),
        };
        // A key that refuses a fraction but takes a whole number counts something.
        let takes = |value: AxisValue| scenario_with(document, catalog, &key, &value).map(|_| ());
        let whole = takes(AxisValue::Float(1.5)).is_err();
        if whole {
            takes(AxisValue::Integer(libm::rint(start).max(1.0) as i64))?;
        }
        let requests = match base.run.length {
            RunLength::Requests(requests) if key == USERS => Some(requests),
            _ => None,
        };
        let fewest = key == REPLICAS;
        let start = if fewest { 1.0 / start } else { start.max(f64::MIN_POSITIVE) };
        Ok(Self { unit, whole, fewest, start, key, requests })
    }

    /// Whether the axis is the offered rate, which the saturated throughput bounds.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        self.unit == "req/s"
    }

    /// Whether it is how much is asked of the system, of which an idle one has the least.
    #[must_use]
    pub fn is_load(&self) -> bool {
        self.is_rate() || self.fewest || self.key == USERS
    }

    /// The key's value at a load, in the unit of the axis.
    #[must_use]
    pub fn shown(&self, load: f64) -> f64 {
        if self.fewest { libm::rint(1.0 / load).max(1.0) } else { load }
    }

    /// `arrivals.closed.users = 64`
    pub(super) fn value_in_words(&self, load: f64) -> String {
        format!("{} = {}", self.key, self.shown(load))
    }

    /// The nearest value that people would choose: whole, or `digits` significant digits.
    #[must_use]
    pub fn rounded(&self, load: f64, digits: i32) -> f64 {
        if self.fewest {
            return 1.0 / self.shown(load);
        }
        if self.whole {
            return libm::rint(load).max(1.0);
        }
        // Through text, so that the value is the number nearest to what is printed.
        format!("{load:.*e}", digits as usize - 1).parse().unwrap_or(load)
    }

    /// The nearest such value a `step` below `load`: of whole numbers another one.
    pub(super) fn below(&self, load: f64, step: f64, digits: i32) -> f64 {
        let next = self.rounded(load / step, digits);
        match (next == load, self.fewest) {
            (true, true) => 1.0 / (self.shown(load) + 1.0),
            (true, false) if self.whole => (load - 1.0).max(1.0),
            _ => next,
        }
    }

    fn value(&self, load: f64) -> AxisValue {
        if self.whole { AxisValue::Integer(self.shown(load) as i64) } else { AxisValue::Float(load) }
    }

    /// The scenario at a load.
    ///
    /// # Errors
    /// If the scenario is not valid there.
    pub fn scenario(
        &self,
        document: &Document,
        catalog: &Catalog,
        load: f64,
    ) -> Result<Scenario, CapacityError> {
        // The search chose so many users, so it sees to it that each sends more than the first request.
        let needed = REQUESTS_A_USER * load as u64;
        let mut changes = vec![Override::point(&self.key, &self.value(load))];
        if self.requests.is_some_and(|requests| requests < needed) {
            changes.push(Override::new("run.requests", &needed.to_string()));
        }
        Ok(document.with_overrides(&changes)?.scenario(catalog)?)
    }
}

/// Why arrivals have no load of their own.
fn no_load(arrivals: &Arrivals) -> CapacityError {
    let (what, such_as) = match arrivals {
        Arrivals::Profile(_) => (
            "their rate varies over time (`knee plan` sizes a fleet for such a load), so take one, its peak",
            "",
        ),
        Arrivals::Mmpp(_) => ("their rate jumps between states", ", such as arrivals.mmpp.scale"),
        Arrivals::Trace(_) => ("they are a recorded trace", ""),
        _ => ("all requests come at once", ""),
    };
    CapacityError::NoLoad { what, such_as }
}

fn scenario_with(
    document: &Document,
    catalog: &Catalog,
    key: &str,
    value: &AxisValue,
) -> Result<Scenario, CapacityError> {
    Ok(document.with_overrides(&[Override::point(key, value)])?.scenario(catalog)?)
}

#[cfg(test)]
mod tests {
    use super::LoadAxis;
    use crate::catalog::Catalog;
    use crate::scenario::{Document, RunLength};

    #[test]
    fn a_search_gives_its_users_requests_to_send() {
        let (document, catalog) = (Document::load("closed-loop").expect("shipped"), Catalog::new(None));
        let base = document.scenario(&catalog).expect("a scenario");
        let axis = LoadAxis::of(&document, &catalog, &base, None).expect("users");
        let length = |users: f64| axis.scenario(&document, &catalog, users).expect("it runs").run.length;
        assert_eq!((length(10.0), length(6880.0)), (base.run.length, RunLength::Requests(68_800)));
    }
}
