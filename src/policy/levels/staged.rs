//! The search with instances: continuous halving on common instances, ranked by the posterior means of [`Belief`].

mod turns;

use std::collections::HashMap;

use rand::{Rng, RngExt};

use super::arm::Shown;
use super::belief::{Belief, MOST};
use super::joining::Joining;
use super::pooled::Pooled;
use super::rungs::Window;
use super::sequence::Sequence;
use super::similar::Similar;
use super::turn::LevelsTurn;
use super::{Parameters, levels_of};
use crate::policy::beta::own_rng;
use crate::policy::estimate::Estimates;
use crate::policy::explanation::Last;
use crate::policy::recommendation::Recommend;
use crate::policy::survival::Survival;
use crate::policy::{Explanation, Policy, Problem, Recommendation, Weighed};
use crate::round::{ArmId, Limit, Observation, Pull, Round, Seen};

/// The share of consumption for draws while nothing is spent, and how fast it falls.
const DRAWS: (f64, f64) = (0.5, 2.0);
/// Everything that arms share is fitted again whenever runs have grown by this part.
const REFIT: f64 = 0.1;
/// On an open space it begins with this many arms and adds this many times the root of the runs at the largest limit that were
/// spent.
const FIRST_ARMS: usize = 200;
const PACE: f64 = 60.0;

/// A limit this close below one of a level stands for it. Limits are printed with three digits, and asked for as they were printed.
const ROUNDED: f64 = 1.005;

/// A pull under way.
#[derive(Debug, Clone, Copy)]
struct Launched {
    arm: usize,
    position: usize,
    level: usize,
    account: usize,
    charged: f64,
}

/// The search at work.
#[derive(Debug)]
pub(in crate::policy) struct Staged {
    parameters: Parameters,
    estimates: Estimates,
    belief: Belief,
    similar: Option<Similar>,
    /// Limits of the levels, and where they stand in the grid.
    limits: Vec<f64>,
    places: Vec<usize>,
    penalty: f64,
    sequence: Sequence,
    pooled: Pooled,
    /// Consumption by account: one per level, the last for draws; pulls under way are charged what they should cost.
    accounts: [f64; MOST + 1],
    pending: HashMap<Round, Launched>,
    /// Positions at which each arm is under way.
    pending_at: Vec<Vec<usize>>,
    joining: Joining,
    is_list: bool,
    runs: u64,
    next_fit: u64,
    /// Pulls that were granted each level.
    granted: [u32; MOST],
    is_beaten: Vec<bool>,
    /// All arms, the largest posterior mean first.
    order: Vec<u32>,
    last: Last<Chosen, LevelsTurn>,
}

/// A pull that was considered.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    arm: usize,
    level: usize,
    position: usize,
}

impl Staged {
    pub(super) fn new(parameters: &Parameters, problem: &Problem) -> Self {
        let estimates = Estimates::new(problem, Survival::Restricted);
        let places = levels_of(estimates.limits());
        let limits: Vec<f64> = places.iter().map(|k| estimates.limits()[*k]).collect();
        Self {
            belief: Belief::new(problem.arms, limits.len(), problem.instances),
            similar: Similar::new(problem.space.as_ref()),
            penalty: estimates.penalties()[estimates.limits().len() - 1],
            sequence: Sequence::new(problem.instances, &problem.instance_names),
            pooled: Pooled::new(&limits, problem.instances),
            accounts: [0.0; MOST + 1],
            pending: HashMap::new(),
            pending_at: vec![vec![]; problem.arms],
            joining: Joining::new(problem.arms),
            is_list: problem.space.is_some(),
            runs: 0,
            next_fit: 1,
            granted: [0; MOST],
            is_beaten: vec![false; problem.arms],
            order: (0..problem.arms as u32).collect(),
            last: Last::NOTHING,
            parameters: parameters.clone(),
            estimates,
            limits,
            places,
        }
    }

    fn top(&self) -> usize {
        self.limits.len() - 1
    }

    fn arms(&self) -> usize {
        self.belief.arms.len()
    }

    fn spent(&self) -> f64 {
        self.accounts.iter().sum()
    }

    fn window(&self) -> Window {
        let arms = self.joining.joined();
        let sweep = arms as f64 * self.pooled.cost(0, self.top());
        Window::new(&self.limits, arms, self.spent() / sweep)
    }

    /// The level that a rung plays at: its own, unless that is too low for any run to end. Rungs may share one.
    fn level_of_rung(&self, rung: usize) -> usize {
        rung.max(self.pooled.floor())
    }

    /// Whether this round belongs to the draws: they have had less than their share.
    fn is_for_draws(&self, window: &Window) -> bool {
        let share = DRAWS.0 / (1.0 + DRAWS.1 * window.spent);
        self.accounts[MOST] < share * self.spent()
    }

    /// The account that the next pull at this level is charged to.
    fn account(&self, level: usize) -> usize {
        let window = self.window();
        if self.pooled.has_ended() && self.is_for_draws(&window) {
            return MOST;
        }
        let is_there = |rung: &usize| self.level_of_rung(*rung) == level;
        window
            .by_account(&self.accounts)
            .find(is_there)
            .unwrap_or(level)
    }

    fn is_pending(&self, arm: usize, position: usize) -> bool {
        self.pending_at[arm].contains(&position)
    }

    /// Whether a run there would bring something new.
    fn is_open(&self, arm: usize, position: usize, level: usize) -> bool {
        !self.belief.arms[arm].is_known(position, level) && !self.is_pending(arm, position)
    }

    /// Whether an arm takes part: it has joined, or was pulled without that.
    fn takes_part(&self, arm: usize) -> bool {
        self.joining.has_joined(arm) || self.belief.arms[arm].has_data()
    }

    /// Lets arms join for what was spent, in runs at the lowest limit worth one.
    fn let_join(&mut self) {
        self.joining.grow(self.spent() / self.pooled.look());
    }

    /// Draws the sequence of instances and the order of arms with the first pull.
    fn begin(&mut self, pull: Pull) {
        if self.sequence.is_drawn() {
            return;
        }
        let first = pull.instance.unwrap_or(0);
        self.sequence.begin(first);
        if self.is_list {
            self.joining.shuffle(first);
        }
    }

    /// Moves an arm to its place in the order, given the mean it had.
    fn reorder(&mut self, arm: usize, before: f64) {
        let arms = &self.belief.arms;
        let is_ahead = |other: &u32, (mean, than): (f64, u32)| {
            let own = if *other as usize == arm {
                before
            } else {
                arms[*other as usize].brings.mean
            };
            mean.total_cmp(&own).then(other.cmp(&than)).is_lt()
        };
        let old = (before, arm as u32);
        let place = self.order.partition_point(|other| is_ahead(other, old));
        debug_assert_eq!(self.order[place], arm as u32);
        self.order.remove(place);
        let new = (arms[arm].brings.mean, arm as u32);
        let place = self.order.partition_point(|other| is_ahead(other, new));
        self.order.insert(place, arm as u32);
    }

    fn fit(&mut self) {
        if let Some(similar) = &mut self.similar {
            similar.suggest(&mut self.belief, self.runs);
        }
        self.belief.fit();
        self.is_beaten = self.belief.beaten();
        self.sort();
        self.next_fit = self.runs + ((REFIT * self.runs as f64) as u64).max(1);
    }

    fn sort(&mut self) {
        let arms = &self.belief.arms;
        self.order.sort_by(|a, b| {
            let (of_a, of_b) = (arms[*a as usize].brings.mean, arms[*b as usize].brings.mean);
            of_b.total_cmp(&of_a).then(a.cmp(b))
        });
    }

    /// The position a pull stands for: the first pass of its instance in which it would be news.
    fn position_of(&self, pull: Pull, level: usize) -> usize {
        let arm = pull.arm.index();
        let met = self.belief.arms[arm].met[level] as usize;
        let first = match pull.instance {
            Some(instance) => self.sequence.position(instance),
            None => met % self.sequence.instances,
        };
        // All passes that are known whole are behind.
        let first = first + met / self.sequence.instances * self.sequence.instances;
        let is_open = |position: &usize| self.is_open(arm, *position, level);
        let mut passes = (first..).step_by(self.sequence.instances);
        passes.find(is_open).unwrap_or(first)
    }

    /// The highest level that this limit grants whole; the lowest if there is none.
    fn level_of(&self, limit: f64) -> usize {
        let levels = self.limits.iter().take_while(|own| **own <= limit);
        levels.count().saturating_sub(1)
    }

    /// What an observation shows, and what it cost.
    fn shown(&self, seen: &Observation, level: usize) -> (Shown, Option<f64>) {
        let top = self.limits[self.top()];
        match seen.seen() {
            Seen::Rewarded {
                reward,
                consumption,
            } if consumption <= top => {
                let net = reward - self.estimates.price().cost(consumption);
                let level = self.limits.partition_point(|limit| *limit < consumption);
                let gain = (net + self.penalty) / (1.0 + self.penalty);
                (Shown::Ended { level, gain }, Some(consumption))
            }
            Seen::Failed => {
                let levels = level + 1;
                let assumed = levels;
                (Shown::Outlived { levels, assumed }, None)
            }
            _ => {
                let reach = seen.reach().get();
                let reached = self.limits.iter().take_while(|own| **own <= reach);
                let shown = Shown::Outlived {
                    levels: reached.count(),
                    // It was cut off early and showed less than was requested. Another request would show no more.
                    assumed: level + 1,
                };
                (shown, Some(reach.min(top)))
            }
        }
    }

    fn weighed(&self, chosen: Chosen, draw: f64) -> Weighed {
        let (top, scale) = (self.estimates.limits().len() - 1, 1.0 + self.penalty);
        let estimated = self
            .estimates
            .weighed(chosen.arm, self.places[chosen.level], draw);
        let gain = |value: f64| value * scale - self.penalty;
        let arm = &self.belief.arms[chosen.arm];
        let mean = gain(arm.brings.mean);
        let width = 1.96 * arm.brings.variance.sqrt() * scale;
        Weighed {
            pull: self.pull(chosen),
            compared_at: self.estimates.pull(chosen.arm, top).limit,
            index: mean + (draw - arm.brings.mean) * scale,
            mean,
            width,
            interval: (mean - width, mean + width),
            count: u64::from(arm.met[chosen.level]),
            ..estimated
        }
    }

    fn pull(&self, chosen: Chosen) -> Pull {
        Pull {
            instance: self.sequence.instance(chosen.position),
            ..self.estimates.pull(chosen.arm, self.places[chosen.level])
        }
    }

    /// The arm with the largest posterior mean among those with data.
    fn leader(&self) -> Option<usize> {
        self.ranked_with_data().next()
    }

    /// Of these arms the one to answer with under a limit: the largest posterior mean there less two standard deviations, or one
    /// that is [better where both ran](Belief::swifter). Of many arms that may be best, the largest mean alone is often that of
    /// one that is hardly known. Under the largest limit they are compared as in the search. Runs that end between two levels count
    /// as cut off. A limit out of range becomes the next one within.
    fn best_at(
        &self,
        limit: Limit,
        arms: impl Iterator<Item = usize> + Clone,
    ) -> Option<Recommendation> {
        let level = self.level_of(limit.get() * ROUNDED);
        let within = limit.get().clamp(self.limits[0], self.limits[self.top()]);
        let limit = Limit::new(within).unwrap_or(limit);
        let penalty = self.estimates.price().penalty(limit);
        let given_up = (self.penalty - penalty) / (1.0 + self.penalty);
        let brings = |arm: usize| {
            let of_arm = &self.belief.arms[arm];
            self.belief.predict_under(of_arm, level, given_up)
        };
        let value = |arm: usize| {
            let brings = if level == self.top() {
                self.belief.arms[arm].brings
            } else {
                brings(arm)
            };
            match self.parameters.recommend {
                Recommend::Safe => brings.mean - 2.0 * brings.variance.sqrt(),
                Recommend::Best => brings.mean,
            }
        };
        let known = arms.filter(|arm| self.reached(*arm, level).is_some());
        let valued = known.clone().map(|arm| (arm, value(arm)));
        let (best, _) = valued.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let arm = match self.parameters.recommend {
            Recommend::Safe => self.belief.swifter(best, level, known).unwrap_or(best),
            Recommend::Best => best,
        };
        let (brings, reached) = (brings(arm), self.reached(arm, level)?);
        let scale = 1.0 + self.penalty;
        let gain = brings.mean * scale - self.penalty;
        let width = 1.96 * brings.variance.sqrt() * scale;
        let known = self.estimates.recommendation(arm, self.places[reached]);
        let (met, outlived) = (self.belief).met_and_outlived(&self.belief.arms[arm], reached);
        Some(Recommendation {
            pull: Pull::new(ArmId::from_index(arm), limit),
            gain,
            interval: (
                (gain - width).max(-penalty).min(gain),
                (gain + width).min(1.0).max(gain),
            ),
            // How many instances show that, where it has met any in turn.
            pulls: if met > 0.0 { met as u64 } else { known.pulls },
            censored: if met > 0.0 {
                outlived / met
            } else {
                known.censored
            },
            is_predicted: true,
        })
    }

    /// The largest level up to this one that an arm was granted.
    fn reached(&self, arm: usize, level: usize) -> Option<usize> {
        let stats = self.estimates.of_arm(arm);
        let levels = 0..=level;
        levels
            .rev()
            .find(|level| stats[self.places[*level]].count > 0)
    }

    fn ranked_with_data(&self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        let arms = self.order.iter().map(|arm| *arm as usize);
        arms.filter(|arm| self.belief.arms[*arm].has_data())
    }
}

impl Policy for Staged {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let mut rng = own_rng(rng);
        let last = self.turn(&mut rng);
        self.last = last;
        let (chosen, _) = last.chosen.expect("something is always chosen");
        if !self.sequence.is_drawn() {
            // The first pull runs anywhere; the sequence is drawn from where.
            let instance = Some(rng.random_range(0..self.sequence.instances as u32));
            return Pull {
                instance,
                ..self.estimates.pull(chosen.arm, self.places[chosen.level])
            };
        }
        self.pull(chosen)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        if self.estimates.is_pending(round) {
            return;
        }
        let arm = self.estimates.launched(round, pull);
        self.begin(pull);
        let level = self.level_of(pull.limit.get());
        let position = self.position_of(pull, level);
        let account = self.account(level);
        let charged = self.pooled.cost(0, level);
        // Positions that were passed over are taken for unsolved at this level.
        let skipped: Vec<usize> = (self.belief.arms[arm].met[level] as usize
            ..position.min(self.sequence.instances))
            .filter(|position| {
                self.is_open(arm, *position, level)
                    && self.pooled.is_hopeless(arm, *position, level)
            })
            .collect();
        if !skipped.is_empty() {
            let before = self.belief.arms[arm].brings.mean;
            self.belief.assume(arm, &skipped, level + 1);
            self.reorder(arm, before);
        }
        self.accounts[account] += charged;
        self.let_join();
        self.pending_at[arm].push(position);
        let launched = Launched {
            arm,
            position,
            level,
            account,
            charged,
        };
        self.pending.insert(round, launched);
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, _) = self.estimates.observe(round, &seen);
        let known = self.pending.remove(&round);
        let launched = known.unwrap_or_else(|| {
            let pull = seen.pull();
            self.begin(pull);
            let level = self.level_of(pull.limit.get());
            Launched {
                arm,
                position: self.position_of(pull, level),
                level,
                account: level,
                charged: 0.0,
            }
        });
        if known.is_some() {
            let positions = &mut self.pending_at[launched.arm];
            if let Some(place) = positions.iter().position(|own| *own == launched.position) {
                positions.swap_remove(place);
            }
        }
        let (shown, cost) = self.shown(&seen, launched.level);
        if let Some(consumption) = cost {
            self.pooled.count_consumption(consumption, shown);
        }
        let cost = cost.map_or(launched.charged, |cost| self.pooled.charged(cost));
        self.accounts[launched.account] += cost - launched.charged;
        self.granted[launched.level] += 1;
        let of_arm = &self.belief.arms[arm];
        let from = of_arm.outlived(launched.position);
        let before = of_arm.brings.mean;
        self.pooled.count(launched.position, from, shown);
        self.belief.learn(arm, launched.position, shown);
        self.reorder(arm, before);
        self.runs += 1;
        self.let_join();
        if self.runs >= self.next_fit {
            self.fit();
        }
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        let arms = self.ranked_with_data().rev();
        if let Some(limit) = at {
            return self.best_at(limit, arms);
        }
        // Of each level a pair that earned a reward there. Between few levels the largest mean may decide.
        let pairs = self.places.iter().filter_map(|place| {
            let is_rewarded = |arm: &usize| self.estimates.of_arm(*arm)[*place].has_reward();
            let limit = self.estimates.pull(0, *place).limit;
            self.best_at(limit, arms.clone().filter(is_rewarded))
        });
        pairs.reduce(|best, other| if other.gain > best.gain { other } else { best })
    }

    fn arms_added(&mut self, problem: &Problem) -> bool {
        let (before, arms) = (self.arms(), problem.arms);
        let more = arms.saturating_sub(before);
        self.estimates.add_arms(more);
        self.belief.add_arms(more);
        self.pending_at.resize(before + more, vec![]);
        self.joining.add_arms(more);
        self.is_beaten.resize(before + more, false);
        self.order.extend(before as u32..(before + more) as u32);
        self.sort();
        true
    }

    fn wanted_arms(&self) -> Option<usize> {
        let runs = self.spent() / self.pooled.cost(0, self.top());
        let wanted = ((PACE * runs.sqrt()) as usize).max(FIRST_ARMS);
        // A tenth more at least: sorting them in takes time.
        let enough = self.arms() + self.arms().div_ceil(10);
        (wanted >= enough).then_some(wanted)
    }

    fn best_arms(&self, count: usize) -> Vec<ArmId> {
        let arms = self.ranked_with_data().take(count);
        arms.map(ArmId::from_index).collect()
    }

    fn explain(&self) -> Explanation {
        self.last.explain(|chosen, draw| self.weighed(chosen, draw))
    }
}
