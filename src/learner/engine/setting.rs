//! What engines may be told besides `trees`, `mtry` and `min_node_size`, which all of them keep to.

use super::{EngineError, EngineKind};
use crate::learner::params::{Importance, Params};

/// What not every engine keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Fewer draws per tree than there are rows.
    SampleFraction,
    /// More threads than one.
    Threads,
    /// How much each predictor matters.
    Importance,
    /// The error on rows out of the bag.
    OutOfBag,
}

impl Setting {
    const ALL: [Self; 4] = [
        Self::SampleFraction,
        Self::Threads,
        Self::Importance,
        Self::OutOfBag,
    ];

    /// As scenarios call it, and the command line with hyphens.
    pub fn name(self) -> &'static str {
        match self {
            Self::SampleFraction => "sample_fraction",
            Self::Threads => "threads",
            Self::Importance => "importance",
            Self::OutOfBag => "oob",
        }
    }

    /// What an engine does that ignores it.
    pub fn instead(self) -> &'static str {
        match self {
            Self::SampleFraction => "each of its trees draws as many rows as there are",
            Self::Threads => "it grows its trees on one thread",
            Self::Importance => "it does not tell how much predictors matter",
            Self::OutOfBag => "it does not tell the error on rows out of the bag",
        }
    }

    /// Whether the parameters ask for more than what every engine does anyway.
    fn is_asked_for(self, params: &Params) -> bool {
        match self {
            Self::SampleFraction => (params.sample_fraction - 1.0).abs() > 0.0,
            Self::Threads => params.threads > 1,
            Self::Importance => params.importance != Importance::None,
            Self::OutOfBag => params.out_of_bag,
        }
    }
}

impl EngineKind {
    /// Whether it does as it is told in this.
    pub fn takes(self, setting: Setting) -> bool {
        match self {
            Self::Builtin => true,
            Self::Smartcore => false,
            Self::Linfa => setting == Setting::SampleFraction,
        }
    }

    /// Refuses parameters that it would ignore: who tunes them would tune nothing.
    pub fn keeps_to(self, params: &Params) -> Result<(), EngineError> {
        let is_ignored = |setting: &Setting| setting.is_asked_for(params) && !self.takes(*setting);
        match Setting::ALL.into_iter().find(is_ignored) {
            Some(setting) => Err(EngineError::Ignored {
                engine: self,
                setting,
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_built_in_engine_takes_everything() {
        let ignored = |engine: EngineKind, change: fn(&mut Params)| {
            let mut params = Params::default();
            change(&mut params);
            engine.keeps_to(&params).map_err(|error| error.to_string())
        };
        for engine in EngineKind::ALL {
            assert_eq!(ignored(engine, |_| ()), Ok(()));
        }
        let of_both: [fn(&mut Params); 3] = [
            |params| params.threads = 2,
            |params| params.importance = Importance::Impurity,
            |params| params.out_of_bag = true,
        ];
        for change in of_both {
            assert!(ignored(EngineKind::Builtin, change).is_ok());
            assert!(ignored(EngineKind::Linfa, change).is_err());
            assert!(ignored(EngineKind::Smartcore, change).is_err());
        }
        let half: fn(&mut Params) = |params| params.sample_fraction = 0.5;
        assert!(ignored(EngineKind::Linfa, half).is_ok());
        assert_eq!(
            ignored(EngineKind::Smartcore, half),
            Err("engine `smartcore` ignores `sample_fraction`: each of its trees draws as many rows as there are".into())
        );
    }
}
