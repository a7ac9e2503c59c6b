//! UCB over pairs, as printed in the paper's appendix "Compared Algorithms": every pair an arm of its own.
//!
//! The index is the mean rescaled gain of the pulls of exactly this pair plus sqrt(alpha ln t / (2 T)). The opening,
//! every pair once, arm by arm, limits ascending, needs no code: an unplayed pair has an infinite index.

use rand::Rng;
use serde::Serialize;

use super::estimate::{Estimates, Pending, PullEvidence, Standing, Stat};
use super::explanation::Remembered;
use super::recommendation::Recommend;
use super::survival::Survival;
use super::tournament::{Line, Tournament};
use super::{Explanation, Options, Policy, PolicyParameters, Problem, Recommendation};
use crate::round::{Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "ucb";

/// The parameters of UCB.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// How much to explore.
    pub alpha: f64,
    /// How the answer is picked.
    pub recommend: Recommend,
}

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        Self {
            alpha: options.positive("alpha", 1.0),
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }
}

/// UCB at work.
#[derive(Debug)]
pub struct Ucb {
    parameters: Parameters,
    /// For the recommendation only.
    estimates: Estimates,
    /// T_{i,tau} and the gains of the pulls of exactly this pair.
    played: Vec<Stat>,
    pending: Pending,
    /// The index of every pair, arm by arm.
    lines: Vec<Line>,
    tournament: Tournament,
    last: Remembered,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> Ucb {
    Ucb {
        estimates: Estimates::new(problem, Survival::Restricted),
        played: vec![Stat::default(); problem.arms * problem.limits.len()],
        pending: Pending::default(),
        lines: vec![Line::FIRST; problem.arms * problem.limits.len()],
        tournament: Tournament::new(problem.arms, scale(parameters.alpha, u64::MAX)),
        last: Remembered::default(),
        parameters: parameters.clone(),
    }
}

fn scale(alpha: f64, t: u64) -> f64 {
    (alpha * (t as f64).ln() / 2.0).sqrt()
}

impl Ucb {
    /// The place of the pair of a pull, if its limit is on the grid.
    fn pair(&self, pull: Pull) -> Option<usize> {
        let limits = self.estimates.limits();
        let k = limits.iter().position(|&limit| limit == pull.limit.get())?;
        Some(pull.arm.index() * limits.len() + k)
    }

    /// Computes the line of a pair again.
    fn redraw(&mut self, pair: usize) {
        let penalties = self.estimates.penalties();
        let (points, largest) = (penalties.len(), penalties[penalties.len() - 1]);
        let (stat, penalty) = (&self.played[pair], penalties[pair % points]);
        let standing = stat.standing(penalty, None);
        self.lines[pair] = line(standing, largest);
        self.tournament.touch(pair / points);
    }
}

/// The current index of a pair or arm.
pub(super) fn line(standing: Standing, largest_penalty: f64) -> Line {
    match standing {
        Standing::Unvisited => Line::FIRST,
        Standing::Awaited => Line::LAST,
        Standing::Known { gain, count } => Line {
            mean: rescaled(gain, largest_penalty),
            width: 1.0 / count.sqrt(),
        },
    }
}

/// A gain mapped to [0, 1]: eq. `def_standard_estimate`.
pub(super) fn rescaled(gain: f64, largest_penalty: f64) -> f64 {
    (gain + largest_penalty) / (1.0 + largest_penalty)
}

impl Policy for Ucb {
    fn choose(&mut self, _: Round, _: &mut dyn Rng) -> Pull {
        let s = scale(self.parameters.alpha, self.estimates.t());
        let points = self.estimates.limits().len();
        let lines_of = |arm| &self.lines[arm * points..][..points];
        let (arm, k) = self.tournament.best(s, lines_of);
        let stat = &self.played[arm * points + k];
        self.last = Remembered::choice((arm, k), stat, s);
        self.estimates.pull(arm, k)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.estimates.launched(round, pull);
        if let Some(pair) = self.pair(pull)
            && self.pending.insert(round, pull)
        {
            self.played[pair].pending += 1;
            self.redraw(pair);
        }
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (_, pulled) = self.estimates.observe(round, &seen);
        if let Some(pair) = self.pending.remove(round).and_then(|pull| self.pair(pull)) {
            self.played[pair].pending -= 1;
            self.redraw(pair);
        }
        if let Some(pair) = self.pair(seen.pull()) {
            enter(&mut self.played[pair], &pulled);
            self.redraw(pair);
        }
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        let points = self.estimates.limits().len();
        self.last.explain(
            self.estimates.arms(),
            |arm| &self.lines[arm * points..][..points],
            |arm, k| {
                let mut weighed = self.estimates.weighed(arm, k, f64::NAN);
                let stat = &self.played[arm * points + k];
                weighed.count = u64::from(stat.count);
                weighed.pending = u64::from(stat.pending);
                weighed
            },
        )
    }
}

/// A pull cut off elsewhere than at the limit it was granted says nothing to UCB.
fn enter(stat: &mut Stat, pulled: &PullEvidence) {
    if pulled.reach != pulled.granted {
        stat.short += 1;
        return;
    }
    stat.count += 1;
    match pulled.ended {
        Some(ended) => {
            stat.net += ended.net;
            stat.net_squared += ended.net * ended.net;
        }
        None => stat.exceeded += 1,
    }
}
