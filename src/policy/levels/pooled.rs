//! What the runs of all arms together showed: how often a level is the last, and where no run ended.

use super::arm::Shown;
use super::belief::MOST;

/// An instance is hopeless at a limit once this many arms were cut off there and none ended; one arm in `RETRY` runs on it
/// all the same.
const HOPELESS: u32 = 4;
const RETRY: u64 = 10;
/// A level is left out if runs outlived it on this many instances and none ended in it or below. Instances, not runs: all arms meet
/// the same ones first, and a single one that no arm solves says nothing about the level.
const SILENT: usize = 8;
/// The least that a run is charged for, as a part of the smallest limit.
const LEAST: f64 = 0.01;

/// Runs of all arms, by level.
#[derive(Debug)]
pub(super) struct Pooled {
    /// Limits of the levels.
    limits: Vec<f64>,
    instances: usize,
    /// Runs at risk in each level, and those that ended there.
    hazards: [(f64, f64); MOST],
    /// The same by position in the sequence of instances.
    trials: Vec<Trial>,
    /// Runs that are known to the end of each level, and what they had consumed by then.
    consumed: [(f64, f64); MOST],
}

#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    outlived: [u32; MOST],
    ended: [u32; MOST],
}

impl Pooled {
    pub(super) fn new(limits: &[f64], instances: usize) -> Self {
        Self {
            limits: limits.to_vec(),
            instances,
            hazards: [(0.0, 0.0); MOST],
            trials: vec![],
            consumed: [(0.0, 0.0); MOST],
        }
    }

    fn top(&self) -> usize {
        self.limits.len() - 1
    }

    /// Counts a run that was known to outlive `from` levels before.
    pub(super) fn count(&mut self, position: usize, from: usize, shown: Shown) {
        if self.trials.len() <= position {
            self.trials.resize(position + 1, Trial::default());
        }
        let until = match shown {
            Shown::Ended { level, .. } => {
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

    /// Counts what a run consumed.
    pub(super) fn count_consumption(&mut self, consumption: f64, shown: Shown) {
        let known = match shown {
            Shown::Ended { .. } => self.limits.len(),
            Shown::Outlived { levels, .. } => levels,
        };
        for (limit, consumed) in self.limits[..known].iter().zip(&mut self.consumed) {
            consumed.0 += 1.0;
            consumed.1 += consumption.min(*limit);
        }
    }

    /// What a look at an arm costs: one run at the lowest level worth a run. Before there was one, its limit.
    pub(super) fn look(&self) -> f64 {
        let level = self.floor();
        let (runs, sum) = self.consumed[level];
        self.charged((sum + self.limits[level]) / (runs + 1.0))
    }

    /// Whether any run has ended.
    pub(super) fn has_ended(&self) -> bool {
        !self.is_silent(self.top())
    }

    /// The chance to end in a level once it is reached.
    fn hazard(&self, level: usize) -> f64 {
        let (at_risk, ended) = self.hazards[level];
        (ended + 1.0) / (at_risk + 5.0)
    }

    /// What a run is expected to cost that is known to reach level `from` and is cut off at the end of level `to`.
    pub(super) fn cost(&self, from: usize, to: usize) -> f64 {
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
        self.charged(cost + survival * left)
    }

    /// What a run is charged for that used this much: starting one is not free.
    pub(super) fn charged(&self, used: f64) -> f64 {
        used.max(LEAST * self.limits[0])
    }

    /// Whether nothing ever ended in this level or below.
    fn is_silent(&self, level: usize) -> bool {
        self.hazards[..=level].iter().all(|both| both.1 == 0.0)
    }

    /// The lowest level worth a run: below it much was tried and nothing ever ended.
    pub(super) fn floor(&self) -> usize {
        let is_idle = |level: &usize| {
            let has_outlived = |trial: &&Trial| trial.outlived[*level] > 0;
            let tried = || self.trials.iter().take(self.instances).filter(has_outlived);
            let enough = SILENT.min(self.instances);
            self.is_silent(*level) && tried().take(enough).count() == enough
        };
        (0..self.top()).take_while(is_idle).count()
    }

    /// Whether an arm leaves out a position at a level, because no run ever ended there.
    pub(super) fn is_hopeless(&self, arm: usize, position: usize, level: usize) -> bool {
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
}

/// A number that looks random but is a function of these.
fn hash(arm: usize, position: usize, level: usize) -> u64 {
    let mut value = (arm as u64) << 36 ^ (position as u64) << 4 ^ level as u64;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        value = (value ^ (value >> 31)).wrapping_mul(factor);
    }
    value ^ (value >> 32)
}
