//! What is allowed in a scenario but should be known.

use super::source::Span;
use crate::round::PriceWarning;

/// Something to know, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Where in the text.
    pub at: Span,
    /// What.
    pub caution: Caution,
}

/// What to know.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields are what the messages say they are")]
pub enum Caution {
    #[error("no placeholder uses the parameter `{name}`, so its values make no difference")]
    UnusedParameter { name: String },
    #[error("no placeholder uses the instances, so they make no difference")]
    UnusedInstances,
    #[error("{0}")]
    Price(PriceWarning),
    #[error("{0}")]
    Policy(String),
    #[error("there is no budget: the run goes on until it is interrupted")]
    NoBudget,
    #[error("a command that sleeps uses no CPU time, so nothing would end it")]
    NoWallGuard,
    #[error("there is no program `{program}` on this machine")]
    NoProgram { program: String },
    #[error("`arms: {arms}` asks to calibrate with more arms than the {count} there are")]
    FewerArms { arms: usize, count: usize },
}

impl Caution {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnusedParameter { .. } => "use it in the command, or remove it",
            Self::UnusedInstances => "use `{instance}` in the command, or remove them",
            Self::Price(_) => "divide the cost, or choose a larger `unit`",
            Self::Policy(_) => "smaller values are fine in practice, and often better",
            Self::NoBudget => "write `budget: {wall: 1h}`",
            Self::NoWallGuard => "add the guard `wall: 60s` to `limits`",
            Self::NoProgram { .. } => {
                "install it; a program beside the scenario is written `./program`"
            }
            Self::FewerArms { .. } => "every arm is run once",
        })
    }
}
