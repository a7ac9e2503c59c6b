//! Reads the table of districts, `districts.txt`.

use super::Traits;
use super::columns::{number, rows, traits};

/// A part of the town: its houses are alike and near each other.
pub struct District {
    pub name: &'static str,
    pub houses: usize,
    pub at: [f64; 2],
    pub spread: f64,
    pub traits: Traits,
    pub worth: f64,
}

/// All districts.
pub fn all() -> Vec<District> {
    rows(include_str!("districts.txt")).map(district).collect()
}

fn district(parts: Vec<&'static str>) -> District {
    let [name, houses, place, means, worth] = parts[..] else {
        panic!("a district has five parts: {parts:?}");
    };
    let place: Vec<f64> = place.split_whitespace().map(number).collect();
    District {
        name,
        houses: number(houses) as usize,
        at: [place[0], place[1]],
        spread: place[2],
        traits: traits(means),
        worth: number(worth),
    }
}
