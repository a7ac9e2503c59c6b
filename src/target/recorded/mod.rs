//! Runs that somebody measured once, replayed: what a policy would have met.
//!
//! The runs of one instance and arm form a cell: one run in a matrix, one per repetition in an ASlib file. Each round draws
//! an instance, then one run of its cell; gains are plain averages over instances.
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

use std::path::PathBuf;

use rand::RngExt;

use super::{Ran, TargetError, VirtualTarget};
use crate::round::{ArmId, Limit, LimitGrid, Observation, Price, Pull, Purpose, Round, randomness};
use cell::Run;

/// A recorded target as a scenario asks for it: plain data. Paths are ready to open.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// `consumption:` the recorded consumptions: a CSV matrix with one row per instance (its name first) and one column per
    /// arm, with or without a header, or an ASlib `algorithm_runs.arff`, told apart by the file's name ending in `.arff`.
    pub consumption: PathBuf,
    /// `reward:` a matrix of rewards in [0, 1] of the same shape. Without it whatever ended gives 1.
    pub reward: Option<PathBuf>,
    /// `cutoff:` up to where runs were measured, in seconds or counts as the limits are. Without it, that of the
    /// `description.txt` beside an ASlib file.
    pub cutoff: Option<f64>,
    /// `unsolved:` the value that stands for "not ended within the cutoff"; anything above the cutoff means that too.
    pub unsolved: Option<f64>,
}

/// Recorded runs, ready to be replayed.
#[derive(Debug, Clone)]
pub struct Recorded {
    arms: Vec<String>,
    instances: Vec<String>,
    /// All runs, arm by arm, instance by instance.
    runs: Vec<Run>,
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
    fn new(arms: Vec<String>, instances: Vec<String>, cells: &[Vec<Run>], cutoff: f64) -> Self {
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

    /// What the arms are called: the header of the matrix, the algorithms of ASlib, or else their numbers.
    pub fn arm_names(&self) -> &[String] {
        &self.arms
    }

    /// What the instances are called.
    pub fn instance_names(&self) -> &[String] {
        &self.instances
    }

    /// The same runs on some of the instances only, as for training without what is kept back for the test; none if no
    /// instance is left.
    #[must_use]
    pub fn with_instances_where(&self, wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let kept: Vec<usize> = (0..self.instances.len())
            .filter(|instance| wanted(&self.instances[*instance]))
            .collect();
        self.with_instances(&kept)
    }

    /// The first half of the instances as the file has them, the larger one if they are odd, and the rest; none if
    /// there is only one.
    pub fn halves(&self) -> Option<(Self, Self)> {
        let places: Vec<usize> = (0..self.instances.len()).collect();
        let (first, rest) = places.split_at(places.len().div_ceil(2));
        Some((self.with_instances(first)?, self.with_instances(rest)?))
    }

    fn with_instances(&self, kept: &[usize]) -> Option<Self> {
        if kept.is_empty() {
            return None;
        }
        let arms = self.arms.len();
        let cells: Vec<Vec<Run>> = kept
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

    /// Refuses limits beyond the cutoff: nobody measured what happens there.
    pub fn check_limits(&self, limits: &LimitGrid) -> Result<(), TargetError> {
        let limit = limits.max().get();
        if limit > self.cutoff {
            let cutoff = self.cutoff;
            return Err(TargetError::LimitAboveCutoff { limit, cutoff });
        }
        Ok(())
    }

    /// PAR10 of an arm: the mean over instances of the time it took, ten cutoffs where it brought nothing.
    pub fn par10(&self, arm: ArmId) -> f64 {
        self.average(arm, |run| match run {
            Run::Ended { consumption, .. } => *consumption,
            Run::Unsolved | Run::Failed { .. } => 10.0 * self.cutoff,
        })
    }

    fn cell(&self, arm: usize, instance: usize) -> &[Run] {
        let place = arm * self.instances.len() + instance;
        &self.runs[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// The mean over instances of the mean over the runs of a cell.
    fn average(&self, arm: ArmId, of: impl Fn(&Run) -> f64) -> f64 {
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
        let draw = || {
            let mut rng = randomness(seed, round, Purpose::Instance);
            rng.random_range(0..self.instances.len() as u32)
        };
        // Whoever counts on past the last instance begins again with the first.
        let named = |instance| instance % self.instances.len() as u32;
        let instance = Some(pull.instance.map_or_else(draw, named));
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
        let limit = pull.limit.get();
        let seen = match run {
            Run::Ended {
                consumption,
                reward,
            } => Observation::ended(pull, reward, consumption),
            Run::Unsolved => Observation::censored(pull, limit),
            Run::Failed { .. } => Ok(Observation::failed(pull)),
        };
        Ran {
            observation: seen.expect("runs are checked when they are read"),
            consumption: match run {
                Run::Ended { consumption, .. } => consumption.min(limit),
                Run::Unsolved => limit,
                Run::Failed { after } => after.min(limit),
            },
        }
    }

    fn gain(&self, arm: ArmId, limit: Limit, price: &Price) -> f64 {
        let penalty = price.penalty(limit);
        self.average(arm, |run| match run {
            Run::Ended {
                consumption,
                reward,
            } if *consumption <= limit.get() => reward - price.cost(*consumption),
            _ => -penalty,
        })
    }

    fn censored(&self, arm: ArmId, limit: Limit) -> f64 {
        self.average(arm, |run| {
            let is_rewarded =
                matches!(run, Run::Ended { consumption, .. } if *consumption <= limit.get());
            f64::from(!is_rewarded)
        })
    }
}

#[cfg(test)]
mod tests;
