//! What was seen of one arm, and of all of them together.

use super::baseline::{Baseline, PastRun, share_at_risk};

/// What was seen of one arm.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    /// Runs that outlasted a cell, class by class.
    pub survived: Vec<f64>,
    /// Runs that ended in a cell, class by class.
    pub ended: Vec<f64>,
    /// What those that ended in each cell brought.
    pub brought: Vec<Brought>,
    /// For every instance how many cells are known of the arm there; all, once it ended.
    pub reached: Vec<u16>,
}

/// Rewards and costs of runs that ended in one cell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brought {
    pub count: f64,
    pub rewards: f64,
    pub squares: f64,
    pub costs: f64,
}

impl Brought {
    pub fn add(&mut self, reward: f64, cost: f64) {
        self.count += 1.0;
        self.rewards += reward;
        self.squares += reward * reward;
        self.costs += cost;
    }

    /// The mean reward, as with one run of reward 1 and one of 0 before the first.
    pub fn mean(&self) -> f64 {
        (self.rewards + 1.0) / (self.count + 2.0)
    }
}

/// Ends, and the ends that were to be expected.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Ends {
    pub seen: f64,
    pub expected: f64,
}

impl Ends {
    /// Their sum over cells.
    pub fn sum(cells: &[Self]) -> Self {
        cells.iter().fold(Self::default(), |sum, cell| Self {
            seen: sum.seen + cell.seen,
            expected: sum.expected + cell.expected,
        })
    }

    /// Seen over expected, drawn to 1 as by `strength` of either.
    pub fn ratio(self, strength: f64) -> f64 {
        (self.seen + strength) / (self.expected + strength)
    }
}

impl Evidence {
    pub fn new(cells: usize, classes: usize, instances: usize) -> Self {
        Self {
            survived: vec![0.0; classes * cells],
            ended: vec![0.0; classes * cells],
            brought: vec![Brought::default(); cells],
            reached: vec![0; instances],
        }
    }

    /// Forgets how often runs ended in which class, before classes change.
    pub fn clear(&mut self, classes: usize) {
        let places = classes * self.brought.len();
        for counts in [&mut self.survived, &mut self.ended] {
            counts.clear();
            counts.resize(places, 0.0);
        }
    }

    /// Enters a run.
    pub fn add(&mut self, run: &PastRun, baseline: &Baseline) {
        let cells = self.brought.len();
        let start = baseline.class(run.instance) * cells;
        let survived = usize::from(run.survived);
        for (cell, count) in self.survived[start..][..survived].iter_mut().enumerate() {
            *count += baseline.weight(run, cell);
        }
        if run.is_ended {
            self.ended[start + survived] += baseline.weight(run, survived);
        }
        if let Some(reached) = self.reached.get_mut(run.instance as usize) {
            let known = if run.is_ended {
                cells as u16
            } else {
                run.survived
            };
            *reached = known.max(*reached);
        }
    }

    /// Ends in each cell, and those expected if its hazards were `ratio(cell)` times the usual ones.
    ///
    /// How long runs that ended were at risk depends on what the hazards really are: `scale` times that.
    pub fn ends(&self, baseline: &Baseline, scale: f64, ratio: impl Fn(usize) -> f64) -> Vec<Ends> {
        let cells = self.brought.len();
        let mut sums = vec![Ends::default(); cells];
        for class in 0..baseline.classes() {
            let hazards = baseline.of_class(class);
            for (cell, sum) in sums.iter_mut().enumerate() {
                let place = class * cells + cell;
                let (ended, survived) = (self.ended[place], self.survived[place]);
                let hazard = ratio(cell) * hazards[cell];
                sum.seen += ended;
                sum.expected += hazard * survived;
                if ended > 0.0 {
                    sum.expected += hazard * ended * share_at_risk(scale * hazard);
                }
            }
        }
        sums
    }
}
