//! What is believed of every arm: a mixed model of gains, level by level.
//!
//! The gain of a run at the largest limit is written as the sum over levels of what it brings if it ends in that level, so
//! that a run at a short limit is a complete observation of the lower levels. In each level, what arm i brings on instance j is
//! instance effect + arm effect + noise. The effects of one arm have a joint normal prior across levels: what short limits
//! say about long ones is as much as the covariance, which is learned, says. All arms meet the instances in one
//! sequence, so the mean over a prefix of it has a finite-population factor: an arm that has met every instance is known
//! exactly.

/// More levels than this are not kept apart.
pub(super) const MOST: usize = 9;

/// One number per level.
pub(super) type Vector = [f64; MOST];
type Matrix = [Vector; MOST];

/// Standard deviation of arm effects a priori, in the first level and in the others; gains lie between 0 and 1.
const SPREAD: (f64, f64) = (0.08, 0.04);
/// Correlation of an arm's effects in neighbouring levels a priori.
const CORRELATION: f64 = 0.6;
/// Runs that the prior covariance counts for.
const COVARIANCE_WEIGHT: f64 = 4.0;
/// Variance of the noise a priori, and how many runs that counts for.
const NOISE: (f64, f64) = (0.06, 10.0);
/// Mean and variance of instance effects a priori, and how many instances the variance counts for.
const INSTANCE: (f64, f64, f64) = (0.06, 0.04, 3.0);
/// Rounds of the fit: each takes the others' last values as given.
const SWEEPS: usize = 3;
/// Keeps an exact observation from dividing by zero.
const TINY: f64 = 1e-9;

/// No level.
const NONE: u8 = u8::MAX;

/// What is known of an arm on one instance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// The level it ended in.
    ended: u8,
    /// How many levels it outlived.
    pub(super) outlived: u8,
    /// How many levels it is taken to outlive without having been run that far.
    assumed: u8,
    gain: f32,
}

impl Cell {
    const UNKNOWN: Self = Self {
        ended: NONE,
        outlived: 0,
        assumed: 0,
        gain: 0.0,
    };

    pub(super) fn is_known(self, level: usize) -> bool {
        self.ended != NONE || usize::from(self.outlived.max(self.assumed)) > level
    }

    pub(super) fn has_ended(self) -> bool {
        self.ended != NONE
    }
}

/// What a run showed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown {
    /// It ended in this level and brought this much, from 0 to 1.
    Ended { level: usize, gain: f64 },
    /// It outlived so many levels; it is taken to outlive `assumed`, if that is more.
    Outlived { levels: usize, assumed: usize },
}

/// One arm.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    /// What is known of it, by position in the sequence of instances.
    pub(super) cells: Vec<Cell>,
    /// How long a prefix of the sequence is known, per level; never longer in a higher level.
    pub(super) met: [u32; MOST],
    /// What it brought in each level, over that prefix.
    sums: Vector,
    /// Posterior means of its effects.
    effects: Vector,
    /// Posterior mean and variance of the sum of its effects.
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Arm {
    pub(super) fn has_data(&self) -> bool {
        self.met[0] > 0
    }
}

/// What is believed.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    pub(super) levels: usize,
    /// Instances of one pass through the sequence.
    instances: usize,
    pub(super) arms: Vec<Arm>,
    covariance: Matrix,
    noise: Vector,
    /// Mean and variance of instance effects.
    centre: Vector,
    spread: Vector,
    /// Posterior mean and variance of the effect of every instance, in the order of the sequence.
    effects: Vec<Vector>,
    doubts: Vec<Vector>,
    /// Sums of these over all instances before.
    effect_sums: Vec<Vector>,
    doubt_sums: Vec<Vector>,
    /// Pairs of runs of the same arm on the same instance, and the sum of their squared differences.
    repeats: (f64, f64),
}

impl Belief {
    pub(super) fn new(arms: usize, levels: usize, instances: usize) -> Self {
        let mut belief = Self {
            levels,
            instances,
            arms: vec![],
            covariance: prior_covariance(),
            noise: [NOISE.0; MOST],
            centre: [INSTANCE.0; MOST],
            spread: [INSTANCE.1; MOST],
            effects: vec![[INSTANCE.0; MOST]; instances],
            doubts: vec![[INSTANCE.1; MOST]; instances],
            effect_sums: vec![],
            doubt_sums: vec![],
            repeats: (0.0, 0.0),
        };
        belief.add_arms(arms);
        belief.add_up();
        belief
    }

    /// So many more arms, of which nothing is known.
    pub(super) fn add_arms(&mut self, count: usize) {
        let arm = Arm {
            cells: vec![],
            met: [0; MOST],
            sums: [0.0; MOST],
            effects: [0.0; MOST],
            mean: 0.0,
            variance: self.prior_variance(),
        };
        self.arms.resize(self.arms.len() + count, arm);
    }

    fn prior_variance(&self) -> f64 {
        let rows = self.covariance[..self.levels].iter();
        rows.flat_map(|row| &row[..self.levels]).sum()
    }

    /// The sum over a prefix of the sequence; an instance has the same effect in every pass.
    fn over(&self, sums: &[Vector], level: usize, met: usize) -> f64 {
        let (passes, rest) = (met / self.instances, met % self.instances);
        passes as f64 * sums[self.instances][level] + sums[rest][level]
    }

    fn add_up(&mut self) {
        let sums = |of: &[Vector]| {
            let mut total = [0.0; MOST];
            let mut sums = Vec::with_capacity(of.len() + 1);
            sums.push(total);
            for values in of {
                for (total, value) in total.iter_mut().zip(values) {
                    *total += value;
                }
                sums.push(total);
            }
            sums
        };
        self.effect_sums = sums(&self.effects);
        self.doubt_sums = sums(&self.doubts);
    }

    /// Variance of repeated runs of an arm on an instance; 0 as long as they never differed.
    pub(super) fn repeat_variance(&self) -> f64 {
        if self.repeats.0 > 0.0 {
            self.repeats.1 / (2.0 * self.repeats.0)
        } else {
            0.0
        }
    }

    /// Whether an arm has been run on every instance at every level.
    pub(super) fn is_complete(&self, arm: usize) -> bool {
        self.arms[arm].met[self.levels - 1] as usize >= self.instances
    }

    /// Posterior mean gain of an arm over all instances, on the scale from 0 to 1.
    pub(super) fn gain(&self, arm: usize) -> f64 {
        let all = &self.effect_sums[self.instances];
        let instance = all[..self.levels].iter().sum::<f64>() / self.instances as f64;
        self.arms[arm].mean + instance
    }

    /// Enters what a run showed at this position.
    pub(super) fn learn(&mut self, arm: usize, position: usize, shown: Shown) {
        let (levels, instances) = (self.levels, self.instances);
        let of_arm = &mut self.arms[arm];
        if of_arm.cells.len() <= position {
            of_arm.cells.resize(position + 1, Cell::UNKNOWN);
        }
        let before = of_arm.cells[position];
        // The same instance in the pass before.
        let compared = match position.checked_sub(instances) {
            Some(earlier) if !before.is_known(0) => of_arm.cells[earlier],
            _ => before,
        };
        if let Some(difference) = difference(compared, shown) {
            self.repeats.0 += 1.0;
            self.repeats.1 += difference * difference;
        }
        let is_met = |met: &[u32; MOST], level: u8| position < met[usize::from(level)] as usize;
        if before.has_ended() && is_met(&of_arm.met, before.ended) {
            of_arm.sums[usize::from(before.ended)] -= f64::from(before.gain);
        }
        let cell = &mut of_arm.cells[position];
        match shown {
            Shown::Ended { level, gain } => {
                cell.ended = level as u8;
                cell.gain = gain as f32;
            }
            Shown::Outlived {
                levels: outlived,
                assumed,
            } => {
                cell.ended = NONE;
                cell.outlived = cell.outlived.max(outlived as u8);
                cell.assumed = cell.assumed.max(assumed as u8);
            }
        }
        let cell = *cell;
        if cell.has_ended() && is_met(&of_arm.met, cell.ended) {
            of_arm.sums[usize::from(cell.ended)] += f64::from(cell.gain);
        }
        of_arm.advance(levels, instances);
        self.update(arm);
    }

    /// Takes an arm to outlive so many levels at these positions without running it there.
    pub(super) fn assume(&mut self, arm: usize, positions: &[usize], levels: usize) {
        let Some(last) = positions.last() else { return };
        let of_arm = &mut self.arms[arm];
        if of_arm.cells.len() <= *last {
            of_arm.cells.resize(last + 1, Cell::UNKNOWN);
        }
        for position in positions {
            let assumed = &mut of_arm.cells[*position].assumed;
            *assumed = (*assumed).max(levels as u8);
        }
        of_arm.advance(self.levels, self.instances);
        self.update(arm);
    }

    fn update(&mut self, arm: usize) {
        let (effects, covariance) = self.posterior(&self.arms[arm]);
        let of_arm = &mut self.arms[arm];
        of_arm.effects = effects;
        of_arm.mean = effects[..self.levels].iter().sum();
        let rows = covariance[..self.levels].iter();
        let variance: f64 = rows.flat_map(|row| &row[..self.levels]).sum();
        of_arm.variance = variance.max(0.0);
    }

    /// Variance of the mean over the prefix that an arm has met in a level; infinite if it has met nothing.
    fn sampling_variance(&self, level: usize, met: usize) -> f64 {
        if met == 0 {
            return f64::INFINITY;
        }
        let count = met as f64;
        let left = (1.0 - count / self.instances as f64).max(0.0);
        let between =
            (count * self.noise[level] + self.over(&self.doubt_sums, level, met)) / (count * count);
        // Noise of repeated runs is spread over levels as all noise is.
        let all: f64 = self.noise[..self.levels].iter().sum();
        let within = self.repeat_variance() * self.noise[level] / all / count;
        between * left + within
    }

    /// Posterior mean and covariance of an arm's effects, one level after the other.
    fn posterior(&self, arm: &Arm) -> (Vector, Matrix) {
        let (mut mean, mut covariance) = ([0.0; MOST], self.covariance);
        for level in 0..self.levels {
            let met = arm.met[level] as usize;
            if met == 0 {
                break;
            }
            let seen = (arm.sums[level] - self.over(&self.effect_sums, level, met)) / met as f64;
            let variance = self.sampling_variance(level, met);
            let surprise = seen - mean[level];
            let total = covariance[level][level] + variance + TINY;
            for (mean, row) in mean.iter_mut().zip(&covariance[..self.levels]) {
                *mean += row[level] * surprise / total;
            }
            condition(&mut covariance, self.levels, level, total);
        }
        (mean, covariance)
    }

    /// The level at which one more instance says most about the sum of an arm's effects per unit of cost.
    pub(super) fn most_informative(
        &self,
        arm: usize,
        levels: impl Iterator<Item = usize>,
        cost: impl Fn(usize, usize) -> f64,
    ) -> Option<usize> {
        let of_arm = &self.arms[arm];
        let (_, covariance) = self.posterior(of_arm);
        let mut best: Option<(f64, usize)> = None;
        for level in levels {
            let met = of_arm.met[level];
            // A run at this level is also one more in the levels below that have met no more.
            let lowest = of_arm.met.iter().position(|other| *other == met);
            let lowest = lowest.unwrap_or(level);
            let mut covariance = covariance;
            let mut reduction = 0.0;
            for below in lowest..=level {
                let now = self.sampling_variance(below, met as usize);
                let then = self.sampling_variance(below, met as usize + 1);
                // Variance of an independent observation that turns `now` into `then`.
                let precision = 1.0 / then.max(1e-12) - 1.0 / now.max(1e-12);
                let total = covariance[below][below] + 1.0 / precision.max(1e-12);
                let with_sum: f64 = covariance[..self.levels].iter().map(|row| row[below]).sum();
                reduction += with_sum * with_sum / total;
                condition(&mut covariance, self.levels, below, total);
            }
            let value = reduction / cost(lowest, level);
            if best.is_none_or(|(most, _)| value > most) {
                best = Some((value, level));
            }
        }
        best.map(|(_, level)| level)
    }

    /// Fits everything that arms share: effects of instances, noise, covariance.
    pub(super) fn fit(&mut self) {
        let levels = self.levels;
        let seen: Vec<usize> = (0..self.arms.len())
            .filter(|arm| self.arms[*arm].has_data())
            .collect();
        let mut longest = [0; MOST];
        for arm in &seen {
            for (longest, met) in longest.iter_mut().zip(self.arms[*arm].met) {
                *longest = met.max(*longest);
            }
        }
        for _ in 0..SWEEPS {
            self.fit_instances(&seen, &longest);
            let mut scatter = [[0.0; MOST]; MOST];
            let mut freedom = [0.0; MOST];
            for arm in &seen {
                let (effects, covariance) = self.posterior(&self.arms[*arm]);
                self.arms[*arm].effects = effects;
                for level in 0..levels {
                    if self.arms[*arm].met[level] > 0 {
                        let kept = covariance[level][level] / self.covariance[level][level];
                        freedom[level] += (1.0 - kept).clamp(0.0, 1.0);
                    }
                    for other in 0..levels {
                        scatter[level][other] +=
                            effects[level] * effects[other] + covariance[level][other];
                    }
                }
            }
            self.fit_noise(&seen, &longest, &freedom);
            let (prior, count) = (prior_covariance(), seen.len() as f64);
            for level in 0..levels {
                for other in 0..levels {
                    let summed = scatter[level][other] + COVARIANCE_WEIGHT * prior[level][other];
                    self.covariance[level][other] = summed / (count + COVARIANCE_WEIGHT);
                }
            }
        }
        for arm in seen {
            self.update(arm);
        }
        let variance = self.prior_variance();
        for arm in self.arms.iter_mut().filter(|arm| !arm.has_data()) {
            arm.variance = variance;
        }
    }

    /// Effects of instances, given those of arms.
    fn fit_instances(&mut self, seen: &[usize], longest: &[u32; MOST]) {
        // Arms that have met an instance, and the sum of their effects: what changes from one to the next in the sequence.
        let mut count = vec![[0.0; MOST]; self.instances + 1];
        let mut effects = vec![[0.0; MOST]; self.instances + 1];
        let mut gains = vec![[0.0; MOST]; self.instances];
        for arm in seen.iter().map(|arm| &self.arms[*arm]) {
            for level in 0..self.levels {
                let met = (arm.met[level] as usize).min(self.instances);
                count[0][level] += 1.0;
                count[met][level] -= 1.0;
                effects[0][level] += arm.effects[level];
                effects[met][level] -= arm.effects[level];
            }
            for (position, level, gain) in arm.booked(self.instances) {
                gains[position][level] += gain;
            }
        }
        for level in 0..self.levels {
            let longest = (longest[level] as usize).min(self.instances);
            let sum: f64 = self.effects[..longest].iter().map(|all| all[level]).sum();
            let centre = (sum + INSTANCE.0) / (longest as f64 + 1.0);
            self.centre[level] = centre;
            let (noise, spread) = (self.noise[level], self.spread[level]);
            let (mut arms, mut of_arms) = (0.0, 0.0);
            for position in 0..self.instances {
                arms += count[position][level];
                of_arms += effects[position][level];
                let precision = 1.0 / spread + arms / noise;
                let seen = centre / spread + (gains[position][level] - of_arms) / noise;
                let is_met = position < longest;
                self.effects[position][level] = if is_met { seen / precision } else { centre };
                self.doubts[position][level] = if is_met { 1.0 / precision } else { spread };
            }
        }
        self.add_up();
    }

    /// Noise and spread of instance effects, given all effects.
    fn fit_noise(&mut self, seen: &[usize], longest: &[u32; MOST], freedom: &Vector) {
        let mut squares = [0.0; MOST];
        let mut count = [0.0; MOST];
        let mut square_sums = vec![[0.0; MOST]; self.effects.len() + 1];
        for (position, effects) in self.effects.iter().enumerate() {
            for level in 0..self.levels {
                square_sums[position + 1][level] =
                    square_sums[position][level] + effects[level] * effects[level];
            }
        }
        for arm in seen.iter().map(|arm| &self.arms[*arm]) {
            // The squared residual of a level that brought nothing, then what gains change about it.
            for level in 0..self.levels {
                let met = (arm.met[level] as usize).min(self.instances);
                let effect = arm.effects[level];
                count[level] += met as f64;
                squares[level] += square_sums[met][level]
                    + 2.0 * effect * self.effect_sums[met][level]
                    + met as f64 * effect * effect;
            }
            for (position, level, gain) in arm.booked(self.instances) {
                let expected = self.effects[position][level] + arm.effects[level];
                squares[level] += gain * (gain - 2.0 * expected);
            }
        }
        for level in 0..self.levels {
            let positions = (longest[level] as usize).min(self.instances);
            let kept: f64 = self.doubts[..positions]
                .iter()
                .map(|doubts| 1.0 - doubts[level] / self.spread[level])
                .sum();
            let free = (count[level] - kept - freedom[level]).max(0.2 * count[level]);
            self.noise[level] = (squares[level].max(0.0) + NOISE.1 * NOISE.0) / (free + NOISE.1);
            let centre = self.centre[level];
            let spread: f64 = (self.effects.iter().zip(&self.doubts))
                .take(positions)
                .map(|(effects, doubts)| (effects[level] - centre).powi(2) + doubts[level])
                .sum();
            let prior = INSTANCE.2 * INSTANCE.1;
            self.spread[level] = ((spread + prior) / (positions as f64 + INSTANCE.2)).max(1e-4);
        }
    }

    /// Arms that cannot catch up with one that is known exactly, whatever their remaining runs bring.
    pub(super) fn beaten(&self) -> Vec<bool> {
        let total = |arm: &Arm, unknown: f64| {
            let cells = arm.cells.iter().take(self.instances);
            let known: f64 = cells
                .map(|cell| match cell {
                    cell if cell.has_ended() => f64::from(cell.gain),
                    cell if usize::from(cell.outlived) >= self.levels => 0.0,
                    _ => unknown,
                })
                .sum();
            known + unknown * self.instances.saturating_sub(arm.cells.len()) as f64
        };
        let complete = (0..self.arms.len()).filter(|arm| self.is_complete(*arm));
        let best = complete
            .map(|arm| total(&self.arms[arm], 0.0))
            .fold(f64::NEG_INFINITY, f64::max);
        // Where repeated runs differ, nothing is known exactly.
        if best == f64::NEG_INFINITY || self.repeat_variance() > 1e-6 {
            return vec![false; self.arms.len()];
        }
        let arms = self.arms.iter().enumerate();
        arms.map(|(place, arm)| !self.is_complete(place) && total(arm, 1.0) < best)
            .collect()
    }
}

impl Arm {
    /// Lengthens the prefixes by what is known now; after the first pass through the instances by whole passes, so that
    /// every instance counts as much.
    fn advance(&mut self, levels: usize, instances: usize) {
        for level in 0..levels {
            loop {
                let met = self.met[level] as usize;
                let step = if met < instances { 1 } else { instances };
                let Some(next) = self.cells.get(met..met + step) else {
                    break;
                };
                if !next.iter().all(|cell| cell.is_known(level)) {
                    break;
                }
                let ended = next.iter().filter(|cell| usize::from(cell.ended) == level);
                self.sums[level] += ended.map(|cell| f64::from(cell.gain)).sum::<f64>();
                self.met[level] += step as u32;
            }
        }
    }

    /// Position, level and gain of every run in the prefix of the level it ended in, within the first pass.
    fn booked(&self, instances: usize) -> impl Iterator<Item = (usize, usize, f64)> {
        let first_pass = (self.met[0] as usize).min(instances);
        let cells = self.cells[..first_pass].iter().enumerate();
        let ended = cells.filter(|(_, cell)| cell.has_ended());
        ended
            .map(|(position, cell)| (position, usize::from(cell.ended), f64::from(cell.gain)))
            .filter(|(position, level, _)| *position < self.met[*level] as usize)
    }
}

fn prior_covariance() -> Matrix {
    let deviation = |level| if level == 0 { SPREAD.0 } else { SPREAD.1 };
    std::array::from_fn(|a| {
        std::array::from_fn(|b| {
            deviation(a) * deviation(b) * CORRELATION.powi((a.abs_diff(b) as u32).cast_signed())
        })
    })
}

/// The covariance once a level was observed, where `total` is its variance with that of the observation.
fn condition(covariance: &mut Matrix, levels: usize, level: usize, total: f64) {
    let column: Vector = std::array::from_fn(|other| covariance[other][level]);
    for a in 0..levels {
        for b in 0..levels {
            covariance[a][b] -= column[a] * column[b] / total;
        }
    }
}

/// How far a run differs from an earlier one of the same arm on the same instance, as far as both tell.
fn difference(before: Cell, shown: Shown) -> Option<f64> {
    let outlived = usize::from(before.outlived);
    match shown {
        Shown::Ended { gain, .. } if before.has_ended() => Some(gain - f64::from(before.gain)),
        Shown::Outlived { levels, .. } if before.has_ended() => {
            (levels > usize::from(before.ended)).then_some(f64::from(before.gain))
        }
        _ if outlived == 0 => None,
        Shown::Ended { level, gain } => Some(if level < outlived { gain } else { 0.0 }),
        Shown::Outlived { levels, .. } => (levels > 0).then_some(0.0),
    }
}
