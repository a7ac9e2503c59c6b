//! Whole runs in virtual time and on a target that ends pulls in any order; killed at any point and resumed.

mod losses;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::journal::{
    Appender, EndReason, FILE, Header, Machine, OutcomeRecord, PullRecord, Reader, Record, Replay,
    Step, Syncing, VERSION,
};
use crate::policy::PolicyKind;
use crate::round::{Curve, Observation};
use crate::target::synthetic::{Grid, Synthetic, SyntheticProblem};
use crate::target::{
    Ended, Ending, Ends, InVirtualTime, Measured, Outcome, Ran, Start, Target, VirtualTarget,
};

fn plan(policy: &str) -> Plan {
    let problem = SyntheticProblem::parse("indep").unwrap();
    Plan {
        arms: problem.arms(),
        limits: Limits::Grid(Grid::parse("recovered").unwrap().limits(problem)),
        cost: Curve::parse("x / 10").unwrap(),
        penalty: Curve::parse("x / 10 if x <= 0.5 else 10 * x").unwrap(),
        unit: Some(1.0),
        policy: PolicyKind::parse(policy).unwrap(),
        seed: 5,
        instances: 0,
        instance_names: [].into(),
        space: None,
        stop_on_first_failures: false,
    }
}

fn header() -> Header {
    Header {
        journal: VERSION,
        captime: "0".into(),
        name: "try".into(),
        started: String::new(),
        file: String::new(),
        folder: String::new(),
        hash: String::new(),
        seed: 5,
        is_virtual: true,
        machine: Machine {
            host: String::new(),
            kernel: String::new(),
            cpus: 1,
            cpu: String::new(),
            memory: 0,
        },
        enforcement: serde_json::Value::Null,
        resolved: serde_json::Value::Null,
        normal: serde_json::Value::Null,
        scenario: String::new(),
    }
}

fn rounds(rounds: u64) -> Budget {
    Budget {
        rounds: Some(rounds),
        ..Budget::default()
    }
}

/// One session on the run in `folder`, new or not.
fn session(
    folder: &Path,
    plan: Plan,
    slots: usize,
    budget: Budget,
    syncing: Syncing,
    target: impl FnOnce(Ends) -> Box<dyn Target>,
) -> Finished {
    try_session(folder, plan, slots, budget, syncing, target).unwrap()
}

fn try_session(
    folder: &Path,
    plan: Plan,
    slots: usize,
    budget: Budget,
    syncing: Syncing,
    target: impl FnOnce(Ends) -> Box<dyn Target>,
) -> Result<Finished, RunError> {
    let pauses = [std::time::Duration::ZERO; 3];
    sitting(folder, plan, slots, budget, syncing, pauses, target)
}

fn sitting(
    folder: &Path,
    plan: Plan,
    slots: usize,
    budget: Budget,
    syncing: Syncing,
    pauses: [std::time::Duration; 3],
    target: impl FnOnce(Ends) -> Box<dyn Target>,
) -> Result<Finished, RunError> {
    let mut state = State::new(plan);
    let (progress, journal) = if folder.join(FILE).exists() {
        let (reader, progress) = resume(Reader::open(folder).unwrap(), &mut state, |_| ()).unwrap();
        (progress, Appender::resume(&reader, syncing).unwrap())
    } else {
        (
            Progress::default(),
            Appender::create(folder, &header(), syncing).unwrap(),
        )
    };
    let (ends, ended) = unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let setup = Setup {
            state,
            progress,
            journal,
            target: target(ends),
            ends: ended,
            slots,
            budget,
            retries: 2,
            pauses,
            enforcement: serde_json::Value::Null,
            watch: &mut (),
        };
        Orchestrator::begin(setup).unwrap().run().await
    })
}

fn synthetic(ends: Ends) -> Box<dyn Target> {
    let problem = Synthetic::new(SyntheticProblem::parse("indep").unwrap());
    Box::new(InVirtualTime::new(Box::new(problem), 5, ends))
}

/// A pull that ended as it did in virtual time.
fn brought(ran: &Ran) -> Ending {
    Ending::Brought(Box::new(Outcome {
        observation: ran.observation,
        failure: None,
        consumption: Some(ran.consumption),
        score: None,
        is_clamped: false,
        measured: Measured::default(),
    }))
}

/// What was launched and what came, without sessions and line numbers.
fn story(folder: &Path) -> (Vec<PullRecord>, Vec<OutcomeRecord<'static>>) {
    let mut reader = Reader::open(folder).unwrap();
    let (mut pulls, mut outcomes) = (vec![], vec![]);
    while let Some(record) = reader.next().unwrap() {
        match record {
            Record::Pull(pull) => pulls.push(pull),
            Record::Outcome(outcome) => outcomes.push(outcome.into_owned()),
            _ => {}
        }
    }
    (pulls, outcomes)
}

/// Every decision in the journal is the one that a run makes that sees the same outcomes in the same order.
fn decisions_follow(folder: &Path, plan: Plan) {
    let mut state = State::new(plan);
    let mut replay = Replay::new(Reader::open(folder).unwrap());
    while let Some(step) = replay.next().unwrap() {
        if let Step::Launched(recorded) = &step {
            let Next::Pull(mut chosen) = state.choose() else {
                panic!("nothing to choose")
            };
            if recorded.seed.is_some() {
                chosen.seed = Some(state.target_seed(chosen.round));
            }
            assert_eq!(chosen, *recorded);
        }
        assert!(state.replay(&step));
    }
}

#[test]
fn two_runs_with_one_seed_are_the_same_to_the_last_byte() {
    for policy in PolicyKind::NAMES {
        let bytes = |slots| {
            let folder = tempfile::tempdir().unwrap();
            let finished = session(
                folder.path(),
                plan(policy),
                slots,
                rounds(300),
                Syncing::AtEnd,
                synthetic,
            );
            assert_eq!(finished.reason, EndReason::Rounds);
            assert_eq!(finished.state.tally().learned, 300);
            decisions_follow(folder.path(), plan(policy));
            fs::read(folder.path().join(FILE)).unwrap()
        };
        assert_eq!(bytes(1), bytes(1), "{policy}");
        assert_eq!(bytes(3), bytes(3), "{policy}");
    }
}

#[test]
fn a_raised_budget_goes_on_as_if_it_had_always_been_higher() {
    let (short, long) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    session(
        short.path(),
        plan("rcucb"),
        1,
        rounds(100),
        Syncing::AtEnd,
        synthetic,
    );
    session(
        short.path(),
        plan("rcucb"),
        1,
        rounds(250),
        Syncing::AtEnd,
        synthetic,
    );
    session(
        long.path(),
        plan("rcucb"),
        1,
        rounds(250),
        Syncing::AtEnd,
        synthetic,
    );
    assert_eq!(story(short.path()), story(long.path()));
}

#[test]
fn a_consumption_budget_ends_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let budget = Budget {
        consumption: Some(20.0),
        ..Budget::default()
    };
    let finished = session(
        folder.path(),
        plan("ts"),
        1,
        budget,
        Syncing::AtEnd,
        synthetic,
    );
    assert_eq!(finished.reason, EndReason::Consumption);
    let tally = finished.state.tally();
    assert!(
        tally.consumption >= 20.0 && tally.consumption < 21.0,
        "{tally:?}"
    );
}

/// Ends pulls in an order of its own, loses some, and never ends the last ones when it is told to stop.
struct Unruly {
    inner: Synthetic,
    running: Vec<Start>,
    slots: usize,
    luck: u64,
    ends: Ends,
}

impl Unruly {
    fn luck(&mut self) -> usize {
        self.luck = self
            .luck
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.luck >> 33) as usize
    }

    fn end(&mut self, place: usize) {
        let start = self.running.remove(place);
        let ran = self.inner.run(5, start.round, start.pull);
        let ending = match self.luck() % 10 {
            0 => Ending::Lost {
                why: "no reason".into(),
            },
            1 => Ending::Brought(Box::new(Outcome {
                observation: Observation::failed(start.pull),
                failure: None,
                consumption: None,
                score: None,
                is_clamped: false,
                measured: Measured::default(),
            })),
            _ => brought(&ran),
        };
        let _ = self.ends.send(Ended {
            slot: start.slot,
            round: start.round,
            ending,
        });
    }
}

impl Target for Unruly {
    fn start(&mut self, start: Start) {
        self.running.push(start);
        if self.running.len() == self.slots {
            let place = self.luck() % self.running.len();
            self.end(place);
        }
    }

    fn stop(&mut self, slot: usize) {
        if let Some(place) = self.running.iter().position(|start| start.slot == slot) {
            let start = self.running.remove(place);
            let _ = self.ends.send(Ended {
                slot,
                round: start.round,
                ending: Ending::Stopped,
            });
        }
    }
}

fn unruly(slots: usize, luck: u64) -> impl FnOnce(Ends) -> Box<dyn Target> {
    move |ends| {
        Box::new(Unruly {
            inner: Synthetic::new(SyntheticProblem::parse("indep").unwrap()),
            running: vec![],
            slots,
            luck,
            ends,
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Killed after any byte, any number of times: no finished round is lost or doubled, and every decision is the one
    /// an undisturbed run makes on the same outcomes.
    #[test]
    fn a_run_killed_anywhere_goes_on_as_if_nothing_had_happened(
        cuts in proptest::collection::vec(0.0..1.0_f64, 1..4),
        slots in 1_usize..5,
        policy in 0..PolicyKind::NAMES.len(),
        luck: u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let policy = PolicyKind::NAMES[policy];
        let budget = Budget { wall: Some(0.06), ..rounds(150) };
        let mut finished_before: Vec<OutcomeRecord<'_>> = vec![];
        for (k, cut) in cuts.iter().enumerate() {
            session(folder.path(), plan(policy), slots, budget, Syncing::Outcomes, unruly(slots, luck ^ k as u64));
            let path = folder.path().join(FILE);
            let bytes = fs::read(&path).unwrap();
            let header = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let kept = header + ((bytes.len() - header) as f64 * cut) as usize;
            fs::write(&path, &bytes[..kept]).unwrap();
            decisions_follow(folder.path(), plan(policy));
            finished_before = story(folder.path()).1;
        }
        session(folder.path(), plan(policy), slots, budget, Syncing::Outcomes, unruly(slots, luck));
        decisions_follow(folder.path(), plan(policy));
        let (pulls, outcomes) = story(folder.path());
        prop_assert_eq!(&outcomes[..finished_before.len()], &finished_before[..]);
        let mut ended: Vec<u64> = outcomes.iter().map(|outcome| outcome.outcome).collect();
        ended.sort_unstable();
        ended.dedup();
        prop_assert_eq!(ended.len(), outcomes.len(), "no round ends twice");
        let launched: Vec<u64> = pulls.iter().map(|pull| pull.round.0).collect();
        prop_assert_eq!(launched, (1..=pulls.len() as u64).collect::<Vec<_>>());
    }
}

fn calibrating(policy: &str) -> Plan {
    Plan {
        limits: Limits::Calibrate(Calibrate {
            guard: crate::round::Limit::new(0.9).unwrap(),
            points: 5,
            quantiles: (0.25, 0.75),
            arms: Some(6),
        }),
        unit: None,
        ..plan(policy)
    }
}

#[test]
fn calibration_comes_first_and_survives_being_killed() {
    let whole = tempfile::tempdir().unwrap();
    let finished = session(
        whole.path(),
        calibrating("rcucb"),
        2,
        rounds(60),
        Syncing::AtEnd,
        synthetic,
    );
    let limits = finished.state.problem().unwrap().limits.clone();
    assert_eq!(limits.len(), 5);
    assert!(limits.max().get() < 0.9);
    decisions_follow(whole.path(), calibrating("rcucb"));
    let bytes = fs::read(whole.path().join(FILE)).unwrap();
    let ends: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    for end in ends {
        let cut = tempfile::tempdir().unwrap();
        fs::write(cut.path().join(FILE), &bytes[..end]).unwrap();
        let again = session(
            cut.path(),
            calibrating("rcucb"),
            2,
            rounds(60),
            Syncing::AtEnd,
            synthetic,
        );
        assert_eq!(again.state.problem().unwrap().limits, limits);
        assert_eq!(
            story(cut.path()),
            story(whole.path()),
            "cut after {end} bytes"
        );
    }
}

#[test]
fn a_run_whose_first_pulls_all_fail_is_stopped_after_a_look_around() {
    struct Failing(Ends);
    impl Target for Failing {
        fn start(&mut self, start: Start) {
            let outcome = Outcome::failed(
                start.pull,
                crate::target::Failing {
                    reason: "exit code 3".into(),
                    guard: None,
                    stderr: "no".into(),
                },
                None,
                Measured::default(),
            );
            let ending = Ending::Brought(Box::new(outcome));
            let _ = self.0.send(Ended {
                slot: start.slot,
                round: start.round,
                ending,
            });
        }
        fn stop(&mut self, _: usize) {}
    }
    let folder = tempfile::tempdir().unwrap();
    let hopeless = Plan {
        stop_on_first_failures: true,
        ..plan("rcucb")
    };
    let target = |ends| Box::new(Failing(ends)) as Box<dyn Target>;
    let finished = session(
        folder.path(),
        hopeless.clone(),
        1,
        rounds(500),
        Syncing::AtEnd,
        target,
    );
    assert_eq!(finished.reason, EndReason::FirstFailures);
    assert_eq!(finished.state.tally().failed, 10);
    decisions_follow(folder.path(), hopeless);
    let patient = tempfile::tempdir().unwrap();
    let finished = session(
        patient.path(),
        plan("rcucb"),
        1,
        rounds(500),
        Syncing::AtEnd,
        target,
    );
    assert_eq!(finished.state.tally().failed, 500);
}
