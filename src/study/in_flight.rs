//! Pulls in flight in virtual time.

use crate::round::Observation;
use crate::target::Ran;

/// A pull that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Landed<T> {
    /// What was launched.
    pub(super) pull: T,
    pub(super) seen: Observation,
    /// What it cost.
    pub(super) cost: f64,
}

/// Up to `slots` pulls that run at the same time.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    slots: usize,
    now: f64,
    /// When each pull ends.
    pulls: Vec<(f64, Landed<T>)>,
}

impl<T> InFlight<T> {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: slots.max(1),
            now: 0.0,
            pulls: vec![],
        }
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.pulls.len() < self.slots
    }

    /// Starts a pull that costs this much time.
    pub(super) fn launch(&mut self, pull: T, ran: Ran, cost: f64) {
        let seen = ran.observation;
        self.pulls
            .push((self.now + cost, Landed { pull, seen, cost }));
    }

    /// Waits for the pull that ends first. Of several, the one that was launched first.
    pub(super) fn land(&mut self) -> Option<Landed<T>> {
        let ends = self.pulls.iter().enumerate();
        let (place, _) = ends.min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
        let (end, landed) = self.pulls.remove(place);
        self.now = end;
        Some(landed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{ArmId, Limit, Pull, Round};

    #[test]
    fn pulls_land_in_the_order_in_which_they_end() {
        let mut flight = InFlight::new(2);
        let launch = |flight: &mut InFlight<Round>, round, cost| {
            let pull = Pull::new(ArmId::from_index(0), Limit::new(9.0).unwrap());
            let observation = Observation::ended(pull, 1.0, cost).unwrap();
            let consumption = cost;
            flight.launch(
                Round(round),
                Ran {
                    observation,
                    consumption,
                },
                cost,
            );
        };
        launch(&mut flight, 1, 3.0);
        launch(&mut flight, 2, 1.0);
        assert!(!flight.has_free_slot());
        assert_eq!(flight.land().unwrap().pull, Round(2));
        // Launched at 1 s, so it ends at 3 s, together with the first one.
        launch(&mut flight, 3, 2.0);
        assert_eq!(flight.land().unwrap().pull, Round(1));
        assert_eq!(flight.land().unwrap().pull, Round(3));
        assert!(flight.land().is_none());
    }
}
