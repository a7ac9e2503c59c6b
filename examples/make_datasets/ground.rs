//! `ground_like.csv`: 420 plots of land, what grows on them to be told from height, water, rock and use. Three classes of
//! unequal size that overlap, numbers and factors, and some cells that are empty.

use crate::chance::Chance;

const PLOTS: usize = 420;

const HEADER: &str =
    "Plot,Height,Slope,Wetness,Acidity,Stones,To_Water,Aspect,Rock,Soil,Grazed,Cover\n";
const ASPECTS: [&str; 8] = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
const ROCKS: [&str; 4] = ["Granite", "Chalk", "Clay", "Slate"];
const SOILS: [&str; 5] = ["Sand", "Loam", "Peat", "Silt", "Gravel"];

/// The whole table as CSV text.
pub fn csv() -> String {
    let mut chance = Chance::new(420);
    let mut text = HEADER.to_owned();
    for plot in 1..=PLOTS {
        text += &row(plot, &mut chance);
    }
    text
}

fn row(plot: usize, chance: &mut Chance) -> String {
    let (highness, wetness) = (chance.normal(), chance.normal());
    let rock = chance.below(ROCKS.len());
    let aspect = chance.below(ASPECTS.len());
    let is_southern = (3..=5).contains(&aspect);
    let acidity = 6.2 + [-0.9, 1.1, 0.2, -0.3][rock] - 0.3 * wetness + 0.4 * chance.normal();
    let is_peaty = wetness + 0.6 * chance.normal() > 0.9;
    let soil = if is_peaty {
        2
    } else {
        [0, 1, 3, 4][chance.below(4)]
    };
    let is_grazed = chance.uniform() < if highness < 0.3 { 0.55 } else { 0.2 };
    let slope = (6.0 + 5.0 * highness + 4.0 * chance.normal()).max(0.0);
    let stones =
        (8.0 + 9.0 * highness + 5.0 * f64::from(soil == 4) + 6.0 * chance.normal()).max(0.0);
    let to_water = (260.0 - 170.0 * wetness + 90.0 * chance.normal()).max(2.0);

    let leanings = [
        (
            "Meadow",
            0.55 + 0.9 * f64::from(is_grazed)
                + 0.5 * (acidity - 6.2)
                + 0.4 * f64::from(is_southern)
                - 0.6 * highness,
        ),
        (
            "Wood",
            0.6 + 0.9 * highness
                - 0.7 * f64::from(is_grazed)
                - 0.3 * (acidity - 6.2)
                - 0.3 * wetness,
        ),
        (
            "Marsh",
            -0.5 + 1.4 * wetness - 0.8 * highness + 0.7 * f64::from(is_peaty),
        ),
    ];
    let (mut cover, mut strongest) = ("", f64::NEG_INFINITY);
    for (name, leaning) in leanings {
        let leaning = leaning + 0.45 * chance.normal();
        if leaning > strongest {
            (cover, strongest) = (name, leaning);
        }
    }

    let mut cells = [
        format!("{:.0}", 180.0 + 95.0 * highness),
        format!("{slope:.1}"),
        format!("{:.2}", 0.5 + 0.13 * wetness + 0.03 * chance.normal()),
        format!("{acidity:.1}"),
        format!("{stones:.0}"),
        format!("{to_water:.0}"),
        ASPECTS[aspect].to_owned(),
        ROCKS[rock].to_owned(),
        SOILS[soil].to_owned(),
        if is_grazed { "yes" } else { "no" }.to_owned(),
    ];
    // A few cells of some columns are missing, in both common spellings.
    for (index, share) in [(3, 0.05), (5, 0.03), (7, 0.04), (9, 0.02)] {
        if chance.uniform() < share {
            if index < 6 { "NA" } else { "" }.clone_into(&mut cells[index]);
        }
    }
    format!("{plot},{},{cover}\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_common_enough_and_some_cells_are_missing() {
        let text = csv();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').collect())
            .collect();
        assert_eq!(rows.len(), PLOTS);
        for class in ["Meadow", "Wood", "Marsh"] {
            let count = rows.iter().filter(|row| row[11] == class).count();
            assert!(count > PLOTS / 10, "{class}: {count}");
        }
        let missing = rows
            .iter()
            .flatten()
            .filter(|cell| matches!(**cell, "" | "NA"))
            .count();
        assert!((20..150).contains(&missing), "{missing}");
    }
}
