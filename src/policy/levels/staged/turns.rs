//! What is pulled next: the climb, the draws, the rungs, repeated runs.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

use super::super::rungs::Window;
use super::super::turn::LevelsTurn;
use super::{Chosen, Staged};
use crate::policy::Why;
use crate::policy::explanation::Last;

/// Pulls at each limit while the climb is looking for a first result. One would be too few: a single instance that no arm
/// solves would raise the limit. Two are still cheap. Levels are at least [`STEP`](super::super::STEP) apart, so the smaller
/// limits add up to less than twice the run that ends first.
const TRIES: u32 = 2;

/// Arms whose means differ by less are equally good.
const TIE: f64 = 1e-9;

impl Staged {
    /// Whose turn it is: a climb until something ends, then draws for their share, rungs, and in the end whatever is left.
    pub(super) fn turn(&self, rng: &mut Pcg64Mcg) -> Last<Chosen, LevelsTurn> {
        if !self.pooled.has_ended() {
            return Last::climb(self.climb());
        }
        let window = self.window();
        let drawn = self.is_for_draws(&window).then(|| self.draw(rng));
        drawn.flatten().unwrap_or_else(|| {
            if let Some((chosen, turn)) = self.halve(&window) {
                let next = self.leader().filter(|best| *best != chosen.arm);
                let next = next.map(|arm| Chosen { arm, ..chosen });
                return Last::turn(chosen, next, turn);
            }
            let level = self.top();
            let open = self.ranked().find_map(|arm| {
                let position = self.next_position(arm, level)?;
                Some(Chosen {
                    arm,
                    level,
                    position,
                })
            });
            let chosen = open.unwrap_or_else(|| self.repeat());
            Last::turn(chosen, None, LevelsTurn::Repeat)
        })
    }

    /// The next position for an arm at a level, if one is left in the first pass.
    fn next_position(&self, arm: usize, level: usize) -> Option<usize> {
        let of_arm = &self.belief.arms[arm];
        let is_open = |position: &usize| {
            self.is_open(arm, *position, level) && !self.pooled.is_hopeless(arm, *position, level)
        };
        (of_arm.met[level] as usize..self.sequence.instances).find(is_open)
    }

    /// What has met the fewest instances at a level among these arms, and where it runs next.
    fn least_met(&self, arms: impl Iterator<Item = usize>, level: usize) -> Option<Chosen> {
        let mut best: Option<(usize, Chosen)> = None;
        for arm in arms {
            let met = self.belief.arms[arm].met[level] as usize + self.pending_at[arm].len();
            if best.as_ref().is_some_and(|(fewest, _)| met >= *fewest) {
                continue;
            }
            if let Some(position) = self.next_position(arm, level) {
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
        arms.filter(|arm| !self.is_beaten[*arm] && self.takes_part(*arm))
    }

    /// Nothing has ended yet: after some pulls at a limit the next larger one is tried, always with another arm and another
    /// instance. Past the largest limit all levels are granted the same consumption: what ends soon may be rare.
    fn climb(&self) -> Chosen {
        let used = |level: &usize| self.accounts[*level];
        let is_next = |level: &usize| self.granted[*level] < TRIES;
        let mut levels = 0..self.limits.len();
        let least = levels.clone().min_by(|a, b| used(a).total_cmp(&used(b)));
        let level = levels.find(is_next).or(least).unwrap_or(0);
        let launched = self.runs as usize + self.pending.len();
        let tried = |arm: &usize| {
            let count = self.estimates.arm_count(*arm);
            count.observed + count.pending
        };
        let by_turn = |arm: &usize| (tried(arm), self.joining.place(*arm));
        let arm = (0..self.arms()).min_by_key(by_turn).unwrap_or(0);
        let after = launched % self.sequence.instances;
        // All instances from there on, then further passes.
        let first_pass = (after..self.sequence.instances).chain(0..after);
        let positions = first_pass.chain(self.sequence.instances..);
        let is_open = |position: &usize| self.is_open(arm, *position, level);
        let position = positions.into_iter().find(is_open).unwrap_or(after);
        Chosen {
            arm,
            level,
            position,
        }
    }

    /// The arms that a rung is for. One that has met every instance has nothing left to show, and leaves its place to the next best that
    /// may still be as good as the best.
    fn seated(&self, arms: usize, level: usize) -> impl Iterator<Item = usize> {
        let most = self.belief.arms[self.order[0] as usize].brings.mean;
        let has_place = move |(rank, arm): &(usize, usize)| {
            let of_arm = &self.belief.arms[*arm];
            let has_more = (of_arm.met[level] as usize) < self.sequence.instances;
            let brings = &of_arm.brings;
            has_more && (*rank < arms || brings.mean + brings.variance.sqrt() >= most)
        };
        let ranked = self.ranked().enumerate().filter(has_place);
        ranked.take(arms).map(|(_, arm)| arm)
    }

    /// The least served rung plays, and in it the arm that has met the fewest instances.
    fn halve(&self, window: &Window) -> Option<(Chosen, LevelsTurn)> {
        window.by_account(&self.accounts).find_map(|rung| {
            let arms = window.arms(rung, self.joining.joined());
            let level = self.level_of_rung(rung);
            let chosen = self.least_met(self.seated(arms, level), level)?;
            let turn = LevelsTurn::Level {
                rung: (rung - window.lowest) as u32 + 1,
                rungs: window.rungs() as u32,
                arms,
                met: self.belief.arms[chosen.arm].met[level],
                instances: self.sequence.instances as u32,
            };
            Some((chosen, turn))
        })
    }

    /// The largest of random draws from the posterior, at the limit that says most per second. Half of the time not the
    /// answer of now, so that its rivals are looked at.
    fn draw(&self, rng: &mut Pcg64Mcg) -> Option<Last<Chosen, LevelsTurn>> {
        let open: Vec<usize> = self
            .ranked()
            .filter(|arm| !self.belief.is_complete(*arm))
            .collect();
        let incumbent = self.order[0] as usize;
        let largest = |without: Option<usize>, rng: &mut Pcg64Mcg| {
            let mut last: Last = Last::by(Why::Sample);
            for arm in open.iter().filter(|arm| Some(**arm) != without) {
                let of_arm = &self.belief.arms[*arm];
                let normal: f64 = StandardNormal.sample(rng);
                let variance = of_arm.brings.variance / (1 + self.pending_at[*arm].len()) as f64;
                last.enter(*arm, of_arm.brings.mean + variance.sqrt() * normal);
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
        let levels = self.pooled.floor()..=self.top();
        let is_open = |level: &usize| self.next_position(arm, *level).is_some();
        let level = self
            .belief
            .most_informative(arm, levels.filter(is_open), |from, to| {
                self.pooled.cost(from, to)
            })?;
        let position = self.next_position(arm, level)?;
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
            turn: Some(LevelsTurn::Largest),
        })
    }

    /// All instances were met by all that matter: those that may still be best run on them again, the least run first.
    fn repeat(&self) -> Chosen {
        let level = self.top();
        let best = &self.belief.arms[self.order[0] as usize];
        let deviation = |arm: usize| self.belief.arms[arm].brings.variance.sqrt();
        let is_rival = |arm: &usize| {
            self.belief.arms[*arm].brings.mean + 2.0 * deviation(*arm) >= best.brings.mean - TIE
        };
        let count =
            |arm: &usize| self.belief.arms[*arm].met[level] as usize + self.pending_at[*arm].len();
        let rivals = self.ranked().filter(is_rival);
        let arm = rivals.min_by_key(count).unwrap_or(self.order[0] as usize);
        #[expect(
            clippy::maybe_infinite_iter,
            reason = "past its last cell an arm is not known"
        )]
        let position = (self.belief.arms[arm].met[level] as usize..)
            .find(|position| self.is_open(arm, *position, level))
            .unwrap_or(0);
        Chosen {
            arm,
            level,
            position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Parameters;
    use super::super::super::arm::Shown;
    use super::*;
    use crate::policy::Problem;
    use crate::policy::recommendation::Recommend;
    use crate::round::{LimitGrid, Price};

    #[test]
    fn an_arm_that_has_met_every_instance_leaves_its_place_to_one_that_may_be_as_good() {
        let limits = LimitGrid::new([1.0, 3.0, 9.0]).unwrap();
        let price = Price::new("x", "par10", 9.0).unwrap();
        let problem = Problem::new(6, limits, price).unwrap().with_instances(10);
        let recommend = Recommend::Safe;
        let mut search = Staged::new(&Parameters { recommend }, &problem);
        let ended = Shown::Ended {
            level: 0,
            gain: 0.99,
        };
        let outlived = Shown::Outlived {
            levels: 3,
            assumed: 3,
        };
        for position in 0..10 {
            // Two arms have met every instance, two as good ones half of them; the last one ended nowhere.
            for arm in 0..4 {
                if arm < 2 || position < 5 {
                    search.belief.learn(arm, position, ended);
                }
            }
            if position < 9 {
                search.belief.learn(4, position, outlived);
            }
        }
        search.belief.fit();
        search.sort();
        let mut seated: Vec<usize> = search.seated(2, search.top()).collect();
        seated.sort_unstable();
        assert_eq!(seated, [2, 3]);
        // There is a place left, but not for an arm that cannot be as good.
        assert!(!search.seated(3, search.top()).any(|arm| arm == 4));
        // Where it has a place of its own, it keeps it.
        assert!(search.seated(5, search.top()).any(|arm| arm == 4));
    }
}
