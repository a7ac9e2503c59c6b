//! The search with instances: continuous halving on common instances, ranked by the posterior means of [`Belief`].

use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

use super::belief::{Belief, MOST, Shown};
use super::{Parameters, levels_of};
use crate::policy::beta::own_rng;
use crate::policy::estimate::Estimates;
use crate::policy::explanation::{Last, Turn};
use crate::policy::survival::Survival;
use crate::policy::{Explanation, Policy, Problem, Recommendation, Weighed, Why};
use crate::round::{ArmId, Limit, Observation, Pull, Round, Seen};

/// The top rung's limit is this part of the largest limit, times the square root of what was spent in B, with two rungs;
/// every further rung raises it by the root of the ratio of levels.
const RISE: f64 = 0.033;
/// The top rung has this many arms.
const FINAL: f64 = 2.0;
/// From one level to the next, about.
const RATIO: f64 = 3.0;
/// The share of consumption for draws while nothing is spent, and how fast it falls.
const DRAWS: (f64, f64) = (0.5, 2.0);
/// An instance is hopeless at a limit once so many arms were cut off there and none ended; one arm in `RETRY` runs on it
/// all the same.
const HOPELESS: u32 = 4;
const RETRY: u64 = 10;
/// A level is left out if runs outlived it on so many instances and none ended in it or below. Instances, not runs: all arms meet
/// the same ones first, and a single one that nobody solves says nothing about the level.
const SILENT: usize = 8;
/// Everything that arms share is fitted again whenever runs have grown by this part.
const REFIT: f64 = 0.1;
/// The least that a run is charged for, as a part of the smallest limit.
const LEAST: f64 = 0.01;

/// On an open space it begins with so many arms and takes so many more times the root of the runs at the largest limit that were
/// spent.
const FIRST_ARMS: usize = 200;
const PACE: f64 = 60.0;

/// A pull under way.
#[derive(Debug, Clone, Copy)]
struct Launched {
    round: Round,
    arm: usize,
    position: usize,
    level: usize,
    account: usize,
    charged: f64,
}

/// What is known of a position whatever the arm.
#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    outlived: [u32; MOST],
    ended: [u32; MOST],
}

/// The rungs that are played now.
#[derive(Debug, Clone, Copy)]
struct Window {
    lowest: usize,
    top: usize,
    /// What was spent, in runs of every arm at the largest limit.
    spent: f64,
}

impl Window {
    fn rungs(&self) -> usize {
        self.top - self.lowest + 1
    }

    /// Arms of the rung at this level.
    fn arms(&self, level: usize, arms: usize) -> usize {
        let (above, all) = ((level - self.lowest) as f64, arms as f64);
        if above == 0.0 {
            return arms;
        }
        let part = (FINAL / all)
            .min(1.0)
            .powf(above / (self.rungs() - 1) as f64);
        ((all * part - 1e-9).ceil() as usize).clamp(1, arms)
    }
}

/// The search at work.
#[derive(Debug)]
pub(in crate::policy) struct Staged {
    parameters: Parameters,
    estimates: Estimates,
    belief: Belief,
    /// Limits of the levels, and where they stand in the grid.
    limits: Vec<f64>,
    places: Vec<usize>,
    penalty: f64,
    instances: usize,
    /// The common sequence of instances, and where each stands in it; drawn with the first pull.
    sequence: Vec<u32>,
    positions: Vec<u32>,
    trials: Vec<Trial>,
    /// Runs at risk in each level, and those that ended there, whatever the arm.
    hazards: [(f64, f64); MOST],
    /// Consumption by account: one per level, the last for draws; pulls under way are charged what they should cost.
    accounts: [f64; MOST + 1],
    pending: Vec<Launched>,
    pending_of: Vec<u32>,
    runs: u64,
    next_fit: u64,
    /// The largest number of levels that were granted so far.
    climbed: usize,
    has_ended: bool,
    is_beaten: Vec<bool>,
    /// All arms, the largest posterior mean first.
    order: Vec<u32>,
    last: Last<Chosen>,
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
            penalty: estimates.penalties()[estimates.limits().len() - 1],
            instances: problem.instances,
            sequence: vec![],
            positions: vec![],
            trials: vec![],
            hazards: [(0.0, 0.0); MOST],
            accounts: [0.0; MOST + 1],
            pending: vec![],
            pending_of: vec![0; problem.arms],
            runs: 0,
            next_fit: 1,
            climbed: 0,
            has_ended: false,
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

    /// The chance to end in a level once it is reached, over all arms.
    fn hazard(&self, level: usize) -> f64 {
        let (at_risk, ended) = self.hazards[level];
        (ended + 1.0) / (at_risk + 5.0)
    }

    /// What a run is expected to cost that is known to reach level `from` and is cut off at the end of level `to`.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let mut left = if from == 0 {
            0.0
        } else {
            self.limits[from - 1]
        };
        let (mut survival, mut cost) = (1.0, 0.0);
        for level in from..=to {
            let hazard = self.hazard(level);
            cost += survival * hazard * f64::midpoint(left, self.limits[level]);
            survival *= 1.0 - hazard;
            left = self.limits[level];
        }
        (cost + survival * left).max(LEAST * self.limits[0])
    }

    /// Whether nothing ever ended in this level or below.
    fn is_silent(&self, level: usize) -> bool {
        self.hazards[..=level].iter().all(|both| both.1 == 0.0)
    }

    /// The lowest level worth a run: below it much was tried and nothing ever ended.
    fn floor(&self) -> usize {
        let is_idle = |level: &usize| {
            let has_outlived = |trial: &&Trial| trial.outlived[*level] > 0;
            let tried = || self.trials.iter().take(self.instances).filter(has_outlived);
            let enough = SILENT.min(self.instances);
            self.is_silent(*level) && tried().take(enough).count() == enough
        };
        (0..self.top()).take_while(is_idle).count()
    }

    /// The rungs rise with the square root of what was spent; past the largest limit they close from below.
    fn window(&self) -> Window {
        let (arms, top) = (self.arms() as f64, self.top());
        let spent = self.spent() / (arms * self.cost(0, top));
        let rungs = (1.0 + (arms / 2.0).ln() / RATIO.ln())
            .round()
            .clamp(2.0, 5.0);
        let rise = RISE * RATIO.powf((rungs - 1.0) / 2.0);
        let rungs = (rungs as usize).min(self.limits.len());
        let largest = self.limits[top];
        let wanted = rise * spent.sqrt() * largest;
        let is_below = |pair: &&[f64]| (pair[0] * pair[1]).sqrt() < wanted;
        let highest = self.limits.windows(2).take_while(is_below).count();
        let highest = highest.max(rungs - 1).max(self.floor());
        let mut lowest = highest + 1 - rungs;
        if wanted > largest {
            lowest += ((wanted / largest).ln() / RATIO.ln()) as usize;
        }
        Window {
            lowest: lowest.max(self.floor()).min(highest),
            top: highest,
            spent,
        }
    }

    /// Whether this round belongs to the draws: they have had less than their share.
    fn is_for_draws(&self, window: &Window) -> bool {
        let share = DRAWS.0 / (1.0 + DRAWS.1 * window.spent);
        self.accounts[MOST] < share * self.spent()
    }

    /// The account that the next pull at this level is charged to.
    fn account(&self, level: usize) -> usize {
        if self.has_ended && self.is_for_draws(&self.window()) {
            MOST
        } else {
            level
        }
    }

    fn is_pending(&self, arm: usize, position: usize) -> bool {
        self.pending_of[arm] > 0
            && (self.pending.iter()).any(|pull| pull.arm == arm && pull.position == position)
    }

    /// Whether an arm leaves out a position at a level, because nobody ever ended there.
    fn is_hopeless(&self, arm: usize, position: usize, level: usize) -> bool {
        let Some(trial) = self.trials.get(position) else {
            return false;
        };
        // Where nothing ended at all, every pull tries another instance.
        let enough = if self.is_silent(level) { 1 } else { HOPELESS };
        level < self.top()
            && trial.outlived[level] >= enough
            && trial.ended[..=level].iter().all(|ended| *ended == 0)
            && !hash(arm, position, level).is_multiple_of(RETRY)
    }

    /// The next position for an arm at a level, if there is one among the first `until`.
    fn next_position(&self, arm: usize, level: usize, until: usize) -> Option<usize> {
        let of_arm = &self.belief.arms[arm];
        let is_open = |position: &usize| {
            let is_known = of_arm
                .cells
                .get(*position)
                .is_some_and(|cell| cell.is_known(level));
            !is_known
                && !self.is_pending(arm, *position)
                && !self.is_hopeless(arm, *position, level)
        };
        (of_arm.met[level] as usize..until).find(is_open)
    }

    /// What has met the fewest instances at a level among these arms, and where it runs next.
    fn least_met(&self, arms: impl Iterator<Item = usize>, level: usize) -> Option<Chosen> {
        let mut best: Option<(u32, Chosen)> = None;
        for arm in arms {
            let met = self.belief.arms[arm].met[level] + self.pending_of[arm];
            if best.as_ref().is_some_and(|(fewest, _)| met >= *fewest) {
                continue;
            }
            if let Some(position) = self.next_position(arm, level, self.instances) {
                let chosen = Chosen {
                    arm,
                    level,
                    position,
                };
                best = Some((met, chosen));
            }
        }
        best.map(|(_, chosen)| chosen)
    }

    fn ranked(&self) -> impl Iterator<Item = usize> {
        let arms = self.order.iter().map(|arm| *arm as usize);
        arms.filter(|arm| !self.is_beaten[*arm])
    }

    /// Nothing has ended yet: every pull gets the next larger limit, another arm and another instance. Past the largest limit all
    /// levels are granted the same consumption: what ends soon may be rare.
    fn climb(&self) -> Chosen {
        let granted = |level: &usize| self.accounts[*level];
        let least = (0..self.limits.len()).min_by(|a, b| granted(a).total_cmp(&granted(b)));
        let level = match least {
            Some(least) if self.climbed > self.top() => least,
            _ => self.climbed.min(self.top()),
        };
        let launched = self.runs as usize + self.pending.len();
        let tried = |arm: &usize| {
            let count = self.estimates.arm_count(*arm);
            count.observed + count.pending
        };
        let arm = (0..self.arms()).min_by_key(tried).unwrap_or(0);
        let after = launched % self.instances;
        // All instances from there on, then further passes.
        let first_pass = (after..self.instances).chain(0..after);
        let positions = first_pass.chain(self.instances..);
        let is_open = |position: &usize| {
            let cell = self.belief.arms[arm].cells.get(*position);
            !cell.is_some_and(|cell| cell.is_known(level)) && !self.is_pending(arm, *position)
        };
        let position = positions.into_iter().find(is_open).unwrap_or(after);
        Chosen {
            arm,
            level,
            position,
        }
    }

    /// The least served rung plays, and in it the arm that has met the fewest instances.
    fn halve(&self, window: &Window) -> Option<(Chosen, Turn)> {
        let mut rungs: Vec<usize> = (window.lowest..=window.top).collect();
        rungs.sort_by(|a, b| self.accounts[*a].total_cmp(&self.accounts[*b]));
        rungs.into_iter().find_map(|level| {
            let arms = window.arms(level, self.arms());
            let chosen = self.least_met(self.ranked().take(arms), level)?;
            let turn = Turn::Level {
                rung: (level - window.lowest) as u32 + 1,
                rungs: window.rungs() as u32,
                arms,
                met: self.belief.arms[chosen.arm].met[level],
                instances: self.instances as u32,
            };
            Some((chosen, turn))
        })
    }

    /// The largest of random draws from the posterior, at the limit that says most per second. Half of the time not the
    /// answer of now, so that its rivals are looked at.
    fn draw(&self, rng: &mut Pcg64Mcg) -> Option<Last<Chosen>> {
        let open: Vec<usize> = self
            .ranked()
            .filter(|arm| !self.belief.is_complete(*arm))
            .collect();
        let incumbent = self.order[0] as usize;
        let largest = |without: Option<usize>, rng: &mut Pcg64Mcg| {
            let mut last = Last::by(Why::Sample);
            for arm in open.iter().filter(|arm| Some(**arm) != without) {
                let of_arm = &self.belief.arms[*arm];
                let normal: f64 = StandardNormal.sample(rng);
                let variance = of_arm.variance / f64::from(1 + self.pending_of[*arm]);
                last.enter(*arm, of_arm.mean + variance.sqrt() * normal);
            }
            last
        };
        let mut last = largest(None, rng);
        if last.chosen.is_some_and(|(arm, _)| arm == incumbent) && rng.random_bool(0.5) {
            let others = largest(Some(incumbent), rng);
            if others.chosen.is_some() {
                last = others;
            }
        }
        let (arm, draw) = last.chosen?;
        let levels = self.floor()..=self.top();
        let is_open = |level: &usize| self.next_position(arm, *level, self.instances).is_some();
        let level = self
            .belief
            .most_informative(arm, levels.filter(is_open), |from, to| self.cost(from, to))?;
        let position = self.next_position(arm, level, self.instances)?;
        let chosen = Chosen {
            arm,
            level,
            position,
        };
        let runner_up = last.runner_up.map(|(arm, draw)| {
            let position = self.belief.arms[arm].met[level] as usize;
            let rival = Chosen {
                arm,
                level,
                position,
            };
            (rival, draw)
        });
        Some(Last {
            why: Why::Sample,
            chosen: Some((chosen, draw)),
            runner_up,
            turn: Some(Turn::Largest),
        })
    }

    /// All instances were met by all that matter: those that may still be best run on them again, the least run first.
    fn repeat(&self) -> Chosen {
        let level = self.top();
        let best = &self.belief.arms[self.order[0] as usize];
        let deviation = |arm: usize| self.belief.arms[arm].variance.sqrt();
        let is_rival =
            |arm: &usize| self.belief.arms[*arm].mean + 2.0 * deviation(*arm) >= best.mean - TIE;
        let count = |arm: &usize| self.belief.arms[*arm].met[level] + self.pending_of[*arm];
        let rivals = self.ranked().filter(is_rival);
        let arm = rivals.min_by_key(count).unwrap_or(self.order[0] as usize);
        #[expect(
            clippy::maybe_infinite_iter,
            reason = "past its last cell an arm is not known"
        )]
        let position = (self.belief.arms[arm].met[level] as usize..)
            .find(|position| {
                let cell = self.belief.arms[arm].cells.get(*position);
                !cell.is_some_and(|cell| cell.is_known(level)) && !self.is_pending(arm, *position)
            })
            .unwrap_or(0);
        Chosen {
            arm,
            level,
            position,
        }
    }

    /// Moves an arm to its place in the order, given the mean it had.
    fn reorder(&mut self, arm: usize, before: f64) {
        let arms = &self.belief.arms;
        let key = |other: u32, mean: f64| (mean, other);
        let is_ahead = |other: &u32, of: (f64, u32)| {
            let mean = if *other as usize == arm {
                before
            } else {
                arms[*other as usize].mean
            };
            let own = key(*other, mean);
            own.0 > of.0 || own.0 == of.0 && own.1 < of.1
        };
        let old = (before, arm as u32);
        let place = self.order.partition_point(|other| is_ahead(other, old));
        debug_assert_eq!(self.order[place], arm as u32);
        self.order.remove(place);
        let new = (arms[arm].mean, arm as u32);
        let place = self.order.partition_point(|other| is_ahead(other, new));
        self.order.insert(place, arm as u32);
    }

    fn fit(&mut self) {
        self.belief.fit();
        self.is_beaten = self.belief.beaten();
        self.sort();
        self.next_fit = self.runs + ((REFIT * self.runs as f64) as u64).max(1);
    }

    fn sort(&mut self) {
        let arms = &self.belief.arms;
        self.order.sort_by(|a, b| {
            let (of_a, of_b) = (arms[*a as usize].mean, arms[*b as usize].mean);
            of_b.total_cmp(&of_a).then(a.cmp(b))
        });
    }

    /// Draws the sequence of instances, which begins with the one of the first pull.
    fn begin(&mut self, first: u32) {
        if self.sequence.is_empty() {
            let mut rng = Pcg64Mcg::seed_from_u64(u64::from(first));
            self.sequence = (0..self.instances as u32).collect();
            self.sequence.shuffle(&mut rng);
            let first = first % self.instances as u32;
            let place = self.sequence.iter().position(|other| *other == first);
            self.sequence.swap(0, place.unwrap_or(0));
            self.positions = vec![0; self.instances];
            for (position, instance) in self.sequence.iter().enumerate() {
                self.positions[*instance as usize] = position as u32;
            }
        }
    }

    fn instance(&self, position: usize) -> Option<u32> {
        self.sequence.get(position % self.instances).copied()
    }

    /// The position a pull stands for: the first pass of its instance in which it would be news.
    fn position_of(&self, pull: Pull, level: usize) -> usize {
        let arm = pull.arm.index();
        let met = self.belief.arms[arm].met[level] as usize;
        let first = match pull.instance {
            Some(instance) => self.positions[instance as usize % self.instances] as usize,
            None => met % self.instances,
        };
        // All passes that are known whole are behind.
        let first = first + met / self.instances * self.instances;
        let is_open = |position: &usize| {
            let cell = self.belief.arms[arm].cells.get(*position);
            !cell.is_some_and(|cell| cell.is_known(level)) && !self.is_pending(arm, *position)
        };
        let mut passes = (first..).step_by(self.instances);
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
                    // Cut off early it told less than was asked for; asking again would bring no more.
                    assumed: level + 1,
                };
                (shown, Some(reach.min(top)))
            }
        }
    }

    /// Counts a run in hazards and in what is known of its position.
    fn count(&mut self, position: usize, from: usize, shown: Shown) {
        if self.trials.len() <= position {
            self.trials.resize(position + 1, Trial::default());
        }
        let until = match shown {
            Shown::Ended { level, .. } => {
                self.has_ended = true;
                self.hazards[level].0 += 1.0;
                self.hazards[level].1 += 1.0;
                self.trials[position].ended[level] += 1;
                level
            }
            Shown::Outlived { levels, .. } => levels,
        };
        for level in from..until {
            self.hazards[level].0 += 1.0;
            self.trials[position].outlived[level] += 1;
        }
    }

    fn weighed(&self, chosen: Chosen, draw: f64) -> Weighed {
        let (top, scale) = (self.estimates.limits().len() - 1, 1.0 + self.penalty);
        let estimated = self
            .estimates
            .weighed(chosen.arm, self.places[chosen.level], draw);
        let gain = |value: f64| value * scale - self.penalty;
        let arm = &self.belief.arms[chosen.arm];
        let mean = gain(self.belief.gain(chosen.arm));
        let width = 1.96 * arm.variance.sqrt() * scale;
        Weighed {
            pull: self.pull(chosen),
            compared_at: self.estimates.pull(chosen.arm, top).limit,
            index: mean + (draw - arm.mean) * scale,
            mean,
            width,
            interval: (mean - width, mean + width),
            count: u64::from(arm.met[chosen.level]),
            ..estimated
        }
    }

    fn pull(&self, chosen: Chosen) -> Pull {
        Pull {
            instance: self.instance(chosen.position),
            ..self.estimates.pull(chosen.arm, self.places[chosen.level])
        }
    }

    /// The arm with the largest posterior mean among those with data.
    fn best(&self) -> Option<usize> {
        let mut order = self.order.iter().map(|arm| *arm as usize);
        order.find(|arm| self.belief.arms[*arm].has_data())
    }
}

/// Arms whose means differ by less are equally good.
const TIE: f64 = 1e-9;

/// A number that looks random but is a function of these.
fn hash(arm: usize, position: usize, level: usize) -> u64 {
    let mut value = (arm as u64) << 36 ^ (position as u64) << 4 ^ level as u64;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        value = (value ^ (value >> 31)).wrapping_mul(factor);
    }
    value ^ (value >> 32)
}

impl Policy for Staged {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let mut rng = own_rng(rng);
        let window = self.window();
        let mut last = None;
        if !self.has_ended {
            last = Some(Last::plain(Why::Opening, self.climb()));
        } else if self.is_for_draws(&window) {
            last = self.draw(&mut rng);
        }
        let last = last.unwrap_or_else(|| {
            if let Some((chosen, turn)) = self.halve(&window) {
                let next = self.best().filter(|best| *best != chosen.arm);
                let next = next.map(|arm| Chosen { arm, ..chosen });
                Last::turn(chosen, next, turn)
            } else {
                let top = self.top();
                let open = self.ranked().find_map(|arm| {
                    let position = self.next_position(arm, top, self.instances)?;
                    Some(Chosen {
                        arm,
                        level: top,
                        position,
                    })
                });
                let chosen = open.unwrap_or_else(|| self.repeat());
                Last::turn(chosen, None, Turn::Repeat)
            }
        });
        self.last = last;
        let (chosen, _) = last.chosen.expect("something is always chosen");
        if self.sequence.is_empty() {
            // The first pull runs anywhere; the sequence is drawn from where.
            let instance = Some(rng.random_range(0..self.instances as u32));
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
        self.begin(pull.instance.unwrap_or(0));
        let level = self.level_of(pull.limit.get());
        let position = self.position_of(pull, level);
        let account = self.account(level);
        let charged = self.cost(0, level);
        // Positions that were passed over are taken for unsolved at this level.
        let skipped: Vec<usize> = (self.belief.arms[arm].met[level] as usize
            ..position.min(self.instances))
            .filter(|position| {
                let cell = self.belief.arms[arm].cells.get(*position);
                !cell.is_some_and(|cell| cell.is_known(level))
                    && !self.is_pending(arm, *position)
                    && self.is_hopeless(arm, *position, level)
            })
            .collect();
        if !skipped.is_empty() {
            let before = self.belief.arms[arm].mean;
            self.belief.assume(arm, &skipped, level + 1);
            self.reorder(arm, before);
        }
        self.accounts[account] += charged;
        self.pending_of[arm] += 1;
        self.pending.push(Launched {
            round,
            arm,
            position,
            level,
            account,
            charged,
        });
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, _) = self.estimates.observe(round, &seen);
        let place = self.pending.iter().position(|pull| pull.round == round);
        let known = place.map(|place| self.pending.remove(place));
        let launched = known.unwrap_or_else(|| {
            let pull = seen.pull();
            self.begin(pull.instance.unwrap_or(0));
            let level = self.level_of(pull.limit.get());
            Launched {
                round,
                arm,
                position: self.position_of(pull, level),
                level,
                account: level,
                charged: 0.0,
            }
        });
        if known.is_some() {
            self.pending_of[launched.arm] -= 1;
        }
        let (shown, cost) = self.shown(&seen, launched.level);
        let cost = cost.map_or(launched.charged, |cost| cost.max(LEAST * self.limits[0]));
        self.accounts[launched.account] += cost - launched.charged;
        self.climbed = self.climbed.max(launched.level + 1);
        let of_arm = &self.belief.arms[arm];
        let cell = of_arm.cells.get(launched.position);
        let from = cell.map_or(0, |cell| usize::from(cell.outlived));
        let before = of_arm.mean;
        self.count(launched.position, from, shown);
        self.belief.learn(arm, launched.position, shown);
        self.reorder(arm, before);
        self.runs += 1;
        if self.runs >= self.next_fit {
            self.fit();
        }
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        let top = self.estimates.limits().len() - 1;
        if at.is_none_or(|at| at.get() < self.estimates.limits()[top]) {
            return self.estimates.answer(at, self.parameters.recommend);
        }
        let arm = self.best()?;
        let stats = self.estimates.of_arm(arm);
        let reached = stats.iter().rposition(|stat| stat.count > 0)?;
        let estimated = self.estimates.recommendation(arm, reached);
        if reached < top {
            return Some(estimated);
        }
        let scale = 1.0 + self.penalty;
        let gain = self.belief.gain(arm) * scale - self.penalty;
        let width = 1.96 * self.belief.arms[arm].variance.sqrt() * scale;
        Some(Recommendation {
            gain,
            interval: (gain - width, gain + width),
            ..estimated
        })
    }

    fn arms_added(&mut self, problem: &Problem) -> bool {
        let (before, arms) = (self.arms(), problem.arms);
        let more = arms.saturating_sub(before);
        self.estimates.add_arms(more);
        self.belief.add_arms(more);
        self.pending_of.resize(before + more, 0);
        self.is_beaten.resize(before + more, false);
        self.order.extend(before as u32..(before + more) as u32);
        self.sort();
        true
    }

    fn wanted_arms(&self) -> Option<usize> {
        let runs = self.spent() / self.cost(0, self.top());
        Some(((PACE * runs.sqrt()) as usize).max(FIRST_ARMS))
    }

    fn best_arms(&self, count: usize) -> Vec<ArmId> {
        let arms = self.order.iter().map(|arm| *arm as usize);
        let seen = arms.filter(|arm| self.belief.arms[*arm].has_data());
        seen.take(count).map(ArmId::from_index).collect()
    }

    fn explain(&self) -> Explanation {
        self.last.explain(|chosen, draw| self.weighed(chosen, draw))
    }
}
