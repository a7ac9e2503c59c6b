//! What is known of one arm, instance by instance, before any model.

use super::belief::{MOST, Vector};

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
    pub(super) gain: f32,
}

impl Cell {
    const UNKNOWN: Self = Self {
        ended: NONE,
        outlived: 0,
        assumed: 0,
        gain: 0.0,
    };

    fn is_known(self, level: usize) -> bool {
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
    /// It outlived this many levels; it is taken to outlive `assumed`, if that is more.
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
    pub(super) sums: Vector,
    /// Prior means of its effects: what its parameters suggest.
    pub(super) expected: Vector,
    /// Posterior means of its effects.
    pub(super) effects: Vector,
    /// Posterior mean and variance of the sum of its effects.
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Arm {
    /// An arm of which nothing is known.
    pub(super) fn unknown(variance: f64) -> Self {
        Self {
            cells: vec![],
            met: [0; MOST],
            sums: [0.0; MOST],
            expected: [0.0; MOST],
            effects: [0.0; MOST],
            mean: 0.0,
            variance,
        }
    }

    pub(super) fn has_data(&self) -> bool {
        self.met[0] > 0
    }

    /// Whether a run at this level and position would bring nothing new.
    pub(super) fn is_known(&self, position: usize, level: usize) -> bool {
        let cell = self.cells.get(position);
        cell.is_some_and(|cell| cell.is_known(level))
    }

    /// How many levels it outlived at this position.
    pub(super) fn outlived(&self, position: usize) -> usize {
        let cell = self.cells.get(position);
        cell.map_or(0, |cell| usize::from(cell.outlived))
    }

    fn cell_mut(&mut self, position: usize) -> &mut Cell {
        if self.cells.len() <= position {
            self.cells.resize(position + 1, Cell::UNKNOWN);
        }
        &mut self.cells[position]
    }

    /// Enters what a run showed at this position. Returns how far that differs from an earlier run on the same instance, if
    /// there was one.
    pub(super) fn enter(
        &mut self,
        position: usize,
        shown: Shown,
        (levels, instances): (usize, usize),
    ) -> Option<f64> {
        let before = *self.cell_mut(position);
        // The same instance in the pass before.
        let compared = match position.checked_sub(instances) {
            Some(earlier) if !before.is_known(0) => self.cells[earlier],
            _ => before,
        };
        let mut cell = before;
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
        *self.cell_mut(position) = cell;
        for (cell, sign) in [(before, -1.0), (cell, 1.0)] {
            let level = usize::from(cell.ended);
            if cell.has_ended() && position < self.met[level] as usize {
                self.sums[level] += sign * f64::from(cell.gain);
            }
        }
        self.advance(levels, instances);
        difference(compared, shown)
    }

    /// Takes it to outlive this many levels at these positions without a run there.
    pub(super) fn assume(
        &mut self,
        positions: &[usize],
        assumed: usize,
        (levels, instances): (usize, usize),
    ) {
        for position in positions {
            let cell = self.cell_mut(*position);
            cell.assumed = cell.assumed.max(assumed as u8);
        }
        self.advance(levels, instances);
    }

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
    pub(super) fn booked(&self, instances: usize) -> impl Iterator<Item = (usize, usize, f64)> {
        let first_pass = (self.met[0] as usize).min(instances);
        let cells = self.cells[..first_pass].iter().enumerate();
        let ended = cells.filter(|(_, cell)| cell.has_ended());
        ended
            .map(|(position, cell)| (position, usize::from(cell.ended), f64::from(cell.gain)))
            .filter(|(position, level, _)| *position < self.met[*level] as usize)
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
