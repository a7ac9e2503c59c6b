//! How the policy learns: from one pull, and from all pulls again.

use rand_pcg::Pcg64Mcg;

use super::SimilarTs;
use super::baseline::{NO_INSTANCE, PastRun};
use super::belief::{Ground, Mean, Ratio, Weights, cells, curve};
use super::evidence::{Ends, Evidence};
use super::{similar, tune};
use crate::policy::estimate::PullEvidence;
use crate::round::{Limit, Observation, Seen};

/// How it learns.
impl SimilarTs {
    /// Enters the evidence from one pull; gives the place of its arm.
    pub(super) fn learn(&mut self, arm: usize, pulled: &PullEvidence, seen: &Observation) -> usize {
        let place = self.pool.place(arm, self.weights);
        let limits = self.estimates.limits();
        let cells = limits.len();
        let reached = limits.partition_point(|limit| *limit <= pulled.reach);
        let ended = pulled
            .ended
            .map(|ended| limits.partition_point(|limit| *limit < ended.consumption))
            .filter(|cell| *cell < reached);
        let instance = seen.pull().instance.unwrap_or(NO_INSTANCE);
        let evidence = self.pool.members[place].evidence.as_ref();
        let known = evidence.and_then(|evidence| evidence.reached.get(instance as usize));
        let run = PastRun {
            place: place as u32,
            instance,
            survived: ended.unwrap_or(reached) as u16,
            is_ended: ended.is_some(),
            known: known.copied().unwrap_or(0),
        };
        self.compare(&run);
        self.runs.push(run);
        self.spend(pulled, seen.pull().limit);
        let (classes, instances) = (self.baseline.classes(), self.baseline.instances());
        let evidence = self.pool.members[place]
            .evidence
            .get_or_insert_with(|| Box::new(Evidence::new(cells, classes, instances)));
        evidence.add(&run, &self.baseline);
        if let (Seen::Rewarded { reward, .. }, Some(cell), Some(ended)) =
            (seen.seen(), ended, pulled.ended)
        {
            let cost = reward - ended.net;
            evidence.brought[cell].add(reward, cost);
            self.usual[cell].add(reward, cost);
        }
        place
    }

    /// Books what a run consumed.
    fn spend(&mut self, pulled: &PullEvidence, limit: Limit) {
        let consumption = pulled.ended.map_or(pulled.reach, |ended| ended.consumption);
        let largest = self.estimates.limits().len() - 1;
        self.spent += consumption;
        if limit.get() >= self.estimates.limits()[largest] {
            self.spent_in_full += consumption;
        }
        if self.affordable() == largest {
            self.full_from = self.full_from.min(self.spent);
        }
    }

    /// Compares a run with an earlier one of the same arm on the same instance that had not ended so far: did this one?
    ///
    /// If runs were independent, some would. If none does, they are echoes, and hardly count.
    fn compare(&mut self, run: &PastRun) {
        let cells = self.costs.len();
        let known = usize::from(run.known);
        if known == 0 || known >= cells {
            return;
        }
        let member = &self.pool.members[run.place as usize];
        let until = known.min(usize::from(run.survived) + usize::from(run.is_ended));
        let hazards = self.baseline.of_class(self.baseline.class(run.instance));
        let hazards = hazards.iter().zip(&member.ratios).take(until);
        let sum: f64 = hazards.map(|(hazard, ratio)| hazard * ratio).sum();
        self.surprise.expected += 1.0 - (-sum * member.own.mean()).exp();
        if run.is_ended && run.survived < run.known {
            self.surprise.seen += 1.0;
        }
        self.baseline.again = self.surprise.ratio(1.0).min(1.0);
    }

    /// Learns everything again from all runs.
    pub(super) fn fit(&mut self, seed: u64) {
        if self.parameters.population {
            self.pool.newcomers(self.weights);
            // What is usual depends on the arms that ran, and which arm is fast depends on what is usual.
            for _ in 0..2 {
                self.fit_baseline();
                self.fit_similar(seed);
                self.fit_weights();
                for place in 0..self.pool.members.len() {
                    self.reconsider(place);
                }
            }
            self.send_away();
        }
        self.fit_at = self.runs.len() + (self.runs.len() / 5).max(8);
    }

    fn fit_baseline(&mut self) {
        let members = &self.pool.members;
        let ratio = |place: u32, cell: usize| {
            let member = &members[place as usize];
            member.ratios[cell] * member.own.mean()
        };
        self.baseline.fit(&self.runs, ratio);
        for member in &mut self.pool.members {
            if let Some(evidence) = &mut member.evidence {
                evidence.clear(self.baseline.classes());
            }
        }
        for run in &self.runs {
            if let Some(evidence) = &mut self.pool.members[run.place as usize].evidence {
                evidence.add(run, &self.baseline);
            }
        }
    }

    fn fit_similar(&mut self, seed: u64) {
        if let Some(space) = self.space.clone() {
            let (members, strength) = (&mut self.pool.members, self.weights.ratio);
            similar::consult(&space, members, &self.baseline, &self.usual, strength, seed);
        }
    }

    /// Takes the weights under which all that was seen is most likely.
    fn fit_weights(&mut self) {
        let ground = self.ground();
        let (mut ends, mut seen) = (vec![], vec![]);
        for member in &self.pool.members {
            let Some(evidence) = &member.evidence else {
                continue;
            };
            let of_member = evidence.ends(&self.baseline, member.own.mean(), |cell| {
                member.ratios[cell]
            });
            ends.push(Ends::sum(&of_member));
            cells(&ground, &member.of_arm(0.0), member.own.mean(), |cell| {
                if cell.runs > 0.0 {
                    seen.push(cell);
                }
            });
        }
        let evidence = self
            .pool
            .members
            .iter()
            .filter_map(|member| member.evidence.as_deref());
        self.weights = Weights {
            hazard: self
                .parameters
                .strength
                .unwrap_or_else(|| tune::hazard(&seen)),
            ratio: tune::ratio(&ends),
            reward: tune::reward(evidence),
        };
    }

    /// Believes of a member what its runs and the priors say now.
    pub(super) fn reconsider(&mut self, place: usize) {
        let arm = self.pool.members[place].of_arm(0.0);
        let own = Ratio::of(&self.ground(), &arm);
        self.pool.members[place].own = own;
    }

    /// Where there are too many arms to think about, those that promise least leave.
    fn send_away(&mut self) {
        // Not `ground()`, which would borrow the pool too.
        let ground = Ground {
            baseline: &self.baseline,
            usual: &self.usual,
            costs: &self.costs,
            penalties: self.estimates.penalties(),
            weights: self.weights,
        };
        let stood = self.pool.keep_best(|member| {
            let mut gains = vec![];
            curve(
                &ground,
                &member.of_arm(0.0),
                member.own,
                &mut Mean,
                &mut gains,
            );
            gains.into_iter().fold(f64::NEG_INFINITY, f64::max)
        });
        if let Some(stood) = stood {
            let mut now = vec![0; stood.last().map_or(0, |last| *last as usize + 1)];
            for (place, before) in stood.iter().enumerate() {
                now[*before as usize] = place as u32;
            }
            for run in &mut self.runs {
                run.place = now[run.place as usize];
            }
        }
    }

    pub(super) fn redraw(&mut self, places: impl Iterator<Item = usize>, rng: &mut Pcg64Mcg) {
        let mut gains = vec![];
        for place in places {
            self.pool.members[place].drawn = self.draw(place, rng, &mut gains);
        }
    }
}
