//! Replays recorded runs: what a policy would have met.
//!
//! The runs of one instance and arm form a cell: one run in a matrix, one per repetition in an ASlib file. Each round
//! draws an instance, then one run of its cell. Gains are plain averages over instances.
//!
//! ```
//! use captime::round::ArmId;
//! use captime::target::recorded::{Recorded, Spec};
//!
//! // Two instances, two arms; the first arm did not end on the second instance.
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("seconds.csv");
//! std::fs::write(&file, "instance,careful,bold\none,2,1\ntwo,100,3\n")?;
//! let runs = Recorded::open(&Spec { consumption: file, reward: None, cutoff: Some(10.0), unsolved: Some(100.0) })?;
//! assert_eq!(runs.arm_names(), ["careful", "bold"]);
//! assert_eq!(runs.par10(ArmId::from_index(0)), (2.0 + 10.0 * 10.0) / 2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aslib;
mod cell;
mod matrix;
mod surrogate;

pub use surrogate::{Surrogate, SurrogateSpec, fidelity};

use std::path::PathBuf;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{Ran, TargetError, VirtualTarget};
use crate::round::{ArmId, Limit, LimitGrid, Price, Pull, Purpose, Round, instance_of, randomness};
use cell::RecordedRun;

/// A recorded target as a scenario describes it: plain data. Paths are ready to open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// `consumption:` the recorded consumptions: a CSV matrix with one row per instance (its name first) and one column
    /// per arm, with or without a header, or an ASlib `algorithm_runs.arff`. A file name that ends in `.arff` means the
    /// latter.
    pub consumption: PathBuf,
    /// `reward:` a matrix of rewards in [0, 1] of the same shape. Without it, every run that ended gives 1.
    pub reward: Option<PathBuf>,
    /// `cutoff:` up to where runs were measured, in seconds or counts like the limits. Without it, that of the
    /// `description.txt` beside an ASlib file.
    pub cutoff: Option<f64>,
    /// `unsolved:` the value that means "not ended within the cutoff". Anything above the cutoff means that too.
    pub unsolved: Option<f64>,
}

/// Recorded runs, ready to be replayed.
#[derive(Debug, Clone)]
pub struct Recorded {
    arms: Vec<String>,
    instances: Vec<String>,
    /// All runs, arm by arm, instance by instance.
    runs: Vec<RecordedRun>,
    /// Where each cell begins in `runs`, in the same order, and the end of the last.
    starts: Vec<u32>,
    cutoff: f64,
}

impl Recorded {
    /// Reads the files of a specification.
    pub fn open(spec: &Spec) -> Result<Self, TargetError> {
        if let Some(cutoff) = spec.cutoff
            && !(cutoff.is_finite() && cutoff > 0.0)
        {
            return Err(TargetError::BadCutoff { cutoff });
        }
        let is_aslib = spec
            .consumption
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("arff"));
        if is_aslib {
            aslib::read(spec)
        } else {
            matrix::read(spec)
        }
    }

    /// Recorded runs by cell, instance by instance, arm by arm as in the files.
    fn new(
        arms: Vec<String>,
        instances: Vec<String>,
        cells: &[Vec<RecordedRun>],
        cutoff: f64,
    ) -> Self {
        let (mut runs, mut starts) = (vec![], vec![0]);
        for arm in 0..arms.len() {
            for instance in 0..instances.len() {
                runs.extend_from_slice(&cells[instance * arms.len() + arm]);
                starts.push(runs.len() as u32);
            }
        }
        Self {
            arms,
            instances,
            runs,
            starts,
            cutoff,
        }
    }

    /// The names of the arms: the header of the matrix, the algorithms of ASlib, or else their numbers.
    pub fn arm_names(&self) -> &[String] {
        &self.arms
    }

    /// The names of the instances.
    pub fn instance_names(&self) -> &[String] {
        &self.instances
    }

    /// The same runs on some of the instances only, such as for training without the held-out ones. `None` if no
    /// instance is left.
    #[must_use]
    pub fn with_instances_where(&self, wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let kept: Vec<usize> = (0..self.instances.len())
            .filter(|instance| wanted(&self.instances[*instance]))
            .collect();
        self.with_instances(&kept)
    }

    /// The first half of the instances in this order (the larger half if their number is odd), and the rest. `None` if
    /// there is only one.
    pub fn halves(&self, order: &[usize]) -> Option<(Self, Self)> {
        let (first, rest) = order.split_at(order.len().div_ceil(2));
        Some((self.with_instances(first)?, self.with_instances(rest)?))
    }

    /// What one run of every arm costs under this limit, on average over instances.
    pub fn sweep_cost(&self, limit: Limit) -> f64 {
        let cost = |run: &RecordedRun| run.consumption(limit);
        let arms = (0..self.arms.len()).map(ArmId::from_index);
        arms.map(|arm| self.average(arm, cost)).sum()
    }

    fn with_instances(&self, kept: &[usize]) -> Option<Self> {
        if kept.is_empty() {
            return None;
        }
        let arms = self.arms.len();
        let cells: Vec<Vec<RecordedRun>> = kept
            .iter()
            .flat_map(|instance| (0..arms).map(|arm| self.cell(arm, *instance).to_vec()))
            .collect();
        let names = kept
            .iter()
            .map(|instance| self.instances[*instance].clone());
        let instances = names.collect();
        Some(Self::new(self.arms.clone(), instances, &cells, self.cutoff))
    }

    /// Up to where runs were measured.
    pub fn cutoff(&self) -> f64 {
        self.cutoff
    }

    /// Refuses limits beyond the cutoff: what happens there was not measured.
    pub fn check_limits(&self, limits: &LimitGrid) -> Result<(), TargetError> {
        let limit = limits.max().get();
        if limit > self.cutoff {
            let cutoff = self.cutoff;
            return Err(TargetError::LimitAboveCutoff { limit, cutoff });
        }
        Ok(())
    }

    /// PAR10 of an arm: the mean time over instances, with ten cutoffs for a run without a result.
    pub fn par10(&self, arm: ArmId) -> f64 {
        self.average(arm, |run| run.par10(self.cutoff))
    }

    fn cell(&self, arm: usize, instance: usize) -> &[RecordedRun] {
        let place = arm * self.instances.len() + instance;
        &self.runs[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// The mean over instances of the mean over the runs of a cell.
    fn average(&self, arm: ArmId, of: impl Fn(&RecordedRun) -> f64) -> f64 {
        let cells = (0..self.instances.len()).map(|instance| {
            let cell = self.cell(arm.index(), instance);
            cell.iter().map(&of).sum::<f64>() / cell.len() as f64
        });
        cells.sum::<f64>() / self.instances.len() as f64
    }
}

impl VirtualTarget for Recorded {
    fn arms(&self) -> usize {
        self.arms.len()
    }

    fn instances(&self) -> usize {
        self.instances.len()
    }

    fn instance_names(&self) -> &[String] {
        &self.instances
    }

    fn with_instance(&self, seed: u64, round: Round, pull: Pull) -> Pull {
        let instance = instance_of(seed, round, pull.instance, self.instances.len());
        Pull { instance, ..pull }
    }

    fn run(&self, seed: u64, round: Round, pull: Pull) -> Ran {
        let pull = self.with_instance(seed, round, pull);
        let instance = pull.instance.map_or(0, |instance| instance as usize);
        let run = match self.cell(pull.arm.index(), instance) {
            [run] => *run,
            several => {
                let mut rng = randomness(seed, round, Purpose::Target);
                several[rng.random_range(0..several.len())]
            }
        };
        run.ran(pull)
    }

    fn gain(&self, arm: ArmId, limit: Limit, price: &Price) -> f64 {
        self.average(arm, |run| run.gain(limit, price))
    }

    fn censored(&self, arm: ArmId, limit: Limit) -> f64 {
        self.average(arm, |run| f64::from(!run.is_rewarded(limit)))
    }
}

#[cfg(test)]
mod tests;
