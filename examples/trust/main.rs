//! Whether captime's statements about its answers hold, on simulated problems whose truth is known.
//!
//! `cargo run --release --example trust -- [SECTION] [RUNS] [POLICY]`, where a section is `default`, `limits`, `intervals`
//! or `outlook`. Without one, all are printed. `docs/trust.md` has the figures.
#![expect(
    clippy::print_stdout,
    reason = "the figures are what this example is for"
)]

mod world;

use std::fmt::Write as _;

use self::world::{Kind, World, normal};

use captime::answer::{Comparison, Difference, Differences, Evidence, FinishedRun};
use captime::orchestrator::{Driver, Run, RunSetup, Signals, Wall};
use captime::policy::{Policy, PolicyKind, Problem, Recommendation};
use captime::report::History;
use captime::round::{
    ArmId, Limit, LimitGrid, Observation, Price, Pull, Purpose, Round, randomness,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Normal};

type Failed = Box<dyn std::error::Error>;

const POLICIES: [&str; 10] = [
    "levels", "rcucb", "z-rcucb", "ucb", "ts", "joint-ts", "halving", "race", "uniform", "fixed",
];

fn main() -> Result<(), Failed> {
    let mut words = std::env::args().skip(1);
    let section = words.next().unwrap_or("all".into());
    let runs: Option<u64> = words.next().map(|runs| runs.parse()).transpose()?;
    let only = words.next();
    let is_wanted = |name: &str| section == "all" || section == name;
    let is_asked = |policy: &&str| only.as_ref().is_none_or(|only| only == policy);
    if is_wanted("default") {
        for policy in POLICIES.into_iter().filter(is_asked) {
            better_than_default(policy, runs.unwrap_or(1000))?;
        }
    }
    if is_wanted("limits") {
        for times in TIMES {
            limits(times, runs.unwrap_or(200))?;
        }
    }
    if is_wanted("intervals") {
        for kind in &TESTS {
            intervals(kind, runs.unwrap_or(1000))?;
        }
    }
    if is_wanted("outlook") {
        for policy in POLICIES.into_iter().filter(is_asked) {
            outlook(policy, runs.unwrap_or(40))?;
        }
    }
    Ok(())
}

/// Lets a policy play; gives what it knows and what was seen.
fn play(
    kind: &PolicyKind,
    problem: &Problem,
    rounds: u64,
    seed: u64,
    mut run: impl FnMut(&mut Pull) -> Result<Observation, Failed>,
) -> Result<(Option<Recommendation>, Evidence), Failed> {
    let mut policy: Box<dyn Policy> = kind.build(problem);
    let mut evidence = Evidence::default();
    for number in 1..=rounds {
        let round = Round(number);
        let mut pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
        let seen = run(&mut pull)?;
        policy.launched(round, pull);
        policy.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
        evidence.add(&seen, None);
    }
    Ok((policy.recommend(), evidence))
}

/// What was said of many answers, and how many were better.
#[derive(Debug, Clone, Copy, Default)]
struct Statements {
    count: f64,
    said: f64,
    was: f64,
}

impl Statements {
    fn add(&mut self, said: f64, was: f64) {
        self.count += 1.0;
        self.said += said;
        self.was += was;
    }

    /// By how many points they are off, and both in percent.
    fn in_words(self) -> String {
        let (said, was) = (
            100.0 * self.said / self.count,
            100.0 * self.was / self.count,
        );
        format!("{:5}: {said:.1} {was:.1} ({:+.1})", self.count, said - was)
    }
}

/// The first run of the figures in the documentation. Smaller numbers served to develop the statement.
const FIRST_RUN: u64 = 1_000_000;

/// How often the answer is better than the default, beside how often it is said to be, on problems of every kind.
fn better_than_default(policy: &str, runs: u64) -> Result<(), Failed> {
    let spec = PolicyKind::parse(policy)?;
    let mut all = Statements::default();
    for kind in Kind::ALL {
        let (mut sure, mut surer) = (Statements::default(), Statements::default());
        for run in FIRST_RUN..FIRST_RUN + runs {
            let (world, mut rng) = World::draw(kind, run)?;
            let (best, evidence) = play(&spec, &world.problem, world.rounds, run, |pull| {
                world.run(pull, &mut rng)
            })?;
            // As a run does it: the default takes the place of an answer that is more likely to be worse.
            let settle = |best| evidence.settle(best, &world.price);
            let default = |best| evidence.better_default(best, &world.price, false);
            let Some(best) = best.and_then(settle) else {
                continue;
            };
            let best = default(&best).and_then(settle).unwrap_or(best);
            if let Comparison::Compared {
                probability: Some(said),
                answer_limit,
                limit,
                ..
            } = evidence.against_default(&best, &world.price, false)
            {
                let own = world.gain(best.pull.arm, answer_limit)?;
                let difference = own - world.gain(ArmId::from_index(0), limit)?;
                // Of two equal arms neither is better.
                let was = if difference.abs() < 1e-9 {
                    0.5
                } else {
                    f64::from(u8::from(difference > 0.0))
                };
                all.add(said, was);
                sure.add(said, was);
                if said >= 0.9 {
                    surer.add(said, was);
                }
            }
        }
        let kind = format!("{kind:?}").to_lowercase();
        println!(
            "default {policy:10} {kind:11} {}   from 90 %: {}",
            sure.in_words(),
            surer.in_words()
        );
    }
    println!("default {policy:10} all         {}", all.in_words());
    Ok(())
}

/// How long runs take where nothing is cut off.
#[derive(Debug, Clone, Copy)]
enum Times {
    /// What the margin was developed on.
    LogNormal,
    Weibull,
    Uniform,
    /// A tenth of the runs takes three times as long.
    TwoClusters,
}

const TIMES: [Times; 4] = [
    Times::LogNormal,
    Times::Weibull,
    Times::Uniform,
    Times::TwoClusters,
];

impl Times {
    /// The time at this quantile, for an arm of this scale; `shape` from 0 to 1.
    fn at(self, share: f64, scale: f64, shape: f64) -> f64 {
        scale
            * match self {
                Self::LogNormal => {
                    ((0.02 + 0.48 * shape) * Normal::standard().inverse_cdf(share)).exp()
                }
                Self::Weibull => (-(1.0 - share).ln()).powf(1.0 / (1.0 + 4.0 * shape)),
                Self::Uniform => 0.5 + share,
                Self::TwoClusters if share < 0.9 => 0.9 + 0.2 * share / 0.9,
                Self::TwoClusters => 3.0 + 2.0 * (share - 0.9),
            }
    }
}

/// How often the recommended limit lies between the 99 % quantile and 1.3 times the longest run.
fn limits(times: Times, problems: u64) -> Result<(), Failed> {
    let (mut within, mut low, mut high) = (0, 0, 0);
    for problem in 0..problems {
        let mut rng = Pcg64Mcg::seed_from_u64(1000 + problem);
        let arms: usize = rng.random_range(2..8);
        let shape = rng.random_range(0.0..1.0);
        let scales: Vec<f64> = (0..arms).map(|_| rng.random_range(0.5..1.5)).collect();
        let grid = LimitGrid::logarithmic(10.0, 100.0, rng.random_range(2..8))?;
        let price = Price::new("x", "10 * x", 100.0)?;
        let spec = PolicyKind::parse(POLICIES[problem as usize % POLICIES.len()])?;
        let setting = Problem::new(arms, grid, price.clone())?;
        let (best, evidence) = play(&spec, &setting, 400 * arms as u64, problem, |pull| {
            let share = rng.random_range(1e-9..1.0 - 1e-9);
            let seconds = times.at(share, scales[pull.arm.index()], shape);
            let limit = pull.limit.get();
            Ok(if seconds > limit {
                Observation::censored(*pull, limit)?
            } else {
                Observation::ended(*pull, 1.0, seconds)?
            })
        })?;
        let best = best.ok_or("there is an answer")?;
        let settled = evidence.settle(best, &price).ok_or("it has a reward")?;
        let (arm, limit) = (settled.pull.arm, settled.pull.limit.get());
        let runs = evidence.of(arm).iter();
        let longest = runs
            .filter_map(FinishedRun::consumption)
            .fold(0.0, f64::max);
        let least = times.at(0.99, scales[arm.index()], shape);
        low += u32::from(limit < least);
        high += u32::from(limit > 1.3 * longest);
        within += u32::from(least <= limit && limit <= 1.3 * longest);
    }
    println!("limits {times:?}: {within} of {problems} within, {low} below, {high} above");
    Ok(())
}

/// What a simulated test measures: the seconds and rewards of two arms on an instance.
struct TestKind {
    name: &'static str,
    draw: fn(&mut Pcg64Mcg, &[f64; 4]) -> [f64; 4],
    of: fn(&Differences) -> Difference,
    value: fn(f64, f64) -> f64,
    /// Whether the run before the test showed that both arms leave runs unsolved.
    is_known_to_fail: bool,
}

const LIMIT: f64 = 10.0;

/// Weibull times that share the difficulty of the instance.
fn weibull(rng: &mut Pcg64Mcg, &[level, spread, effect, noise]: &[f64; 4]) -> [f64; 4] {
    let difficulty = (level + spread * normal(rng)).exp();
    let shape = 0.6 + 2.0 * noise;
    let mut time = |factor: f64| {
        let loss = -rng.random_range(1e-12..1.0_f64).ln();
        difficulty * factor * loss.powf(1.0 / shape)
    };
    [time(effect.exp()), time(1.0), 1.0, 1.0]
}

/// Pareto times: a few runs take far longer.
fn pareto(rng: &mut Pcg64Mcg, &[level, spread, effect, noise]: &[f64; 4]) -> [f64; 4] {
    let difficulty = 0.3 * (level + 0.5 * spread * normal(rng)).exp();
    let shape = 0.8 + 3.0 * noise;
    let mut time =
        |factor: f64| difficulty * factor * rng.random_range(1e-12..1.0_f64).powf(-1.0 / shape);
    [time(effect.exp()), time(1.0), 1.0, 1.0]
}

/// Log-logistic times.
fn log_logistic(rng: &mut Pcg64Mcg, &[level, spread, effect, noise]: &[f64; 4]) -> [f64; 4] {
    let difficulty = 0.5 * (level + spread * normal(rng)).exp();
    let shape = 1.5 + 4.0 * noise;
    let mut time = |factor: f64| {
        let luck = rng.random_range(1e-12..1.0_f64);
        difficulty * factor * (luck / (1.0 - luck)).powf(1.0 / shape)
    };
    [time(effect.exp()), time(1.0), 1.0, 1.0]
}

/// Easy and hard instances, hardly anything between; the arms differ on the hard ones only.
fn two_kinds(rng: &mut Pcg64Mcg, &[level, _, effect, noise]: &[f64; 4]) -> [f64; 4] {
    let is_hard = rng.random_bool(0.3);
    let mut time = |factor: f64| {
        let middle = if is_hard {
            1.5 + 0.5 * level + factor
        } else {
            -1.0
        };
        (middle + noise * normal(rng)).exp()
    };
    [time(effect), time(0.0), 1.0, 1.0]
}

/// Short log-normal times of runs of which 1 to 5 % crash.
fn crashing(rng: &mut Pcg64Mcg, &[level, spread, effect, noise]: &[f64; 4]) -> [f64; 4] {
    let difficulty = level - 4.0 + spread * normal(rng);
    let mut time = |shift: f64, share: f64| {
        let seconds = (difficulty + shift + noise * normal(rng)).exp();
        let crashes = rng.random_bool(0.01 + 0.04 * share);
        if crashes { 1e6 } else { seconds }
    };
    let shares = [spread - 0.5, 2.0 * (noise - 0.1)];
    [time(effect, shares[0]), time(0.0, shares[1]), 1.0, 1.0]
}

/// Rewards with exponential losses that the instance scales.
fn losses(rng: &mut Pcg64Mcg, &[_, spread, effect, _]: &[f64; 4]) -> [f64; 4] {
    let scale = 0.1 * (0.5 * spread * normal(rng)).exp();
    let mut reward = |factor: f64| {
        let loss = -rng.random_range(1e-12..1.0_f64).ln();
        (1.0 - scale * factor * loss).max(0.0)
    };
    [1.0, 1.0, reward(effect.exp()), reward(1.0)]
}

fn par10(seconds: f64, _: f64) -> f64 {
    if seconds <= LIMIT {
        seconds
    } else {
        10.0 * LIMIT
    }
}

fn solved(seconds: f64, _: f64) -> f64 {
    f64::from(u8::from(seconds <= LIMIT))
}

const TESTS: [TestKind; 11] = [
    TestKind {
        name: "par10, pareto",
        draw: pareto,
        of: |all| all.par10,
        value: par10,
        is_known_to_fail: false,
    },
    TestKind {
        name: "solved, pareto",
        draw: pareto,
        of: |all| all.solved,
        value: solved,
        is_known_to_fail: false,
    },
    TestKind {
        name: "par10, log-logistic",
        draw: log_logistic,
        of: |all| all.par10,
        value: par10,
        is_known_to_fail: false,
    },
    TestKind {
        name: "solved, log-logistic",
        draw: log_logistic,
        of: |all| all.solved,
        value: solved,
        is_known_to_fail: false,
    },
    TestKind {
        name: "par10, weibull",
        draw: weibull,
        of: |all| all.par10,
        value: par10,
        is_known_to_fail: false,
    },
    TestKind {
        name: "solved, weibull",
        draw: weibull,
        of: |all| all.solved,
        value: solved,
        is_known_to_fail: false,
    },
    TestKind {
        name: "par10, two kinds",
        draw: two_kinds,
        of: |all| all.par10,
        value: par10,
        is_known_to_fail: false,
    },
    TestKind {
        name: "solved, two kinds",
        draw: two_kinds,
        of: |all| all.solved,
        value: solved,
        is_known_to_fail: false,
    },
    TestKind {
        name: "reward, losses",
        draw: losses,
        of: |all| all.reward,
        value: |_, reward| reward,
        is_known_to_fail: false,
    },
    TestKind {
        name: "par10, crashes unknown",
        draw: crashing,
        of: |all| all.par10,
        value: par10,
        is_known_to_fail: false,
    },
    TestKind {
        name: "par10, crashes known",
        draw: crashing,
        of: |all| all.par10,
        value: par10,
        is_known_to_fail: true,
    },
];

/// How often the paired interval of a test covers the true difference.
fn intervals(kind: &TestKind, tests: u64) -> Result<(), Failed> {
    const PAIRS: [u32; 3] = [30, 60, 120];
    let limit = Limit::new(LIMIT)?;
    let price = Price::new("x", "10 * x", LIMIT)?;
    let arms = [ArmId::from_index(1), ArmId::from_index(0)];
    let unsolved: &[ArmId] = if kind.is_known_to_fail { &arms } else { &[] };
    let mut covered = [0_u32; 3];
    for test in 0..tests {
        let mut rng = Pcg64Mcg::seed_from_u64(70_000 + test);
        let setting = [
            rng.random_range(-1.0..2.0),
            rng.random_range(0.5..1.5),
            0.5 * normal(&mut rng),
            rng.random_range(0.1..0.6),
        ];
        let truth: f64 = (0..10_000)
            .map(|_| {
                let [a, b, of_a, of_b] = (kind.draw)(&mut rng, &setting);
                (kind.value)(a, of_a) - (kind.value)(b, of_b)
            })
            .sum();
        let truth = truth / 10_000.0;
        for (place, pairs) in PAIRS.into_iter().enumerate() {
            let mut evidence = Evidence::default();
            for instance in 0..pairs {
                let [a, b, of_a, of_b] = (kind.draw)(&mut rng, &setting);
                for (arm, seconds, reward) in [(arms[0], a, of_a), (arms[1], b, of_b)] {
                    let mut pull = Pull::new(arm, limit);
                    pull.instance = Some(instance);
                    evidence.add(&Observation::ended(pull, reward, seconds)?, None);
                }
            }
            let tested = evidence.tested(&arms, unsolved, limit, &price);
            let all = tested[0].against_default.ok_or("both ran")?;
            let (low, high) = (kind.of)(&all).interval.ok_or("there are pairs")?;
            covered[place] += u32::from(low <= truth && truth <= high);
        }
    }
    println!(
        "intervals {:22} {PAIRS:?} pairs: {covered:?} of {tests}",
        kind.name
    );
    Ok(())
}

/// What as many pulls again are expected to add to the gain, beside what they really add.
fn outlook(policy: &str, runs: u64) -> Result<(), Failed> {
    const ARMS: usize = 60;
    const INSTANCES: usize = 100;
    const LIMITS: [f64; 4] = [0.3, 1.0, 3.0, 10.0];
    for rounds in [120_u64, 480, 1920] {
        let (mut said, mut was) = (vec![], vec![]);
        for run in 0..runs {
            let mut rng = Pcg64Mcg::seed_from_u64(9000 + run);
            let size = [0.0, 0.2, 0.6, 1.2][(run % 4) as usize];
            let arms: Vec<f64> = (0..ARMS).map(|_| size * normal(&mut rng)).collect();
            let levels: Vec<f64> = (0..INSTANCES).map(|_| normal(&mut rng)).collect();
            let seconds: Vec<Vec<f64>> = levels
                .iter()
                .map(|level| {
                    let of = |arm: &f64| (level + arm + 0.6 * normal(&mut rng)).exp();
                    arms.iter().map(of).collect()
                })
                .collect();
            let folder = tempfile::tempdir()?;
            let mut table = String::from("instance");
            (1..=ARMS).try_for_each(|arm| write!(table, ",a{arm}"))?;
            for (instance, row) in seconds.iter().enumerate() {
                write!(table, "\ni{instance}")?;
                row.iter()
                    .try_for_each(|cell| write!(table, ",{}", cell.min(99.0)))?;
            }
            table.push('\n');
            std::fs::write(folder.path().join("seconds.csv"), table)?;
            // It finds limits itself.
            let limits = match policy {
                "z-rcucb" => "max: 10s",
                _ => "grid: [0.3s, 1s, 3s, 10s]",
            };
            let text = |rounds: u64| {
                format!(
                    "target: {{recorded: {{consumption: seconds.csv, cutoff: 10s, unsolved: 99}}}}\n\
                     limits: {{of: cpu, {limits}}}\nprice: {{cost: x, penalty: 10 * x}}\n\
                     policy: {policy}\nbudget: {{rounds: {rounds}}}\nseed: {}\n",
                    run + 1
                )
            };
            let price = Price::new("x", "10 * x", LIMITS[3])?;
            let truth = |best: Recommendation| {
                let (arm, limit) = (best.pull.arm.index(), best.pull.limit);
                let gain = |row: &Vec<f64>| {
                    if row[arm] <= limit.get() {
                        1.0 - price.cost(row[arm])
                    } else {
                        -price.penalty(limit)
                    }
                };
                seconds.iter().map(gain).sum::<f64>() / INSTANCES as f64
            };
            let before = recorded(folder.path(), &text(rounds))?;
            let after = recorded(folder.path(), &text(2 * rounds))?;
            if let (Some(best), Some(outlook), Some(next)) =
                (before.best, before.outlook, after.best)
            {
                said.push(outlook.gain);
                was.push(truth(next) - truth(best));
            }
        }
        if said.is_empty() {
            println!(
                "outlook {policy:10} {rounds:5} pulls and as many again: too early to estimate in all {runs} runs"
            );
            continue;
        }
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let middle = mean(&was);
        let off: Vec<f64> = was.iter().map(|was| (was - middle).powi(2)).collect();
        let error = (mean(&off) / was.len() as f64).sqrt();
        println!(
            "outlook {policy:10} {rounds:5} pulls and as many again: said {:.4}, was {:.4} (standard error {error:.4}, {} runs)",
            mean(&said),
            mean(&was),
            was.len()
        );
    }
    Ok(())
}

/// Plays this scenario to the end of its budget, resuming what the folder has; gives what is said about the answer.
fn recorded(folder: &std::path::Path, text: &str) -> Result<captime::answer::Verdict, Failed> {
    let scenario = captime::scenario::parse(text, "s.yaml".as_ref(), folder)?.scenario;
    let at = folder.join("run");
    let target = captime::target::prepare(&scenario, &at)?;
    let budget = scenario.budget;
    let run = Run::open(&at, &RunSetup::of(&scenario, &target), ())?.with_budget(budget);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut pool = target.start(1, scenario.pin).await?;
        let mut signals = Signals::listen()?;
        let wall = Wall {
            seconds: None,
            spent: 0.0,
        };
        let driver = Driver::begin(vec![run], &mut pool, &mut signals, wall)?;
        driver.drive().await?;
        Ok::<_, Failed>(())
    })?;
    let mut history = History::open(&at)?;
    history.catch_up()?;
    Ok(history.verdict().clone())
}
