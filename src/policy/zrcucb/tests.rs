use super::*;
use crate::round::LimitGrid;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

fn problem(arms: usize, penalty: &str) -> Problem {
    Problem::new(
        arms,
        LimitGrid::new([1.0]).unwrap(),
        Price::new("x / 10", penalty, 1.0).unwrap(),
    )
    .unwrap()
}

fn parameters(spec: &[(&str, f64)]) -> Parameters {
    let given = spec
        .iter()
        .map(|&(name, value)| (name.to_owned(), super::super::OptionValue::Number(value)));
    let mut options = Options::new(NAME, given.collect());
    let parameters = Parameters::read(&mut options);
    options.finish().unwrap();
    parameters
}

fn values(policy: &ZRcucb) -> Vec<f64> {
    policy
        .limits_of(ArmId::from_index(0))
        .iter()
        .map(|limit| limit.get())
        .collect()
}

/// Pulls of the only arm at `limit` that all end at `consumption` until the grid has `points` points.
fn play_until(policy: &mut ZRcucb, limit: f64, points: usize) {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let pull = Pull::new(ArmId::from_index(0), Limit::new(limit).unwrap());
    for round in 1..100_000 {
        if values(policy).len() >= points {
            return;
        }
        policy.observe(
            Round(round),
            Observation::ended(pull, 0.5, 0.05).unwrap(),
            &mut rng,
        );
    }
    panic!("never reached {points} points");
}

#[test]
fn the_papers_example_of_refinement() {
    // m = 4: the largest limit is extended first, then, by pulls up to tau_max / 2, the two lowest quarters.
    let mut policy = new(
        &parameters(&[("m", 4.0), ("horizon", 1000.0)]),
        &problem(1, "x"),
    );
    assert_eq!(values(&policy), [1.0]);
    play_until(&mut policy, 1.0, 4);
    assert_eq!(values(&policy), [0.25, 0.5, 0.75, 1.0]);
    play_until(&mut policy, 0.5, 10);
    let quarter = [0.0625, 0.125, 0.1875, 0.25];
    let expected: Vec<f64> = quarter
        .into_iter()
        .chain(quarter.map(|point| 0.25 + point))
        .chain([0.75, 1.0])
        .collect();
    assert_eq!(values(&policy), expected);
}

#[test]
fn jumps_of_the_penalty_are_in_the_first_grid() {
    let policy = new(
        &parameters(&[]),
        &problem(1, "x / 10 if x <= 0.5 else 10 * x"),
    );
    assert_eq!(values(&policy), [0.5, 1.0]);
}

#[test]
fn the_parent_point_stays_with_its_cell_divided_by_m() {
    let mut policy = new(
        &parameters(&[("m", 4.0), ("horizon", 1000.0)]),
        &problem(1, "x"),
    );
    assert_eq!(policy.grids[0].refinement(0), 1.0);
    play_until(&mut policy, 1.0, 4);
    assert_eq!(policy.grids[0].refinement(3), 0.25);
}

#[test]
fn a_new_point_knows_the_whole_history() {
    let mut policy = new(&parameters(&[("horizon", 10.0)]), &problem(1, "x"));
    play_until(&mut policy, 1.0, 2);
    let grid = &policy.grids[0];
    assert_eq!(grid.stat(0).count, grid.stat(1).count);
    assert!(grid.stat(0).count > 0);
}

#[test]
fn limits_scale_with_the_largest_one() {
    let hours = Problem::new(
        1,
        LimitGrid::new([7200.0]).unwrap(),
        Price::new("x", "x", 7200.0).unwrap(),
    )
    .unwrap();
    let mut policy = new(&parameters(&[("horizon", 100.0)]), &hours);
    play_until(&mut policy, 7200.0, 2);
    assert_eq!(values(&policy), [3600.0, 7200.0]);
}

#[test]
fn without_a_horizon_the_logarithm_grows_and_data_stay() {
    let unknown = parameters(&[]);
    assert!(unknown.scale(10, 5) < unknown.scale(10, 9));
    assert_eq!(unknown.scale(10, 5), unknown.scale(10, 8));
    let known = parameters(&[("horizon", 1000.0)]);
    assert_eq!(known.scale(10, 5), known.scale(10, 900));
    assert_eq!(known.scale(10, 1025), unknown.scale(10, 1025));
}

#[test]
fn a_cell_is_cut_into_no_more_parts_than_memory_is_there_for() {
    let given = |m: f64| {
        let m = ("m".to_owned(), super::super::OptionValue::Number(m));
        let mut options = Options::new(NAME, vec![m]);
        let parameters = Parameters::read(&mut options);
        options.finish().map(|()| parameters.m)
    };
    assert_eq!((given(2.0), given(1000.0)), (Ok(2), Ok(1000)));
    for bad in [1.0, 2.5, 1001.0, 1e9, -3.0, f64::NAN] {
        let errors = given(bad).unwrap_err();
        let said = errors.to_string();
        assert!(said.contains("a whole number from 2 to 1000"), "{said}");
    }
}
