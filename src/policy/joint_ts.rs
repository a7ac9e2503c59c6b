//! The joint censored Thompson sampler: one draw of a whole gain curve per arm.
//!
//! Beyond the paper. Per arm and cell of limits it keeps how many pulls were at risk, how many ended there and with
//! what reward. It draws a hazard and a mean reward for every cell, builds the arm's curve
//! nu_k = sum_{j<=k} S_{j-1} h_j (m_j - c_j) - lambda(tau_k) S_k from them, and plays the best pair of all curves. So
//! every pull, censored or not, teaches about every limit, and one draw keeps an arm's limits consistent.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::beta::{Beta, own_rng};
use super::estimate::{Estimates, Opening, PullEvidence};
use super::explanation::Last;
pub use super::recommendation::OnlyRecommend as Parameters;
use super::recommendation::interval_of;
use super::survival::Survival;
use super::{Explanation, Policy, Problem, Recommendation, Weighed, Why};
use crate::round::{Limit, Observation, Pull, Round, Seen};

/// Name in scenarios and on the command line.
pub const NAME: &str = "joint-ts";

/// What is believed of one arm in the cell between two neighbouring limits.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// n_k: pulls running at the left end that were observed at least to the right end.
    at_risk: f64,
    /// d_k: of these, the ones that ended inside.
    ended: f64,
    /// Sum of their rewards.
    rewards: f64,
    /// Sum of their costs.
    costs: f64,
    /// The hazard: chance to end inside once the left end is reached.
    hazard: Beta,
    /// The mean reward of pulls that end inside.
    reward: Beta,
    /// Their mean cost: c at the right end until one was seen.
    cost: f64,
}

impl Cell {
    fn unknown(cost: f64) -> Self {
        let flat = Beta::new(1.0, 1.0);
        Self {
            at_risk: 0.0,
            ended: 0.0,
            rewards: 0.0,
            costs: 0.0,
            hazard: flat,
            reward: flat,
            cost,
        }
    }

    fn survived(&mut self) {
        self.at_risk += 1.0;
        self.hazard = Beta::new(1.0 + self.ended, 1.0 + self.at_risk - self.ended);
    }

    fn ended(&mut self, reward: f64, cost: f64) {
        self.ended += 1.0;
        self.rewards += reward;
        self.costs += cost;
        self.cost = self.costs / self.ended;
        self.reward = Beta::new(1.0 + self.rewards, 1.0 + self.ended - self.rewards);
        self.survived();
    }

    /// Hazard and mean reward drawn, narrowed by the pulls under way.
    fn draw(&self, pending: u32, rng: &mut Pcg64Mcg) -> (f64, f64) {
        if pending == 0 {
            let hazard = self.hazard.draw(rng);
            // Beta(1, 1) is the uniform distribution, and most cells of many arms never see an end.
            let reward = if self.ended == 0.0 {
                rng.random()
            } else {
                self.reward.draw(rng)
            };
            return (hazard, reward);
        }
        let (strength, more) = (2.0 + self.at_risk, f64::from(pending));
        let hazard = (1.0 + self.ended, 1.0 + self.at_risk - self.ended);
        let ends = more * hazard.0 / strength;
        let reward = (1.0 + self.rewards, 1.0 + self.ended - self.rewards);
        (
            Beta::narrowed(hazard.0, hazard.1, (strength + more) / strength).draw(rng),
            Beta::narrowed(
                reward.0,
                reward.1,
                (2.0 + self.ended + ends) / (2.0 + self.ended),
            )
            .draw(rng),
        )
    }
}

/// The joint sampler at work.
#[derive(Debug)]
pub struct JointTs {
    parameters: Parameters,
    /// For pending counts and the recommendation.
    estimates: Estimates,
    cells: Vec<Cell>,
    opening: Opening,
    last: Last,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> JointTs {
    let of_arm = problem
        .limits
        .as_slice()
        .iter()
        .map(|limit| Cell::unknown(problem.price.cost(limit.get())));
    let of_arm: Vec<Cell> = of_arm.collect();
    JointTs {
        estimates: Estimates::new(problem, Survival::Restricted),
        cells: of_arm.repeat(problem.arms),
        opening: Opening::default(),
        last: Last::NOTHING,
        parameters: parameters.clone(),
    }
}

impl JointTs {
    /// One curve for every arm; pairs only pending are left out unless nothing else is left.
    fn draw(&self, rng: &mut dyn Rng) -> Last {
        let mut rng = own_rng(rng);
        let penalties = self.estimates.penalties();
        let mut last = Last::by(Why::Sample);
        for (arm, cells) in self.cells.chunks_exact(penalties.len()).enumerate() {
            let (mut survival, mut net) = (1.0, 0.0);
            let stats = self.estimates.of_arm(arm);
            for (k, ((cell, stat), penalty)) in cells.iter().zip(stats).zip(penalties).enumerate() {
                let (hazard, reward) = cell.draw(stat.pending, &mut rng);
                net += survival * hazard * (reward - cell.cost);
                survival *= 1.0 - hazard;
                if stat.count > 0 || stat.pending == 0 {
                    last.enter(arm * penalties.len() + k, net - penalty * survival);
                }
            }
        }
        last
    }
}

/// Curves drawn for the interval around what is believed.
const CURVES: usize = 400;

impl JointTs {
    /// A pair as it is believed; before draws are compared, as it is estimated.
    fn weighed(&self, pair: usize, draw: f64) -> Weighed {
        let estimated = self.estimates.pair(pair, draw);
        if self.last.why != Why::Sample {
            return estimated;
        }
        let points = self.estimates.limits().len();
        let (arm, k) = (pair / points, pair % points);
        // All that is drawn is independent, so the mean of the gain is the gain of the means.
        let (mean, survival) = self.gain(arm, k, |cell, _| {
            (
                (1.0 + cell.ended) / (2.0 + cell.at_risk),
                (1.0 + cell.rewards) / (2.0 + cell.ended),
            )
        });
        let mut rng = Pcg64Mcg::seed_from_u64(pair as u64);
        let mut draw = |cell: &Cell, pending| cell.draw(pending, &mut rng);
        let gains = (0..CURVES).map(|_| self.gain(arm, k, &mut draw).0);
        let (low, high) = interval_of(gains.collect());
        Weighed {
            mean,
            width: (high - low) / 2.0,
            interval: (low, high),
            survival,
            ..estimated
        }
    }

    /// Gain and survival of an arm at a limit, with the hazards and mean rewards that `take` gives.
    fn gain(
        &self,
        arm: usize,
        k: usize,
        mut take: impl FnMut(&Cell, u32) -> (f64, f64),
    ) -> (f64, f64) {
        let points = self.estimates.limits().len();
        let cells = &self.cells[arm * points..=arm * points + k];
        let (mut survival, mut net) = (1.0, 0.0);
        for (cell, stat) in cells.iter().zip(self.estimates.of_arm(arm)) {
            let (hazard, reward) = take(cell, stat.pending);
            net += survival * hazard * (reward - cell.cost);
            survival *= 1.0 - hazard;
        }
        (net - self.estimates.penalties()[k] * survival, survival)
    }
}

/// Enters the evidence from one pull into the cells of its arm.
fn learn(limits: &[f64], cells: &mut [Cell], pulled: &PullEvidence, reward: f64) {
    let mut left = 0.0;
    for (&right, cell) in limits.iter().zip(cells) {
        if right > pulled.reach {
            break;
        }
        match pulled.ended {
            // Ended in an earlier cell: not at risk here.
            Some(ended) if ended.consumption <= left && left > 0.0 => break,
            Some(ended) if ended.consumption <= right => cell.ended(reward, reward - ended.net),
            _ => cell.survived(),
        }
        left = right;
    }
}

impl Policy for JointTs {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let points = self.estimates.limits().len();
        self.last = match self.opening.next(&self.estimates) {
            Some((arm, k)) => Last::plain(Why::Opening, arm * points + k),
            None => self.draw(rng),
        };
        let (pair, _) = *self.last.chosen.get_or_insert_with(|| {
            self.last.why = Why::Chance;
            (rng.random_range(0..self.cells.len()), f64::NAN)
        });
        self.estimates.pull(pair / points, pair % points)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.estimates.launched(round, pull);
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, pulled) = self.estimates.observe(round, &seen);
        let reward = match seen.seen() {
            Seen::Rewarded { reward, .. } => reward,
            Seen::Censored { .. } | Seen::Failed => 0.0,
        };
        let limits = self.estimates.limits();
        learn(
            limits,
            &mut self.cells[arm * limits.len()..][..limits.len()],
            &pulled,
            reward,
        );
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        self.last.explain(|pair, draw| self.weighed(pair, draw))
    }
}
