//! Reads the data of a forest, so that mistakes show before the run.

use std::io::Write;

use super::super::Failure;
use crate::scenario::{Scenario, Target};
use crate::target::dataset;

/// A larger file is not read by default, so that a check answers at once.
const MOST_BYTES: u64 = 20 << 20;

/// Reads the data as a run would. Ragged rows, a constant target, or data that the engine cannot learn from are
/// reported now.
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
    dataset(scenario, forest)?;
    Ok(())
}
