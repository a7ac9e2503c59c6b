//! `ames_like.csv`: 2930 synthetic houses, whose prices are as hard to predict for a forest as real ones.
//!
//! Each house has six hidden traits, drawn around the means of its district. Each column is a noisy view of them: the
//! houses are ranked by that view and given the column's values in that order, so that every column has the wanted
//! frequencies and quantiles exactly. Prices are ranked in the same way by what the columns are worth together.

mod columns;
mod districts;
mod price;

use crate::chance::{Chance, between, normal_quantile};
use columns::{Column, Shape};
use districts::District;

const HOUSES: usize = 2930;

/// The hidden traits of a house: ground size, upper size, newness, garage, thrift, cellar use.
type Traits = [f64; 6];

/// Share of each trait's variance that lies within the districts.
const WITHIN: Traits = [0.74, 0.82, 0.29, 0.81, 0.75, 0.84];

/// One column, filled.
struct Filled {
    name: &'static str,
    cells: Vec<String>,
    /// What the values are ranked by: the level's place in its list, or the number; -1 where there is no such thing.
    keys: Vec<f64>,
    /// The noise in each value, for the columns that share it.
    luck: Vec<f64>,
}

/// The whole table as CSV text.
pub fn csv() -> String {
    let mut town = Town::new();
    for column in columns::all() {
        town.draw(&column);
        match column.name {
            "Rough_Area" => town.living_area(),
            "Upper_Area" => town.storeys(),
            "Cellar_Finish" => town.cellar_code(),
            _ => {}
        }
    }
    town.dwelling_kind();
    town.price();
    town.place();
    town.into_csv()
}

struct Town {
    chance: Chance,
    districts: Vec<District>,
    /// Which district each house is in.
    lies_in: Vec<usize>,
    traits: Vec<Traits>,
    filled: Vec<Filled>,
}

impl Town {
    fn new() -> Self {
        let mut chance = Chance::new(2930);
        let districts = districts::all();
        let mut lies_in: Vec<usize> = districts
            .iter()
            .enumerate()
            .flat_map(|(index, district)| vec![index; district.houses])
            .collect();
        let largest = (0..districts.len())
            .max_by_key(|&index| districts[index].houses)
            .expect("there are districts");
        lies_in.resize(HOUSES, largest);
        chance.shuffle(&mut lies_in);
        let traits = lies_in
            .iter()
            .map(|&index| {
                std::array::from_fn(|k| {
                    districts[index].traits[k] + WITHIN[k].sqrt() * chance.normal()
                })
            })
            .collect();
        let mut town = Self {
            chance,
            districts,
            lies_in,
            traits,
            filled: Vec::new(),
        };
        let cells = town
            .lies_in
            .iter()
            .map(|&index| town.districts[index].name.to_owned())
            .collect();
        town.push("District", cells, vec![0.0; HOUSES], vec![0.0; HOUSES]);
        town
    }

    fn push(&mut self, name: &'static str, cells: Vec<String>, keys: Vec<f64>, luck: Vec<f64>) {
        self.filled.push(Filled {
            name,
            cells,
            keys,
            luck,
        });
    }

    fn column(&self, name: &str) -> &Filled {
        self.filled
            .iter()
            .find(|filled| filled.name == name)
            .expect("columns are drawn before they are used")
    }

    fn draw(&mut self, column: &Column) {
        let own: Vec<f64> = (0..HOUSES).map(|_| self.chance.normal()).collect();
        let luck = match column.echo {
            Some((name, share)) => {
                let rest = (1.0 - share * share).sqrt();
                self.column(name)
                    .luck
                    .iter()
                    .zip(own)
                    .map(|(&theirs, ours)| share * theirs + rest * ours)
                    .collect()
            }
            None => own,
        };
        let explained: f64 = column.traits.iter().map(|pull| pull * pull).sum();
        let unexplained = (1.0 - explained).max(0.02).sqrt();
        let scores: Vec<f64> = (0..HOUSES)
            .map(|house| dot(&column.traits, &self.traits[house]) + unexplained * luck[house])
            .collect();
        let mut open: Vec<usize> = match column.within {
            Some(name) => (0..HOUSES)
                .filter(|&house| has(self.column(name), house))
                .collect(),
            None => (0..HOUSES).collect(),
        };
        open.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(a.cmp(&b)));

        let is_text = matches!(column.shape, Shape::Levels(_));
        let mut cells = vec![if is_text { "Without" } else { "0" }.to_owned(); HOUSES];
        let mut keys = vec![-1.0; HOUSES];
        match &column.shape {
            Shape::Levels(values) | Shape::Counts(values) => {
                let mut ranked = open.iter();
                for (place, (value, count)) in
                    slack_taken_up(values, open.len()).into_iter().enumerate()
                {
                    for &house in ranked.by_ref().take(count) {
                        value.clone_into(&mut cells[house]);
                        keys[house] = place as f64;
                    }
                }
            }
            Shape::Amount { none, heap, knots } => {
                let zeros = (none * open.len() as f64) as usize;
                let rest = (open.len() - zeros) as f64;
                for (rank, &house) in open.iter().enumerate() {
                    let value = if rank < zeros {
                        0.0
                    } else {
                        self.rounded(between(knots, ((rank - zeros) as f64 + 0.5) / rest), *heap)
                    };
                    cells[house] = value.to_string();
                    keys[house] = value;
                }
            }
        }
        self.push(column.name, cells, keys, luck);
    }

    /// A measure as people note it down: whole, and often a round number.
    fn rounded(&mut self, value: f64, heap: f64) -> f64 {
        let unit = if value < 3000.0 { 12.0 } else { 100.0 };
        if self.chance.uniform() < heap && value > 4.0 * unit {
            (value / unit).round() * unit
        } else {
            value.round()
        }
    }

    fn living_area(&mut self) {
        let parts = ["Ground_Area", "Upper_Area", "Rough_Area"].map(|name| &self.column(name).keys);
        let keys: Vec<f64> = (0..HOUSES)
            .map(|house| parts.iter().map(|part| part[house]).sum())
            .collect();
        self.push(
            "Living_Area",
            keys.iter().map(f64::to_string).collect(),
            keys,
            vec![0.0; HOUSES],
        );
    }

    /// The finish of the cellar once more, as a number: real tables say things twice, too.
    fn cellar_code(&mut self) {
        let codes = [6.0, 2.0, 5.0, 7.0, 1.0, 3.0];
        let finish = &self.column("Cellar_Finish").keys;
        let keys: Vec<f64> = finish
            .iter()
            .map(|&place| {
                if place < 0.0 {
                    0.0
                } else {
                    codes[place as usize]
                }
            })
            .collect();
        self.push(
            "Cellar_Code",
            keys.iter().map(f64::to_string).collect(),
            keys,
            vec![0.0; HOUSES],
        );
    }

    fn storeys(&mut self) {
        let upper = self.column("Upper_Area").keys.clone();
        let cells = (0..HOUSES)
            .map(|house| {
                let [_, _, newness, _, _, cellar_use] = self.traits[house];
                let luck = self.chance.normal();
                let name = match upper[house] > 0.0 {
                    true if newness + luck < -2.7 => "Two_Half",
                    true if newness + 0.6 * luck < -0.75 => "One_Half",
                    true => "Two",
                    false if newness + luck < -3.0 => "One_Half_Bare",
                    false if cellar_use + luck > 2.2 => "Split_Entry",
                    false if cellar_use + luck > 1.4 => "Split_Level",
                    false => "One",
                };
                name.to_owned()
            })
            .collect();
        self.push("Storeys", cells, vec![0.0; HOUSES], vec![0.0; HOUSES]);
    }

    /// A class made of building, storeys and age, as assessors use it.
    fn dwelling_kind(&mut self) {
        let (building, storeys, year) = (
            self.column("Building"),
            self.column("Storeys"),
            self.column("Year_Built"),
        );
        let cells = (0..HOUSES)
            .map(|house| {
                let is_new = year.keys[house] > 1945.0;
                let kind = match (
                    building.cells[house].as_str(),
                    storeys.cells[house].as_str(),
                ) {
                    ("Two_Flats", _) => "Converted_Pair",
                    ("Twin", _) => "Twin_House",
                    ("Terrace" | "Terrace_End", "One") => "Row_Low",
                    ("Terrace" | "Terrace_End", "Two") => "Row_High",
                    ("Terrace" | "Terrace_End", "One_Half" | "One_Half_Bare") => "Row_Attic",
                    ("Terrace" | "Terrace_End", _) => "Row_Split",
                    (_, "One") if is_new => "Bungalow_New",
                    (_, "One") => "Bungalow_Old",
                    (_, "One_Half") if is_new => "Attic_New",
                    (_, "One_Half") => "Attic_Old",
                    (_, "One_Half_Bare") => "Attic_Bare",
                    (_, "Two_Half") => "Tall",
                    (_, "Split_Entry") => "Split_Entry",
                    (_, "Split_Level") => "Split_Level",
                    (_, _) if is_new => "Family_New",
                    (_, _) => "Family_Old",
                };
                kind.to_owned()
            })
            .collect();
        self.push("Dwelling_Kind", cells, vec![0.0; HOUSES], vec![0.0; HOUSES]);
    }

    /// Where the house stands, in km; after the price, because a target is not always the last column.
    fn place(&mut self) {
        for (name, pick) in [("East_km", 0_usize), ("North_km", 1)] {
            let keys: Vec<f64> = (0..HOUSES)
                .map(|house| {
                    let district = &self.districts[self.lies_in[house]];
                    let metres =
                        (district.at[pick] + district.spread * self.chance.normal()) * 10_000.0;
                    metres.round() / 10_000.0
                })
                .collect();
            self.push(
                name,
                keys.iter().map(|km| format!("{km:.4}")).collect(),
                keys,
                vec![0.0; HOUSES],
            );
        }
    }

    fn into_csv(self) -> String {
        let names: Vec<&str> = self.filled.iter().map(|filled| filled.name).collect();
        let mut text = names.join(",") + "\n";
        for house in 0..HOUSES {
            let cells: Vec<&str> = self
                .filled
                .iter()
                .map(|filled| filled.cells[house].as_str())
                .collect();
            text += &cells.join(",");
            text.push('\n');
        }
        text
    }
}

/// Whether the house has the thing that the column describes.
fn has(column: &Filled, house: usize) -> bool {
    !matches!(column.cells[house].as_str(), "Without" | "0")
}

fn dot(a: &Traits, b: &Traits) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The counts, with the most common value's changed so that all add up to `total`.
fn slack_taken_up(values: &[(String, usize)], total: usize) -> Vec<(&str, usize)> {
    let largest = (0..values.len())
        .max_by_key(|&index| values[index].1)
        .expect("a column has values");
    let others: usize = values.iter().map(|value| value.1).sum::<usize>() - values[largest].1;
    let mut counts: Vec<(&str, usize)> = values
        .iter()
        .map(|(value, count)| (value.as_str(), *count))
        .collect();
    counts[largest].1 = total
        .checked_sub(others)
        .expect("the most common value has room");
    counts
}

/// Each value's place among all, as a standard normal score; equal values share the middle of theirs.
fn places(keys: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    let mut places = vec![0.0; keys.len()];
    for ties in order.chunk_by(|&a, &b| keys[a] == keys[b]) {
        let below = order.partition_point(|&other| keys[other] < keys[ties[0]]);
        let middle = (below as f64 + ties.len() as f64 / 2.0) / keys.len() as f64;
        for &house in ties {
            places[house] = normal_quantile(middle);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_has_the_promised_shape() {
        let text = csv();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), HOUSES + 1);
        assert!(rows.iter().all(|row| row.len() == 81));
        assert!(
            rows.iter()
                .flatten()
                .all(|cell| !matches!(*cell, "" | "NA"))
        );
        let is_number = |column: &usize| {
            rows[1..]
                .iter()
                .all(|row| row[*column].parse::<f64>().is_ok())
        };
        assert_eq!((0..81).filter(is_number).count(), 34 + 1);
        let levels = |column: usize| {
            rows[1..]
                .iter()
                .map(|row| row[column])
                .collect::<BTreeSet<_>>()
                .len()
        };
        let factors: Vec<usize> = (0..81)
            .filter(|column| !is_number(column))
            .map(levels)
            .collect();
        assert!(
            factors.iter().all(|count| (2..=28).contains(count)),
            "{factors:?}"
        );
        assert!(
            (300..340).contains(&factors.iter().sum::<usize>()),
            "{factors:?}"
        );
    }

    #[test]
    fn prices_are_skewed_and_span_the_promised_range() {
        let mut prices = {
            let text = csv();
            let column = text
                .lines()
                .next()
                .unwrap()
                .split(',')
                .position(|name| name == "Sale_Price")
                .unwrap();
            let price = |line: &str| line.split(',').nth(column).unwrap().parse::<f64>().unwrap();
            text.lines().skip(1).map(price).collect::<Vec<f64>>()
        };
        prices.sort_by(f64::total_cmp);
        let (least, middle, most) = (prices[0], prices[HOUSES / 2], prices[HOUSES - 1]);
        assert!((12_000.0..13_000.0).contains(&least), "{least}");
        assert!((155_000.0..165_000.0).contains(&middle), "{middle}");
        assert!((750_000.0..760_000.0).contains(&most), "{most}");
    }
}
