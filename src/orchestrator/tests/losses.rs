//! Pulls whose launcher goes away.

use std::time::Instant;

use super::*;

/// Loses the pulls that it is given, every time. The others run normally.
struct Losing {
    inner: Synthetic,
    is_lost: fn(u64) -> bool,
    ends: Ends,
}

impl Target for Losing {
    fn start(&mut self, start: Start) {
        let ending = if (self.is_lost)(start.round.0) {
            Ending::Lost { why: "gone".into() }
        } else {
            let ran = self.inner.run(5, start.round, start.pull);
            brought(&ran)
        };
        let _ = self.ends.send(Ended {
            slot: start.slot,
            round: start.round,
            ending,
        });
    }
    fn stop(&mut self, _: usize) {}
}

fn losing(is_lost: fn(u64) -> bool) -> impl FnOnce(Ends) -> Box<dyn Target> {
    move |ends| {
        Box::new(Losing {
            inner: Synthetic::new(SyntheticProblem::parse("indep").unwrap()),
            is_lost,
            ends,
        })
    }
}

#[test]
fn a_pull_that_is_always_lost_fails_once_others_show_that_the_machine_works() {
    // In the middle, and as the last: nothing comes after that one.
    for poison in [|round| round == 2, |round| round == 6] as [fn(u64) -> bool; 2] {
        for slots in [1, 2] {
            let folder = tempfile::tempdir().unwrap();
            let finished = session(
                folder.path(),
                plan("uniform"),
                slots,
                rounds(6),
                Syncing::Outcomes,
                losing(poison),
            );
            let tally = finished.run.state().tally();
            assert_eq!((tally.learned, tally.failed), (6, 1));
            let (_, outcomes) = story(folder.path());
            let failed = outcomes.iter().find(|outcome| outcome.failed.is_some());
            let failed = failed.unwrap();
            assert!(poison(failed.outcome), "{failed:?}");
            assert_eq!(failed.failed.as_deref(), Some("lost 3 times: gone"));
            decisions_follow(folder.path(), plan("uniform"));
        }
    }
}

#[test]
fn where_every_pull_is_lost_nothing_is_learned_and_the_run_goes_on_later() {
    let (from_the_second, all) = (
        (|round| round > 1) as fn(u64) -> bool,
        (|_| true) as fn(u64) -> bool,
    );
    for (slots, budget, lost, learned) in [
        (1, 50, from_the_second, 1),
        (2, 50, from_the_second, 1),
        (3, 50, all, 0),
        // Too few rounds to be sure, but none of them worked.
        (1, 1, all, 0),
        (2, 2, all, 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let play = |lost| {
            try_session(
                folder.path(),
                plan("rcucb"),
                slots,
                rounds(budget),
                Syncing::Outcomes,
                losing(lost),
            )
        };
        let error = play(lost).unwrap_err();
        assert!(
            matches!(&error, RunError::Lost { rounds: 1..=3, why } if why == "gone"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("resume"));
        let known = story(folder.path()).1.len();
        assert_eq!(known, learned, "of what was lost nothing is known");
        let finished = play(|_| false).unwrap();
        assert_eq!(finished.run.state().tally().learned, budget);
        assert_eq!(finished.run.state().tally().failed, 0);
        decisions_follow(folder.path(), plan("rcucb"));
    }
}

#[test]
fn nothing_is_started_in_the_pause_after_a_loss() {
    let (folder, since) = (tempfile::tempdir().unwrap(), Instant::now());
    let pause = Duration::from_millis(60);
    let finished = sitting(
        folder.path(),
        plan("uniform"),
        1,
        rounds(3),
        Syncing::Outcomes,
        [pause; 3],
        losing(|round| round == 1),
    )
    .unwrap();
    assert_eq!(finished.run.state().tally().learned, 3);
    // Lost three times before the second round could show that the machine works.
    assert!(since.elapsed() >= 3 * pause, "{:?}", since.elapsed());
}

#[test]
fn calibration_does_not_wait_for_ever_for_a_pull_that_is_always_lost() {
    let folder = tempfile::tempdir().unwrap();
    let finished = session(
        folder.path(),
        calibrating("uniform"),
        1,
        rounds(10),
        Syncing::Outcomes,
        // The last of the six arms that are measured: nothing else can be started before it has an outcome.
        losing(|round| round == 6),
    );
    let tally = finished.run.state().tally();
    assert_eq!((tally.learned, tally.failed), (10, 1));
    decisions_follow(folder.path(), calibrating("uniform"));
}

/// Runs that take turns on one slot.
#[test]
fn several_runs_take_turns_and_one_that_loses_pulls_holds_up_the_others() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let runs = folders.iter().map(|folder| {
        let journal = Appender::create(folder.path(), &header(), Syncing::Outcomes).unwrap();
        let opened = OpenedRun {
            state: State::new(plan("uniform")),
            progress: Progress::default(),
            journal,
            lock: crate::journal::RunLock::take(folder.path()).unwrap(),
            enforcement: serde_json::Value::Null,
            is_new: true,
            is_cut: false,
        };
        Run::recorded(opened, ())
            .with_budget(rounds(7))
            .with_retries(2, [Duration::ZERO; 3])
    });
    let runs: Vec<Run> = runs.collect();
    let (sender, order) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let driven = runtime.block_on(async {
        let mut times = 0;
        let mut pool = SlotPool::new(1, |ends| {
            let inner = Synthetic::new(SyntheticProblem::parse("indep").unwrap());
            Box::new(Answering(move |start: Start| {
                sender.send(start.round.0).unwrap();
                // The third round of the first run is lost twice.
                times += u32::from(start.round.0 == 3);
                let ending = if start.round.0 == 3 && times <= 2 {
                    Ending::Lost { why: "gone".into() }
                } else {
                    brought(&inner.run(5, start.round, start.pull))
                };
                let _ = ends.send(Ended {
                    slot: start.slot,
                    round: start.round,
                    ending,
                });
            }))
        });
        let mut signals = Signals::listen().unwrap();
        let driver = Driver::begin(runs, &mut pool, &mut signals, Wall::default());
        driver.unwrap().drive().await.unwrap()
    });
    assert_eq!(driven.reason, EndReason::Rounds);
    let order: Vec<u64> = order.try_iter().collect();
    assert_eq!(order, [1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]);
    for (run, folder) in driven.runs.iter().zip(&folders) {
        assert_eq!(run.state().tally().learned, 7);
        assert!(run.seconds() > 0.0);
        decisions_follow(folder.path(), plan("uniform"));
    }
}

/// A target that calls a function for every pull.
struct Answering<F>(F);

impl<F: FnMut(Start)> Target for Answering<F> {
    fn start(&mut self, start: Start) {
        (self.0)(start);
    }
    fn stop(&mut self, _: usize) {}
}
