//! Rounds in virtual time: how a study plays, whatever it measures.

use std::ops::ControlFlow;

use crate::round::Observation;
use crate::target::Ran;

/// A pull that was started, and what it costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flying<T> {
    /// What was launched.
    pub(super) pull: T,
    pub(super) seen: Observation,
    /// How long it takes.
    pub(super) cost: f64,
}

impl<T> Flying<T> {
    /// A pull that takes as long as it consumed, but at least `least`.
    pub(super) fn new(pull: T, ran: Ran, least: f64) -> Self {
        Self {
            pull,
            seen: ran.observation,
            cost: ran.consumption.max(least),
        }
    }
}

/// A run in virtual time: it chooses pulls and learns from them.
pub(super) trait VirtualRun {
    /// A pull as the run knows it.
    type Pull;

    /// Starts the next pull. `None` to wait for those in flight.
    fn launch(&mut self) -> Option<Flying<Self::Pull>>;

    /// A pull has ended.
    fn landed(&mut self, landed: Flying<Self::Pull>) -> ControlFlow<()>;
}

/// Plays with up to `slots` pulls at the same time, until the run ends or starts no more. Pulls land in the order in which
/// they end. Of several, the one that was launched first.
pub(super) fn play(run: &mut impl VirtualRun, slots: usize) {
    let slots = slots.max(1);
    let mut now = 0.0;
    // When each pull ends.
    let mut flying = Vec::with_capacity(slots);
    loop {
        while flying.len() < slots
            && let Some(pull) = run.launch()
        {
            flying.push((now + pull.cost, pull));
        }
        let ends = flying.iter().enumerate();
        let first = ends.min_by(|(_, (a, _)), (_, (b, _))| f64::total_cmp(a, b));
        let Some((place, _)) = first else { return };
        let (end, landed) = flying.remove(place);
        now = end;
        if run.landed(landed).is_break() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{ArmId, Limit, Pull, Round};

    /// Pulls of these lengths; the order in which they land.
    struct Queue {
        costs: std::vec::IntoIter<f64>,
        launched: u64,
        landed: Vec<u64>,
    }

    impl VirtualRun for Queue {
        type Pull = Round;

        fn launch(&mut self) -> Option<Flying<Round>> {
            let consumption = self.costs.next()?;
            self.launched += 1;
            let pull = Pull::new(ArmId::from_index(0), Limit::new(9.0).unwrap());
            let observation = Observation::ended(pull, 1.0, consumption).unwrap();
            let ran = Ran {
                observation,
                consumption,
            };
            Some(Flying::new(Round(self.launched), ran, 0.5))
        }

        fn landed(&mut self, landed: Flying<Round>) -> ControlFlow<()> {
            self.landed.push(landed.pull.0);
            if landed.pull == Round(6) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn pulls_land_in_the_order_in_which_they_end() {
        let order = |costs: Vec<f64>, slots| {
            let mut queue = Queue {
                costs: costs.into_iter(),
                launched: 0,
                landed: vec![],
            };
            play(&mut queue, slots);
            queue.landed
        };
        // The third is launched at 1 s, so it ends at 3 s, together with the first.
        assert_eq!(order(vec![3.0, 1.0, 2.0], 2), [2, 1, 3]);
        assert_eq!(order(vec![3.0, 1.0, 2.0], 0), [1, 2, 3]);
        // The second takes half a second at least, and the sixth ends the run.
        assert_eq!(
            order(vec![0.4, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0], 1),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(order(vec![0.7, 0.1], 2), [2, 1]);
    }
}
