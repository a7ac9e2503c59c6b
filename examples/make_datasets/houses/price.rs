//! What a house is sold for: the houses are ranked by what their columns are worth together, and given the prices in that order.

use super::{HOUSES, Town, columns, places};
use crate::chance::between;

/// How much the price depends on what no column tells, in the units of the score, which spreads by about 0.8.
///
/// Little: what a forest misses in a town like this is mostly what it has seen too few houses of, not luck. With more
/// of it large leaves would pay, and on real prices they do not.
const LUCK: f64 = 0.05;

/// Where fine houses were sold before they were finished: the district, how many, and what that took off the score.
///
/// The real table has a handful of sales that a forest misses by half the price or more, fine houses of one district among them.
const UNFINISHED: (&str, usize, f64) = ("Ridge_Top", 4, 1.4);

/// What the living area adds to the score; the other columns say it in their list.
const LIVING_AREA: f64 = 0.12;

/// Quantiles of the price.
const PRICES: [(f64, f64); 15] = [
    (0.0, 12_500.0),
    (0.001, 35_000.0),
    (0.005, 52_000.0),
    (0.01, 62_000.0),
    (0.05, 88_000.0),
    (0.1, 106_000.0),
    (0.25, 130_000.0),
    (0.5, 160_000.0),
    (0.75, 213_000.0),
    (0.9, 281_000.0),
    (0.95, 335_000.0),
    (0.99, 457_000.0),
    (0.995, 510_000.0),
    (0.999, 612_000.0),
    (1.0, 758_000.0),
];

impl Town {
    pub(super) fn price(&mut self) {
        let mut scores: Vec<f64> = self
            .lies_in
            .iter()
            .map(|&index| self.districts[index].worth)
            .collect();
        for (name, worth) in columns::all()
            .iter()
            .map(|column| (column.name, column.worth))
            .chain([("Living_Area", LIVING_AREA)])
        {
            if worth != 0.0 {
                for (score, place) in scores.iter_mut().zip(places(&self.column(name).keys)) {
                    *score += worth * place;
                }
            }
        }
        let (size, grade) = (
            places(&self.column("Living_Area").keys),
            places(&self.column("Build_Grade").keys),
        );
        for (house, score) in scores.iter_mut().enumerate() {
            // A large house is worth more where it is well built, and some sales are far from the market.
            let spread = if self.chance.uniform() < 0.04 {
                3.0
            } else {
                1.0
            };
            *score += 0.04 * size[house] * grade[house] + LUCK * spread * self.chance.normal();
        }
        let (district, count, loss) = UNFINISHED;
        let fineness: Vec<f64> = size.iter().zip(&grade).map(|(s, g)| s + g).collect();
        for house in self.finest(district, count, &fineness) {
            scores[house] -= loss;
        }
        let mut order: Vec<usize> = (0..HOUSES).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(a.cmp(&b)));
        let mut prices = vec![0.0; HOUSES];
        for (rank, house) in order.into_iter().enumerate() {
            let exact = between(&PRICES, rank as f64 / (HOUSES - 1) as f64);
            let unit = match self.chance.uniform() {
                u if u < 0.35 => 1000.0,
                u if u < 0.7 => 500.0,
                u if u < 0.88 => 100.0,
                _ => 1.0,
            };
            prices[house] = (exact / unit).round() * unit;
        }
        self.push(
            "Sale_Price",
            prices.iter().map(f64::to_string).collect(),
            prices,
            vec![0.0; HOUSES],
        );
    }

    /// The `count` finest houses of a district.
    fn finest(&self, district: &str, count: usize, fineness: &[f64]) -> Vec<usize> {
        let mut houses: Vec<usize> = (0..HOUSES)
            .filter(|&house| self.districts[self.lies_in[house]].name == district)
            .collect();
        houses.sort_by(|&a, &b| fineness[b].total_cmp(&fineness[a]).then(a.cmp(&b)));
        assert!(houses.len() >= count, "too few houses in {district}");
        houses.truncate(count);
        houses
    }
}
