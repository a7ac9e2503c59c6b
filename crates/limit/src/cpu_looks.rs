//! When to look at the CPU time of a run that has a limit on it.

use std::time::Duration;

/// The soonest the CPU time is looked at again: bounds both the overshoot and the wake-ups near the end.
const FLOOR: Duration = Duration::from_micros(250);
/// The same for a run that gets no CPU: it may wait for one, or sleep, right below its limit for any length of time.
const WAITING: Duration = Duration::from_millis(1);

/// The looks at one run: as rare as possible, but none so late that the run could be far past its limit.
#[derive(Debug)]
pub(super) struct CpuLooks {
    limit: Duration,
    /// How many CPUs the run could use at once from now on, whatever it used so far.
    cpus: u32,
    used: Duration,
    pause: Duration,
}

impl CpuLooks {
    pub(super) fn new(limit: Duration, cpus: u32) -> Self {
        Self {
            limit,
            cpus,
            used: Duration::ZERO,
            pause: limit / cpus,
        }
    }

    /// How long after the start, or the last look, the next is due.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// Takes in what was used until now. True if that is the limit.
    pub(super) fn look(&mut self, used: Duration) -> bool {
        // At the floor, a run that waits would cost 4,000 looks per second.
        let least = if used > self.used {
            FLOOR
        } else {
            (self.pause * 2).clamp(FLOOR, WAITING)
        };
        self.pause = (self.limit.saturating_sub(used) / self.cpus).max(least);
        self.used = used;
        used >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many looks it takes until the limit of a second is seen to be reached, and by how much it is passed, if the run has used
    /// this much at these moments.
    fn looks(cpus: u32, used: impl Fn(Duration) -> Duration) -> (u32, Duration) {
        let limit = Duration::from_secs(1);
        let mut looks = CpuLooks::new(limit, cpus);
        let mut now = Duration::ZERO;
        let mut count = 0;
        loop {
            now += looks.pause();
            count += 1;
            if looks.look(used(now)) {
                return (count, used(now).saturating_sub(limit));
            }
        }
    }

    #[test]
    fn a_busy_run_is_looked_at_rarely_and_stopped_in_time() {
        for cpus in [1, 2, 8, 64] {
            let (count, over) = looks(cpus, |now| now * cpus);
            assert!(count <= 2, "{count} looks on all {cpus} CPUs");
            assert!(over <= FLOOR * cpus);
        }
        let (count, over) = looks(2, |now| now);
        assert!(count < 20 && over <= FLOOR, "{count} looks, {over:?} over");
        let (count, over) = looks(2, |now| now / 10);
        assert!(count < 200 && over <= FLOOR, "{count} looks, {over:?} over");
    }

    #[test]
    fn a_run_that_waits_right_below_its_limit_is_looked_at_once_per_millisecond() {
        let below = Duration::from_micros(999_900);
        let wait = Duration::from_secs(1);
        let busy = looks(2, |now| now).0;
        // Waits for a second, then continues.
        let (count, over) = looks(2, |now| now.min(below).max(now.saturating_sub(wait)));
        assert!(count <= busy + 1000 + 5, "{count} looks");
        assert!(over <= WAITING, "{over:?} over");
    }
}
