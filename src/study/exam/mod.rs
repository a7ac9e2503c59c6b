//! Policies that spend a budget of CPU time on some instances and are judged on others.
//!
//! A policy plays on the training instances of a recorded target until the budget is spent. On the way it is asked for its
//! answer, and the answer is judged on all test instances, which it never meets: PAR10 at the full cutoff.

mod instances;
mod judge;
mod mark;
mod points;
mod table;

pub use instances::{Baselines, Exam, Known};
pub use judge::{ExamPlan, judge_all};
pub use mark::{Mark, Marks};
pub use table::{curves_csv, summary_csv, text};
