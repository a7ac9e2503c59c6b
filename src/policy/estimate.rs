//! What is known of every pair: the estimates of the paper's section "Penalized Expected Gain Estimates".
//!
//! All policies share them, for choosing or at least for recommending; they are updated here and nowhere else, in
//! O(|M|) per observation.

use std::cell::RefCell;

use super::Problem;
use super::recommendation::Leaders;
use super::survival::{ProductLimit, Survival};
use crate::round::{ArmId, Limit, Observation, Price, Pull, Round, Seen};

/// The evidence from one pull, reduced to what estimates need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PullEvidence {
    /// It was under observation up to here: tau_s.
    pub reach: f64,
    /// The limit it was granted; differs from `reach` if it was cut off early.
    pub granted: f64,
    /// Consumption and net reward R - c(C), if it ended.
    pub ended: Option<Ended>,
}

/// How a pull ended within its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ended {
    pub consumption: f64,
    /// R - c(C).
    pub net: f64,
}

impl PullEvidence {
    pub fn of(seen: &Observation, price: &Price) -> Self {
        let ended = match seen.seen() {
            Seen::Rewarded {
                reward,
                consumption,
            } => Some(Ended {
                consumption,
                net: reward - price.cost(consumption),
            }),
            Seen::Censored { .. } | Seen::Failed => None,
        };
        Self {
            reach: seen.reach().get(),
            granted: seen.pull().limit.get(),
            ended,
        }
    }
}

/// What is known of one pair (i, tau).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Stat {
    /// N_{i,tau}: observed pulls that reached tau.
    pub count: u32,
    /// Of these, the ones that had not ended at tau.
    pub exceeded: u32,
    /// Pulls under way that will reach tau if they are not cut off early.
    pub pending: u32,
    /// Pulls granted tau that were cut off before it.
    pub short: u32,
    /// Sum of R - c(C) over the pulls counted that ended by tau.
    pub net: f64,
    /// Sum of the squares of the same.
    pub net_squared: f64,
}

/// After this many pulls were cut off before a limit, the limit counts as visited: otherwise it would draw every
/// pull forever where something keeps cutting pulls off early.
const ENOUGH_SHORT: u32 = 3;

/// How a pair stands when an index is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Standing {
    /// Never observed, not under way: to be tried first.
    Unvisited,
    /// Never observed, but under way: to be left alone while there is anything else.
    Awaited,
    /// Estimated gain and the number of pulls its confidence rests on, pending ones included.
    Known { gain: f64, count: f64 },
}

impl Stat {
    /// nu-hat with the restricted survival estimate; not a number where nothing was observed.
    pub fn gain(&self, penalty: f64) -> f64 {
        (self.net - penalty * f64::from(self.exceeded)) / f64::from(self.count)
    }

    /// nu-hat with survival by product-limit where there is an estimate of it, restricted otherwise.
    pub fn gain_by(&self, penalty: f64, product_limit: Option<f64>) -> f64 {
        match product_limit {
            None => self.gain(penalty),
            Some(survival) => self.net / f64::from(self.count) - penalty * survival,
        }
    }

    /// The restricted survival estimate.
    pub fn survival(&self) -> f64 {
        f64::from(self.exceeded) / f64::from(self.count)
    }

    /// How the pair stands, with the gain of `gain_by` where it was observed.
    pub fn standing(&self, penalty: f64, product_limit: Option<f64>) -> Standing {
        if self.count > 0 {
            Standing::Known {
                gain: self.gain_by(penalty, product_limit),
                count: f64::from(self.count + self.pending),
            }
        } else if self.short >= ENOUGH_SHORT {
            Standing::Known {
                gain: -penalty,
                count: f64::from(self.short + self.pending),
            }
        } else if self.pending > 0 {
            Standing::Awaited
        } else {
            Standing::Unvisited
        }
    }
}

/// Enters the evidence from one pull into the pairs of its arm: the paper's recursions, for every limit at once.
pub(super) fn learn(limits: &[f64], stats: &mut [Stat], pulled: &PullEvidence) {
    for (&limit, stat) in limits.iter().zip(stats) {
        if limit <= pulled.reach {
            stat.count += 1;
            match pulled.ended {
                Some(ended) if ended.consumption <= limit => {
                    stat.net += ended.net;
                    stat.net_squared += ended.net * ended.net;
                }
                _ => stat.exceeded += 1,
            }
        } else if limit <= pulled.granted {
            stat.short += 1;
        } else {
            break;
        }
    }
}

/// Counts a pull under way in (`by` = 1) or out (-1) of the pairs it will tell about.
pub(super) fn await_pull(limits: &[f64], stats: &mut [Stat], granted: f64, by: i32) {
    for (_, stat) in limits
        .iter()
        .zip(stats)
        .take_while(|(limit, _)| **limit <= granted)
    {
        stat.pending = stat.pending.wrapping_add_signed(by);
    }
}

/// The estimates of all pairs on a common grid of limits.
#[derive(Debug, Clone)]
pub(super) struct Estimates {
    grid: Vec<Limit>,
    limits: Vec<f64>,
    penalties: Vec<f64>,
    price: Price,
    stats: Vec<Stat>,
    arms: Vec<ArmCount>,
    pending: Pending,
    observed: u64,
    /// One per arm, where survival is estimated by product-limit.
    product_limit: Option<Vec<ProductLimit>>,
    /// What the last answer was picked from.
    pub(super) leaders: RefCell<Option<Leaders>>,
}

/// Pulls of one arm, whatever their limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ArmCount {
    /// N_{i,0}.
    pub observed: u32,
    pub pending: u32,
}

impl Estimates {
    pub fn new(problem: &Problem, survival: Survival) -> Self {
        let grid = problem.limits.as_slice().to_vec();
        let limits: Vec<f64> = grid.iter().map(|limit| limit.get()).collect();
        let product_limit = (survival == Survival::KaplanMeier)
            .then(|| vec![ProductLimit::new(limits.len()); problem.arms]);
        Self {
            penalties: grid
                .iter()
                .map(|&limit| problem.price.penalty(limit))
                .collect(),
            price: problem.price.clone(),
            stats: vec![Stat::default(); problem.arms * grid.len()],
            arms: vec![ArmCount::default(); problem.arms],
            pending: Pending::default(),
            observed: 0,
            product_limit,
            leaders: RefCell::default(),
            grid,
            limits,
        }
    }

    /// Adds this many arms, of which nothing is known.
    pub fn add_arms(&mut self, count: usize) {
        let arms = self.arms.len() + count;
        self.arms.resize(arms, ArmCount::default());
        self.stats.resize(arms * self.limits.len(), Stat::default());
        if let Some(product_limit) = &mut self.product_limit {
            product_limit.resize(arms, ProductLimit::new(self.limits.len()));
        }
    }

    /// The round being decided, the paper's t: one more than the pulls that are known.
    pub fn t(&self) -> u64 {
        self.observed + self.pending.len() as u64 + 1
    }

    pub fn arms(&self) -> usize {
        self.arms.len()
    }

    pub fn limits(&self) -> &[f64] {
        &self.limits
    }

    pub fn price(&self) -> &Price {
        &self.price
    }

    /// lambda at each limit.
    pub fn penalties(&self) -> &[f64] {
        &self.penalties
    }

    pub fn arm_count(&self, arm: usize) -> ArmCount {
        self.arms[arm]
    }

    /// The pairs of one arm, limits ascending.
    pub fn of_arm(&self, arm: usize) -> &[Stat] {
        &self.stats[arm * self.limits.len()..][..self.limits.len()]
    }

    /// The pull of the pair at these places.
    pub fn pull(&self, arm: usize, k: usize) -> Pull {
        Pull::new(ArmId::from_index(arm), self.grid[k])
    }

    /// Notes a pull under way; gives its arm.
    pub fn launched(&mut self, round: Round, pull: Pull) -> usize {
        let arm = pull.arm.index();
        if self.pending.insert(round, pull) {
            self.await_pull(pull, 1);
        }
        arm
    }

    /// Whether the pull of this round is under way.
    pub fn is_pending(&self, round: Round) -> bool {
        self.pending.contains(round)
    }

    /// The pulls of an arm that are under way.
    pub fn under_way(&self, arm: usize) -> impl Iterator<Item = Pull> {
        self.pending
            .pulls()
            .filter(move |pull| pull.arm.index() == arm)
    }

    /// Learns from an observation; gives its arm and the evidence.
    pub fn observe(&mut self, round: Round, seen: &Observation) -> (usize, PullEvidence) {
        if let Some(pull) = self.pending.remove(round) {
            self.await_pull(pull, -1);
        }
        let arm = seen.pull().arm.index();
        let pulled = PullEvidence::of(seen, &self.price);
        let points = self.limits.len();
        learn(
            &self.limits,
            &mut self.stats[arm * points..][..points],
            &pulled,
        );
        if let Some(product_limit) = &mut self.product_limit {
            product_limit[arm].learn(&self.limits, &pulled);
        }
        let leaders = self.leaders.get_mut();
        if leaders.as_mut().is_some_and(|known| !known.observed(arm)) {
            *leaders = None;
        }
        self.arms[arm].observed += 1;
        self.observed += 1;
        (arm, pulled)
    }

    fn await_pull(&mut self, pull: Pull, by: i32) {
        let arm = pull.arm.index();
        let points = self.limits.len();
        await_pull(
            &self.limits,
            &mut self.stats[arm * points..][..points],
            pull.limit.get(),
            by,
        );
        let pending = &mut self.arms[arm].pending;
        *pending = pending.wrapping_add_signed(by);
    }

    /// Survival at a limit, by the estimate this run uses; not a number where nothing was observed.
    pub fn survival(&self, arm: usize, k: usize) -> f64 {
        let curve = self.curve(arm);
        curve.map_or_else(|| self.of_arm(arm)[k].survival(), |curve| curve[k])
    }

    /// Survival of an arm at every limit, where it is estimated by product-limit.
    pub(super) fn curve(&self, arm: usize) -> Option<Vec<f64>> {
        let product_limit = self.product_limit.as_ref()?;
        Some(product_limit[arm].curve(&self.limits))
    }

    /// nu-hat of a pair; not a number where nothing was observed.
    pub fn gain(&self, arm: usize, k: usize) -> f64 {
        let survival = self.curve(arm).map(|curve| curve[k]);
        self.of_arm(arm)[k].gain_by(self.penalties[k], survival)
    }

    /// How every pair of an arm stands, limits ascending.
    pub fn standings(&self, arm: usize) -> impl Iterator<Item = Standing> {
        let curve = self.curve(arm);
        let pairs = self.of_arm(arm).iter().zip(&self.penalties).enumerate();
        pairs.map(move |(k, (stat, &penalty))| {
            stat.standing(penalty, curve.as_ref().map(|curve| curve[k]))
        })
    }
}

/// The pulls that were launched and not yet observed. There are about as many as slots, so a list beats a map.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending(Vec<(Round, Pull)>);

impl Pending {
    /// Notes a pull under way; false if the round was under way already, as after a lost run that is tried again.
    pub fn insert(&mut self, round: Round, pull: Pull) -> bool {
        let is_new = self.0.iter().all(|&(other, _)| other != round);
        if is_new {
            self.0.push((round, pull));
        }
        is_new
    }

    /// Gives back the pull of a round that is over, if it was under way.
    pub fn remove(&mut self, round: Round) -> Option<Pull> {
        let place = self.0.iter().position(|&(other, _)| other == round)?;
        Some(self.0.remove(place).1)
    }

    pub fn contains(&self, round: Round) -> bool {
        self.0.iter().any(|&(other, _)| other == round)
    }

    /// All of them, in the order they were launched.
    pub fn pulls(&self) -> impl Iterator<Item = Pull> {
        self.0.iter().map(|&(_, pull)| pull)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The opening of the paper's policies, every arm once at the largest limit. Walks through the arms; each is left out once something was seen of it at the largest limit, or is under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Opening {
    /// All arms before this one are done.
    next: usize,
}

impl Opening {
    /// The next pair of the opening, none once it is over.
    ///
    /// Arms already observed at or above the largest limit, as in calibration, are left out. A pull that was cut
    /// off early is not played again here: its unvisited pairs have an infinite index, which sees to that.
    pub fn next(&mut self, estimates: &Estimates) -> Option<(usize, usize)> {
        let largest = estimates.limits().len() - 1;
        while self.next < estimates.arms() {
            let stat = &estimates.of_arm(self.next)[largest];
            if stat.count + stat.pending + stat.short == 0 {
                return Some((self.next, largest));
            }
            self.next += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests;
