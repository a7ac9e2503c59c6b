//! The kinetic tournament: finds the pair with the largest index without looking at all of them.
//!
//! Every index is a line `mean + s * width` in s = sqrt(2 alpha ln t), s only grows, and only the lines of the
//! pulled arm change. Each match of the tournament remembers up to which s its winner is sure to win, so a decision
//! replays only the matches whose time has come: O(|M| + log n). It picks exactly what a full scan picks, rounding
//! included: a match is replayed, on the same numbers the scan would compute, long before rounding could matter.

/// The index of a pair as a function of s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub mean: f64,
    pub width: f64,
}

impl Line {
    /// To be tried before anything that is known.
    pub const FIRST: Self = Self {
        mean: 1e300,
        width: 0.0,
    };
    /// To be tried only if nothing else is left.
    pub const LAST: Self = Self {
        mean: -1e300,
        width: 0.0,
    };

    /// The index at s.
    pub fn at(self, s: f64) -> f64 {
        self.mean + s * self.width
    }

    /// Up to which s this line, which is not below the `other` now, is sure to stay above it.
    ///
    /// `NEG_INFINITY` if they are so close that rounding decides: then they must be compared every time.
    fn sure_above(self, other: Self, s: f64, largest_s: f64) -> f64 {
        if self == other {
            return f64::INFINITY;
        }
        let size =
            self.mean.abs() + other.mean.abs() + largest_s * (self.width + other.width) + 1.0;
        let lead = (self.mean - other.mean) + s * (self.width - other.width) - 1e-12 * size;
        if lead <= 0.0 {
            f64::NEG_INFINITY
        } else if self.width >= other.width {
            f64::INFINITY
        } else {
            s + lead / (other.width - self.width)
        }
    }

    /// Up to which s this line, the highest of its arm, is sure to stay so.
    ///
    /// [`Self::sure_above`] for all others at once, with one margin that is wide enough for each. The first to catch up is the
    /// one with the smallest lead / closing; fractions are compared crosswise, so that only one is divided out.
    fn sure_among(self, lines: &[Self], s: f64, largest_s: f64) -> f64 {
        let known = lines.iter().filter(|line| line.width > 0.0);
        let sizes = known.map(|line| line.mean.abs() + largest_s * line.width);
        let value = self.at(s) - 2e-12 * sizes.fold(1.0, f64::max);
        let (mut first_lead, mut first_closing) = (f64::INFINITY, 1.0);
        for &other in lines {
            let lead = value - other.at(s);
            let closing = other.width - self.width;
            if lead <= 0.0 {
                if other != self {
                    return f64::NEG_INFINITY;
                }
            } else if closing > 0.0 && lead * first_closing < first_lead * closing {
                (first_lead, first_closing) = (lead, closing);
            }
        }
        s + first_lead / first_closing
    }
}

/// The winner below one node of the tree, and how long it is sure to be one.
#[derive(Debug, Clone, Copy)]
struct Match {
    line: Line,
    arm: u32,
    /// The winner's place among the limits of its arm.
    limit: u32,
    /// The result stands while s is below this.
    sure_below: f64,
}

const EMPTY: Match = Match {
    line: Line::LAST,
    arm: u32::MAX,
    limit: 0,
    sure_below: f64::INFINITY,
};

/// A tournament of arms, each sending the best of its pairs.
#[derive(Debug, Clone)]
pub(super) struct Tournament {
    /// A complete binary tree: the root at 1, the arms in the last row.
    matches: Vec<Match>,
    /// Where the last row begins.
    row: usize,
    largest_s: f64,
    /// Arms whose lines changed since the last decision.
    changed: Vec<u32>,
    is_new: bool,
}

impl Tournament {
    /// A tournament of `arms` arms; s never exceeds `largest_s`.
    pub fn new(arms: usize, largest_s: f64) -> Self {
        let row = arms.next_power_of_two();
        let mut matches = vec![EMPTY; 2 * row];
        for (arm, entry) in matches[row..].iter_mut().take(arms).enumerate() {
            *entry = Match {
                arm: arm as u32,
                sure_below: f64::NEG_INFINITY,
                ..EMPTY
            };
        }
        Self {
            matches,
            row,
            largest_s,
            changed: vec![],
            is_new: true,
        }
    }

    /// The lines of this arm have changed.
    pub fn touch(&mut self, arm: usize) {
        if self.changed.last() != Some(&(arm as u32)) {
            self.changed.push(arm as u32);
        }
    }

    /// The arm and limit with the largest index at s; `lines_of` gives the lines of an arm, limits ascending.
    ///
    /// Ties go to the lowest arm, then the lowest limit.
    pub fn best<'a>(&mut self, s: f64, lines_of: impl Fn(usize) -> &'a [Line]) -> (usize, usize) {
        if self.is_new {
            self.is_new = false;
            self.changed.clear();
            for arm in 0..self.row {
                self.enter(arm, s, &lines_of);
            }
            for node in (1..self.row).rev() {
                self.play(node, s);
            }
        }
        while let Some(arm) = self.changed.pop() {
            self.enter(arm as usize, s, &lines_of);
            let mut node = (self.row + arm as usize) >> 1;
            while node >= 1 {
                self.play(node, s);
                node >>= 1;
            }
        }
        self.refresh(1, s, &lines_of);
        let winner = &self.matches[1];
        (winner.arm as usize, winner.limit as usize)
    }

    /// Replays below `node` whatever may have changed by s.
    fn refresh<'a>(&mut self, node: usize, s: f64, lines_of: &impl Fn(usize) -> &'a [Line]) {
        if s < self.matches[node].sure_below {
            return;
        }
        if node >= self.row {
            self.enter(node - self.row, s, lines_of);
        } else {
            self.refresh(2 * node, s, lines_of);
            self.refresh(2 * node + 1, s, lines_of);
            self.play(node, s);
        }
    }

    /// Finds the best pair of an arm.
    fn enter<'a>(&mut self, arm: usize, s: f64, lines_of: &impl Fn(usize) -> &'a [Line]) {
        if self.matches[self.row + arm].arm == u32::MAX {
            return;
        }
        let lines = lines_of(arm);
        let limit = highest(lines, s);
        let line = lines[limit];
        self.matches[self.row + arm] = Match {
            line,
            arm: arm as u32,
            limit: limit as u32,
            sure_below: line.sure_among(lines, s, self.largest_s),
        };
    }

    /// Plays the match between the winners of two halves.
    fn play(&mut self, node: usize, s: f64) {
        let (left, right) = (self.matches[2 * node], self.matches[2 * node + 1]);
        // The left half holds the lower arms, so it wins ties; an empty place never wins.
        let left_wins = right.arm == u32::MAX || left.line.at(s) >= right.line.at(s);
        let (winner, other) = if left_wins {
            (left, right)
        } else {
            (right, left)
        };
        let sure = if other.arm == u32::MAX {
            f64::INFINITY
        } else {
            winner.line.sure_above(other.line, s, self.largest_s)
        };
        let sure_below = sure.min(left.sure_below).min(right.sure_below);
        self.matches[node] = Match {
            sure_below,
            ..winner
        };
    }
}

/// The place of the highest line at s; the lowest place of equals.
pub(super) fn highest(lines: &[Line], s: f64) -> usize {
    let mut best = 0;
    let mut value = f64::NEG_INFINITY;
    for (place, line) in lines.iter().enumerate() {
        let here = line.at(s);
        if here > value {
            (best, value) = (place, here);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn scan(lines: &[Vec<Line>], s: f64) -> (usize, usize) {
        let mut best = (0, 0);
        let mut value = f64::NEG_INFINITY;
        for (arm, lines) in lines.iter().enumerate() {
            let limit = highest(lines, s);
            if lines[limit].at(s) > value {
                (best, value) = ((arm, limit), lines[limit].at(s));
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_winner_is_the_one_a_full_scan_finds(
            seed: u64, arms in 1usize..40, limits in 1usize..6, coarse: bool,
        ) {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            // Coarse values make ties and near-ties common.
            let draw = |rng: &mut Pcg64Mcg| -> Line {
                if rng.random_bool(0.03) {
                    return if rng.random_bool(0.5) { Line::FIRST } else { Line::LAST };
                }
                let value: f64 = rng.random();
                let mean = if coarse { (value * 4.0).round() / 4.0 } else { value };
                Line { mean, width: 1.0 / f64::from(rng.random_range(1..30u32)).sqrt() }
            };
            let mut lines: Vec<Vec<Line>> =
                (0..arms).map(|_| (0..limits).map(|_| draw(&mut rng)).collect()).collect();
            let mut tournament = Tournament::new(arms, 10.0);
            let mut s = 0.0;
            for _ in 0..300 {
                s += if rng.random_bool(0.1) { 0.0 } else { rng.random::<f64>() * 0.03 };
                for _ in 0..rng.random_range(0..3) {
                    let arm = rng.random_range(0..arms);
                    lines[arm] = (0..limits).map(|_| draw(&mut rng)).collect();
                    tournament.touch(arm);
                }
                let found = tournament.best(s, |arm| &lines[arm]);
                prop_assert_eq!(found, scan(&lines, s));
            }
        }
    }

    #[test]
    fn lines_that_differ_by_rounding_only_are_told_apart_as_a_scan_does() {
        let near = |ulps: u64| f64::from_bits(0.3f64.to_bits() + ulps);
        let lines: Vec<Vec<Line>> = (0..16)
            .map(|arm| {
                vec![Line {
                    mean: near(arm * 7 % 5),
                    width: near(arm * 3 % 7),
                }]
            })
            .collect();
        let mut tournament = Tournament::new(16, 10.0);
        for step in 0..1000 {
            let s = f64::from(step) * 0.01;
            let found = tournament.best(s, |arm| &lines[arm]);
            assert_eq!(found, scan(&lines, s));
        }
    }
}
