//! What is allowed in a scenario, but deserves a warning.

use crate::quantity::counted;
use crate::round::PriceWarning;
use crate::yaml::Span;

/// A warning and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// The position in the text.
    pub at: Span,
    /// The warning.
    pub caution: Caution,
}

/// A warning.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields are what the messages say they are")]
#[non_exhaustive]
pub enum Caution {
    #[error("no placeholder uses the parameter `{name}`, so its values make no difference")]
    UnusedParameter { name: String },
    #[error("no placeholder uses the instances, so they make no difference")]
    UnusedInstances,
    #[error("no instance matches this pattern, or an earlier one matches them all")]
    UnusedPattern,
    #[error(
        "`{{limit}}` is not passed to the program, so nothing but the guard `wall` ends a pull that reports its own consumption"
    )]
    LimitNotPassed,
    #[error("{0}")]
    Price(PriceWarning),
    #[error(
        "at the largest limit, being cut off costs {penalty} and finishing costs {cost}: slow arms pay less if they are cut off"
    )]
    PenaltyBelowCost { cost: f64, penalty: f64 },
    #[error("{0}")]
    Policy(String),
    #[error("the space seems to hold only {found} different configurations, not {wanted}")]
    FewerSampled { wanted: usize, found: usize },
    #[error("in the file of the space: {0}")]
    SpaceNote(String),
    #[error("{count} instances: a run will use only a few of them")]
    ManyInstances { count: usize },
    #[error("{missing} of {count} instances have no features")]
    MissingFeatures { missing: usize, count: usize },
    #[error("no budget: the run continues until you stop it")]
    NoBudget,
    #[error("no guard on wall time: a command that sleeps uses no CPU time and would never end")]
    NoWallGuard,
    #[error("no guard on wall time: a command that uses little memory may run forever")]
    NothingEnds,
    #[error(
        "the guard `wall: {guard}` ends most pulls before they use the largest limit, {limit} of CPU time"
    )]
    GuardBelowLimit { guard: String, limit: String },
    #[error("no program starts and ends within {limit}: every such pull will be cut off")]
    TinyLimit { limit: String },
    #[error("no program runs in {} of memory: every pull will fail", counted(*bytes, "byte"))]
    TinyMemory { bytes: u64 },
    #[error("the budget of {budget} ends before a pull at the smallest limit, {limit}, can")]
    BudgetBelowLimit { budget: String, limit: String },
    #[error("{slots} pulls at a time will share {}, which makes all of them slower", counted(*cpus as u64, "CPU"))]
    ManySlots { slots: usize, cpus: usize },
    #[error("there is no program `{program}` on this machine")]
    NoProgram { program: String },
    #[error("`calibrate` asks for {arms} arms, but there are only {count}")]
    FewerArms { arms: usize, count: usize },
}

impl Caution {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnusedParameter { .. } => "use it in the command, or remove it",
            Self::UnusedInstances => "use `{instance}` in the command, or remove them",
            Self::UnusedPattern => "put it before patterns that match more, or remove it",
            Self::LimitNotPassed => "pass `{limit}` to the program, which ends itself there",
            Self::Price(_) => "divide the cost, or choose a larger `unit`",
            Self::PenaltyBelowCost { .. } => "raise the penalty: `penalty: 10 * x` is PAR10",
            Self::Policy(_) => "smaller values are fine in practice, and often better",
            Self::FewerSampled { .. } => "all of them are arms",
            Self::SpaceNote(_) => "everything else was read",
            Self::ManyInstances { .. } => "narrow the pattern, or list those to use in a file",
            Self::MissingFeatures { .. } => {
                "add a line for each, or leave them out of the analysis"
            }
            Self::NoBudget => "write `budget: {wall: 1h}`",
            Self::NoWallGuard | Self::NothingEnds => "add the guard `wall: 60s` to `limits`",
            Self::GuardBelowLimit { .. } => "raise the guard, or lower the limits",
            Self::TinyLimit { .. } => "raise the limits",
            Self::TinyMemory { .. } => "write a larger size, such as `memory: 1GiB`",
            Self::BudgetBelowLimit { .. } => "raise the budget, or lower the limits",
            Self::ManySlots { .. } => "write `slots: auto`",
            Self::NoProgram { .. } => {
                "install it; if it is in the scenario's folder, write `./program`"
            }
            Self::FewerArms { .. } => "every arm is run once",
        })
    }
}
