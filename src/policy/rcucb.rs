//! RCUCB, the resource-censored upper confidence bound: the paper's section of that name.
//!
//! Plays the pair with the largest nu-hat + width (eq. `RCUCB_choice`), after an opening that plays every arm once
//! at the largest limit.

use rand::Rng;
use serde::Serialize;

use super::estimate::{Estimates, Standing};
use super::explanation::Remembered;
use super::opening::Opening;
use super::recommendation::Recommend;
use super::survival::Survival;
use super::tournament::{Line, Tournament};
use super::{Explanation, Options, Policy, Problem, Recommendation, Why};
use crate::round::{Limit, Observation, Pull, Round};

/// As scenarios and the command line say it.
pub const NAME: &str = "rcucb";

/// Which confidence width is used; see docs/paper.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// The width of the gain estimate alone: what reproduces the paper's experiments.
    GainOnly,
    /// With the penalty's term: what the theorems are about.
    Printed,
}

impl Width {
    pub(super) const WORDS: [(&'static str, Self); 2] =
        [("gain-only", Self::GainOnly), ("printed", Self::Printed)];

    /// The width of a pair per s: `count` is N_{i,tau}, `arm_count` N_{i,0}, pending pulls included in both.
    pub(super) fn per_s(self, count: f64, arm_count: f64, penalty: f64) -> f64 {
        match self {
            Self::GainOnly => 1.0 / count.sqrt(),
            Self::Printed => 1.0 / count.sqrt() + penalty / arm_count.sqrt(),
        }
    }
}

/// Which pulls come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpeningKind {
    /// Every arm once at the largest limit.
    Paper,
}

/// The parameters of RCUCB.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// How much to explore; the guarantee needs more than 1.
    pub alpha: f64,
    /// The confidence width.
    pub width: Width,
    /// The survival estimate.
    pub survival: Survival,
    /// Which pulls come first.
    pub opening: OpeningKind,
    /// How the answer is picked.
    pub recommend: Recommend,
}

impl Parameters {
    /// Takes its options.
    pub fn read(options: &mut Options) -> Self {
        Self {
            alpha: options.positive("alpha", 1.0),
            width: options.word("width", &Width::WORDS),
            survival: options.word("survival", &Survival::WORDS),
            opening: options.word("opening", &[("paper", OpeningKind::Paper)]),
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }

    /// What is allowed but should be known.
    pub fn warning(&self) -> Option<String> {
        (self.alpha <= 1.0).then(|| {
            format!(
                "policy `{NAME}`: the paper's guarantee needs `alpha` above 1; {} explores less",
                self.alpha
            )
        })
    }
}

/// RCUCB at work.
#[derive(Debug)]
pub struct Rcucb {
    parameters: Parameters,
    estimates: Estimates,
    opening: Opening,
    tournament: Tournament,
    last: Remembered,
}

/// Puts it to work.
pub fn new(parameters: &Parameters, problem: &Problem) -> Rcucb {
    Rcucb {
        estimates: Estimates::new(problem, parameters.survival),
        opening: Opening::default(),
        tournament: Tournament::new(problem.arms, scale(parameters.alpha, u64::MAX)),
        last: Remembered::default(),
        parameters: parameters.clone(),
    }
}

/// What widths are multiplied by: sqrt(2 alpha ln t), the paper's square-root terms without their counts.
pub(super) fn scale(alpha: f64, t: u64) -> f64 {
    (2.0 * alpha * (t as f64).ln()).sqrt()
}

impl Rcucb {
    fn lines(parameters: &Parameters, estimates: &Estimates, arm: usize, to: &mut Vec<Line>) {
        let of_arm = estimates.arm_count(arm);
        let arm_count = f64::from(of_arm.observed + of_arm.pending);
        to.extend(estimates.standings(arm).zip(estimates.penalties()).map(
            |(standing, &penalty)| match standing {
                Standing::Unvisited => Line::FIRST,
                Standing::Awaited => Line::LAST,
                Standing::Known { gain, count } => Line {
                    mean: gain,
                    width: parameters.width.per_s(count, arm_count, penalty),
                },
            },
        ));
    }
}

impl Policy for Rcucb {
    fn choose(&mut self, _: Round, _: &mut dyn Rng) -> Pull {
        let s = scale(self.parameters.alpha, self.estimates.t());
        let (why, (arm, k)) = if let Some(pair) = self.opening.next(&self.estimates) {
            (Why::Opening, pair)
        } else {
            let lines = |arm, to: &mut _| Self::lines(&self.parameters, &self.estimates, arm, to);
            (Why::Index, self.tournament.best(s, lines))
        };
        self.last = Remembered {
            why,
            s,
            pair: Some((arm, k)),
        };
        self.estimates.pull(arm, k)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        let arm = self.estimates.launched(round, pull);
        self.tournament.touch(arm);
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, _) = self.estimates.observe(round, &seen);
        self.tournament.touch(arm);
    }

    fn recommend(&self) -> Option<Recommendation> {
        self.estimates.recommend(self.parameters.recommend)
    }

    fn recommend_at(&self, limit: Limit) -> Option<Recommendation> {
        self.estimates
            .recommend_at(limit, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        self.last.explain(
            self.estimates.arms(),
            |arm, to| Self::lines(&self.parameters, &self.estimates, arm, to),
            |arm, k| self.estimates.candidate(arm, k, f64::NAN),
        )
    }
}

#[cfg(test)]
mod tests;
