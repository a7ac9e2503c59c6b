//! Whole runs in virtual time and on a target that ends pulls in any order, killed at any point and resumed.

mod losses;
mod open;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::answer::Comparison;
use crate::journal::{
    Appender, By, EndReason, FILE, Header, Learned, Machine, OutcomeRecord, PullRecord, Reader,
    Record, Replay, Step, Syncing, VERSION,
};
use crate::policy::{PolicyKind, Recommendation};
use crate::resource::Resource;
use crate::round::{ArmId, Curve, Limit, LimitGrid, Observation, Round};
use crate::scenario::Compare;
use crate::space::Space;
use crate::target::synthetic::{Grid, Synthetic, SyntheticProblem};
use crate::target::{
    Ended, Ending, Ends, InVirtualTime, Measured, Outcome, Ran, SlotPool, Start, Target,
    VirtualTarget,
};
use proptest::prelude::*;

fn plan(policy: &str) -> Plan {
    let problem = SyntheticProblem::parse("indep").unwrap();
    Plan {
        arms: problem.arms(),
        limits: LimitSource::Grid(Grid::parse("recovered").unwrap().limits(problem)),
        cost: Curve::parse("x / 10").unwrap(),
        penalty: Curve::parse("x / 10 if x <= 0.5 else 10 * x").unwrap(),
        unit: Some(1.0),
        policy: PolicyKind::parse(policy).unwrap(),
        seed: 5,
        instances: 0,
        instance_names: [].into(),
        space: Space::numbered(problem.arms()).unwrap().into(),
        stop_on_first_failures: false,
        compare: Compare::default(),
        metric: None,
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
    let pauses = [Duration::ZERO; 3];
    sitting(folder, plan, slots, budget, syncing, pauses, target)
}

fn sitting(
    folder: &Path,
    plan: Plan,
    slots: usize,
    budget: Budget,
    syncing: Syncing,
    pauses: [Duration; 3],
    target: impl FnOnce(Ends) -> Box<dyn Target>,
) -> Result<Finished, RunError> {
    let mut state = State::new(plan);
    let is_new = !folder.join(FILE).exists();
    let (progress, journal) = if is_new {
        let journal = Appender::create(folder, &header(), syncing).unwrap();
        (Progress::default(), journal)
    } else {
        let (reader, progress) = resume(Reader::open(folder).unwrap(), &mut state, |_| ()).unwrap();
        (progress, Appender::resume(&reader, syncing).unwrap())
    };
    let opened = OpenedRun {
        state,
        progress,
        journal,
        lock: crate::journal::RunLock::take(folder).unwrap(),
        enforcement: serde_json::Value::Null,
        is_new,
        is_cut: false,
    };
    let run = Run::recorded(opened, ())
        .with_budget(budget)
        .with_retries(2, pauses);
    let wall = Wall {
        seconds: budget.wall,
        spent: 0.0,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut pool = SlotPool::new(slots, target);
        let mut signals = Signals::listen()?;
        let driver = Driver::begin(vec![run], &mut pool, &mut signals, wall)?;
        let Driven {
            mut runs, reason, ..
        } = driver.drive().await?;
        let run = runs.remove(0);
        Ok(Finished { run, reason })
    })
}

/// A run after a session.
#[derive(Debug)]
struct Finished {
    run: Run,
    reason: EndReason,
}

fn synthetic(ends: Ends) -> Box<dyn Target> {
    let problem = Synthetic::new(SyntheticProblem::parse("indep").unwrap());
    Box::new(InVirtualTime::new(Box::new(problem), 5, ends))
}

/// A pull that ended as it did in virtual time.
fn brought(ran: &Ran) -> Ending {
    let outcome = Outcome::of(ran.observation, Some(ran.consumption), Measured::default());
    Ending::Brought(Box::new(outcome))
}

/// The pulls and outcomes of a journal, without sessions and line numbers.
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

/// Checks that every decision in the journal is the one that a run makes on the same outcomes in the same order.
fn decisions_follow(folder: &Path, plan: Plan) {
    let mut state = State::new(plan);
    let mut replay = Replay::new(Reader::open(folder).unwrap());
    while let Some(step) = replay.next().unwrap() {
        if let Step::Opened(recorded) = &step {
            assert_eq!(state.opening(recorded.arm).as_ref(), Some(&**recorded));
        }
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
            assert_eq!(finished.run.state().tally().learned, 300);
            decisions_follow(folder.path(), plan(policy));
            fs::read(folder.path().join(FILE)).unwrap()
        };
        assert_eq!(bytes(1), bytes(1), "{policy}");
        assert_eq!(bytes(3), bytes(3), "{policy}");
    }
}

#[test]
fn a_raised_budget_continues_as_if_it_had_always_been_higher() {
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
    let tally = finished.run.state().tally();
    assert!(
        tally.consumption >= 20.0 && tally.consumption < 21.0,
        "{tally:?}"
    );
}

/// Ends pulls in a random order and loses some.
///
/// A pull ends when all slots are busy. The last ones end once nothing more is started, or stay busy until they are
/// stopped.
#[derive(Clone)]
struct Unruly {
    slots: usize,
    stays_busy: bool,
    shared: Arc<Mutex<Unfinished>>,
}

struct Unfinished {
    inner: Synthetic,
    running: Vec<Start>,
    started: u64,
    luck: u64,
    ends: Ends,
}

impl Unfinished {
    fn luck(&mut self) -> usize {
        self.luck = self
            .luck
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.luck >> 33) as usize
    }

    fn end_one(&mut self) {
        let place = self.luck() % self.running.len();
        let start = self.running.remove(place);
        let ran = self.inner.run(5, start.round, start.pull);
        let ending = match self.luck() % 10 {
            0 => Ending::Lost {
                why: "no reason".into(),
            },
            1 => Ending::Brought(Box::new(Outcome::of(
                Observation::failed(start.pull),
                None,
                Measured::default(),
            ))),
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
        let mut now = self.shared.lock().unwrap();
        now.running.push(start);
        now.started += 1;
        if now.running.len() == self.slots {
            now.end_one();
        }
        if !self.stays_busy {
            let (started, shared) = (now.started, Arc::clone(&self.shared));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let mut now = shared.lock().unwrap();
                while now.started == started && !now.running.is_empty() {
                    now.end_one();
                }
            });
        }
    }

    fn stop(&mut self, slot: usize) {
        let mut now = self.shared.lock().unwrap();
        if let Some(place) = now.running.iter().position(|start| start.slot == slot) {
            let start = now.running.remove(place);
            let _ = now.ends.send(Ended {
                slot,
                round: start.round,
                ending: Ending::Stopped,
            });
        }
    }
}

fn unruly(slots: usize, stays_busy: bool, luck: u64) -> impl FnOnce(Ends) -> Box<dyn Target> {
    move |ends| {
        let unfinished = Unfinished {
            inner: Synthetic::new(SyntheticProblem::parse("indep").unwrap()),
            running: vec![],
            started: 0,
            luck,
            ends,
        };
        Box::new(Unruly {
            slots,
            stays_busy,
            shared: Arc::new(Mutex::new(unfinished)),
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Killed after any byte, any number of times: no finished round is lost or counted twice, and every decision is
    /// the one that an undisturbed run makes on the same outcomes.
    #[test]
    fn a_run_killed_anywhere_continues_as_if_nothing_had_happened(
        cuts in proptest::collection::vec(0.0..1.0_f64, 1..4),
        slots in 1_usize..5,
        policy in 0..PolicyKind::NAMES.len(),
        is_stopped: bool,
        luck: u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let policy = PolicyKind::NAMES[policy];
        let play = |total: u64, wall: Option<f64>, luck: u64| {
            // A run whose last pull is lost again and again ends, to be resumed.
            for again in 0..5 {
                let budget = Budget { wall, ..rounds(total) };
                let target = unruly(slots, wall.is_some(), luck.wrapping_add(again));
                let folder = folder.path();
                match try_session(folder, plan(policy), slots, budget, Syncing::Outcomes, target) {
                    Err(RunError::Lost { .. }) => {}
                    ended => return ended.map(|_| ()).unwrap(),
                }
            }
            panic!("lost every time");
        };
        let (mut total, mut kept) = (0, vec![]);
        for (k, cut) in cuts.iter().enumerate() {
            total += 40;
            // Stopped in the middle of its pulls, or played to the end.
            if is_stopped {
                play(total, Some(0.02 * (k + 1) as f64), luck ^ k as u64);
            }
            play(total, None, luck ^ k as u64);
            continues(folder.path(), total, &kept)?;
            let path = folder.path().join(FILE);
            let bytes = fs::read(&path).unwrap();
            let header = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let cut = header + ((bytes.len() - header) as f64 * cut) as usize;
            fs::write(&path, &bytes[..cut]).unwrap();
            decisions_follow(folder.path(), plan(policy));
            kept = story(folder.path()).1;
        }
        play(total, None, luck);
        decisions_follow(folder.path(), plan(policy));
        continues(folder.path(), total, &kept)?;
    }
}

/// Checks that a run that had these outcomes when it was killed has them still, and one outcome for every round now.
fn continues(folder: &Path, total: u64, kept: &[OutcomeRecord<'_>]) -> Result<(), TestCaseError> {
    let (pulls, outcomes) = story(folder);
    prop_assert_eq!(outcomes.len() as u64, total, "every round has an outcome");
    prop_assert_eq!(&outcomes[..kept.len()], kept);
    let mut ended: Vec<u64> = outcomes.iter().map(|outcome| outcome.outcome).collect();
    ended.sort_unstable();
    prop_assert_eq!(
        &ended,
        &(1..=total).collect::<Vec<_>>(),
        "every round ends once"
    );
    let launched: Vec<u64> = pulls.iter().map(|pull| pull.round.0).collect();
    prop_assert_eq!(launched, ended);
    Ok(())
}

fn calibrating(policy: &str) -> Plan {
    Plan {
        limits: LimitSource::Calibrate(Calibrate {
            guard: Limit::new(0.9).unwrap(),
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
    let limits = finished.run.state().problem().unwrap().limits.clone();
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
        assert_eq!(again.run.state().problem().unwrap().limits, limits);
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
            let failing = crate::target::Failing::new("exit code 3");
            let outcome = Outcome::failed(start.pull, failing, None, Measured::default());
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
    assert_eq!(finished.run.state().tally().failed, 10);
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
    assert_eq!(finished.run.state().tally().failed, 500);
}

/// Two nodes run the same, the second in twice the time. Once that is known, the policy sees what the mean node would take.
#[test]
fn what_nodes_of_different_speed_consume_is_corrected_if_asked() {
    for compare in [Compare::AsMeasured, Compare::ByNode] {
        let limit = Limit::new(1.0).unwrap();
        let mut state = State::new(Plan {
            limits: LimitSource::Grid(LimitGrid::new([limit.get()]).unwrap()),
            compare,
            ..plan("uniform")
        });
        let mut run = |round: u64, node: &'static str, seconds: f64| {
            let pull = PullRecord {
                round: Round(round),
                arm: ArmId::from_index(0),
                limit,
                instance: None,
                seed: None,
                seen: 0,
                by: None,
            };
            state.launched(&pull);
            state.learned(&Learned {
                pull,
                observation: Observation::ended(pull.pull(), 1.0, seconds).unwrap(),
                outcome: OutcomeRecord {
                    node: Some(node.into()),
                    ..OutcomeRecord::default()
                },
            });
            *state.evidence().of(pull.arm).last().unwrap()
        };
        for round in 0..40 {
            run(2 * round + 1, "fast", 0.2);
            run(2 * round + 2, "slow", 0.4);
        }
        let seen = run(81, "slow", 0.4).consumption().unwrap();
        let mean = 0.08_f64.sqrt();
        let late = run(82, "fast", 0.8);
        if compare == Compare::ByNode {
            assert!((seen - mean).abs() < 1e-3, "{seen}");
            assert_eq!(late.consumption(), None, "it would not have ended in time");
        } else {
            assert_eq!((seen, late.consumption()), (0.4, Some(0.8)));
        }
    }
}

#[test]
fn the_default_is_pulled_first_by_every_policy() {
    for policy in PolicyKind::NAMES {
        for seed in 0..5 {
            let mut state = State::new(Plan {
                seed,
                ..plan(policy)
            });
            let Next::Pull(first) = state.choose() else {
                panic!("{policy} waits");
            };
            assert_eq!(first.arm.number(), 1, "{policy}");
            assert!(matches!(first.by, None | Some(By::Default)), "{first:?}");
            // Once is enough.
            state.launched(&first);
            if let Next::Pull(second) = state.choose() {
                assert_eq!(second.by, None, "{policy}");
            }
        }
    }
}

/// The safe rule prefers the arm that was pulled most, although everything says that the default is better.
#[test]
fn an_answer_that_is_probably_worse_than_the_default_is_not_recommended() {
    let mut state = State::new(Plan {
        penalty: Curve::parse("100 * x").unwrap(),
        ..plan("ucb")
    });
    let limit = state.limits().max();
    let mut round = 0;
    for (arm, pulls, reward) in [(0, 4, 0.9), (1, 40, 0.5)] {
        for k in 0..pulls {
            round += 1;
            let pull = PullRecord {
                round: Round(round),
                arm: ArmId::from_index(arm),
                limit,
                instance: None,
                seed: None,
                seen: round - 1,
                by: None,
            };
            let reward = reward + 0.01 * f64::from(k % 3);
            state.launched(&pull);
            state.learned(&Learned {
                pull,
                observation: Observation::ended(pull.pull(), reward, 0.1).unwrap(),
                outcome: OutcomeRecord::default(),
            });
        }
    }
    let arm = |best: Option<Recommendation>| best.unwrap().pull.arm.index();
    assert_eq!(arm(state.recommended(None)), 1, "by the policy alone");
    assert_eq!(arm(state.recommend()), 0);
    assert_eq!(arm(state.answer(Some(limit))), 0);
    let verdict = state.verdict(Resource::Wall);
    assert_eq!(verdict.comparison, Some(Comparison::IsDefault));
}

/// Most arms end soon on easy instances and never on others; the default never does. With a small budget hardly any arm is granted the
/// largest limit.
#[test]
fn the_policy_answers_for_a_limit_that_hardly_any_run_was_granted() {
    let seconds = |arm: usize, instance: usize| match (arm + 5 * instance) % 7 {
        _ if arm == 0 => f64::INFINITY,
        hard if hard < 3 => 0.02 * (1 + instance % 4) as f64,
        hard => 60.0 + (hard * arm) as f64,
    };
    let mut is_granted = vec![];
    for rounds in [15, 60, 240] {
        let grid = LimitGrid::new([0.1, 0.5, 2.5, 12.0, 80.0]).unwrap();
        let limit = grid.max();
        let mut state = State::new(Plan {
            limits: LimitSource::Grid(grid),
            penalty: Curve::parse("10 * x").unwrap(),
            instances: 40,
            arms: 12,
            space: Space::numbered(12).unwrap().into(),
            ..plan("levels")
        });
        for _ in 0..rounds {
            let Next::Pull(pull) = state.choose() else {
                panic!("it waits");
            };
            state.launched(&pull);
            let instance = pull.instance.unwrap() as usize - 1;
            let ended = Observation::ended(pull.pull(), 1.0, seconds(pull.arm.index(), instance));
            state.learned(&Learned {
                pull,
                observation: ended
                    .or_else(|_| Observation::censored(pull.pull(), pull.limit.get()))
                    .unwrap(),
                outcome: OutcomeRecord::default(),
            });
        }
        let asked = state.recommended(Some(limit)).unwrap();
        let answer = state.answer(Some(limit)).unwrap();
        assert_eq!(answer.pull, asked.pull, "{rounds} rounds");
        assert_eq!(answer.pull.limit, limit);
        let (low, high) = answer.interval;
        let least = -state.price().unwrap().penalty(limit);
        assert!(least <= low && low <= answer.gain, "{answer:?}");
        assert!(answer.gain <= high && high <= 1.0, "{answer:?}");
        let runs = state.evidence().of(answer.pull.arm).iter();
        is_granted.push(runs.clone().any(|run| run.reach >= limit.get()));
    }
    assert!(is_granted.contains(&false), "{is_granted:?}");
}
