//! Makes the data sets that ship, `datasets/ames_like.csv` and `datasets/ground_like.csv`, from a seed:
//! `cargo run --example make_datasets [FOLDER]`. The result is the same, byte for byte, on every machine, which the tests below check.

mod chance;
mod ground;
mod houses;

use std::error::Error;
use std::path::PathBuf;

/// A data set: its file name and how it is made.
type Recipe = (&'static str, fn() -> String);

const RECIPES: [Recipe; 2] = [
    ("ames_like.csv", houses::csv),
    ("ground_like.csv", ground::csv),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("datasets"), PathBuf::from);
    for (name, recipe) in RECIPES {
        std::fs::write(folder.join(name), recipe())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_sets_that_ship_are_what_the_generator_makes() {
        for (name, recipe) in RECIPES {
            let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("datasets")
                .join(name);
            let shipped = std::fs::read_to_string(path).unwrap();
            assert!(
                shipped == recipe(),
                "{name} differs: run `cargo run --example make_datasets` or undo the change"
            );
        }
    }
}
