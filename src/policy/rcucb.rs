//! RCUCB, the resource-censored upper confidence bound: the paper's section of that name.
//!
//! Plays the pair with the largest nu-hat + width (eq. `RCUCB_choice`), after an opening that plays every arm once
//! at the largest limit.

use rand::Rng;
use serde::Serialize;

use super::estimate::{Estimates, Opening, Standing};
use super::explanation::Remembered;
use super::recommendation::Recommend;
use super::survival::Survival;
use super::tournament::{Line, Tournament};
use super::{Explanation, Options, Policy, PolicyParameters, Problem, Recommendation, Why};
use crate::round::{Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
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

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        Self {
            alpha: options.positive("alpha", 1.0),
            width: options.word("width", &Width::WORDS),
            survival: options.word("survival", &Survival::WORDS),
            opening: options.word("opening", &[("paper", OpeningKind::Paper)]),
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }

    fn survival(&self) -> Survival {
        self.survival
    }

    fn warning(&self) -> Option<String> {
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
    /// The index of every pair, arm by arm, as the estimates have it.
    lines: Vec<Line>,
    tournament: Tournament,
    last: Remembered,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> Rcucb {
    Rcucb {
        estimates: Estimates::new(problem, parameters.survival),
        opening: Opening::default(),
        lines: vec![Line::FIRST; problem.arms * problem.limits.len()],
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
    /// Computes the lines of an arm again, up to where the pull that changed them can have reached.
    ///
    /// Limits beyond it learned nothing, unless the width or the survival estimate reaches over the whole arm.
    fn redraw(&mut self, arm: usize, reach: f64) {
        let limits = self.estimates.limits();
        let Parameters {
            width, survival, ..
        } = self.parameters;
        let changed = match (width, survival) {
            (Width::GainOnly, Survival::Restricted) => {
                limits.partition_point(|&limit| limit <= reach)
            }
            _ => limits.len(),
        };
        let of_arm = self.estimates.arm_count(arm);
        let arm_count = f64::from(of_arm.observed + of_arm.pending);
        let lines = &mut self.lines[arm * limits.len()..][..changed];
        let standings = self
            .estimates
            .standings(arm)
            .zip(self.estimates.penalties());
        for (line, (standing, &penalty)) in lines.iter_mut().zip(standings) {
            *line = match standing {
                Standing::Unvisited => Line::FIRST,
                Standing::Awaited => Line::LAST,
                Standing::Known { gain, count } => Line {
                    mean: gain,
                    width: width.per_s(count, arm_count, penalty),
                },
            };
        }
        self.tournament.touch(arm);
    }

    fn lines_of(&self, arm: usize) -> &[Line] {
        let points = self.estimates.limits().len();
        &self.lines[arm * points..][..points]
    }
}

impl Policy for Rcucb {
    fn choose(&mut self, _: Round, _: &mut dyn Rng) -> Pull {
        let s = scale(self.parameters.alpha, self.estimates.t());
        let (why, (arm, k)) = if let Some(pair) = self.opening.next(&self.estimates) {
            (Why::Opening, pair)
        } else {
            let points = self.estimates.limits().len();
            let lines_of = |arm| &self.lines[arm * points..][..points];
            (Why::Index, self.tournament.best(s, lines_of))
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
        self.redraw(arm, pull.limit.get());
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, pulled) = self.estimates.observe(round, &seen);
        self.redraw(arm, pulled.reach.max(pulled.granted));
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        self.last.explain(
            self.estimates.arms(),
            |arm| self.lines_of(arm),
            |arm, k| self.estimates.weighed(arm, k, f64::NAN),
        )
    }
}

#[cfg(test)]
mod tests;
