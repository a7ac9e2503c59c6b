//! What a decision costs: choosing a pull and learning from it, per policy and number of pairs.

use std::hint::black_box;
use std::sync::Arc;

use captime::policy::{Policy, PolicyKind, Problem};
use captime::round::{LimitGrid, Observation, Price, Round};
use captime::space::{Parameter, Space, Value};
use criterion::{BenchmarkId, Criterion, criterion_group};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Arms by two parameters, for the policy that learns from similar ones.
fn space(arms: usize) -> Space {
    let columns = 16.min(arms);
    let numbers = |name: &str, count: usize| {
        Parameter::new(name, (0..).take(count).map(Value::Integer).collect())
    };
    let parameters = vec![
        numbers("row", arms.div_ceil(columns)),
        numbers("column", columns),
    ];
    let codes = (0..arms).flat_map(|arm| [(arm / columns) as u32, (arm % columns) as u32]);
    Space::coded(parameters, arms, codes.collect(), vec![]).expect("a space")
}

/// A policy that has played `rounds` rounds, and the world it plays in.
struct Play {
    policy: Box<dyn Policy>,
    round: u64,
    /// Drawn beforehand, so that only the policy is measured.
    world: Vec<(f64, f64)>,
    rng: Pcg64Mcg,
}

impl Play {
    fn new(spec: &str, arms: usize, limits: usize, rounds: u64) -> Self {
        let price =
            Price::new("x / 10", "x / 10 if x <= 0.5 else 10 * x", 1.0).expect("the paper's price");
        let limits = LimitGrid::equidistant(0.1, 0.9, limits).expect("a grid");
        let problem = Problem::new(arms, limits, price).expect("arms");
        let problem = problem.with_space(Arc::new(space(arms))).expect("as many");
        let policy = PolicyKind::parse(spec).expect("a policy").build(&problem);
        let mut play = Self {
            policy,
            round: 0,
            world: {
                let mut rng = Pcg64Mcg::seed_from_u64(1);
                (0..8192).map(|_| (rng.random(), rng.random())).collect()
            },
            rng: Pcg64Mcg::seed_from_u64(2),
        };
        for _ in 0..rounds {
            play.round();
        }
        play
    }

    fn round(&mut self) {
        self.round += 1;
        let round = Round(self.round);
        let pull = self.policy.choose(round, &mut self.rng);
        // Low arms are better, all are noisy; an exponential without its logarithm's cost.
        let quality = 1.0 / (1.0 + 0.001 * pull.arm.index() as f64);
        let (u, v) = self.world[self.round as usize % self.world.len()];
        let seen = Observation::ended(pull, v * quality, u * u * 1.5).expect("a reward");
        self.policy.observe(round, black_box(seen), &mut self.rng);
    }
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round");
    for (spec, arms, limits) in [
        ("rcucb", 10, 10),
        ("rcucb", 672, 10),
        ("rcucb", 10_000, 10),
        ("rcucb:width=printed", 10_000, 10),
        ("ucb", 10, 10),
        ("ucb", 10_000, 10),
        ("fixed", 10_000, 10),
        ("z-rcucb", 10, 10),
        ("ts", 10, 10),
        ("joint-ts", 10, 10),
        ("joint-ts", 672, 10),
        ("levels", 10, 10),
        ("levels", 672, 10),
    ] {
        // Past the opening and past the first crowding of the indices.
        let mut play = Play::new(spec, arms, limits, (20 * arms) as u64 + 10_000);
        group.bench_function(BenchmarkId::new(spec, arms * limits), |bencher| {
            bencher.iter(|| play.round());
        });
    }
    group.finish();
}

criterion_group!(benches, decisions);

/// Criterion's main. With `--rounds SPEC ARMS LIMITS N` it only plays, for `scripts/count-instructions`.
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, spec, arms, limits, rounds, ..] = arguments.as_slice()
        && flag == "--rounds"
    {
        let number = |text: &String| text.parse::<u64>().expect("a number");
        black_box(Play::new(
            spec,
            number(arms) as usize,
            number(limits) as usize,
            number(rounds),
        ));
        return;
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
