//! The arms that are thought about: all of them, or where there are very many a changing part.

use std::collections::HashMap;

use super::belief::{Hint, OfArm, Ratio, Weights};
use super::evidence::Evidence;

/// So many arms are thought about at a time.
const MOST: usize = 4096;
/// How many newcomers are considered whenever everything is learned again.
const NEWCOMERS: usize = 1024;

/// One arm that is thought about.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub arm: u32,
    /// None before its first run.
    pub evidence: Option<Box<Evidence>>,
    /// What similar arms suggest: hazards over the usual ones, per cell, and rewards above the usual ones.
    pub ratios: Vec<f64>,
    pub reward: f64,
    /// What its own runs say of its hazards.
    pub own: Ratio,
    pub drawn: Drawn,
}

/// What was drawn for an arm: the gain at its best limit, the limit to run it to, and the gain at the largest one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    pub gain: f64,
    /// The limit that the gain is at.
    pub aim: usize,
    /// The limit to run to: the same, or one on the way there.
    pub k: usize,
    /// Where a run to the largest limit says nothing, minus infinity.
    pub full: f64,
}

impl Drawn {
    pub const NOTHING: Self = Self {
        gain: f64::NEG_INFINITY,
        aim: 0,
        k: 0,
        full: f64::NEG_INFINITY,
    };

    /// The same at the largest limit.
    pub fn in_full(self, largest: usize) -> Self {
        Self {
            gain: self.full,
            aim: largest,
            k: largest,
            ..self
        }
    }
}

impl Member {
    fn new(arm: usize, cells: usize, weights: Weights) -> Self {
        Self {
            arm: arm as u32,
            evidence: None,
            ratios: vec![1.0; cells],
            reward: 0.0,
            own: Ratio::unknown(weights),
            drawn: Drawn::NOTHING,
        }
    }

    pub fn of_arm(&self, pending: f64) -> OfArm<'_> {
        OfArm {
            hint: Hint {
                ratios: &self.ratios,
                reward: self.reward,
            },
            evidence: self.evidence.as_deref(),
            pending,
        }
    }
}

/// The arms that are thought about, in the order they came.
#[derive(Debug)]
pub(super) struct Pool {
    pub members: Vec<Member>,
    arms: usize,
    cells: usize,
    /// The place of every arm; empty if all arms are members, each at its own place.
    places: HashMap<u32, u32>,
    /// How far the walk through all arms has come.
    walked: u64,
}

impl Pool {
    pub fn new(arms: usize, cells: usize, weights: Weights) -> Self {
        let mut pool = Self {
            members: vec![],
            arms,
            cells,
            places: HashMap::new(),
            walked: 0,
        };
        if pool.is_whole() {
            let members = (0..arms).map(|arm| Member::new(arm, cells, weights));
            pool.members = members.collect();
        } else {
            pool.welcome(MOST, weights);
        }
        pool
    }

    /// Whether all arms are members.
    pub fn is_whole(&self) -> bool {
        self.arms <= MOST
    }

    /// The place of an arm, if it is a member.
    pub fn find(&self, arm: usize) -> Option<usize> {
        if self.is_whole() {
            return (arm < self.arms).then_some(arm);
        }
        self.places.get(&(arm as u32)).map(|place| *place as usize)
    }

    /// The place of an arm; it becomes a member if it was none.
    pub fn place(&mut self, arm: usize, weights: Weights) -> usize {
        if self.is_whole() {
            return arm;
        }
        let next = self.members.len();
        let place = *self.places.entry(arm as u32).or_insert(next as u32) as usize;
        if place == next {
            self.members.push(Member::new(arm, self.cells, weights));
        }
        place
    }

    /// Lets newcomers in, spread evenly over all arms by steps of the golden ratio.
    pub fn newcomers(&mut self, weights: Weights) {
        if !self.is_whole() {
            self.welcome(NEWCOMERS, weights);
        }
    }

    fn welcome(&mut self, count: usize, weights: Weights) {
        for _ in 0..count {
            self.walked += 1;
            let share = (self.walked as f64 * 0.618_033_988_749_894_9).fract();
            self.place((share * self.arms as f64) as usize, weights);
        }
    }

    /// Sends away those that never ran and promise least, so that the pool does not grow without need; gives where
    /// everybody stood before.
    pub fn keep_best(&mut self, promise: impl Fn(&Member) -> f64) -> Option<Vec<u32>> {
        let is_new = |member: &Member| member.evidence.is_none();
        let mut promises: Vec<f64> = self
            .members
            .iter()
            .filter(|member| is_new(member))
            .map(&promise)
            .collect();
        if self.is_whole() || promises.len() <= MOST {
            return None;
        }
        promises.sort_by(|a, b| b.total_cmp(a));
        let least = promises[MOST - 1];
        let mut stood = vec![];
        let mut place = 0_u32;
        self.members.retain(|member| {
            let stays = !is_new(member) || promise(member) >= least;
            if stays {
                stood.push(place);
            }
            place += 1;
            stays
        });
        self.places = self
            .members
            .iter()
            .map(|member| member.arm)
            .zip(0..)
            .collect();
        Some(stood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::similar_ts::tune::UNKNOWN;

    #[test]
    fn of_very_many_arms_a_part_is_thought_about_and_those_that_ran_stay() {
        let mut pool = Pool::new(1_000_000, 3, UNKNOWN);
        assert!(pool.members.len() > MOST / 2 && pool.members.len() <= MOST);
        let place = pool.place(123_456, UNKNOWN);
        assert_eq!(pool.place(123_456, UNKNOWN), place);
        pool.members[place].evidence = Some(Box::new(Evidence::new(3, 1, 0)));
        for _ in 0..3 {
            pool.newcomers(UNKNOWN);
        }
        // The arms of even number promise most.
        let stood = pool
            .keep_best(|member| f64::from(1 - member.arm % 2))
            .unwrap();
        assert_eq!(stood.len(), pool.members.len());
        let place = pool.place(123_456, UNKNOWN);
        assert!(pool.members[place].evidence.is_some());
        assert_eq!(pool.members[place].arm, 123_456);
    }
}
