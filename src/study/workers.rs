//! All repetitions of all policies on all settings, on all cores.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use super::curve::checkpoints;
use super::play::{play, seed_of};
use super::result::{Repetitions, Standing};
use super::setting::StudySetting;
use crate::policy::PolicyKind;

/// What a study plays.
pub struct VirtualStudy {
    /// The settings to play on.
    pub settings: Vec<StudySetting>,
    /// The policies that play.
    pub policies: Vec<PolicyKind>,
    /// Rounds of a repetition.
    pub rounds: u64,
    /// How often each policy plays each setting.
    pub repetitions: u64,
    /// The seed of all randomness.
    pub seed: u64,
    /// How many repetitions run at a time.
    pub threads: usize,
    /// Pulls in flight in every repetition.
    pub slots: usize,
}

impl VirtualStudy {
    /// Rounds in total.
    pub fn total_rounds(&self) -> u64 {
        let meetings = self.settings.len() as u64 * self.policies.len() as u64;
        meetings
            .saturating_mul(self.repetitions)
            .saturating_mul(self.rounds)
    }

    /// The setting and policy with this number, counted setting by setting.
    fn meeting(&self, number: usize) -> (&StudySetting, &PolicyKind) {
        let policies = self.policies.len();
        (
            &self.settings[number / policies],
            &self.policies[number % policies],
        )
    }
}

/// Plays everything and returns the standings, setting by setting, in the order of the policies.
pub fn play_all(plan: &VirtualStudy, progress: &StudyProgress) -> Vec<Standing> {
    let meetings = plan.settings.len() * plan.policies.len();
    let games = (meetings as u64).saturating_mul(plan.repetitions);
    let checkpoints = checkpoints(plan.rounds);
    let mut standings = Vec::with_capacity(meetings);
    let mut tally = Repetitions::new(plan.rounds);
    in_order(
        games,
        plan.threads,
        |game| {
            let (setting, policy) = plan.meeting((game / plan.repetitions) as usize);
            progress.at(|| format!("{} {} {}", setting.name, setting.grid, policy.name()));
            let seed = seed_of(plan.seed, game % plan.repetitions);
            play(setting, policy, (seed, plan.slots), &checkpoints, &|more| {
                progress.advance(more);
            })
        },
        |game, played| {
            tally.add(&played);
            if (game + 1) % plan.repetitions == 0 {
                let (setting, policy) = plan.meeting(standings.len());
                standings.push(tally.standing(&setting.posed(), policy));
                tally = Repetitions::new(plan.rounds);
            }
        },
    );
    standings
}

/// Plays games 0..`games` on several threads, and passes on their results in the order of their numbers, because sums
/// of floating-point numbers depend on the order.
pub(super) fn in_order<T: Send>(
    games: u64,
    threads: usize,
    work: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(u64, T),
) {
    let next = AtomicU64::new(0);
    let (sender, results) = mpsc::channel::<(u64, T)>();
    let work = |sender: mpsc::Sender<(u64, T)>| {
        loop {
            let game = next.fetch_add(1, Ordering::Relaxed);
            if game >= games || sender.send((game, work(game))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (game, result) in results {
            early.insert(game, result);
            while let Some(result) = early.remove(&due) {
                take(due, result);
                due += 1;
            }
        }
    });
}

/// Shows how far a study is. Worker threads share it.
pub trait Show: Send + Sync {
    /// This many more rounds, or seconds of virtual time, are done.
    fn advance(&self, more: u64);

    /// What is being played now.
    fn at(&self, what: String);
}

/// Where a study reports how far it is.
pub struct StudyProgress(Option<Box<dyn Show>>);

impl StudyProgress {
    /// Reports to this.
    pub fn shown_by(show: impl Show + 'static) -> Self {
        Self(Some(Box::new(show)))
    }

    /// Shows nothing.
    pub fn silent() -> Self {
        Self(None)
    }

    pub(super) fn advance(&self, more: u64) {
        if let Some(show) = &self.0 {
            show.advance(more);
        }
    }

    pub(super) fn at(&self, what: impl FnOnce() -> String) {
        if let Some(show) = &self.0 {
            show.at(what());
        }
    }
}
