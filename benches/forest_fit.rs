//! What a fit costs on the houses that ship: corners of the paper's grid, kernels, threads, being stoppable, compared with smartcore.

use std::hint::black_box;
use std::time::Duration;

use captime_forest::engine::{EngineKind, Fit, Setting};
use captime_forest::{
    Allowance, Dataset, FitOutcome, Forest, Params, ReadOptions, Resource, Simd, Split, Stop,
    fit_until,
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// The corners of the paper's 672 configurations.
fn corners() -> [(&'static str, Params); 3] {
    let corner = |trees, mtry, min_node_size, sample_fraction| Params {
        trees,
        mtry: Some(mtry),
        min_node_size: Some(min_node_size),
        sample_fraction,
        ..Params::default()
    };
    [
        ("A", corner(100, 20, 9, 0.55)),
        ("B", corner(300, 24, 5, 0.632)),
        ("C", corner(700, 30, 3, 0.8)),
    ]
}

fn houses() -> (Dataset, Split) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/datasets/ames_like.csv");
    let data = Dataset::read(path, &ReadOptions::predict("Sale_Price")).expect("it ships");
    let split = Split::random(data.rows(), 0.7, 1).expect("rows enough");
    (data, split)
}

fn fit(data: &Dataset, split: &Split, params: &Params, limit: Option<Allowance>) -> Forest {
    match fit_until(data, &split.train, params, &Stop::new(), limit).expect("good parameters") {
        FitOutcome::Done { forest, .. } => forest,
        FitOutcome::Stopped { .. } => panic!("the limits here are far"),
    }
}

fn kernels(criterion: &mut Criterion) {
    let (data, split) = houses();
    let mut group = criterion.benchmark_group("fit");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(8));
    for (name, params) in corners() {
        for (kernel, simd, threads) in [
            ("detected", Simd::Detect, 1),
            ("portable", Simd::Portable, 1),
            ("two-threads", Simd::Detect, 2),
        ] {
            let params = Params {
                simd,
                threads,
                ..params.clone()
            };
            group.bench_function(BenchmarkId::new(kernel, name), |bencher| {
                bencher.iter(|| black_box(fit(&data, &split, &params, None)));
            });
        }
    }
    group.finish();
}

fn stoppable(criterion: &mut Criterion) {
    let (data, split) = houses();
    let [(_, params), ..] = corners();
    let mut group = criterion.benchmark_group("stoppable");
    group
        .sample_size(30)
        .measurement_time(Duration::from_secs(8));
    let far = |resource| {
        Some(Allowance {
            resource,
            amount: 1e12,
        })
    };
    for (name, limit) in [
        ("no-limit", None),
        ("wall", far(Resource::Wall)),
        ("cpu", far(Resource::Cpu)),
        ("work", far(Resource::Work)),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(fit(&data, &split, &params, limit)));
        });
    }
    group.finish();
}

fn predict(criterion: &mut Criterion) {
    let (data, split) = houses();
    let mut group = criterion.benchmark_group("predict");
    for (name, params) in corners() {
        let forest = fit(&data, &split, &params, None);
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(forest.predict(&data, &split.test)));
        });
    }
    group.finish();
}

fn peers(criterion: &mut Criterion) {
    let (data, split) = houses();
    let [(_, corner), ..] = corners();
    let mut group = criterion.benchmark_group("peer");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(8));
    for engine in [EngineKind::Builtin, EngineKind::Smartcore] {
        let mut params = corner.clone();
        if !engine.takes(Setting::SampleFraction) {
            params.sample_fraction = 1.0;
        }
        let fit = Fit {
            data: &data,
            split: &split,
            params: &params,
            stop: &Stop::new(),
            allowance: None,
        };
        group.bench_function(engine.name(), |bencher| {
            bencher.iter(|| black_box(engine.engine().run(&fit).expect("both can do this")));
        });
    }
    group.finish();
}

criterion_group!(benches, kernels, stoppable, predict, peers);
criterion_main!(benches);
