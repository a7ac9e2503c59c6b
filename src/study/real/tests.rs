//! Studies on a target that loses pulls.

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;
use crate::journal::{Reader, Record};
use crate::target::Measured;

/// Loses the first runs of every round of the first arm, and brings a reward for all others.
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
            Ending::Brought(Box::new(Outcome {
                observation: crate::round::Observation::ended(start.pull, 1.0, 0.1).unwrap(),
                failure: None,
                consumption: Some(0.1),
                score: None,
                is_clamped: false,
                measured: Measured::default(),
            }))
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

/// What the journal of the only run has: lost pulls, and outcomes with why they failed.
fn played(times: u32) -> (usize, Vec<Option<String>>) {
    let text = "target: {command: [\"true\"], reward: {exit: [0]}}
arms: {list: [{a: 1}, {a: 2}]}
limits: {of: wall, grid: [1s]}
price: {cost: x, penalty: 10 * x}
policy: fixed
budget: {rounds: 2}
retries: 2
";
    let scenario = crate::scenario::parse(text, "s.yaml".as_ref(), ".".as_ref());
    let scenario = scenario
        .map_err(|error| error.render(false))
        .unwrap()
        .scenario;
    let folder = tempfile::tempdir().unwrap();
    let plan = RealPlan {
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
    let (ends, ended) = unbounded_channel();
    let mut ground = Ground {
        target: Box::new(Losing {
            ends,
            times,
            lost: (0, 0),
        }),
        ends: ended,
        news: Box::new(|_, _| ()),
    };
    let (standings, halt) = runtime.block_on(plan.play(&mut ground)).unwrap();
    assert_eq!((standings.len(), halt), (1, Halt::Done));
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
    assert_eq!(played(2), (2, vec![None, None]));
    let (lost, failed) = played(1_000);
    assert_eq!(lost, 3);
    let why = failed[0].as_deref().unwrap();
    assert_eq!(why, "lost 3 times: the launcher went away");
    assert_eq!(failed[1], None);
}
