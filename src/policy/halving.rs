//! Successive halving with limits that double: what people use elsewhere, and a bar to pass.
//!
//! Karnin, Koren and Somekh (ICML 2013), with the limit as the resource of Jamieson and Talwalkar (AISTATS 2016). A
//! bracket starts with all arms at a small limit; each rung runs what is left on a few more instances, keeps the better
//! half by the gain estimated at the rung's limit, and doubles the limit, so that every rung costs about the same and
//! the last one has the largest limit. If there is time left, the next bracket has twice the runs per rung.

use rand::Rng;
use rand::seq::SliceRandom;
use serde::Serialize;

use super::beta::own_rng;
use super::estimate::Estimates;
use super::explanation::{Last, Turn, TurnState};
use super::recommendation::Recommend;
use super::survival::Survival;
use super::{Explanation, Options, Policy, PolicyParameters, Problem, Recommendation, Weighed};
use crate::quantity::counted;
use crate::round::{Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "halving";

/// Its parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// Whether all arms of a rung meet the same instances, where there are any to choose from.
    pub common: bool,
    /// How the answer is picked.
    pub recommend: Recommend,
}

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        Self {
            common: options.flag("common", false),
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }

    fn chooses_instances(&self) -> bool {
        self.common
    }
}

/// An arm in a rung.
#[derive(Debug, Clone, Copy)]
struct Place {
    arm: usize,
    launched: u32,
    observed: u32,
}

/// Where the schedule was when it gave a pull its turn.
#[derive(Debug, Clone, Copy, Serialize)]
struct InBracket {
    /// The rung, counted from 1.
    rung: u32,
    /// How many a bracket has.
    rungs: u32,
    /// Arms that are left in it.
    arms: usize,
    /// Which run of the arm in this rung this is, counted from 1.
    run: u32,
    /// How many runs each arm has in it.
    runs: u32,
}

impl TurnState for InBracket {
    fn in_words(self, _: Option<&Weighed>, _: Option<&Weighed>) -> Turn {
        let Self { rung, rungs, .. } = self;
        let arms = counted(self.arms as u64, "arm");
        let runs = counted(self.runs.into(), "run");
        let which = if self.run > self.runs {
            "it has had them all, but slots continue rather than wait for the others".to_owned()
        } else {
            format!("this is its run {}", self.run)
        };
        let after = if rung == rungs {
            let next = counted(u64::from(self.runs) * 2, "run");
            format!("when this rung is over, all arms begin again with {next} each")
        } else {
            format!(
                "the rung is over when each of {arms} has had {runs}, then the better half by gain at this limit continues with about twice the limit"
            )
        };
        let reason = format!(
            "its turn in rung {rung} of {rungs}, with {arms} left and {runs} of each at this limit; {which}"
        );
        Turn::new(&self, reason)
            .otherwise(format!("nothing: the schedule decides; {after}"))
            .second("next")
    }
}

/// Successive halving at work.
#[derive(Debug)]
pub struct Halving {
    parameters: Parameters,
    estimates: Estimates,
    instances: usize,
    /// The rung of the bracket, from 0.
    rung: u32,
    /// Runs of each arm in each rung of this bracket.
    runs: u32,
    /// The first of the common instances of this rung.
    first_instance: u32,
    places: Vec<Place>,
    last: Last<usize, InBracket>,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> Halving {
    Halving {
        estimates: Estimates::new(problem, Survival::Restricted),
        instances: problem.instances,
        rung: 0,
        runs: 1,
        first_instance: 0,
        places: (0..problem.arms).map(Place::new).collect(),
        last: Last::NOTHING,
        parameters: parameters.clone(),
    }
}

impl Place {
    fn new(arm: usize) -> Self {
        Self {
            arm,
            launched: 0,
            observed: 0,
        }
    }
}

impl Halving {
    /// The rungs of a bracket: until one arm is left.
    fn rungs(&self) -> u32 {
        self.estimates.arms().next_power_of_two().ilog2() + 1
    }

    /// The limit of this rung: the largest, halved once for each rung to come; of the grid the nearest by ratio.
    fn limit(&self) -> usize {
        let limits = self.estimates.limits();
        let largest = limits[limits.len() - 1];
        let to_come = (self.rungs() - 1).saturating_sub(self.rung);
        let wanted = largest / f64::from(to_come).exp2();
        let above = limits.partition_point(|limit| *limit < wanted);
        if above == 0 || above < limits.len() && limits[above] / wanted < wanted / limits[above - 1]
        {
            above
        } else {
            above - 1
        }
    }

    /// The next arm to run: the first with the fewest launches. Past the rung's last run, slots that would wait run on.
    fn next(&self) -> Place {
        let fewest = self.places.iter().min_by_key(|place| place.launched);
        *fewest.expect("a rung has an arm")
    }

    /// The arm that will run after this one.
    fn after(&self, next: Place) -> Option<Place> {
        let others = self.places.iter().filter(|place| place.arm != next.arm);
        others.min_by_key(|place| place.launched).copied()
    }

    fn is_over(&self) -> bool {
        self.places.iter().all(|place| place.observed >= self.runs)
    }

    /// Keeps the better half, or begins the next bracket.
    fn climb(&mut self, rng: &mut dyn Rng) {
        let k = self.limit();
        self.first_instance = self.first_instance.wrapping_add(self.runs);
        self.rung += 1;
        if self.rung >= self.rungs() {
            self.rung = 0;
            self.runs = self.runs.saturating_mul(2);
            self.places = (0..self.estimates.arms()).map(Place::new).collect();
            return;
        }
        let gain = |arm: usize| {
            let stat = &self.estimates.of_arm(arm)[k];
            let penalty = self.estimates.penalties()[k];
            // Runs that were cut off before the limit say nothing about it.
            let gain = if stat.count > 0 {
                stat.gain(penalty)
            } else {
                -penalty
            };
            (gain, arm)
        };
        let mut order: Vec<(f64, usize)> =
            self.places.iter().map(|place| gain(place.arm)).collect();
        // Many arms are equal after few runs: chance decides among them.
        order.shuffle(&mut own_rng(rng));
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        order.truncate(order.len().div_ceil(2));
        self.places = order.into_iter().map(|(_, arm)| Place::new(arm)).collect();
    }
}

impl Policy for Halving {
    fn choose(&mut self, _: Round, _: &mut dyn Rng) -> Pull {
        let place = self.next();
        let k = self.limit();
        let points = self.estimates.limits().len();
        self.last = Last::turn(
            place.arm * points + k,
            self.after(place).map(|after| after.arm * points + k),
            InBracket {
                rung: self.rung + 1,
                rungs: self.rungs(),
                arms: self.places.len(),
                run: place.launched + 1,
                runs: self.runs,
            },
        );
        let is_common = self.parameters.common && self.instances > 0;
        let instance = is_common.then(|| {
            let number = u64::from(self.first_instance) + u64::from(place.launched);
            (number % self.instances as u64) as u32
        });
        Pull {
            instance,
            ..self.estimates.pull(place.arm, k)
        }
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        let arm = self.estimates.launched(round, pull);
        if let Some(place) = self.places.iter_mut().find(|place| place.arm == arm) {
            place.launched += 1;
        }
    }

    fn observe(&mut self, round: Round, seen: Observation, rng: &mut dyn Rng) {
        let (arm, pulled) = self.estimates.observe(round, &seen);
        // With several slots, runs of the rung before come late: they say nothing of this rung's limit.
        let is_of_rung = pulled.granted >= self.estimates.limits()[self.limit()];
        let mut places = self.places.iter_mut();
        if let Some(place) = places.find(|place| place.arm == arm && is_of_rung) {
            place.observed += 1;
            place.launched = place.launched.max(place.observed);
        }
        if self.is_over() {
            self.climb(rng);
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

    /// Eight arms, of which every one is a little slower than the one before, and limits of 1, 2, 4 and 8 s.
    fn problem() -> Problem {
        let price = Price::new("x", "10 * x", 8.0).unwrap();
        Problem::new(8, LimitGrid::new([1.0, 2.0, 4.0, 8.0]).unwrap(), price)
            .unwrap()
            .with_instances(6)
    }

    /// Arms, in their order, limits and instances of the pulls of a rung.
    type PlayedRung = (Vec<usize>, Vec<f64>, Vec<Option<u32>>);

    /// Plays one pull after the other, as many as rungs of these sizes have.
    fn rungs(spec: &str, sizes: &[usize]) -> Vec<PlayedRung> {
        let mut policy = PolicyKind::parse(spec).unwrap().build(&problem());
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut number = 0;
        let mut rung = |size: &usize| {
            let mut pulls: Vec<Pull> = (0..*size)
                .map(|_| {
                    number += 1;
                    let round = Round(number);
                    let pull = policy.choose(round, &mut rng);
                    policy.launched(round, pull);
                    let seconds = 0.1 * f64::from(pull.arm.number());
                    let seen = Observation::ended(pull, 1.0, seconds).unwrap();
                    policy.observe(round, seen, &mut rng);
                    pull
                })
                .collect();
            pulls.sort_by_key(|pull| pull.arm);
            let all = pulls.iter();
            (
                all.clone().map(|pull| pull.arm.index()).collect(),
                all.clone().map(|pull| pull.limit.get()).collect(),
                all.map(|pull| pull.instance).collect(),
            )
        };
        sizes.iter().map(&mut rung).collect()
    }

    #[test]
    fn half_is_kept_and_the_limit_doubles_up_to_the_largest() {
        let rungs = rungs("halving", &[8, 4, 2, 1, 16]);
        for (place, (arms, limits, instances)) in rungs[..4].iter().enumerate() {
            let kept: Vec<usize> = (0..8 >> place).collect();
            assert_eq!(*arms, kept, "the fastest are kept");
            let limit = f64::from(1 << place);
            assert!(limits.iter().all(|seen| *seen == limit), "{limits:?}");
            // Left to chance unless common ones were requested.
            assert!(instances.iter().all(Option::is_none));
        }
        // The next bracket has all arms again, with twice the runs.
        let (arms, limits, _) = &rungs[4];
        let twice: Vec<usize> = (0..16).map(|run| run / 2).collect();
        assert_eq!(*arms, twice);
        assert!(limits.iter().all(|limit| *limit == 1.0));
    }

    #[test]
    fn arms_of_a_rung_meet_the_same_instances_where_that_is_asked_for() {
        let rungs = rungs("halving:common=true", &[8, 4, 2, 1, 16]);
        for (place, (_, _, instances)) in rungs[..4].iter().enumerate() {
            let same = Some(place as u32);
            assert!(instances.iter().all(|seen| *seen == same), "{instances:?}");
        }
        for of_arm in rungs[4].2.chunks(2) {
            assert_eq!(of_arm, [Some(4), Some(5)]);
        }
    }

    #[test]
    fn limits_of_the_grid_that_are_nearest_are_taken() {
        let price = Price::new("x", "10 * x", 9.0).unwrap();
        let grid = LimitGrid::new([0.1, 2.0, 9.0]).unwrap();
        let problem = Problem::new(8, grid, price).unwrap();
        let mut halving = new(&Parameters::read(&mut Options::new(NAME, vec![])), &problem);
        let mut taken = vec![];
        for rung in 0..4 {
            halving.rung = rung;
            taken.push(halving.estimates.limits()[halving.limit()]);
        }
        // Wanted are 1.125, 2.25, 4.5 and 9.
        assert_eq!(taken, [2.0, 2.0, 9.0, 9.0]);
    }

    #[test]
    fn a_run_of_the_rung_before_that_comes_late_does_not_count_for_this_one() {
        let mut policy = PolicyKind::parse("halving").unwrap().build(&problem());
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut launch = |policy: &mut Box<dyn Policy>, number| {
            let pull = policy.choose(Round(number), &mut rng);
            policy.launched(Round(number), pull);
            (Round(number), pull)
        };
        let mut other = Pcg64Mcg::seed_from_u64(2);
        let mut end = |policy: &mut Box<dyn Policy>, (round, pull): (Round, Pull)| {
            let seconds = 0.1 * f64::from(pull.arm.number());
            let seen = Observation::ended(pull, 1.0, seconds).unwrap();
            policy.observe(round, seen, &mut other);
        };
        // The slot that would wait for the last of the first rung runs the first arm once more, and the rung ends before.
        let rung: Vec<_> = (1..=8).map(|number| launch(&mut policy, number)).collect();
        let late = launch(&mut policy, 9);
        assert_eq!((late.1.arm.index(), late.1.limit.get()), (0, 1.0));
        for run in rung {
            end(&mut policy, run);
        }
        end(&mut policy, late);
        // Four arms are left, and each of them runs at the limit of this rung before anybody is sent away.
        let mut seen = vec![];
        for number in 10..14 {
            let run = launch(&mut policy, number);
            assert_eq!(run.1.limit.get(), 2.0);
            seen.push(run.1.arm.index());
            end(&mut policy, run);
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
        assert_eq!(launch(&mut policy, 14).1.limit.get(), 4.0);
    }
}
