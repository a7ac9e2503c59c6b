//! Compares the forest with the reference, and with itself on other threads and instructions. Stops fits at any moment.

mod reference;
mod stopping;
mod whole;

use proptest::prelude::*;

use self::reference::{Reference, Table};
use super::forest::{FitOutcome, Forest, fit_until};
use super::tree::Tree;
use super::{Dataset, Params, Simd, Stop};

/// A small random problem.
#[derive(Debug, Clone)]
struct Problem {
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
    classes: usize,
    train: Vec<u32>,
    params: Params,
}

impl Problem {
    fn data(&self) -> Dataset {
        let columns = self.x.iter().enumerate();
        let columns = columns.map(|(place, x)| (format!("x{place}"), x.clone()));
        let classes = (0..self.classes).map(|class| class.to_string());
        Dataset::from_columns(columns.collect(), "y", self.y.clone(), classes.collect()).unwrap()
    }

    fn fit(&self, data: &Dataset) -> Forest {
        fit(data, &self.train, &self.params)
    }
}

fn fit(data: &Dataset, train: &[u32], params: &Params) -> Forest {
    match fit_until(data, train, params, &Stop::new(), None).unwrap() {
        FitOutcome::Done { forest, .. } => forest,
        FitOutcome::Stopped { .. } => panic!("nothing stops it"),
    }
}

/// One column: constant, few values, many values, with or without gaps.
fn any_column(rows: usize) -> impl Strategy<Value = Vec<f64>> {
    let kinds = prop_oneof![
        Just(1_u32),
        Just(2),
        Just(5),
        Just(17),
        Just(18),
        Just(40),
        Just(10_000)
    ];
    let missing = prop_oneof![3 => Just(0.0), 1 => Just(0.3)];
    (kinds, missing).prop_flat_map(move |(kinds, missing)| {
        let cell = (0..kinds, 0.0..1.0_f64).prop_map(move |(value, chance)| {
            if chance < missing {
                f64::NAN
            } else {
                f64::from(value) / 8.0 - 1.0
            }
        });
        proptest::collection::vec(cell, rows)
    })
}

fn any_problem(most_rows: usize) -> impl Strategy<Value = Problem> {
    let classes = prop_oneof![3 => Just(0_usize), 1 => Just(2), 1 => Just(4)];
    (2..most_rows, 1..8_usize, classes).prop_flat_map(|(rows, predictors, classes)| {
        let highest = if classes == 0 { 1000 } else { classes as u32 };
        // Few different targets make ties likely, many make deep trees.
        let spread = prop_oneof![Just(3), Just(highest)].prop_map(move |most| most.min(highest));
        let y = spread.prop_flat_map(move |spread| proptest::collection::vec(0..spread, rows));
        let x = proptest::collection::vec(any_column(rows), predictors);
        let rest = (
            1..=predictors,
            1..6_usize,
            0.2..1.0_f64,
            any::<u64>(),
            any::<bool>(),
        );
        (x, y, rest).prop_map(
            move |(x, y, (mtry, min_node_size, sample_fraction, seed, mirror))| {
                let mut x = x;
                if mirror {
                    let last = x.len() - 1;
                    x[last] = x[0].iter().map(|value| -value).collect();
                }
                let mut y: Vec<f64> = y.into_iter().map(f64::from).collect();
                // A constant target is an error.
                y[0] = 0.0;
                y[1] = 1.0;
                Problem {
                    x,
                    y,
                    classes,
                    train: (0..rows as u32).filter(|row| row % 5 != 3).collect(),
                    params: Params {
                        trees: 3,
                        mtry: Some(mtry),
                        min_node_size: Some(min_node_size),
                        sample_fraction,
                        seed,
                        ..Params::default()
                    },
                }
            },
        )
    })
}

/// Compares a tree with the reference, node by node, and says where they differ.
fn compare(tree: &Tree, at: usize, expected: &Reference) -> Result<(), String> {
    let node = tree.nodes[at];
    let value = tree.values[at];
    match expected {
        Reference::Leaf(mean) => {
            if !node.is_leaf() || (value - mean).abs() > 1e-9 * mean.abs().max(1.0) {
                return Err(format!("node {at}: {node:?} {value}, but a leaf of {mean}"));
            }
            Ok(())
        }
        Reference::Split {
            predictor,
            threshold,
            is_missing_left,
            left,
            right,
        } => {
            let is_same = !node.is_leaf()
                && usize::from(node.predictor) == *predictor
                && value == *threshold
                && node.is_missing_left == *is_missing_left;
            if !is_same {
                return Err(format!(
                    "node {at}: {node:?} {value}, but predictor {predictor} at {threshold}, missing left {is_missing_left}"
                ));
            }
            compare(tree, node.left as usize, left)?;
            compare(tree, node.left as usize + 1, right)
        }
    }
}

fn check_against_reference(problem: &Problem) -> Result<(), TestCaseError> {
    let data = problem.data();
    let draws = (problem.train.len() as f64 * problem.params.sample_fraction) as usize;
    let table = Table {
        x: &problem.x,
        y: &problem.y,
        classes: problem.classes,
        train: &problem.train,
        draws: draws.max(1),
        mtry: problem.params.mtry.unwrap(),
        min_node_size: problem.params.min_node_size.unwrap(),
    };
    for simd in [Simd::Portable, Simd::Detect] {
        let params = Params {
            simd,
            ..problem.params.clone()
        };
        let forest = fit(&data, &problem.train, &params);
        for (number, tree) in forest.trees.iter().enumerate() {
            let expected = table.grow(params.seed, number);
            if let Err(difference) = compare(tree, 0, &expected) {
                return Err(TestCaseError::fail(format!(
                    "{simd:?}, tree {number}: {difference}"
                )));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn small_trees_are_those_of_the_reference_node_by_node(problem in any_problem(40)) {
        check_against_reference(&problem)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn larger_trees_are_those_of_the_reference_node_by_node(problem in any_problem(250)) {
        check_against_reference(&problem)?;
    }

    #[test]
    fn forests_do_not_depend_on_threads_or_instructions(problem in any_problem(400)) {
        // Targets with fractions: scores are rounded, and must be rounded alike.
        let mut problem = problem;
        if problem.classes == 0 {
            for (row, y) in problem.y.iter_mut().enumerate() {
                *y = (*y + row as f64 * 0.618_033).sin() * 1e5;
            }
        }
        let data = problem.data();
        problem.params.trees = 7;
        let expected = problem.fit(&data);
        for (threads, simd) in [(1, Simd::Portable), (2, Simd::Detect), (5, Simd::Detect)] {
            problem.params.threads = threads;
            problem.params.simd = simd;
            prop_assert_eq!(&problem.fit(&data), &expected);
        }
    }

    #[test]
    fn wide_codes_give_the_same_forest_as_narrow_ones(problem in any_problem(120)) {
        let data = problem.data();
        let wide = data.clone().widened();
        prop_assert_eq!(problem.fit(&data).trees, problem.fit(&wide).trees);
    }

    #[test]
    fn rows_end_in_the_same_leaf_by_code_and_by_value(problem in any_problem(120)) {
        let data = problem.data();
        let forest = problem.fit(&data);
        let rows: Vec<u32> = (0..data.rows() as u32).collect();
        let other = problem.data();
        prop_assert_eq!(forest.predict(&data, &rows), forest.predict(&other, &rows));
    }
}
