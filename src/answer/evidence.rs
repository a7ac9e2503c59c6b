//! What the runs of every arm showed.

use crate::quantity::whole;
use crate::round::{ArmId, Limit, Observation, Price, Seen};

/// One finished run of an arm. There are many, so what is missing is not a number, which takes half the room.
#[derive(Debug, Clone, Copy)]
pub struct FinishedRun {
    /// Up to which limit it shows whether the run had ended.
    pub reach: f64,
    /// Its reward, if it ended within its limit.
    pub reward: f64,
    consumption: f64,
    score: f64,
    /// Counted from 1; 0 for none.
    instance: u32,
    /// Whether it failed, which says nothing about how long it would have taken.
    pub is_failed: bool,
}

impl FinishedRun {
    /// What it consumed, if it ended within its limit.
    pub fn consumption(&self) -> Option<f64> {
        Some(self.consumption).filter(|used| !used.is_nan())
    }

    /// The raw score, where the reward is computed from one.
    pub fn score(&self) -> Option<f64> {
        Some(self.score).filter(|score| !score.is_nan())
    }

    /// The instance, counted from 0.
    pub fn instance(&self) -> Option<u32> {
        self.instance.checked_sub(1)
    }

    /// Whether it ended with a reward within this limit.
    pub fn is_solved_within(&self, limit: f64) -> bool {
        self.consumption <= limit
    }

    /// Its gain, had it been granted this limit; the run must reach that far.
    pub fn gain(&self, limit: Limit, price: &Price) -> f64 {
        if self.is_solved_within(limit.get()) {
            self.reward - price.cost(self.consumption)
        } else {
            -price.penalty(limit)
        }
    }
}

/// The runs of every arm, in the order in which they finished.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    arms: Vec<Vec<FinishedRun>>,
    rewarded: u64,
    failed: u64,
    largest: f64,
    has_scores: bool,
    has_other_rewards: bool,
    /// What a forest is scored by where it predicts classes.
    metric: Option<&'static str>,
    /// Whether a score differed from the reward.
    has_other_scores: bool,
}

impl Evidence {
    /// Nothing yet, of a forest that is scored by this metric if it predicts classes.
    pub fn scored_by(metric: Option<&'static str>) -> Self {
        Self {
            metric,
            ..Self::default()
        }
    }

    /// Adds a run, with its raw score where there is one.
    pub fn add(&mut self, seen: &Observation, score: Option<f64>) {
        self.add_on(seen.pull().instance, seen, score);
    }

    /// The same, compared with other runs on this instance, whatever the pull says.
    pub fn add_on(&mut self, instance: Option<u32>, seen: &Observation, score: Option<f64>) {
        let pull = seen.pull();
        let arm = pull.arm.index();
        if arm >= self.arms.len() {
            self.arms.resize(arm + 1, vec![]);
        }
        let (reward, consumption) = match seen.seen() {
            Seen::Rewarded {
                reward,
                consumption,
            } => (reward, consumption),
            Seen::Censored { .. } | Seen::Failed => (f64::NAN, f64::NAN),
        };
        let is_rewarded = !consumption.is_nan();
        let is_failed = seen.seen() == Seen::Failed;
        self.largest = self.largest.max(pull.limit.get());
        self.rewarded += u64::from(is_rewarded);
        self.failed += u64::from(is_failed);
        self.has_scores |= score.is_some();
        self.has_other_scores |= is_rewarded && score.is_some_and(|score| score != reward);
        self.has_other_rewards |= is_rewarded && reward != 1.0;
        let runs = &mut self.arms[arm];
        if runs.len() == runs.capacity() {
            // Twice the room, as usual, would stay half empty for thousands of arms.
            runs.reserve_exact((runs.len() / 4).max(4));
        }
        runs.push(FinishedRun {
            reach: seen.reach().get(),
            reward,
            consumption,
            score: score.filter(|_| is_rewarded).unwrap_or(f64::NAN),
            instance: instance.map_or(0, |index| index.saturating_add(1)),
            is_failed,
        });
    }

    /// The runs of an arm.
    pub fn of(&self, arm: ArmId) -> &[FinishedRun] {
        self.arms.get(arm.index()).map_or(&[], Vec::as_slice)
    }

    /// The runs of an arm that show whether they end within this limit.
    pub fn reaching(&self, arm: ArmId, limit: f64) -> impl Iterator<Item = &FinishedRun> {
        let from = self.shown_from(arm, limit);
        self.of(arm).iter().filter(move |run| run.reach >= from)
    }

    /// From which reach on the runs of an arm show what it does under this limit. An arm that was never granted as much shows it
    /// too if it never needed that: none of its runs was still going when its longest had ended.
    fn shown_from(&self, arm: ArmId, limit: f64) -> f64 {
        let runs = self.of(arm);
        if runs.iter().any(|run| run.reach >= limit) {
            return limit;
        }
        let used = runs.iter().filter_map(FinishedRun::consumption);
        let longest = used.fold(f64::NEG_INFINITY, f64::max);
        let is_cut_off = |run: &FinishedRun| {
            !run.is_failed && run.consumption().is_none() && run.reach >= longest
        };
        if longest.is_finite() && !runs.iter().any(is_cut_off) {
            longest
        } else {
            limit
        }
    }

    /// Arms that were pulled, with their runs.
    pub fn pulled(&self) -> impl Iterator<Item = (ArmId, &[FinishedRun])> {
        let arms = self.arms.iter().enumerate();
        arms.filter(|(_, runs)| !runs.is_empty())
            .map(|(arm, runs)| (ArmId::from_index(arm), runs.as_slice()))
    }

    /// How many arms were pulled at least this often.
    pub fn pulled_at_least(&self, times: usize) -> usize {
        self.arms.iter().filter(|runs| runs.len() >= times).count()
    }

    /// Whether fewer than half of the pulled arms have three runs. Then most of what is to come is not known from what there is:
    /// better limits, and arms that were unlucky once.
    pub fn is_thin(&self) -> bool {
        2 * self.pulled_at_least(3) < self.pulled_at_least(1)
    }

    /// How many runs there are, how many of them earned a reward, and how many failed.
    pub fn counts(&self) -> (u64, u64, u64) {
        let all = self.arms.iter().map(Vec::len).sum::<usize>() as u64;
        (all, self.rewarded, self.failed)
    }

    /// Whether runs have raw scores.
    pub(super) fn has_scores(&self) -> bool {
        self.has_scores
    }

    /// What people call the score. A forest that predicts numbers is scored by its error, which is no reward.
    pub(super) fn score_name(&self) -> &'static str {
        match self.metric {
            None => "score",
            Some("log_loss") => "log loss",
            Some(_) if self.has_other_scores => "RMSE",
            Some("auc") => "AUC",
            Some(metric) => metric,
        }
    }

    /// Whether every reward was 1: runs are solved or not.
    pub(super) fn is_solving(&self) -> bool {
        self.rewarded > 0 && !self.has_other_rewards
    }

    /// Why there is no answer, and what to change; none if a run earned a reward. `largest` is the largest limit that
    /// may be granted.
    pub fn why_no_answer(
        &self,
        largest: f64,
        amount: impl Fn(f64) -> String,
    ) -> Option<(String, String)> {
        let (all, rewarded, failed) = self.counts();
        if rewarded > 0 {
            return None;
        }
        let dry_run = "`captime check SCENARIO --try 3` shows what one pull prints and how it ends";
        Some(if all == 0 {
            (
                "no pull has finished".into(),
                "let it run longer, or raise the budget".into(),
            )
        } else if failed == all {
            (
                format!("all {} pulls failed", whole(all)),
                format!("fix the failure shown below; {dry_run}"),
            )
        } else {
            let cut_off = if failed == 0 {
                format!("all {} pulls were cut off", whole(all))
            } else {
                format!(
                    "{} of {} pulls were cut off, {} failed",
                    whole(all - failed),
                    whole(all),
                    whole(failed)
                )
            };
            let tried = amount(self.largest);
            if self.largest < largest {
                (
                    format!("{cut_off}, and the largest limit tried was {tried} of {}", amount(largest)),
                    "raise the budget, so that larger limits get their turn, or raise the smallest limit"
                        .into(),
                )
            } else {
                (
                    format!("{cut_off}, also at the largest limit, {tried}"),
                    format!("raise the largest limit; {dry_run}"),
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::Pull;

    #[test]
    fn an_arm_that_never_needed_a_limit_is_known_under_it() {
        let mut evidence = Evidence::default();
        let mut run = |arm, limit, seconds: f64| {
            let pull = Pull::new(ArmId::from_index(arm), Limit::new(limit).unwrap());
            evidence.add(&Observation::ended(pull, 1.0, seconds).unwrap(), None);
        };
        // Cut off at 0.3 s, then done in 0.5 s when it got 1 s.
        run(0, 0.3, 0.5);
        run(0, 1.0, 0.5);
        run(0, 1.0, 0.4);
        // Still going after 1 s.
        run(1, 1.0, 0.5);
        run(1, 1.0, 4.0);
        let price = Price::new("x", "10 * x", 10.0).unwrap();
        let of = |arm, limit| {
            let limit = Limit::new(limit).unwrap();
            evidence.estimate(ArmId::from_index(arm), limit, &price)
        };
        let known = of(0, 8.0).unwrap();
        assert_eq!((known.pulls, known.censored), (2, 0.0));
        assert!((known.gain - 0.955).abs() < 1e-9, "{known:?}");
        assert_eq!(of(1, 8.0), None);
        assert_eq!(of(1, 1.0).unwrap().pulls, 2);
    }
}
