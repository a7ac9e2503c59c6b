//! What is known of one arm, instance by instance, before any model.

use super::belief::{Brings, MOST, Vector};

/// No level.
const NONE: u8 = u8::MAX;

/// What is known of an arm on one instance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// The level it ended in.
    ended: u8,
    /// How many levels it outlived.
    outlived: u8,
    /// How many levels it is taken to outlive without having been run that far.
    assumed: u8,
    gain: f32,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            ended: NONE,
            outlived: 0,
            assumed: 0,
            gain: 0.0,
        }
    }
}

impl Cell {
    pub(super) fn is_known(self, level: usize) -> bool {
        self.ended != NONE || usize::from(self.outlived.max(self.assumed)) > level
    }

    fn has_ended(self) -> bool {
        self.ended != NONE
    }

    pub(super) fn has_ended_by(self, level: usize) -> bool {
        usize::from(self.ended) <= level
    }

    /// What it brought, if that is known: nothing where it outlived all levels.
    pub(super) fn gain(self, levels: usize) -> Option<f64> {
        let has_outlived = usize::from(self.outlived) >= levels;
        (self.has_ended() || has_outlived).then_some(f64::from(self.gain))
    }

    /// The levels that it is known to have reached and left, and whether it ended there.
    pub(super) fn reached(self) -> impl Iterator<Item = (usize, bool)> {
        let until = if self.has_ended() {
            usize::from(self.ended) + 1
        } else {
            usize::from(self.outlived)
        };
        (0..until).map(move |level| (level, level == usize::from(self.ended)))
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

/// How runs left a level.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Left {
    /// How many ended there, and what they brought together.
    ended: f64,
    gains: f64,
    /// How many outlived it.
    pub(super) outlived: f64,
}

impl Left {
    fn add(&mut self, cell: Cell, level: usize) {
        match usize::from(cell.ended) {
            ended if ended < level => {}
            ended if ended == level => {
                self.ended += 1.0;
                self.gains += f64::from(cell.gain);
            }
            _ => self.outlived += 1.0,
        }
    }

    /// What that changed in what the runs are worth, where one that reaches a level is worth what is `ahead`.
    pub(super) fn changed(&self, level: usize, ahead: &[f64; MOST + 1]) -> f64 {
        self.gains - self.ended * ahead[level] + self.outlived * (ahead[level + 1] - ahead[level])
    }
}

/// One arm.
#[derive(Debug, Clone, Default)]
pub(super) struct Arm {
    /// What is known of it, by position in the sequence of instances.
    cells: Vec<Cell>,
    /// Runs of later passes, by position in the first: how many are known to the end, and what they brought together.
    again: Vec<(f64, f64)>,
    /// How long a prefix of the sequence is known, per level; never longer in a higher level.
    pub(super) met: [u32; MOST],
    /// How its runs left each level, on the instances it has met there.
    pub(super) left: [Left; MOST],
    /// What its own runs say about its effects, with the variance of that.
    pub(super) seen: [Option<(f64, f64)>; MOST],
    /// Prior means of its effects: what its parameters suggest.
    pub(super) expected: Vector,
    /// Posterior means of its effects.
    pub(super) effects: Vector,
    pub(super) brings: Brings,
    has_run: bool,
}

impl Arm {
    pub(super) fn has_data(&self) -> bool {
        self.has_run
    }

    /// Whether a run at this level and position would bring nothing new.
    pub(super) fn is_known(&self, position: usize, level: usize) -> bool {
        let cell = self.cells.get(position);
        cell.is_some_and(|cell| cell.is_known(level))
    }

    /// How many runs at this position of the first pass are known to the end, and what they brought on average; none as long as that
    /// of the first pass is not.
    pub(super) fn brought(&self, position: usize, levels: usize) -> Option<(f64, f64)> {
        let first = self.cells.get(position)?.gain(levels)?;
        let (count, sum) = self.again.get(position).copied().unwrap_or_default();
        Some((count + 1.0, (sum + first) / (count + 1.0)))
    }

    /// What is known of the first pass, by position. Later passes meet the same instances.
    pub(super) fn first_pass(&self, instances: usize) -> &[Cell] {
        &self.cells[..self.cells.len().min(instances)]
    }

    /// What changed in a level in what a run is worth, on every instance of the first pass that it has met there, where one
    /// that reaches a level is worth what is `ahead`.
    pub(super) fn changes(
        &self,
        level: usize,
        instances: usize,
        ahead: &[f64; MOST + 1],
    ) -> impl Iterator<Item = f64> {
        let met = (self.met[level] as usize).min(instances);
        self.cells[..met]
            .iter()
            .map(move |cell| match usize::from(cell.ended) {
                ended if ended < level => 0.0,
                ended if ended == level => f64::from(cell.gain) - ahead[level],
                _ => ahead[level + 1] - ahead[level],
            })
    }

    /// How its runs left a level on the instances of the first pass that it has met there.
    pub(super) fn leaves(&self, level: usize, instances: usize) -> Left {
        let met = (self.met[level] as usize).min(instances);
        let mut left = Left::default();
        for cell in &self.cells[..met] {
            left.add(*cell, level);
        }
        left
    }

    /// How many levels it outlived at this position.
    pub(super) fn outlived(&self, position: usize) -> usize {
        let cell = self.cells.get(position);
        cell.map_or(0, |cell| usize::from(cell.outlived))
    }

    fn cell_mut(&mut self, position: usize) -> &mut Cell {
        if self.cells.len() <= position {
            self.cells.resize(position + 1, Cell::default());
        }
        &mut self.cells[position]
    }

    /// Enters what a run showed at this position. Returns how far that differs from an earlier run on the same instance, if
    /// there was one, where runs that end in a level bring what is `usual`.
    pub(super) fn enter(
        &mut self,
        position: usize,
        shown: Shown,
        (levels, instances): (usize, usize),
        usual: &Vector,
    ) -> Option<f64> {
        self.has_run = true;
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
                cell.gain = 0.0;
                cell.outlived = cell.outlived.max(outlived as u8);
                cell.assumed = cell.assumed.max(assumed as u8);
            }
        }
        *self.cell_mut(position) = cell;
        if position >= instances {
            self.again.resize(instances, (0.0, 0.0));
            let again = &mut self.again[position % instances];
            for (cell, sign) in [(before, -1.0), (cell, 1.0)] {
                if let Some(gain) = cell.gain(levels) {
                    *again = (again.0 + sign, again.1 + sign * gain);
                }
            }
        }
        self.advance(levels, instances);
        // What a run brings that outlived so many levels: at most what one does that ends in the next.
        let most = |outlived: usize| {
            if outlived < levels {
                usual[outlived]
            } else {
                0.0
            }
        };
        difference(compared, shown, most)
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
                self.met[level] += step as u32;
            }
        }
    }
}

/// How far a run differs from an earlier one of the same arm on the same instance, as far as both tell.
fn difference(before: Cell, shown: Shown, most: impl Fn(usize) -> f64) -> Option<f64> {
    let (outlived, gain) = (usize::from(before.outlived), f64::from(before.gain));
    match shown {
        Shown::Ended { gain: now, .. } if before.has_ended() => Some(now - gain),
        Shown::Outlived { levels, .. } if before.has_ended() => {
            (levels > usize::from(before.ended)).then(|| gain - most(levels))
        }
        _ if outlived == 0 => None,
        Shown::Ended { level, gain: now } if level < outlived => Some(now - most(outlived)),
        Shown::Ended { .. } => Some(0.0),
        Shown::Outlived { levels, .. } => (levels > 0).then_some(0.0),
    }
}
