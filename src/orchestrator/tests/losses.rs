//! Pulls whose launcher goes away.

use std::time::{Duration, Instant};

use super::*;

/// Loses the pulls it is told to, every time; the others bring what they bring.
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
            let tally = finished.state.tally();
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
        // Too few rounds to tell, but not one of them worked.
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
        assert!(error.hint().unwrap().contains("goes on"));
        let known = story(folder.path()).1.len();
        assert_eq!(known, learned, "of what was lost nothing is known");
        let finished = play(|_| false).unwrap();
        assert_eq!(finished.state.tally().learned, budget);
        assert_eq!(finished.state.tally().failed, 0);
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
    assert_eq!(finished.state.tally().learned, 3);
    // Lost three times before the second round could show that the machine works.
    assert!(since.elapsed() >= 3 * pause, "{:?}", since.elapsed());
}
