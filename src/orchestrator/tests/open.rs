//! Runs on open spaces: arms get their numbers one by one, and a run that was killed proposes what it would have proposed.

use super::*;
use crate::journal::ArmRecord;
use crate::round::{ArmId, Limit, Observation, Price, Pull, Purpose, Round, randomness};
use crate::space::open::Origin;
use crate::space::{Configuration, Value};
use crate::target::VirtualTarget;
use rand::RngExt;

const SPACE: &str = "target: external
arms:
  space:
    decay: {real: [0.5, 1.0], default: 0.6}
    restarts: {integer: [1, 100000], scale: log, default: 100}
    heuristic: {choice: [vsids, vmtf, chb], default: vmtf}
    alpha: {real: [0.01, 1.0], scale: log, default: 0.4, when: heuristic == chb}
  forbid: [decay * restarts > 50000]
  start: [{decay: 0.9}, {heuristic: chb}]
limits: {grid: [0.1s, 0.3s, 1s, 3s, 10s]}
seed: 7
";

/// Runs that take the longer the further a configuration is from the best one, and a while longer on some instances.
struct Hills {
    instances: Vec<String>,
}

fn hills(instances: usize) -> Hills {
    Hills {
        instances: (1..=instances).map(|number| number.to_string()).collect(),
    }
}

impl VirtualTarget for Hills {
    fn arms(&self) -> usize {
        usize::MAX
    }

    fn instance_names(&self) -> &[String] {
        &self.instances
    }

    fn run(&self, _: u64, _: Round, _: Pull) -> Ran {
        unreachable!("arms of an open space are known by their configuration")
    }

    fn run_configuration(&self, _: u64, _: Round, pull: Pull, what: &Configuration) -> Ran {
        let number = |name| what.get(name).and_then(Value::number);
        let decay = number("decay").unwrap();
        let restarts = number("restarts").unwrap();
        let alpha = number("alpha").map_or(2.0, |alpha| (alpha / 0.2).ln().abs());
        let far = 6.0 * (decay - 0.8).abs() + 0.3 * (restarts / 1000.0).ln().abs() + alpha;
        let round = Round(u64::from(pull.instance.unwrap_or(0)));
        let mut rng = randomness(1, round, Purpose::Target);
        let seconds = 0.05 * far.exp() * rng.random_range(0.2..4.0);
        let limit = pull.limit.get();
        let observation = if seconds <= limit {
            Observation::ended(pull, 1.0, seconds)
        } else {
            Observation::censored(pull, limit)
        };
        Ran {
            observation: observation.unwrap(),
            consumption: seconds.min(limit),
        }
    }

    fn gain(&self, _: ArmId, _: Limit, _: &Price) -> f64 {
        f64::NAN
    }

    fn censored(&self, _: ArmId, _: Limit) -> f64 {
        f64::NAN
    }
}

fn plan(instances: usize) -> Plan {
    let scenario = crate::scenario::parse(SPACE, "t.yaml".as_ref(), ".".as_ref());
    Plan::of(&scenario.unwrap().scenario, &hills(instances).instances)
}

fn on_hills(instances: usize) -> impl FnOnce(Ends) -> Box<dyn Target> {
    move |ends| Box::new(InVirtualTime::new(Box::new(hills(instances)), 5, ends))
}

/// What was opened, with every pull and outcome.
fn arms(folder: &Path) -> Vec<ArmRecord> {
    let mut reader = Reader::open(folder).unwrap();
    let mut arms = vec![];
    while let Some(record) = reader.next().unwrap() {
        if let Record::Arm(arm) = record {
            arms.push(*arm);
        }
    }
    arms
}

fn play(folder: &Path, instances: usize, slots: usize, count: u64) -> Finished {
    let (plan, syncing) = (plan(instances), Syncing::AtEnd);
    session(
        folder,
        plan,
        slots,
        rounds(count),
        syncing,
        on_hills(instances),
    )
}

#[test]
fn arms_get_their_numbers_as_they_are_pulled_for_the_first_time() {
    for (instances, slots) in [(0, 1), (0, 3), (12, 1), (12, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let finished = play(folder.path(), instances, slots, 1500);
        decisions_follow(folder.path(), plan(instances));
        let arms = arms(folder.path());
        let least = if instances > 0 { 100 } else { 50 };
        assert!(arms.len() > least, "{} arms", arms.len());
        assert_eq!(arms[0].origin, Origin::Default);
        assert_eq!(
            (&arms[1].origin, &arms[2].origin),
            (&Origin::Start, &Origin::Start)
        );
        let numbers: Vec<usize> = arms.iter().map(|arm| arm.arm.index()).collect();
        assert_eq!(numbers, (0..arms.len()).collect::<Vec<_>>());
        let mut pulled: Vec<usize> = vec![];
        for pull in story(folder.path()).0 {
            if !pulled.contains(&pull.arm.index()) {
                pulled.push(pull.arm.index());
            }
        }
        assert_eq!(pulled, numbers, "in the order of their first pulls");
        let (first, later) = arms[3..].split_at(50.min(arms.len() - 3));
        let drawn = first.iter().all(|arm| arm.origin == Origin::Sampled);
        assert!(drawn, "50 arms are drawn first");
        let is_proposed = |arm: &&ArmRecord| matches!(&arm.origin, Origin::Proposed { from, .. } if from.len() == 2);
        let proposed = later.iter().filter(is_proposed).count();
        assert!(2 * proposed >= later.len(), "{proposed} of {}", later.len());
        // What the answer says can be read from the journal.
        let state = finished.run.state();
        let best = state.recommend().unwrap();
        let space = state.space();
        assert_eq!(
            serde_json::to_value(space.configuration(best.pull.arm)).unwrap(),
            serde_json::Value::from(arms[best.pull.arm.index()].configuration.clone())
        );
    }
}

#[test]
fn a_search_on_an_open_space_finds_better_arms_than_its_default() {
    for instances in [0, 12] {
        let folder = tempfile::tempdir().unwrap();
        let finished = play(folder.path(), instances, 2, 3000);
        let best = finished.run.state().recommend().unwrap();
        let configuration = finished.run.state().space().configuration(best.pull.arm);
        assert_ne!(best.pull.arm.number(), 1);
        let word = configuration.get("heuristic").unwrap().to_string();
        assert_eq!(word, "chb", "{configuration}");
    }
}

/// What is in the journal of a run that was killed at any time and resumed, is what is in that of one that was not.
#[test]
fn a_killed_run_proposes_what_it_would_have_proposed() {
    for instances in [0, 12] {
        let whole = tempfile::tempdir().unwrap();
        play(whole.path(), instances, 1, 400);
        let bytes = fs::read(whole.path().join(FILE)).unwrap();
        let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        // After lines of all kinds, and within some.
        for (count, end) in ends.iter().enumerate().skip(2).step_by(37) {
            let folder = tempfile::tempdir().unwrap();
            let cut = end + 1 + (count % 3) * 20;
            fs::write(folder.path().join(FILE), &bytes[..cut.min(bytes.len())]).unwrap();
            play(folder.path(), instances, 1, 400);
            assert_eq!(
                story(folder.path()),
                story(whole.path()),
                "cut at line {count}"
            );
            let mut opened = arms(folder.path());
            // The line of an arm whose pull was not written is written again.
            opened.dedup();
            assert_eq!(opened, arms(whole.path()), "cut at line {count}");
        }
    }
}

#[test]
fn a_space_with_few_configurations_runs_out_of_new_ones() {
    let text = "target: external\narms: {space: {a: {choice: [x, y]}, b: {integer: [1, 3]}}, forbid: [a == x and b == 2]}\n\
                limits: {grid: [1s, 10s]}\n";
    for (text, count) in [
        (text, 5),
        (
            "target: external\narms: {space: {a: {integer: [3, 3]}}}\nlimits: {grid: [1s]}\n",
            1,
        ),
    ] {
        let scenario = crate::scenario::parse(text, "t.yaml".as_ref(), ".".as_ref());
        let plan = Plan::of(&scenario.unwrap().scenario, &[]);
        let mut run = Run::unrecorded(State::new(plan), ());
        for _ in 0..100 {
            let Next::Pull(pull) = run.next() else {
                panic!("nothing to do")
            };
            run.launch(&pull).unwrap();
            let seen = Observation::ended(pull.pull(), 0.5, 0.5).unwrap();
            let outcome = Outcome::of(seen, Some(0.5), Measured::default());
            let line = run
                .settle(None, pull, Ending::Brought(Box::new(outcome)))
                .unwrap();
            run.durable(line.unwrap(), &[]).unwrap();
        }
        assert_eq!(run.state().space().len(), count);
    }
}

#[test]
fn without_instances_arms_are_opened_for_as_long_as_none_is_good() {
    let mut run = Run::unrecorded(State::new(plan(0)), ());
    for _ in 0..1000 {
        let Next::Pull(pull) = run.next() else {
            panic!("nothing to do")
        };
        run.launch(&pull).unwrap();
        let seen = Observation::censored(pull.pull(), pull.limit.get()).unwrap();
        let outcome = Outcome::of(seen, Some(pull.limit.get()), Measured::default());
        let line = run
            .settle(None, pull, Ending::Brought(Box::new(outcome)))
            .unwrap();
        run.durable(line.unwrap(), &[]).unwrap();
    }
    let space = run.state().space();
    assert!(space.len() > 900, "{} arms", space.len());
    let opened = space.opened().unwrap();
    let later = (300..space.len()).map(|arm| opened.origin(ArmId::from_index(arm)));
    let proposed = later.filter(|origin| matches!(origin, Origin::Proposed { .. }));
    assert!(proposed.count() > 300);
}

#[test]
fn calibration_opens_the_first_arms() {
    let text = SPACE.replace(
        "limits: {grid: [0.1s, 0.3s, 1s, 3s, 10s]}",
        "limits: {wall: 10s, calibrate: {arms: 30}}",
    );
    let scenario = crate::scenario::parse(&text, "t.yaml".as_ref(), ".".as_ref());
    let plan = Plan::of(&scenario.unwrap().scenario, &hills(8).instances);
    let folder = tempfile::tempdir().unwrap();
    let syncing = Syncing::AtEnd;
    let finished = session(
        folder.path(),
        plan.clone(),
        3,
        rounds(300),
        syncing,
        on_hills(8),
    );
    assert!(finished.run.state().limits().max().get() <= 10.0);
    decisions_follow(folder.path(), plan);
    assert_eq!(arms(folder.path())[29].arm.index(), 29);
}

#[test]
fn the_journal_of_another_space_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path(), 0, 1, 30);
    let text = SPACE
        .replace("real: [0.5, 1.0]", "real: [0.5, 0.7]")
        .replace("decay: 0.9", "decay: 0.65");
    let scenario = crate::scenario::parse(&text, "t.yaml".as_ref(), ".".as_ref()).unwrap();
    let mut state = State::new(Plan::of(&scenario.scenario, &[]));
    let read = resume(Reader::open(folder.path()).unwrap(), &mut state, |_| ());
    assert!(matches!(read, Err(RunError::Foreign { .. })));
}
