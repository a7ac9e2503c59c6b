//! What the journal costs: writing a round without and with syncing, and reading a million rounds back into a policy.

use std::hint::black_box;
use std::time::Instant;

use captime::journal::{
    Appender, Header, Machine, OutcomeRecord, PullRecord, Reader, Syncing, VERSION,
};
use captime::orchestrator::{LimitSource, Next, Plan, State, resume};
use captime::policy::PolicyKind;
use captime::round::{Curve, LimitGrid, Round};
use captime::space::Space;
use criterion::{Criterion, criterion_group};
use serde_json::Value;

fn header() -> Header {
    Header {
        journal: VERSION,
        captime: "0".into(),
        name: "bench".into(),
        started: String::new(),
        file: String::new(),
        folder: String::new(),
        hash: String::new(),
        seed: 1,
        is_virtual: true,
        machine: Machine::here(),
        enforcement: Value::Null,
        resolved: Value::Null,
        scenario: String::new(),
    }
}

fn plan(arms: usize) -> Plan {
    Plan {
        arms,
        limits: LimitSource::Grid(LimitGrid::equidistant(0.1, 0.9, 10).expect("a grid")),
        cost: Curve::parse("x / 10").expect("a price"),
        penalty: Curve::parse("x / 10 if x <= 0.5 else 10 * x").expect("a price"),
        unit: Some(1.0),
        policy: PolicyKind::parse("rcucb").expect("a policy"),
        seed: 1,
        instances: 0,
        instance_names: [].into(),
        space: Space::numbered(arms).expect("some arms").into(),
        stop_on_first_failures: false,
        compare: captime::scenario::Compare::default(),
        metric: None,
    }
}

fn outcome(round: u64) -> OutcomeRecord<'static> {
    OutcomeRecord {
        outcome: round,
        reward: Some((round % 1000) as f64 / 1000.0),
        consumption: Some((round % 777) as f64 / 7777.0),
        wall: Some((round % 777) as f64 / 7777.0),
        cpu: Some((round % 777) as f64 / 7778.0),
        exit: Some(0),
        at: Some(round as f64 / 64.0),
        ..OutcomeRecord::default()
    }
}

/// A pull as a run would write it; which one does not matter here.
fn pull(state: &mut State, round: u64) -> PullRecord {
    let Next::Pull(mut pull) = state.choose() else {
        unreachable!("nothing is waited for")
    };
    pull.round = Round(round);
    pull.seed = Some(round * 7919 % (1 << 31));
    pull.seen = round - 1;
    pull
}

fn append(criterion: &mut Criterion) {
    let mut state = State::new(plan(100));
    for (name, syncing) in [("buffered", Syncing::AtEnd), ("written", Syncing::Outcomes)] {
        // No journal replaces another.
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Appender::create(folder.path(), &header(), syncing).expect("a journal");
        let pull = pull(&mut state, 1);
        let mut round = 0;
        criterion.bench_function(&format!("append a round, {name}"), |bencher| {
            bencher.iter(|| {
                round += 1;
                journal.append(black_box(&pull)).expect("written");
                journal.append(black_box(&outcome(round))).expect("written");
            });
        });
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal =
        Appender::create(folder.path(), &header(), Syncing::Outcomes).expect("a journal");
    criterion.bench_function("append an outcome and sync it", |bencher| {
        bencher.iter(|| {
            journal.append(&outcome(1)).expect("written");
            journal.sync().expect("synced");
        });
    });
}

/// Replays a million rounds once: too long for the bench's own repetitions, and once is what a user waits for.
fn resume_a_million() {
    const ROUNDS: u64 = 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal =
        Appender::create(folder.path(), &header(), Syncing::AtEnd).expect("a journal");
    let mut state = State::new(plan(10_000));
    for round in 1..=ROUNDS {
        let mut pull = pull(&mut state, round);
        pull.arm = captime::round::ArmId::from_index((round * 7919 % 10_000) as usize);
        journal.append(&pull).expect("written");
        journal.append(&outcome(round)).expect("written");
    }
    journal.sync().expect("synced");
    let bytes = std::fs::metadata(journal.path())
        .expect("it is there")
        .len();
    let started = Instant::now();
    let mut state = State::new(plan(10_000));
    let (_, progress) = resume(
        Reader::open(folder.path()).expect("a journal"),
        &mut state,
        |_| (),
    )
    .expect("replayed");
    let seconds = started.elapsed().as_secs_f64();
    let learned = state.tally().learned + progress.waiting.len() as u64;
    assert_eq!(learned, ROUNDS);
    let megabytes = bytes as f64 / 1e6;
    let mut to = std::io::stdout().lock();
    let text = format!("replay of {ROUNDS} rounds ({megabytes:.0} MB): {seconds:.2} s\n");
    std::io::Write::write_all(&mut to, text.as_bytes()).expect("stdout is there");
}

criterion_group!(benches, append);

fn main() {
    resume_a_million();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
