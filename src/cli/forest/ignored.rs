//! Options that an engine would ignore are refused: a result that does not depend on them would look as if it did.

use crate::cli::Failure;
use crate::learner::Params;
use crate::learner::engine::{EngineError, EngineKind};

/// Refuses them by the names they have on the command line.
pub(super) fn refuse(engine: EngineKind, params: &Params) -> Result<(), Failure> {
    engine.keeps_to(params).map_err(|error| match error {
        EngineError::Ignored { engine, setting } => {
            let option = format!("--{}", setting.name().replace('_', "-"));
            let (engine, instead) = (engine.name(), setting.instead());
            Failure::usage(format!("engine `{engine}` ignores `{option}`: {instead}")).hint(Some(
                format!("leave `{option}` out, or use `--engine builtin`"),
            ))
        }
        error => Failure::usage(&error).hint(error.hint()),
    })
}
