//! Configurations drawn from an open space.

use std::collections::HashSet;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::domain::{Domain, INACTIVE};
use super::{OpenSpace, Point, SampleError};
use crate::space::{ABSENT, Parameter, Space, SpaceError};

/// How many rounds of filling up a sample tries before it is as large as it gets.
const MOST_REFILLS: usize = 64;

impl OpenSpace {
    /// An allowed configuration, each active parameter uniform on its scale.
    ///
    /// By rejection, so that all allowed configurations keep their share. After 10,000 tries it is an error that
    /// names the constraint that forbids most.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> Result<Point, SampleError> {
        self.attempt(|codes| {
            self.activate(codes, |place| self.parameters[place].domain.draw(rng));
        })
    }

    /// Different configurations that cover the space evenly: the default, then `start`, then drawn ones, `count` in all.
    ///
    /// The first parameters follow a scrambled Halton sequence, the others a Latin hypercube, so that every range is
    /// covered in equal parts. Fewer come back only if the space seems to hold no more.
    pub fn sample(
        &self,
        start: &[Point],
        count: usize,
        seed: u64,
    ) -> Result<Vec<Point>, SampleError> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut seen = HashSet::new();
        let mut points = vec![];
        for point in std::iter::once(&self.default).chain(start) {
            if points.len() < count && seen.insert(point.clone()) {
                points.push(point.clone());
            }
        }
        let mut codes = vec![INACTIVE; self.parameters.len()];
        for _ in 0..MOST_REFILLS {
            let missing = count - points.len();
            if missing == 0 {
                break;
            }
            let even = Even::new(missing, self.parameters.len(), &mut rng);
            for row in 0..missing {
                codes.fill(INACTIVE);
                self.activate(&mut codes, |place| {
                    let unit = even.unit(row, place);
                    self.parameters[place].domain.from_unit(unit)
                });
                if self.first_forbidding(&codes).is_none() {
                    let point = Point(codes.clone().into());
                    if seen.insert(point.clone()) {
                        points.push(point);
                    }
                }
            }
        }
        // What strict constraints leave over is drawn one by one.
        let mut repeats = 0;
        while points.len() < count && repeats < 1000 {
            let point = self.draw(&mut rng)?;
            if seen.insert(point.clone()) {
                points.push(point);
            } else {
                repeats += 1;
            }
        }
        Ok(points)
    }
}

impl OpenSpace {
    /// A finite list of arms, one per point in this order; inactive parameters are absent.
    pub fn list<P: std::borrow::Borrow<Point>>(&self, points: &[P]) -> Result<Space, SpaceError> {
        let mut codes = vec![ABSENT; points.len() * self.parameters.len()];
        let mut columns = vec![];
        for (place, known) in self.parameters.iter().enumerate() {
            let used = || {
                points
                    .iter()
                    .map(|point| point.borrow().0[place])
                    .filter(|code| *code != INACTIVE)
            };
            let mut order: Vec<u64> = match &known.domain {
                Domain::Choice(values) | Domain::Ordered(values) => {
                    (0..values.values().len() as u64).collect()
                }
                _ => used().collect(),
            };
            let value = |code: &u64| known.domain.decode(*code);
            let number = |code: &u64| known.domain.number(*code).unwrap_or_default();
            let name = std::sync::Arc::clone(&known.name);
            let values = |order: &[u64]| order.iter().map(value).collect();
            columns.push(match &known.domain {
                Domain::Choice(_) => Parameter::category(name, values(&order)),
                Domain::Ordered(_) => Parameter::ordered(name, values(&order)),
                Domain::Real { .. } | Domain::Integer { .. } => {
                    order.sort_unstable_by(|a, b| number(a).total_cmp(&number(b)));
                    order.dedup();
                    Parameter::new(name, values(&order))
                }
            });
            let is_listed = known.domain.categories().is_some();
            for (row, point) in points.iter().enumerate() {
                let code = point.borrow().0[place];
                if code == INACTIVE {
                    continue;
                }
                let rank = if is_listed {
                    Ok(code as usize)
                } else {
                    order.binary_search_by(|other| number(other).total_cmp(&number(&code)))
                };
                codes[row * self.parameters.len() + place] =
                    rank.expect("every used value is in the order") as u32;
            }
        }
        Space::coded(columns, points.len(), codes, vec![])
    }
}

/// Rows of numbers from 0 to 1 that are spread evenly in every column.
struct Even {
    rows: usize,
    /// Column by column.
    units: Vec<f64>,
}

impl Even {
    fn new(rows: usize, columns: usize, rng: &mut Pcg64Mcg) -> Self {
        let mut units = Vec::with_capacity(rows * columns);
        let mut strata: Vec<usize> = (0..rows).collect();
        let mut primes = (2..).filter(|n: &usize| {
            (2..*n)
                .take_while(|d| d * d <= *n)
                .all(|d| !n.is_multiple_of(d))
        });
        let mut base = primes.next();
        for _ in 0..columns {
            // With fewer rows than the square of its base a sequence is no better than strata.
            if let Some(prime) = base.filter(|base| base * base <= rows) {
                units.extend(halton(rows, prime, rng));
                base = primes.next();
            } else {
                strata.shuffle(rng);
                let jittered = |stratum: &usize| *stratum as f64 + rng.random::<f64>();
                units.extend(strata.iter().map(jittered).map(|unit| unit / rows as f64));
            }
        }
        Self { rows, units }
    }

    fn unit(&self, row: usize, column: usize) -> f64 {
        self.units[column * self.rows + row]
    }
}

/// The first rows of the Halton sequence in this base, its digits permuted at random.
fn halton(rows: usize, base: usize, rng: &mut Pcg64Mcg) -> Vec<f64> {
    let mut digits = 1;
    let mut reach = base;
    while reach < rows {
        reach *= base;
        digits += 1;
    }
    let permutations: Vec<Vec<usize>> = (0..digits)
        .map(|_| {
            let mut permutation: Vec<usize> = (0..base).collect();
            permutation.shuffle(rng);
            permutation
        })
        .collect();
    (0..rows)
        .map(|row| {
            let (mut rest, mut scale, mut unit) = (row, 1.0, 0.0);
            for permutation in &permutations {
                scale /= base as f64;
                unit += scale * permutation[rest % base] as f64;
                rest /= base;
            }
            unit + scale * rng.random::<f64>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest gap between the share of points below a corner and the corner's area, over a grid of corners.
    fn discrepancy(points: &[(f64, f64)]) -> f64 {
        let mut worst = 0.0_f64;
        for i in 1..=20 {
            for j in 1..=20 {
                let (x, y) = (f64::from(i) / 20.0, f64::from(j) / 20.0);
                let below = points.iter().filter(|point| point.0 < x && point.1 < y);
                let share = below.count() as f64 / points.len() as f64;
                worst = worst.max((share - x * y).abs());
            }
        }
        worst
    }

    #[test]
    fn samples_are_spread_more_evenly_than_drawn_points() {
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let (mut even, mut drawn) = (0.0, 0.0);
        for _ in 0..20 {
            let sample = Even::new(500, 2, &mut rng);
            let points: Vec<_> = (0..500)
                .map(|row| (sample.unit(row, 0), sample.unit(row, 1)))
                .collect();
            even += discrepancy(&points);
            let points: Vec<_> = (0..500).map(|_| (rng.random(), rng.random())).collect();
            drawn += discrepancy(&points);
        }
        assert!(even < 0.4 * drawn, "{even} against {drawn}");
    }

    #[test]
    fn every_column_is_covered_in_equal_parts() {
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        let sample = Even::new(100, 300, &mut rng);
        for column in 10..300 {
            let mut strata: Vec<usize> = (0..100)
                .map(|row| (100.0 * sample.unit(row, column)) as usize)
                .collect();
            strata.sort_unstable();
            assert_eq!(strata, (0..100).collect::<Vec<_>>(), "column {column}");
        }
    }
}
