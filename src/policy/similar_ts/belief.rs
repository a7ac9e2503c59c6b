//! From what is usual, what similar arms did and what the arm itself did to a curve of gains.

use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

use super::baseline::{Baseline, MOST_CLASSES};
use super::evidence::{Brought, Ends, Evidence};
use crate::policy::beta::{draw_beta, draw_gamma};

/// What a curve is built from, besides the arm's own runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground<'a> {
    pub baseline: &'a Baseline,
    /// What runs that ended in each cell brought, over all arms.
    pub usual: &'a [Brought],
    /// c at the right end of each cell.
    pub costs: &'a [f64],
    /// lambda at each limit.
    pub penalties: &'a [f64],
    pub weights: Weights,
}

/// How many runs what is believed before an arm's own counts for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weights {
    /// In the hazard of one cell.
    pub hazard: f64,
    /// In the ratio of all its hazards, counted in ends.
    pub ratio: f64,
    /// In rewards.
    pub reward: f64,
}

/// The arm's own part.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfArm<'a> {
    /// What similar arms suggest.
    pub hint: Hint<'a>,
    /// None before its first run.
    pub evidence: Option<&'a Evidence>,
    /// Runs under way.
    pub pending: f64,
}

/// What similar arms suggest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hint<'a> {
    /// Its hazards over the usual ones, per cell.
    pub ratios: &'a [f64],
    /// How far its rewards lie above the usual ones.
    pub reward: f64,
}

/// How far an arm's hazards lie above what similar arms suggest: a Gamma distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    shape: f64,
    rate: f64,
}

impl Ratio {
    /// What is believed before the first run.
    pub fn unknown(weights: Weights) -> Self {
        Self {
            shape: weights.ratio,
            rate: weights.ratio,
        }
    }

    pub fn mean(self) -> f64 {
        self.shape / self.rate
    }

    /// What its own runs say: ends over ends expected.
    pub fn of(ground: &Ground<'_>, arm: &OfArm<'_>) -> Self {
        let mut ratio = Self::unknown(ground.weights);
        let Some(evidence) = arm.evidence else {
            return ratio;
        };
        // The time at risk of runs that ended depends on the ratio: two steps are near enough.
        for _ in 0..2 {
            let ends = evidence.ends(ground.baseline, ratio.mean(), |cell| arm.hint.ratios[cell]);
            let ends = Ends::sum(&ends);
            ratio = Self {
                shape: ground.weights.ratio + ends.seen,
                rate: ground.weights.ratio + ends.expected,
            };
        }
        ratio
    }
}

/// How hazards and rewards are taken from what is believed: drawn, or their means.
pub(super) trait Take {
    fn hazard(&mut self, a: f64, b: f64) -> f64;
    fn ratio(&mut self, ratio: Ratio) -> f64;
    fn reward(&mut self, mean: f64, deviation: f64) -> f64;
}

/// The means.
pub(super) struct Mean;

impl Take for Mean {
    fn hazard(&mut self, a: f64, b: f64) -> f64 {
        a / (a + b)
    }

    fn ratio(&mut self, ratio: Ratio) -> f64 {
        ratio.mean()
    }

    fn reward(&mut self, mean: f64, _: f64) -> f64 {
        mean
    }
}

/// Draws, as if everything had been seen `sure` times.
pub(super) struct Draw<'r> {
    pub rng: &'r mut Pcg64Mcg,
    pub sure: f64,
}

impl Take for Draw<'_> {
    fn hazard(&mut self, a: f64, b: f64) -> f64 {
        draw_beta(self.sure * a, self.sure * b, self.rng)
    }

    fn ratio(&mut self, ratio: Ratio) -> f64 {
        draw_gamma(self.sure * ratio.shape, self.rng) / (self.sure * ratio.rate)
    }

    fn reward(&mut self, mean: f64, deviation: f64) -> f64 {
        let normal: f64 = StandardNormal.sample(self.rng);
        (mean + deviation / self.sure.sqrt() * normal).clamp(0.0, 1.0)
    }
}

/// One cell as it is believed before the arm's own runs, and these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cell {
    /// The hazard believed before.
    pub usual: f64,
    /// Own runs at risk.
    pub runs: f64,
    /// How many of them ended, corrected for the instances they ran on.
    pub ended: f64,
}

/// The gain at every limit.
///
/// nu_k = sum_{j<=k} S_{j-1} h_j (m_j - c_j) - lambda(tau_k) S_k as in `joint_ts.rs`, but what a cell's hazard is believed
/// to be before the arm's own runs comes from what is usual, times the ratios of similar arms, times the arm's own
/// ratio.
pub(super) fn curve(
    ground: &Ground<'_>,
    arm: &OfArm<'_>,
    ratio: Ratio,
    take: &mut impl Take,
    gains: &mut Vec<f64>,
) {
    let own = take.ratio(ratio);
    let (mut survival, mut net) = (1.0, 0.0);
    let strength = ground.weights.hazard;
    gains.clear();
    cells(ground, arm, own, |cell| {
        let k = gains.len();
        let narrowed = 1.0 + arm.pending / (strength + cell.runs);
        let hazard = take.hazard(
            narrowed * (strength * cell.usual + cell.ended),
            narrowed * (strength * (1.0 - cell.usual) + cell.runs - cell.ended),
        );
        let (reward, cost) = brought(ground, arm, k, take);
        net += survival * hazard * (reward - cost);
        survival *= 1.0 - hazard;
        gains.push(net - ground.penalties[k] * survival);
    });
}

/// Goes through the cells of an arm whose hazards are `own` times what similar arms suggest.
///
/// Own runs correct what was believed by how many more ended than expected *on the instances they ran on*, so that an
/// arm that met hard instances is not held for slow.
pub(super) fn cells(ground: &Ground<'_>, arm: &OfArm<'_>, own: f64, mut tell: impl FnMut(Cell)) {
    let cells = ground.costs.len();
    let weights = ground.baseline.weights();
    // What is left of each class under the belief before own runs.
    let mut left = [0.0; MOST_CLASSES];
    let left = &mut left[..weights.len()];
    left.copy_from_slice(weights);
    for k in 0..cells {
        let scale = own * arm.hint.ratios[k];
        let (mut all, mut ending) = (f64::MIN_POSITIVE, 0.0);
        let (mut runs, mut ended, mut expected) = (0.0, 0.0, 0.0);
        for (class, left) in left.iter_mut().enumerate() {
            let hazard = -(-scale * ground.baseline.of_class(class)[k]).exp_m1();
            all += *left;
            ending += *left * hazard;
            *left *= 1.0 - hazard;
            if let Some(evidence) = arm.evidence {
                let place = class * cells + k;
                let here = evidence.survived[place] + evidence.ended[place];
                runs += here;
                ended += evidence.ended[place];
                expected += here * hazard;
            }
        }
        let usual = (ending / all).clamp(1e-6, 1.0 - 1e-6);
        tell(Cell {
            usual,
            runs,
            ended: (ended - expected + runs * usual).clamp(0.0, runs),
        });
    }
}

/// Reward and cost of runs that end in a cell.
fn brought(ground: &Ground<'_>, arm: &OfArm<'_>, k: usize, take: &mut impl Take) -> (f64, f64) {
    let usual = &ground.usual[k];
    let own = arm
        .evidence
        .map_or(Brought::default(), |evidence| evidence.brought[k]);
    let mean = usual.mean();
    let variance = ((usual.squares + 1.0) / (usual.count + 2.0) - mean * mean).max(1e-12);
    let strength = ground.weights.reward;
    let rests_on = strength + own.count;
    let hinted = (mean + arm.hint.reward).clamp(0.0, 1.0);
    let reward = take.reward(
        (strength * hinted + own.rewards) / rests_on,
        (variance / (rests_on + arm.pending)).sqrt(),
    );
    let cost = if own.count > 0.0 {
        own.costs / own.count
    } else if usual.count > 0.0 {
        usual.costs / usual.count
    } else {
        ground.costs[k]
    };
    (reward, cost)
}
