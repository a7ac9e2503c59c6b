//! The data of a forest, read before the night and not in it.

use std::io::Write;

use super::super::Failure;
use super::super::forest::bad_data;
use crate::scenario::{Isolation, Scenario, Target};
use crate::target::forest::read_data;

/// A larger file is not read without being asked: a check answers at once.
const MOST_BYTES: u64 = 20 << 20;

/// Reads the data as the first pull would: ragged rows, a constant target and the like are refused now.
///
/// `--try` reads them anyway, unless the fits are in processes of their own.
pub(super) fn read(scenario: &Scenario, is_tried: bool) -> Result<(), Failure> {
    let Target::Forest(forest) = &scenario.target else {
        return Ok(());
    };
    if is_tried && forest.isolation == Isolation::Thread {
        return Ok(());
    }
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
    read_data(forest).map_err(|error| bad_data(path, &error))?;
    Ok(())
}
