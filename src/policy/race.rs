//! Challengers race an incumbent on the instances it has run: what people use elsewhere, and a bar to pass.
//!
//! As the intensification of ParamILS and SMAC with adaptive capping: a challenger meets the incumbent's runs one by one, on
//! the same instances where they can be chosen. It may lose at most 1.2 times what the incumbent lost on them, and
//! its limit is what is left of that. A challenger that is cut off is out. After 1, 2, 4 ... runs it must be no worse. If it
//! completes all of them, it is the new incumbent. After every challenge the incumbent runs once more.
//!
//! The loss of a run is 1 - gain, as if its limit had been the largest: what PAR10 counts, on the scale of rewards.

use rand::{Rng, RngExt};
use serde::Serialize;

use super::estimate::{Estimates, PullEvidence};
use super::explanation::{Last, Turn, TurnState};
use super::recommendation::Recommend;
use super::survival::Survival;
use super::{Explanation, Options, Policy, PolicyParameters, Problem, Recommendation, Weighed};
use crate::quantity::counted;
use crate::round::{ArmId, Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "race";

/// Its parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// How much more than the incumbent a challenger may lose.
    pub slack: f64,
    /// How the answer is picked.
    pub recommend: Recommend,
}

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        Self {
            slack: options.number("slack", 1.2, "a number from 1 up", |slack| {
                slack.is_finite() && slack >= 1.0
            }),
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }

    fn chooses_instances(&self) -> bool {
        true
    }
}

/// One of the incumbent's runs.
#[derive(Debug, Clone, Copy)]
struct Met {
    instance: Option<u32>,
    loss: f64,
}

/// An arm on its way through the incumbent's runs.
#[derive(Debug, Clone)]
struct Challenge {
    arm: usize,
    /// Its own losses so far.
    met: Vec<Met>,
    is_running: bool,
}

/// The race at work.
#[derive(Debug)]
pub struct Race {
    parameters: Parameters,
    estimates: Estimates,
    instances: usize,
    /// c at each limit.
    costs: Vec<f64>,
    incumbent: usize,
    /// The incumbent's runs in their order.
    met: Vec<Met>,
    /// Runs the incumbent is to do, those under way included.
    owed: u32,
    challenges: Vec<Challenge>,
    last: Last<usize, Role>,
}

/// Builds the policy. The first arm is the incumbent, because it often is the default.
pub fn new(parameters: &Parameters, problem: &Problem) -> Race {
    let limits = problem.limits.as_slice();
    Race {
        estimates: Estimates::new(problem, Survival::Restricted),
        instances: problem.instances,
        costs: limits
            .iter()
            .map(|limit| problem.price.cost(limit.get()))
            .collect(),
        incumbent: 0,
        met: vec![],
        owed: 1,
        challenges: vec![],
        last: Last::NOTHING,
        parameters: parameters.clone(),
    }
}

/// What comes next.
struct NextRun {
    arm: usize,
    k: usize,
    instance: Option<u32>,
    why: Role,
}

/// Why an arm runs.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Role {
    /// One more run of the incumbent.
    Incumbent {
        /// Its runs so far.
        met: usize,
    },
    /// A challenger's next run.
    Challenge {
        /// The arm it challenges.
        incumbent: ArmId,
        /// Which run of the challenger this is, counted from 1.
        run: usize,
        /// The incumbent's runs that it has to get through.
        of: usize,
        /// What it has lost so far.
        lost: f64,
        /// What the incumbent lost in the same runs.
        incumbent_lost: f64,
        /// What it may still lose in this run.
        left: f64,
    },
    /// A look at another arm, while the first incumbent's first run is under way.
    Meanwhile,
}

impl TurnState for Role {
    fn in_words(self, _: Option<&Weighed>, _: Option<&Weighed>) -> Turn {
        match self {
            Self::Incumbent { met } => {
                let reason = match met {
                    0 => "it is the incumbent, the first arm: others are compared with its runs".into(),
                    met => format!(
                        "it is the incumbent, with {}: it runs once more after every challenge, at the largest limit",
                        counted(met as u64, "run")
                    ),
                };
                Turn::new(&self, reason).otherwise(
                    "nothing: the schedule decides; another arm replaces it by completing all its runs with less lost",
                )
            }
            Self::Challenge {
                incumbent,
                run,
                of,
                lost,
                incumbent_lost,
                left,
            } => {
                let so_far = if run == 1 {
                    String::new()
                } else {
                    format!(" it lost {lost:.6} so far, the incumbent {incumbent_lost:.6} in the same runs;")
                };
                let reason = format!(
                    "it challenges the incumbent, arm {incumbent}: run {run} of {of};{so_far} it may lose {left:.6} more, which sets its limit"
                );
                Turn::new(&self, reason)
                    .otherwise(format!(
                        "nothing: the schedule decides; the challenge is over when a run is cut off, or when more is lost than the incumbent lost in its first 1, 2, 4, ... runs; with less lost in all {of} it takes the incumbent's place"
                    ))
                    .second("incumbent")
            }
            Self::Meanwhile => Turn::new(
                &self,
                "another arm runs while the incumbent's first run is under way",
            )
            .otherwise(
                "nothing: the schedule decides; challenges begin when the incumbent's run has ended",
            ),
        }
    }
}

impl Race {
    /// The incumbent on an instance it has not met and is not about to meet, at the largest limit.
    fn incumbents_turn(&self, rng: &mut dyn Rng) -> NextRun {
        let instance = (self.instances > 0).then(|| {
            let met = self.met.iter().map(|met| met.instance);
            let meets = self.estimates.under_way(self.incumbent);
            let taken: Vec<Option<u32>> = met.chain(meets.map(|pull| pull.instance)).collect();
            let fresh: Vec<u32> = (0..self.instances as u32)
                .filter(|instance| !taken.contains(&Some(*instance)))
                .collect();
            match fresh.len() {
                0 => rng.random_range(0..self.instances as u32),
                count => fresh[rng.random_range(0..count)],
            }
        });
        NextRun {
            arm: self.incumbent,
            k: self.costs.len() - 1,
            instance,
            why: Role::Incumbent {
                met: self.met.len(),
            },
        }
    }

    /// The next run of a challenger, at the limit it has left.
    fn challengers_turn(&self, arm: usize, met: &[Met]) -> NextRun {
        let stage = (met.len() + 1).next_power_of_two().min(self.met.len());
        let allowed = self.parameters.slack * losses(&self.met[..stage]);
        let left = allowed - losses(met);
        let k = self.costs.partition_point(|cost| *cost < left);
        NextRun {
            arm,
            k: k.min(self.costs.len() - 1),
            instance: self.met[met.len()].instance,
            why: Role::Challenge {
                incumbent: ArmId::from_index(self.incumbent),
                run: met.len() + 1,
                of: self.met.len(),
                lost: losses(met),
                incumbent_lost: losses(&self.met[..met.len()]),
                left,
            },
        }
    }

    fn turn(&self, rng: &mut dyn Rng) -> NextRun {
        let under_way = self.estimates.arm_count(self.incumbent).pending;
        if self.owed > under_way || self.estimates.arms() == 1 {
            return self.incumbents_turn(rng);
        }
        let mut challenges = self.challenges.iter();
        if let Some(challenge) = challenges.find(|challenge| !challenge.is_running) {
            return self.challengers_turn(challenge.arm, &challenge.met);
        }
        match self.newcomer(rng) {
            // Where even the first incumbent's run is still under way, slots look at other arms.
            Some(arm) if self.met.is_empty() => NextRun {
                arm,
                k: self.costs.len() - 1,
                instance: None,
                why: Role::Meanwhile,
            },
            Some(arm) => self.challengers_turn(arm, &[]),
            None => self.incumbents_turn(rng),
        }
    }

    /// Any arm that is neither incumbent nor racing nor under way, if there is one; of two the one that was seen less.
    fn newcomer(&self, rng: &mut dyn Rng) -> Option<usize> {
        let arms = self.estimates.arms();
        let is_free = |arm: &usize| {
            *arm != self.incumbent
                && self
                    .challenges
                    .iter()
                    .all(|challenge| challenge.arm != *arm)
                && self.estimates.arm_count(*arm).pending == 0
        };
        let draw = |rng: &mut dyn Rng| {
            let start = rng.random_range(0..arms);
            (start..arms).chain(0..start).find(is_free)
        };
        let (first, second) = (draw(rng)?, draw(rng)?);
        let seen = |arm: usize| self.estimates.arm_count(arm).observed;
        Some(if seen(second) < seen(first) {
            second
        } else {
            first
        })
    }

    /// What a run lost, as if its limit had been the largest; none where it was cut off before.
    fn loss(&self, pulled: &PullEvidence) -> Option<f64> {
        let limits = self.estimates.limits();
        match pulled.ended {
            Some(ended) => Some(1.0 - ended.net),
            None if pulled.reach >= limits[limits.len() - 1] => {
                Some(1.0 + self.estimates.penalties()[limits.len() - 1])
            }
            None => None,
        }
    }

    /// A challenger is back from a run.
    fn race(&mut self, place: usize, instance: Option<u32>, loss: Option<f64>) {
        let challenge = &mut self.challenges[place];
        challenge.is_running = false;
        let Some(loss) = loss else {
            return self.end(place);
        };
        challenge.met.push(Met { instance, loss });
        let count = challenge.met.len();
        let (own, theirs) = (
            losses(&challenge.met),
            losses(&self.met[..count.min(self.met.len())]),
        );
        if count >= self.met.len() {
            if own < theirs {
                self.incumbent = challenge.arm;
                self.met = std::mem::take(&mut challenge.met);
                // What the old one owed, and still runs, is no longer waited for.
                self.owed = 0;
            }
            self.end(place);
        } else if count.is_power_of_two() && own > theirs
            || own > self.parameters.slack * losses(&self.met)
        {
            self.end(place);
        }
    }

    fn end(&mut self, place: usize) {
        self.challenges.remove(place);
        self.owed += 1;
    }
}

fn losses(met: &[Met]) -> f64 {
    met.iter().map(|met| met.loss).sum()
}

impl Policy for Race {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let turn = self.turn(rng);
        let points = self.costs.len();
        let is_challenge = matches!(turn.why, Role::Challenge { .. });
        self.last = Last::turn(
            turn.arm * points + turn.k,
            is_challenge.then_some(self.incumbent * points + turn.k),
            turn.why,
        );
        Pull {
            instance: turn.instance,
            ..self.estimates.pull(turn.arm, turn.k)
        }
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        let is_again = self.estimates.is_pending(round);
        let arm = self.estimates.launched(round, pull);
        // What was lost and is tried again stays what it was.
        if arm == self.incumbent || is_again {
            return;
        }
        let mut challenges = self.challenges.iter_mut();
        if let Some(challenge) = challenges.find(|challenge| challenge.arm == arm) {
            challenge.is_running = true;
        } else if !self.met.is_empty() {
            self.challenges.push(Challenge {
                arm,
                met: vec![],
                is_running: true,
            });
        }
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, pulled) = self.estimates.observe(round, &seen);
        let instance = seen.pull().instance;
        let loss = self.loss(&pulled);
        if arm == self.incumbent {
            self.owed = self.owed.saturating_sub(1);
            // A run that was cut off early counts as lost.
            let penalty = self.estimates.penalties().last().copied().unwrap_or(0.0);
            let loss = loss.unwrap_or(1.0 + penalty);
            self.met.push(Met { instance, loss });
        } else if let Some(place) = self
            .challenges
            .iter()
            .position(|challenge| challenge.arm == arm)
        {
            self.race(place, instance, loss);
        }
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        self.last
            .explain(|pair, index| self.estimates.pair(pair, index))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::policy::PolicyKind;
    use crate::round::{LimitGrid, Price};

    struct Track {
        policy: Box<dyn Policy>,
        rng: Pcg64Mcg,
        round: u64,
    }

    impl Track {
        /// Five arms, limits of 1, 2, ... 10 s, six instances, and an incumbent that took 4 s on one of them.
        fn begin(spec: &str) -> (Self, Pull) {
            let price = Price::new("x", "10 * x", 10.0).unwrap();
            let problem = Problem::new(5, LimitGrid::fractions(10.0, 10).unwrap(), price);
            let problem = problem.unwrap().with_instances(6);
            let mut track = Self {
                policy: PolicyKind::parse(spec).unwrap().build(&problem),
                rng: Pcg64Mcg::seed_from_u64(1),
                round: 0,
            };
            let first = track.run(4.0);
            assert_eq!((first.arm.index(), first.limit.get()), (0, 10.0));
            (track, first)
        }

        /// Runs what comes next, which takes so long if it may.
        fn run(&mut self, seconds: f64) -> Pull {
            let under_way = self.launch();
            self.end(under_way, seconds);
            under_way.1
        }

        /// Puts what comes next into a slot.
        fn launch(&mut self) -> (Round, Pull) {
            self.round += 1;
            let round = Round(self.round);
            let pull = self.policy.choose(round, &mut self.rng);
            self.policy.launched(round, pull);
            (round, pull)
        }

        fn end(&mut self, (round, pull): (Round, Pull), seconds: f64) {
            let seen = Observation::ended(pull, 1.0, seconds).unwrap();
            self.policy.observe(round, seen, &mut self.rng);
        }
    }

    #[test]
    fn a_challenger_is_cut_off_at_a_little_more_than_the_incumbent_took() {
        // 1.2 x 4 s and 1.9 x 4 s, at the next limit of the grid.
        for (spec, limit) in [("race", 5.0), ("race:slack=1.9", 8.0)] {
            let (mut track, first) = Track::begin(spec);
            let challenge = track.run(9.0);
            assert_ne!(challenge.arm, first.arm);
            assert_eq!(challenge.limit.get(), limit, "{spec}");
            assert_eq!(challenge.instance, first.instance, "on the same instance");
            // It was cut off, so the incumbent is still the same, and runs on another instance.
            let second = track.run(4.0);
            assert_eq!((second.arm, second.limit.get()), (first.arm, 10.0));
            assert_ne!(second.instance, first.instance);
        }
    }

    #[test]
    fn who_gets_through_all_runs_for_less_is_the_new_incumbent() {
        let (mut track, first) = Track::begin("race");
        let challenge = track.run(2.0);
        let second = track.run(2.0);
        assert_eq!((second.arm, second.limit.get()), (challenge.arm, 10.0));
        assert_ne!(second.instance, first.instance);
        // Now there are two runs to get through, on the instances of either. An arm that is worse on the first is out.
        let third = track.run(2.1);
        assert_ne!(third.arm, second.arm);
        assert_eq!(third.instance, first.instance);
        assert_eq!(track.run(2.0).arm, second.arm, "the worse arm is out");
        let fourth = track.run(1.0);
        let again = track.run(1.0);
        assert_eq!((again.arm, again.instance), (fourth.arm, second.instance));
    }

    #[test]
    fn with_two_slots_the_incumbent_runs_after_every_challenge_and_challengers_stay_capped() {
        let (mut track, first) = Track::begin("race");
        let mut slots = [track.launch(), track.launch()];
        assert_ne!(slots[0].1.arm, slots[1].1.arm);
        let mut incumbents = 0;
        for number in 0..200 {
            // Either slot may be the first to end; challengers are slower than the incumbent.
            let slot = number * number % 3 % 2;
            let is_incumbent = slots[slot].1.arm == first.arm;
            track.end(slots[slot], if is_incumbent { 4.0 } else { 9.0 });
            slots[slot] = track.launch();
            let (_, pull) = slots[slot];
            let limit = if pull.arm == first.arm { 10.0 } else { 5.0 };
            assert_eq!(pull.limit.get(), limit, "round {number}: {pull:?}");
            incumbents += usize::from(pull.arm == first.arm);
        }
        assert!((95..=105).contains(&incumbents), "{incumbents} of 200");
    }

    #[test]
    fn two_runs_of_the_incumbent_at_once_are_on_different_instances() {
        for seed in 0..20 {
            let (mut track, first) = Track::begin("race");
            track.rng = Pcg64Mcg::seed_from_u64(seed);
            for challenge in [track.launch(), track.launch()] {
                track.end(challenge, 9.0);
            }
            let (one, other) = (track.launch().1, track.launch().1);
            assert_eq!((one.arm, other.arm), (first.arm, first.arm));
            assert_ne!(one.instance, other.instance);
        }
    }

    #[test]
    fn an_incumbent_that_is_replaced_while_it_runs_leaves_nothing_behind() {
        let (mut track, first) = Track::begin("race");
        let (out, winner) = (track.launch(), track.launch());
        track.end(out, 9.0);
        let late = track.launch();
        assert_eq!(late.1.arm, first.arm);
        track.end(winner, 2.0);
        let next = track.run(2.0);
        assert_eq!((next.arm, next.limit.get()), (winner.1.arm, 10.0));
        for is_late_over in [false, true] {
            // 1.2 x 2 s, at the next limit of the grid; then the incumbent again, and once only.
            let challenge = track.run(9.0);
            assert_eq!(challenge.limit.get(), 3.0, "{challenge:?}");
            let next = track.run(2.0);
            assert_eq!((next.arm, next.limit.get()), (winner.1.arm, 10.0));
            if !is_late_over {
                // Even if it was lost and is tried again, it is no challenge.
                track.policy.launched(late.0, late.1);
                track.end(late, 1.0);
            }
        }
    }

    #[test]
    fn a_run_that_was_lost_and_is_tried_again_counts_once() {
        let (mut track, first) = Track::begin("race");
        track.run(9.0);
        let (round, pull) = track.launch();
        track.policy.launched(round, pull);
        track.end((round, pull), 4.0);
        for _ in 0..3 {
            assert_eq!(track.run(9.0).limit.get(), 5.0);
            assert_eq!(track.run(4.0).arm, first.arm);
        }
    }

    #[test]
    fn slots_that_no_arm_is_left_for_run_the_incumbent() {
        let (mut track, first) = Track::begin("race");
        let challenges: Vec<usize> = (0..4).map(|_| track.launch().1.arm.index()).collect();
        let arms: std::collections::BTreeSet<usize> = challenges.into_iter().collect();
        assert_eq!(arms, (1..5).collect());
        let (_, more) = track.launch();
        assert_eq!((more.arm, more.limit.get()), (first.arm, 10.0));
    }
}
