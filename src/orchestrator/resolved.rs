//! A scenario as stored in the journal's header, so that readers need no other file.
//!
//! A scenario refers to files: arms in a table, instances in a folder, recorded runs. They may have changed or be gone
//! when you ask for the best pair, so their contents are stored with the run.

use std::path::Path;

use serde_json::{Value, json};

use super::{Plan, RunError};
use crate::journal::{FILE, Header, JournalError};
use crate::scenario::{Resource, Scenario};

/// A scenario with the instances that its target draws from.
#[derive(Debug, Clone)]
pub struct ResolvedScenario {
    /// The scenario, with its arms.
    pub scenario: Scenario,
    /// The names of the instances. Only the target knows those of recorded runs.
    pub instances: Vec<String>,
}

impl ResolvedScenario {
    /// This scenario, with the instances that its target draws from.
    pub fn of(scenario: &Scenario, instances: &[String]) -> Self {
        Self {
            scenario: scenario.clone(),
            instances: instances.to_vec(),
        }
    }

    /// The scenario of the run in `folder`, from the header of its journal.
    pub fn read(header: &Header, folder: &Path) -> Result<Self, RunError> {
        let read = || -> Result<Self, serde_json::Error> {
            let (file, root) = (Path::new(&header.file), Path::new(&header.folder));
            let stored = &header.resolved["scenario"];
            Ok(Self {
                scenario: Scenario::from_stored(stored, file, root, &header.scenario)?,
                instances: serde_json::from_value(header.resolved["instances"].clone())?,
            })
        };
        read().map_err(|error| {
            tracing::debug!(%error, "the header's scenario");
            RunError::Journal(JournalError::Senseless {
                path: folder.join(FILE),
                line: 1,
                what: "the header has arms, limits or a policy that this version of captime does not support",
            })
        })
    }

    /// What to store in the journal's header.
    pub fn stored(&self) -> Value {
        json!({"scenario": self.scenario.stored(), "instances": self.instances})
    }

    /// The plan for a run of it.
    pub fn plan(&self) -> Plan {
        Plan::of(&self.scenario, &self.instances)
    }

    /// The limited resource.
    pub fn resource(&self) -> Resource {
        self.scenario.limits.of
    }
}
