//! The data of a scenario's forest, read before the first pull: what is wrong with them is no pull's fault.

use super::Failure;
use super::forest::bad_data;
use crate::learner::Dataset;
use crate::scenario::{Forest, Scenario};
use crate::target::forest::{accepts, read_data};

/// Reads the data and asks the engine whether it can learn from them.
pub(super) fn read(scenario: &Scenario, forest: &Forest) -> Result<Dataset, Failure> {
    let path = scenario.path_as_written(&forest.data);
    let data = read_data(forest).map_err(|error| bad_data(path, &error))?;
    accepts(forest, &data).map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display())).hint(error.hint())
    })?;
    Ok(data)
}
