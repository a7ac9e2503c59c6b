//! Policies that spend a budget of CPU time on some instances and are judged on others.
//!
//! A policy plays on the training instances of a recorded target until the budget is spent. Along the way it is asked
//! for its answer. The answer is judged on all test instances, which the policy never meets, by PAR10 at the full
//! cutoff. Another measure needs no test instances and can be averaged over scenarios: the share of the gap from the
//! median arm to the best arm that the answer closes, by PAR10 on the training instances.

mod instances;
mod judge;
mod mark;
mod table;

pub use instances::Holdout;
pub use judge::{HoldoutPlan, Unit, judge_all};
pub use mark::Marks;
pub use table::{curves_csv, summary_csv, text, text_of_several};

#[cfg(test)]
mod tests {
    use super::super::StudyProgress;
    use super::*;
    use crate::policy::PolicyKind;

    #[test]
    fn an_arm_that_is_faster_everywhere_is_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let runs = "i,slow,fast\na,1,.5\nb,1,.5\nc,1,.5\nd,1,.5\n";
        std::fs::write(folder.path().join("runs.csv"), runs).unwrap();
        let text = "target: {recorded: {consumption: runs.csv, cutoff: 10s}}\nlimits: {max: 10s, grid: 5}\n";
        let checked = crate::scenario::parse(text, "mine.yaml".as_ref(), folder.path()).unwrap();
        let plan = HoldoutPlan {
            holdouts: vec![Holdout::of_scenario(&checked.scenario).unwrap()],
            policies: vec![PolicyKind::parse("halving").unwrap()],
            budgets: vec![60.0],
            unit: Unit::Seconds,
            repetitions: 2,
            seed: 1,
            threads: 1,
            slots: vec![1],
        };
        let marks = judge_all(&plan, &StudyProgress::silent());
        let par10 = marks[0].budgets[0].test.mean.unwrap();
        assert!((par10 - 0.5).abs() < 1e-9, "{par10}");
    }
}
