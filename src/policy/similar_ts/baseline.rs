//! What is usual: how soon runs end on easy and on hard instances, whatever the arm.
//!
//! A run on a hard instance that does not end says little against its arm, one on an easy instance says much. So instances
//! are sorted into a few classes by how soon runs end on them, and every arm is measured against what is usual in the
//! class: the idea of a Cox model stratified by instance. Within a cell between two limits the hazard is taken as
//! constant, and an arm multiplies it by a ratio.

/// No instance: the target has none, or did not say.
pub(super) const NO_INSTANCE: u32 = u32::MAX;

/// Classes of instances; more would be too thinly filled to tell their curves.
pub(super) const MOST_CLASSES: usize = 8;

/// What an instance without data is taken for, in cell-lengths at risk of the usual curve.
const SHRINK: f64 = 2.0;

/// A run, reduced to cells: it outlasted the first `survived` and, if it ended, did so in the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PastRun {
    /// The arm's place in the pool.
    pub place: u32,
    pub instance: u32,
    pub survived: u16,
    pub is_ended: bool,
    /// Cells that an earlier run of the arm on this instance had shown.
    pub known: u16,
}

/// How much of a cell a run that ended inside was at risk, on average, where the cell's integrated hazard is `u`.
///
/// The mean of an exponential time cut off at the cell's end, as a share of the cell: 1/2 for a small hazard, 1/u for a
/// large one. With it, ends over time at risk estimate a hazard without bias, though only cells are known.
pub(super) fn share_at_risk(u: f64) -> f64 {
    if u < 1e-4 {
        0.5 - u / 12.0
    } else {
        1.0 / u - 1.0 / u.min(700.0).exp_m1()
    }
}

/// The integrated hazards H of every cell, for every class of instances.
#[derive(Debug, Clone)]
pub(super) struct Baseline {
    cells: usize,
    /// Class by class, cells ascending.
    hazards: Vec<f64>,
    /// Share of the instances in each class.
    weights: Vec<f64>,
    /// The class of each instance.
    class_of: Vec<u16>,
    /// How much a run counts where the arm was run on the instance before: 1 if it is as good as another, 0 if it
    /// is an echo of the earlier one.
    pub again: f64,
}

impl Baseline {
    /// Before the first run: half of the runs at risk end in every cell, as a flat prior says.
    pub fn unknown(cells: usize, instances: usize) -> Self {
        Self {
            cells,
            hazards: vec![std::f64::consts::LN_2; cells],
            weights: vec![1.0],
            class_of: vec![0; instances],
            again: 1.0,
        }
    }

    pub fn classes(&self) -> usize {
        self.weights.len()
    }

    /// Share of the instances in each class.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The integrated hazards of a class, cells ascending.
    pub fn of_class(&self, class: usize) -> &[f64] {
        &self.hazards[class * self.cells..][..self.cells]
    }

    /// How many instances there are.
    pub fn instances(&self) -> usize {
        self.class_of.len()
    }

    /// The class of an instance; a middle one where it is unknown.
    pub fn class(&self, instance: u32) -> usize {
        let known = self.class_of.get(instance as usize);
        known.map_or(self.classes() / 2, |class| usize::from(*class))
    }

    /// How much a run counts in a cell.
    pub fn weight(&self, run: &PastRun, cell: usize) -> f64 {
        if cell < usize::from(run.known) {
            self.again
        } else {
            1.0
        }
    }

    /// Learns it again from all runs, each arm's hazards taken as `ratio(place, cell)` times the usual ones.
    pub fn fit(&mut self, runs: &[PastRun], ratio: impl Fn(u32, usize) -> f64) {
        let all = self.tally(runs, &ratio, 1, |_| 0, |_, cell| self.mean(cell));
        // As if one run had ended in every cell and one had not.
        let usual = all.hazards(|_| (std::f64::consts::LN_2, 1.0));
        let instances = self.class_of.len();
        if instances < 2 {
            self.hazards = usual;
            return;
        }
        let shrunk = |cell: usize| (SHRINK * usual[cell], SHRINK);
        let one_of = |run: &PastRun| run.instance as usize % instances;
        let each = self.tally(runs, &ratio, instances, one_of, |_, cell| usual[cell]);
        self.sort_instances(&each.hazards(shrunk));
        let by_class = self.tally(
            runs,
            &ratio,
            self.classes(),
            |run| self.class(run.instance),
            |class, cell| self.of_class(class)[cell],
        );
        self.hazards = by_class.hazards(shrunk);
    }

    /// The mean hazard over instances.
    fn mean(&self, cell: usize) -> f64 {
        let of = |(class, weight): (usize, &f64)| weight * self.of_class(class)[cell];
        self.weights.iter().enumerate().map(of).sum()
    }

    /// Sorts instances by how much of their runs is left after each cell, and cuts them into classes of equal size.
    fn sort_instances(&mut self, hazards: &[f64]) {
        let cells = self.cells;
        let left = |hazards: &[f64]| {
            let mut survival = 1.0;
            let after = |hazard: &f64| {
                survival *= (-hazard).exp();
                survival
            };
            hazards.iter().map(after).sum::<f64>()
        };
        let lefts = hazards.chunks_exact(cells).map(left);
        let mut order: Vec<(f64, usize)> = lefts.zip(0..).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let classes = MOST_CLASSES.min(order.len());
        let mut sizes = vec![0.0; classes];
        self.hazards = vec![0.0; classes * cells];
        for (place, (_, instance)) in order.iter().enumerate() {
            let class = place * classes / order.len();
            self.class_of[*instance] = class as u16;
            sizes[class] += 1.0;
            let sums = &mut self.hazards[class * cells..][..cells];
            for (sum, hazard) in sums.iter_mut().zip(&hazards[instance * cells..]) {
                *sum += hazard;
            }
        }
        for (sums, size) in self.hazards.chunks_exact_mut(cells).zip(&sizes) {
            for sum in sums {
                *sum /= size;
            }
        }
        let all = order.len() as f64;
        self.weights = sizes.iter().map(|size| size / all).collect();
    }

    /// Ends and time at risk by group of runs; `hazard` is what is taken for usual until then.
    fn tally(
        &self,
        runs: &[PastRun],
        ratio: &impl Fn(u32, usize) -> f64,
        groups: usize,
        group: impl Fn(&PastRun) -> usize,
        hazard: impl Fn(usize, usize) -> f64,
    ) -> CellSums {
        let cells = self.cells;
        let mut sums = vec![(0.0, 0.0); groups * cells];
        for run in runs {
            let group = group(run);
            let survived = usize::from(run.survived);
            for cell in 0..survived {
                sums[group * cells + cell].1 += self.weight(run, cell) * ratio(run.place, cell);
            }
            if run.is_ended {
                let weight = self.weight(run, survived);
                let ratio = ratio(run.place, survived);
                let share = share_at_risk(ratio * hazard(group, survived));
                let sum = &mut sums[group * cells + survived];
                sum.0 += weight;
                sum.1 += weight * ratio * share;
            }
        }
        CellSums { cells, sums }
    }
}

/// Ends and time at risk, per group and cell.
struct CellSums {
    cells: usize,
    sums: Vec<(f64, f64)>,
}

impl CellSums {
    /// Ends over time at risk, after adding these ends and this time to each cell.
    fn hazards(&self, prior: impl Fn(usize) -> (f64, f64)) -> Vec<f64> {
        let hazard = |(place, (ends, at_risk)): (usize, &(f64, f64))| {
            let (more_ends, more_risk) = prior(place % self.cells);
            ((ends + more_ends) / (at_risk + more_risk)).clamp(1e-6, 20.0)
        };
        self.sums.iter().enumerate().map(hazard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs on easy and hard instances of arms that are as fast as usual or twice as fast; two cells.
    fn runs() -> Vec<PastRun> {
        let mut runs = vec![];
        for number in 0..4000_u32 {
            let (place, instance) = (number % 2, number / 2 % 10);
            // Hazard 0.2 on the first five instances, 1.0 on the others.
            let hazard = if instance < 5 { 0.2 } else { 1.0 } * f64::from(place + 1);
            let quantile = f64::from(number / 20 % 200) / 200.0;
            let end = -(1.0 - quantile).ln() / hazard;
            runs.push(PastRun {
                place,
                instance,
                survived: (end as u16).min(2),
                is_ended: end < 2.0,
                known: 0,
            });
        }
        runs
    }

    #[test]
    fn hazards_of_instances_are_found_whatever_the_arms_that_ran_on_them() {
        let mut baseline = Baseline::unknown(2, 10);
        for _ in 0..6 {
            baseline.fit(&runs(), |place, _| f64::from(place + 1));
        }
        assert_eq!(baseline.classes(), MOST_CLASSES);
        for (instance, hazard) in [(0, 0.2), (4, 0.2), (5, 1.0), (9, 1.0)] {
            let of_class = baseline.of_class(baseline.class(instance));
            for cell in of_class {
                assert!(
                    (cell / hazard - 1.0).abs() < 0.1,
                    "{instance}: {of_class:?}"
                );
            }
        }
    }

    #[test]
    fn an_echo_counts_as_little_as_it_tells() {
        let mut baseline = Baseline::unknown(3, 4);
        baseline.again = 0.25;
        let run = PastRun {
            place: 0,
            instance: 1,
            survived: 3,
            is_ended: false,
            known: 2,
        };
        let weights: Vec<f64> = (0..3).map(|cell| baseline.weight(&run, cell)).collect();
        assert_eq!(weights, [0.25, 0.25, 1.0]);
    }

    #[test]
    fn the_share_at_risk_is_smooth_and_at_most_a_half() {
        let mut last = 0.5;
        for step in 1..4000 {
            let share = share_at_risk(f64::from(step) * 0.01);
            assert!(share > 0.0 && share < last, "{step}");
            last = share;
        }
        assert!((share_at_risk(9e-5) - share_at_risk(1.1e-4)).abs() < 1e-5);
    }
}
