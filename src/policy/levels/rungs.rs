//! The rungs of continuous halving: which levels are played now, and by how many arms.

/// The top rung's limit is this part of the largest limit, times the square root of what was spent in B, with two rungs;
/// every further rung raises it by the root of the ratio of levels.
const RISE: f64 = 0.033;
/// The top rung has this many arms.
const FINAL: f64 = 2.0;
/// From one level to the next, about.
const RATIO: f64 = 3.0;

/// The rungs that are played now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The lowest and the highest rung: the levels that they are for.
    pub(super) lowest: usize,
    pub(super) top: usize,
    /// What was spent, in B: runs of every arm at the largest limit.
    pub(super) spent: f64,
}

impl Window {
    /// The rungs rise with the square root of what was spent; past the largest limit they close from below.
    pub(super) fn new(limits: &[f64], arms: usize, spent: f64) -> Self {
        let rungs = (1.0 + (arms as f64 / 2.0).ln() / RATIO.ln())
            .round()
            .clamp(2.0, 5.0);
        let rise = RISE * RATIO.powf((rungs - 1.0) / 2.0);
        let rungs = (rungs as usize).min(limits.len());
        let largest = limits[limits.len() - 1];
        let wanted = rise * spent.sqrt() * largest;
        let is_below = |pair: &&[f64]| (pair[0] * pair[1]).sqrt() < wanted;
        let highest = limits.windows(2).take_while(is_below).count();
        let highest = highest.max(rungs - 1);
        let mut lowest = highest + 1 - rungs;
        if wanted > largest {
            lowest += ((wanted / largest).ln() / RATIO.ln()) as usize;
        }
        Self {
            lowest: lowest.min(highest),
            top: highest,
            spent,
        }
    }

    /// The rungs, the one with the least on its account first.
    pub(super) fn by_account(&self, accounts: &[f64]) -> impl Iterator<Item = usize> {
        let mut rungs: Vec<usize> = (self.lowest..=self.top).collect();
        rungs.sort_by(|a, b| accounts[*a].total_cmp(&accounts[*b]));
        rungs.into_iter()
    }

    pub(super) fn rungs(&self) -> usize {
        self.top - self.lowest + 1
    }

    /// How many arms a rung has.
    pub(super) fn arms(&self, rung: usize, arms: usize) -> usize {
        let (above, all) = ((rung - self.lowest) as f64, arms as f64);
        if above == 0.0 {
            return arms;
        }
        let part = (FINAL / all)
            .min(1.0)
            .powf(above / (self.rungs() - 1) as f64);
        ((all * part - 1e-9).ceil() as usize).clamp(1, arms)
    }
}
