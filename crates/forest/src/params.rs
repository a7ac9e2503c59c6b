//! The parameters of a forest and their check.

use super::Task;

/// Parameters of a forest, named as in ranger. A fit checks them.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// How many trees.
    pub trees: usize,
    /// How many predictors are drawn at each node; the root of their number, rounded down, if not given.
    pub mtry: Option<usize>,
    /// A node of at most this many draws is not split; 5 for numbers and 1 for classes if not given.
    pub min_node_size: Option<usize>,
    /// Draws per tree as a fraction of the training rows, with replacement.
    pub sample_fraction: f64,
    /// Seed of everything random in the fit.
    pub seed: u64,
    /// How many threads grow trees; the forest is the same for any number.
    pub threads: usize,
    /// How to measure the importance of predictors.
    pub importance: Importance,
    /// Whether an engine also computes the out-of-bag error.
    pub out_of_bag: bool,
    /// Which instructions may be used; the forest is the same for any.
    pub simd: Simd,
}

/// How to measure the importance of predictors during a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Importance {
    /// Nothing.
    #[default]
    None,
    /// By how much splits on a predictor lower the impurity, per tree.
    Impurity,
    /// By how much the out-of-bag error of a tree grows when a predictor is shuffled.
    Permutation,
}

/// Which instructions may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Simd {
    /// The best this machine has.
    #[default]
    Detect,
    /// None beyond the ones the program was compiled for.
    Portable,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            trees: 500,
            mtry: None,
            min_node_size: None,
            sample_fraction: 1.0,
            seed: 1,
            threads: 1,
            importance: Importance::None,
            out_of_bag: false,
            simd: Simd::Detect,
        }
    }
}

/// Why parameters cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// No tree at all, or more than can be counted.
    #[error("{trees} trees: at least 1, at most {MAX_TREES}")]
    Trees {
        /// As given.
        trees: usize,
    },
    /// None drawn.
    #[error("mtry is 0: at least one predictor must be drawn at a node")]
    MtryZero,
    /// More drawn than there are.
    #[error("mtry {mtry} is above the number of predictors, {predictors}")]
    MtryAbovePredictors {
        /// As given.
        mtry: usize,
        /// How many there are.
        predictors: usize,
    },
    /// A node without draws does not exist.
    #[error("min_node_size is 0: at least 1")]
    MinNodeSize,
    /// No draws, or more than there are rows.
    #[error("sample_fraction {fraction} is not above 0 and at most 1")]
    SampleFraction {
        /// As given.
        fraction: f64,
    },
    /// No threads, or too many.
    #[error("{threads} threads: at least 1, at most {MAX_THREADS}")]
    Threads {
        /// As given.
        threads: usize,
    },
}

/// More trees than this improve nothing.
const MAX_TREES: usize = 1_000_000;
const MAX_THREADS: usize = 1_024;

impl ParamsError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::MtryAbovePredictors { predictors, .. } => Some(format!(
                "give at most {predictors}; dropped columns and the target do not count"
            )),
            Self::SampleFraction { .. } => Some("write it like 0.632".into()),
            Self::Trees { .. } | Self::MtryZero | Self::MinNodeSize | Self::Threads { .. } => None,
        }
    }
}

impl Params {
    /// Checks what does not depend on the data.
    pub fn check(&self) -> Result<(), ParamsError> {
        if self.trees == 0 || self.trees > MAX_TREES {
            return Err(ParamsError::Trees { trees: self.trees });
        }
        if self.mtry == Some(0) {
            return Err(ParamsError::MtryZero);
        }
        if self.min_node_size == Some(0) {
            return Err(ParamsError::MinNodeSize);
        }
        let fraction = self.sample_fraction;
        if !(fraction > 0.0 && fraction <= 1.0) {
            return Err(ParamsError::SampleFraction { fraction });
        }
        if self.threads == 0 || self.threads > MAX_THREADS {
            return Err(ParamsError::Threads {
                threads: self.threads,
            });
        }
        Ok(())
    }

    /// Checks the parameters for data with this many predictors, and returns mtry.
    pub fn check_for(&self, predictors: usize) -> Result<usize, ParamsError> {
        self.check()?;
        let mtry = self.mtry.unwrap_or(predictors.isqrt().max(1));
        if mtry > predictors {
            return Err(ParamsError::MtryAbovePredictors { mtry, predictors });
        }
        Ok(mtry)
    }

    /// The size up to which nodes are not split. By default, ranger's.
    pub fn min_node_size(&self, task: Task) -> usize {
        self.min_node_size.unwrap_or(match task {
            Task::Regression => 5,
            Task::Classification => 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_fitted_is_refused_with_a_reason() {
        let check = |change: fn(&mut Params)| {
            let mut params = Params::default();
            change(&mut params);
            params.check_for(10).map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| ()), Ok(3));
        assert_eq!(
            check(|params| params.mtry = Some(11)),
            Err("mtry 11 is above the number of predictors, 10".into())
        );
        for change in [
            (|params| params.trees = 0) as fn(&mut Params),
            |params| params.mtry = Some(0),
            |params| params.min_node_size = Some(0),
            |params| params.sample_fraction = 0.0,
            |params| params.sample_fraction = f64::NAN,
            |params| params.sample_fraction = 1.01,
            |params| params.threads = 0,
        ] {
            assert!(check(change).is_err());
        }
    }
}
