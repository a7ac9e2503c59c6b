//! What configurations cost: drawing, changing and crossing them in a space as large as clasp's.

use std::hint::black_box;

use captime::space::format::{self, Format};
use captime::space::open::NewlyActive;
use captime::space::{Domain, OpenParameter, OpenSpace, Spacing, Value, parse_rule};
use criterion::{Criterion, criterion_group};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// 90 parameters, two thirds of them conditional, two forbidden combinations.
fn space() -> OpenSpace {
    let words = |count: i64| Domain::choice((0..count).map(Value::Integer).collect());
    let mut parameters: Vec<OpenParameter> = (0..90)
        .map(|place| {
            let domain = match place % 5 {
                0 => words(2),
                1 => words(20),
                2 => Domain::integer(1, 65_535, Spacing::Log),
                3 => Domain::real(0.0, 2.0, Spacing::Linear),
                _ => words(5),
            };
            OpenParameter::new(format!("p{place}"), domain.expect("a domain"))
        })
        .collect();
    for place in 30..90 {
        let parent = (place - 30) / 5 * 5;
        let when = parse_rule(&format!("p{parent} == 0"), &parameters).expect("a rule");
        parameters[place].when = Some(when);
    }
    let forbid = ["p0 == 1 and p1 == 3", "p3 * p2 > 120000"]
        .map(|text| parse_rule(text, &parameters).expect("a rule"));
    OpenSpace::new(parameters, forbid.into()).expect("a space")
}

/// The space in the file that `CAPTIME_SPACE_FILE` names.
fn from_file() -> Option<OpenSpace> {
    let path = std::path::PathBuf::from(std::env::var_os("CAPTIME_SPACE_FILE")?);
    let text = std::fs::read_to_string(&path).expect("a file");
    let file = format::read(&text, Format::detect(&path, &text)).expect("a space");
    Some(file.space)
}

fn configurations(criterion: &mut Criterion) {
    let space = from_file().unwrap_or_else(space);
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    criterion.bench_function("1,000 drawn", |bencher| {
        bencher.iter(|| {
            for _ in 0..1000 {
                black_box(space.draw(&mut rng).expect("a point"));
            }
        });
    });
    criterion.bench_function("1,000 neighbours", |bencher| {
        let point = space.default_point();
        bencher.iter(|| {
            for _ in 0..1000 {
                black_box(space.neighbour(point, 1, NewlyActive::Drawn, &mut rng));
            }
        });
    });
    criterion.bench_function("sample: 1000", |bencher| {
        bencher.iter(|| black_box(space.sample(&[], 1000, 1).expect("points")));
    });
}

criterion_group!(benches, configurations);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
