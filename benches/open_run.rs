//! What an open space costs a run: the time of a decision with many arms open, and the memory of many more.
//!
//! `cargo bench --bench open_run` prints a line per stage. Times are CPU time, so that a busy machine does not count.
//! Everything is in them: choosing, learning, refits, proposals.

#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::fmt::Write as _;

use captime::orchestrator::{Next, Plan, Run, State};
use captime::round::Observation;
use captime::space::Value;
use captime::target::{Ending, Measured, Outcome};

/// 23 parameters as LKH has them: log and plain numbers, words, conditions.
fn scenario(instances: usize) -> String {
    let mut text = String::from("target: external\narms:\n  space:\n");
    for place in 0..23 {
        let domain = match place % 4 {
            0 => "{real: [0.001, 10.0], scale: log}".to_owned(),
            1 => "{integer: [1, 10000], scale: log}".to_owned(),
            2 => "{choice: [a, b, c, d, e]}".to_owned(),
            _ => format!("{{real: [0.0, 1.0], when: p{} == a}}", place - 1),
        };
        let _ = writeln!(text, "    p{place}: {domain}");
    }
    let names: Vec<String> = (0..instances).map(|number| format!("i{number}")).collect();
    if instances > 0 {
        text = text.replace(
            "target: external",
            &format!(
                "target: {{external: {{instances: [{}]}}}}",
                names.join(", ")
            ),
        );
    }
    text + "limits: {from: 0.1s, to: 100s, points: 7, scale: log}\n"
}

fn plan(instances: usize) -> Plan {
    let text = scenario(instances);
    let checked = captime::scenario::parse(&text, "bench.yaml".as_ref(), ".".as_ref());
    let scenario = checked.expect("a scenario").scenario;
    Plan::of(&scenario, scenario.target.instances())
}

/// Seconds that a run takes: the further from the best the longer, and instances differ.
fn seconds(run: &Run, pull: &captime::journal::PullRecord) -> f64 {
    let configuration = run.state().space().configuration(pull.arm);
    let number = |name| configuration.get(name).and_then(Value::number);
    let far = (number("p0").unwrap_or(1.0) / 0.3).ln().abs()
        + (number("p1").unwrap_or(1.0) / 300.0).ln().abs() / 2.0;
    let instance = f64::from(pull.instance.unwrap_or(1) % 17) / 17.0;
    0.2 * far.exp() * (0.2 + 4.0 * instance * instance)
}

/// One round, as `captime ask` plays it; `ends` says whether pulls ever end.
fn round(run: &mut Run, ends: bool) {
    let Next::Pull(pull) = run.next() else {
        panic!("there is always a pull")
    };
    run.launch(&pull).expect("nothing is written");
    let (limit, taken) = (pull.limit.get(), seconds(run, &pull));
    let seen = if ends && taken <= limit {
        Observation::ended(pull.pull(), 1.0, taken)
    } else {
        Observation::censored(pull.pull(), limit)
    };
    let seen = seen.expect("a possible outcome");
    let outcome = Outcome::of(seen, Some(taken.min(limit)), Measured::default());
    let line = run
        .settle(None, pull, Ending::Brought(Box::new(outcome)))
        .expect("nothing is written");
    run.durable(line.expect("nothing to sync"), &[])
        .expect("nothing is written");
}

/// CPU time of this process, in seconds; the kernel counts it in hundredths.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// The most memory that this process has had, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kib.unwrap_or(0) / 1024
}

/// The time of rounds as arms become more.
fn rounds_with_many_arms() {
    let mut run = Run::unrecorded(State::new(plan(50)), ());
    let (mut rounds, mut spent) = (0_u32, 0.0);
    for arms in [1_000, 2_000, 5_000, 10_000] {
        let (before, since) = (rounds, cpu());
        while run.state().space().len() < arms {
            round(&mut run, true);
            rounds += 1;
        }
        let elapsed = cpu() - since;
        spent += elapsed;
        println!(
            "with instances, up to {arms} arms: {} rounds, {:.1} us each; {} MB",
            rounds - before,
            1e6 * elapsed / f64::from(rounds - before),
            peak()
        );
    }
    println!(
        "in all {rounds} rounds, {:.1} us each",
        1e6 * spent / f64::from(rounds)
    );
    let (from, since) = (rounds, cpu());
    while rounds < from + 2_000 {
        round(&mut run, true);
        rounds += 1;
    }
    let each = 1e6 * (cpu() - since) / 2_000.0;
    println!(
        "with {} arms open: {each:.1} us per round",
        run.state().space().len()
    );
}

/// Without instances, curves are drawn for the most promising arms in every round.
fn rounds_without_instances() {
    let mut run = Run::unrecorded(State::new(plan(0)), ());
    while run.state().space().len() < 10_000 {
        round(&mut run, false);
    }
    let since = cpu();
    for _ in 0..2_000 {
        round(&mut run, true);
    }
    println!(
        "no instances, {} arms open: {:.1} us per round",
        run.state().space().len(),
        1e6 * (cpu() - since) / 2_000.0
    );
}

/// Nothing ever ends, so every pull opens an arm.
fn memory_of_very_many_arms() {
    let mut many = Run::unrecorded(State::new(plan(0)), ());
    let mut before = 0;
    for arms in [1_000, 10_000, 20_000, 50_000, 100_000] {
        let since = cpu();
        while many.state().space().len() < arms {
            round(&mut many, false);
        }
        println!(
            "no instances, one pull for each arm, up to {arms} arms: {:.1} us per round; {} MB",
            1e6 * (cpu() - since) / (arms - before) as f64,
            peak()
        );
        before = arms;
    }
}

fn main() {
    // In a process of its own it shows the memory of these arms alone.
    if !std::env::args().any(|argument| argument == "memory") {
        rounds_with_many_arms();
        rounds_without_instances();
    }
    memory_of_very_many_arms();
}
