//! The answer, the posterior estimates of all pairs, and the reason for a choice.

use std::ops::Range;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::belief::{Draw, Mean, cells};
use super::pool::Drawn;
use super::{SimilarRecommend, SimilarTs};
use crate::policy::estimate::Stat;
use crate::policy::recommendation::interval_of;
use crate::policy::{Recommendation, Weighed};
use crate::round::Limit;

/// Curves drawn for the interval around a gain.
const CURVES: usize = 160;

/// What is believed of a pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belief {
    pub gain: f64,
    /// 95 % of what is believed.
    pub interval: (f64, f64),
}

/// Its answer.
impl SimilarTs {
    /// The pair with the largest gain believed, of those that a run reached; or the arm with the largest gain believed at
    /// a limit, reached or not, reported at the nearest one that a run of it reached, smaller ones first.
    ///
    /// The gain and its interval are those believed: plain means would be off where runs were repeated on the instances
    /// that had not ended.
    pub(super) fn best(&self, at: Option<Limit>) -> Option<Recommendation> {
        let limits = self.estimates.limits();
        let at = at.map(|limit| limits.partition_point(|&own| own <= limit.get()).max(1) - 1);
        let mut best: Option<(f64, usize, usize)> = None;
        let mut gains = vec![];
        for (place, member) in self.pool.members.iter().enumerate() {
            let stats = self.estimates.of_arm(member.arm as usize);
            // Without a reward there is no limit to recommend it with.
            if !stats.iter().any(Stat::has_reward) {
                continue;
            }
            self.curve(place, &mut Mean, &mut gains);
            let is_meant = |k: &usize| at.map_or(stats[*k].has_reward(), |at| *k == at);
            for k in (0..gains.len()).filter(is_meant) {
                let is_better = |(most, at, _): (f64, usize, usize)| {
                    gains[k] > most || gains[k] == most && member.arm < self.pool.members[at].arm
                };
                if best.is_none_or(is_better) {
                    best = Some((gains[k], place, k));
                }
            }
        }
        let (_, place, k) = best?;
        let arm = self.pool.members[place].arm as usize;
        let stats = self.estimates.of_arm(arm);
        let mut by_nearness = (0..=k).rev().chain(k + 1..stats.len());
        let k = by_nearness.find(|k| stats[*k].has_reward())?;
        Some(self.as_recommendation(arm, k, self.beliefs(place, k..k + 1)[0]))
    }

    /// A pair as the estimates tell it, but with the gain that is believed.
    fn as_recommendation(&self, arm: usize, k: usize, belief: Belief) -> Recommendation {
        Recommendation {
            gain: belief.gain,
            interval: belief.interval,
            ..self.estimates.recommendation(arm, k)
        }
    }
}

/// What it believes, and why it chose.
impl SimilarTs {
    /// What is believed of a member at these limits.
    pub(super) fn beliefs(&self, place: usize, limits: Range<usize>) -> Vec<Belief> {
        let mut gains = vec![];
        // By arm, so that what is said of it does not depend on what else is asked.
        let mut rng = Pcg64Mcg::seed_from_u64(u64::from(self.pool.members[place].arm));
        let mut drawn = vec![Vec::with_capacity(CURVES); limits.len()];
        for _ in 0..CURVES {
            let (rng, sure) = (&mut rng, 1.0);
            self.curve(place, &mut Draw { rng, sure }, &mut gains);
            for (drawn, gain) in drawn.iter_mut().zip(&gains[limits.clone()]) {
                drawn.push(*gain);
            }
        }
        self.curve(place, &mut Mean, &mut gains);
        let beliefs = drawn.into_iter().zip(&gains[limits]);
        let beliefs = beliefs.map(|(drawn, &gain)| {
            let (low, high) = interval_of(drawn);
            Belief {
                gain,
                interval: (low.min(gain), high.max(gain)),
            }
        });
        beliefs.collect()
    }

    /// What is believed of an arm at every limit; nothing where the answer rests on the plain estimates.
    pub(super) fn believed_of(&self, arm: usize) -> Option<Vec<Recommendation>> {
        if self.parameters.recommend != SimilarRecommend::Posterior {
            return None;
        }
        let Some(place) = self.pool.find(arm) else {
            return Some(vec![]);
        };
        let beliefs = self.beliefs(place, 0..self.costs.len());
        let all = beliefs.into_iter().enumerate();
        Some(
            all.map(|(k, belief)| self.as_recommendation(arm, k, belief))
                .collect(),
        )
    }

    /// A member as it was seen when its curve was drawn.
    pub(super) fn weighed(&self, (place, drawn): (usize, Drawn), index: f64) -> Weighed {
        let arm = self.pool.members[place].arm as usize;
        let belief = self.beliefs(place, drawn.aim..drawn.aim + 1)[0];
        Weighed {
            compared_at: self.estimates.pull(arm, drawn.aim).limit,
            mean: belief.gain,
            width: (belief.interval.1 - belief.interval.0) / 2.0,
            interval: belief.interval,
            survival: self.survival(place, drawn.k),
            ..self.estimates.weighed(arm, drawn.k, index)
        }
    }

    /// The share of its runs believed to be still going at a limit.
    fn survival(&self, place: usize, k: usize) -> f64 {
        let member = &self.pool.members[place];
        let strength = self.weights.hazard;
        let mut survivals = vec![];
        let mut survival = 1.0;
        cells(
            &self.ground(),
            &member.of_arm(0.0),
            member.own.mean(),
            |cell| {
                survival *= 1.0 - (strength * cell.usual + cell.ended) / (strength + cell.runs);
                survivals.push(survival);
            },
        );
        survivals[k]
    }
}
