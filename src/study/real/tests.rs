//! Studies on a target that loses pulls.

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::*;
use crate::journal::{Reader, Record};
use crate::target::{Ended, Ending, Measured, Outcome, Start, Target};

/// Loses the first runs of every round of the first arm, and returns a reward for all others.
struct Losing {
    ends: UnboundedSender<Ended>,
    /// How often each is lost.
    times: u32,
    /// Of the round under way.
    lost: (u64, u32),
}

impl Target for Losing {
    fn start(&mut self, start: Start) {
        if self.lost.0 != start.round.0 {
            self.lost = (start.round.0, 0);
        }
        let ending = if start.pull.arm.index() == 0 && self.lost.1 < self.times {
            self.lost.1 += 1;
            Ending::Lost {
                why: "the launcher went away".into(),
            }
        } else {
            let seen = crate::round::Observation::ended(start.pull, 1.0, 0.1).unwrap();
            let outcome = Outcome::of(seen, Some(0.1), Measured::default());
            Ending::Brought(Box::new(outcome))
        };
        let ended = Ended {
            slot: start.slot,
            round: start.round,
            ending,
        };
        self.ends.send(ended).unwrap();
    }

    fn stop(&mut self, _: usize) {}
}

/// The journal of the only run: how many pulls were lost, and the outcomes with the reason if they failed.
fn played(times: u32) -> (usize, Vec<Option<String>>) {
    let text = "target: {command: [\"true\"], reward: {exit: [0]}}
arms: {list: [{a: 1}, {a: 2}]}
limits: {of: wall, grid: [1s]}
price: {cost: x, penalty: 10 * x}
policy: fixed
budget: {rounds: 2}
retries: 1
";
    let scenario = crate::scenario::parse(text, "s.yaml".as_ref(), ".".as_ref());
    let scenario = scenario
        .map_err(|error| error.render(false))
        .unwrap()
        .scenario;
    let folder = tempfile::tempdir().unwrap();
    let plan = RealStudy {
        policies: scenario.policies.clone(),
        instances: vec![],
        rounds: Some(2),
        repetitions: 1,
        wall: None,
        seed: 1,
        folder: folder.path().to_owned(),
        enforcement: Value::Null,
        scenario,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut pool = SlotPool::new(1, |ends| {
        Box::new(Losing {
            ends,
            times,
            lost: (0, 0),
        })
    });
    let played = runtime.block_on(plan.play(&mut pool, &|_, _| ()));
    let (standings, reason) = played.unwrap();
    assert_eq!((standings.len(), reason), (1, EndReason::Rounds));
    let mut reader = Reader::open(&folder.path().join("fixed-1")).unwrap();
    let (mut lost, mut failed) = (0, vec![]);
    while let Some(record) = reader.next().unwrap() {
        match record {
            Record::Lost(_) => lost += 1,
            Record::Outcome(outcome) => failed.push(outcome.failed.map(|why| why.to_string())),
            _ => {}
        }
    }
    (lost, failed)
}

#[test]
fn a_lost_pull_runs_again_but_not_for_ever() {
    // Both arms are played once; the first is lost.
    assert_eq!(played(0), (0, vec![None, None]));
    assert_eq!(played(1), (1, vec![None, None]));
    // It fails once the other arm shows that the machine works.
    let (lost, failed) = played(1_000);
    assert_eq!(lost, 2);
    assert_eq!(failed[0], None);
    let why = failed[1].as_deref().unwrap();
    assert_eq!(why, "lost 2 times: the launcher went away");
}
