//! The opening of the paper's policies: every arm once at the largest limit.

use super::estimate::Estimates;

/// Walks through the arms; each is left out once something was seen of it at the largest limit, or is under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Opening {
    /// All arms before this one are done.
    next: usize,
}

impl Opening {
    /// The next pair of the opening, none once it is over.
    ///
    /// Arms already observed at or above the largest limit, as in calibration, are left out. A pull that was cut
    /// off early is not played again here: its unvisited pairs have an infinite index, which sees to that.
    pub fn next(&mut self, estimates: &Estimates) -> Option<(usize, usize)> {
        let largest = estimates.limits().len() - 1;
        while self.next < estimates.arms() {
            let stat = &estimates.of_arm(self.next)[largest];
            if stat.count + stat.pending + stat.short == 0 {
                return Some((self.next, largest));
            }
            self.next += 1;
        }
        None
    }
}
