//! Compares policies over repetitions: regret, share of censored rounds, and quality of the answer.
//!
//! Regret needs known gains, which only targets in virtual time have. Real runs ([`RealStudy`]) are compared by reward
//! and gain. A [`StudySetting`] is one problem with its limits and prices. Every policy plays every setting `repetitions`
//! times, and in the same repetition all policies meet the same random numbers. Repetitions run on all cores and are
//! combined in order, so that the number of threads changes nothing.

mod curve;
mod figure;
pub mod holdout;
mod play;
mod real;
mod result;
mod setting;
mod source;
mod table;
mod virtual_time;
mod workers;

pub use figure::{Sum, figure};
pub use real::{RealError, RealStudy, file_name};
pub use result::Standing;
pub use setting::StudySetting;
pub use source::StudyError;
pub use table::{curves_csv, summary_csv, text};
pub use workers::{Show, StudyProgress, VirtualStudy, play_all};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{PolicyKind, Problem};
    use crate::target::synthetic::{Grid, Synthetic, SyntheticProblem};

    #[test]
    fn a_policy_that_learns_has_less_regret_than_chance() {
        let problem = SyntheticProblem::parse("poscorr").unwrap();
        let limits = Grid::parse("recovered").unwrap().limits(problem);
        let known = Problem::new(problem.arms(), limits, Synthetic::price()).unwrap();
        let target = Box::new(Synthetic::new(problem));
        let setting = StudySetting::new("poscorr".into(), "recovered".into(), known, target);
        let policies = ["joint-ts", "uniform"].map(|name| PolicyKind::parse(name).unwrap());
        let plan = VirtualStudy {
            settings: vec![setting],
            policies: policies.into(),
            rounds: 2000,
            repetitions: 4,
            seed: 1,
            threads: 2,
            slots: 1,
        };
        let standings = play_all(&plan, &StudyProgress::silent());
        assert!(standings[0].regret.mean < standings[1].regret.mean);
    }
}
