//! An arm in the terms its users think in: solved share and PAR10, or the score they print.

use serde::Serialize;

use super::shown::Failed;
use super::{Evidence, FinishedRun};
use crate::quantity::grouped;
use crate::resource::Resource;
use crate::round::ArmId;

/// What people look at, by what the target reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Terms {
    /// Runs are solved or not.
    Solved,
    /// Runs print a score that `worst` and `best` map to a reward.
    Score,
    /// Runs have a reward only.
    Reward,
}

/// What an arm brings under a limit, in its users' terms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Values {
    /// Which of the values to show.
    pub terms: Terms,
    /// Runs that this rests on.
    pub runs: usize,
    /// Share that ended with a reward within the limit.
    pub solved: f64,
    /// Mean consumption, with ten times the limit for each run that did not.
    pub par10: f64,
    /// Mean consumption, with the limit for each run that did not.
    pub mean_consumption: f64,
    /// Mean raw score of the runs that have one.
    pub score: Option<f64>,
    /// What that is: `RMSE`, `accuracy`, or just `score`.
    pub score_name: &'static str,
    /// Mean reward, with 0 for each run that did not end.
    pub reward: f64,
}

impl Evidence {
    /// What people look at in this run.
    pub fn terms(&self) -> Terms {
        if self.has_scores() {
            Terms::Score
        } else if self.is_solving() {
            Terms::Solved
        } else {
            Terms::Reward
        }
    }

    /// What the arm brings under this limit; none if no run of it shows that.
    pub fn values(&self, arm: ArmId, limit: f64) -> Option<Values> {
        let shown = self.shown(arm, limit, Failed::Unsolved)?;
        let mean = |of: &dyn Fn(&FinishedRun) -> f64| -> f64 {
            shown.ended.iter().map(|(run, share)| share * of(run)).sum()
        };
        let used = mean(&|run| run.consumption().unwrap_or(0.0));
        let scored = mean(&|run| f64::from(u8::from(run.score().is_some())));
        let scores = mean(&|run| run.score().unwrap_or(0.0));
        Some(Values {
            terms: self.terms(),
            runs: shown.runs,
            solved: 1.0 - shown.unsolved,
            par10: used + 10.0 * limit * shown.unsolved,
            mean_consumption: used + limit * shown.unsolved,
            score: (scored > 0.0).then(|| scores / scored),
            score_name: self.score_name(),
            reward: mean(&|run| run.reward),
        })
    }

    /// The arms that no other beats in both reward and consumption, the cheapest first, each with the largest limit that
    /// one of its runs reached. Arms with fewer runs than `least` are left out.
    pub fn pareto(&self, least: usize) -> Vec<(ArmId, f64, Values)> {
        let mut all: Vec<(ArmId, f64, Values)> = self
            .pulled()
            .filter_map(|(arm, runs)| {
                let limit = runs.iter().map(|run| run.reach).fold(0.0, f64::max);
                // Under its largest limit an arm may have a single run; where more runs say the same, ask them.
                let slowest = runs
                    .iter()
                    .filter_map(FinishedRun::consumption)
                    .fold(0.0, f64::max);
                let is_never_cut = runs.iter().all(|run| run.consumption().is_some());
                let limit = if is_never_cut { slowest } else { limit };
                Some((arm, limit, self.values(arm, limit)?))
            })
            .filter(|(_, _, values)| values.runs >= least && values.solved > 0.0)
            .collect();
        all.sort_by(|a, b| {
            let by_consumption = a.2.mean_consumption.total_cmp(&b.2.mean_consumption);
            by_consumption.then(b.2.reward.total_cmp(&a.2.reward))
        });
        let mut highest = f64::NEG_INFINITY;
        all.retain(|(_, _, values)| {
            let is_better = values.reward > highest;
            highest = highest.max(values.reward);
            is_better
        });
        all
    }
}

impl Values {
    /// `solved 92.1 %, PAR10 14.2 s, mean time 3.1 s`.
    pub fn in_words(&self, resource: Resource) -> String {
        let what = match resource {
            Resource::Wall | Resource::Cpu => "time",
            Resource::Work => "work",
            Resource::Memory => "peak memory",
        };
        let mean = format!("mean {what} {}", resource.amount(self.mean_consumption));
        match (self.terms, self.score) {
            (Terms::Solved, _) => format!(
                "solved {:.1} %, PAR10 {}, {mean}",
                100.0 * self.solved,
                resource.amount(self.par10)
            ),
            (Terms::Score, Some(score)) => {
                format!("mean {} {}, {mean}", self.score_name, four_digits(score))
            }
            (Terms::Score | Terms::Reward, _) => {
                format!("mean reward {:.4}, {mean}", self.reward)
            }
        }
    }
}

/// Four significant digits; five from 10,000 on, as in the report.
fn four_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let before_the_point = value.abs().log10().floor() as i32 + 1;
    if !(-3..=9).contains(&before_the_point) {
        return format!("{value:.3e}");
    }
    let unit = 10_f64.powi((before_the_point - 5).max(0));
    let value = if unit > 1.0 {
        (value / unit).round() * unit
    } else {
        value
    };
    let decimals = usize::try_from(4 - before_the_point).unwrap_or(0);
    grouped(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Limit, Observation, Pull};

    fn pull(arm: usize) -> Pull {
        Pull::new(ArmId::from_index(arm), Limit::new(10.0).unwrap())
    }

    fn solved(arm: usize, seconds: f64) -> Observation {
        Observation::ended(pull(arm), 1.0, seconds).unwrap()
    }

    #[test]
    fn par10_counts_ten_limits_for_an_unsolved_run() {
        let mut evidence = Evidence::default();
        evidence.add(&solved(0, 2.0), None);
        evidence.add(&Observation::failed(pull(0)), None);
        let values = evidence.values(ArmId::from_index(0), 10.0).unwrap();
        assert_eq!(
            (values.solved, values.par10, values.mean_consumption),
            (0.5, 51.0, 6.0)
        );
        assert_eq!(
            values.in_words(Resource::Wall),
            "solved 50.0 %, PAR10 51 s, mean time 6 s"
        );
        // What was cut off says nothing about a larger limit.
        let cut_off = Observation::censored(pull(1), 10.0).unwrap();
        evidence.add(&cut_off, None);
        assert_eq!(evidence.values(ArmId::from_index(1), 11.0), None);
        assert_eq!(evidence.values(ArmId::from_index(7), 1.0), None);
    }

    #[test]
    fn scores_are_shown_as_they_were_printed() {
        let mut evidence = Evidence::default();
        for score in [24_000.0, 26_000.0] {
            let seen = Observation::ended(pull(0), 0.8, 1.0).unwrap();
            evidence.add(&seen, Some(score));
        }
        let values = evidence.values(ArmId::from_index(0), 10.0).unwrap();
        assert_eq!(
            values.in_words(Resource::Cpu),
            "mean score 25,000, mean time 1 s"
        );
        assert_eq!(
            values.in_words(Resource::Work),
            "mean score 25,000, mean work 1"
        );
        assert_eq!(four_digits(0.012_344), "0.01234");
        assert_eq!(four_digits(1.5e-9), "1.500e-9");
        assert_eq!(four_digits(24_337.4), "24,337");
        assert_eq!(four_digits(-1_234_567.0), "-1,234,600");
        assert_eq!(four_digits(1234.56), "1,235");
    }

    #[test]
    fn the_front_holds_what_nobody_beats_in_both() {
        let mut evidence = Evidence::default();
        for (arm, reward, seconds) in [(0, 0.5, 1.0), (1, 0.9, 4.0), (2, 0.4, 2.0), (3, 0.9, 5.0)] {
            evidence.add(
                &Observation::ended(pull(arm), reward, seconds).unwrap(),
                None,
            );
        }
        evidence.add(&Observation::censored(pull(4), 10.0).unwrap(), None);
        let front: Vec<usize> = evidence
            .pareto(1)
            .iter()
            .map(|(arm, ..)| arm.index())
            .collect();
        assert_eq!(front, [0, 1]);
        assert!(evidence.pareto(2).is_empty());
    }
}
