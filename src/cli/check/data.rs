//! The data of a forest, read before the night and not in it.

use std::io::Write;

use super::super::{Failure, forest_data};
use crate::scenario::{Scenario, Target};

/// A larger file is not read without being asked: a check answers at once.
const MOST_BYTES: u64 = 20 << 20;

/// Reads the data as a run would: ragged rows, a constant target, what the engine cannot learn from and the like are
/// refused now.
pub(super) fn read(scenario: &Scenario) -> Result<(), Failure> {
    let Target::Forest(forest) = &scenario.target else {
        return Ok(());
    };
    let path = scenario.path_as_written(&forest.data);
    let bytes = std::fs::metadata(&forest.data).map_or(0, |file| file.len());
    if bytes > MOST_BYTES {
        let megabytes = bytes / 1_000_000;
        writeln!(
            std::io::stderr().lock(),
            "captime: {} has {megabytes} MB, of which only the header was read; `--try 1` reads all of it",
            path.display()
        )?;
        return Ok(());
    }
    forest_data::read(scenario, forest)?;
    Ok(())
}
