//! All that the page shows, as data.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::answer::{Answer, answer, label};
use super::arms::{
    Arms, FailureGroup, Rounds, arms, best_arms, by_arm, failures, rounds, standings,
};
use super::course::{Course, course};
use super::curves::{BestArm, PriceCurves, prices};
use super::instances::{Instances, instances};
use super::matters::{Matters, matters};
use super::pairs::Pairs;
use super::{History, Kind, Num};
use crate::journal::{EndReason, Machine};
use crate::quantity::counted;
use crate::scenario::{Resource, shell_word};

/// The page's data.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The version of this form.
    pub format: u32,
    /// The run's name.
    pub name: String,
    /// The run as commands take it: its folder, as a word of the shell. Its name may be that of a newer run, too.
    pub run: String,
    /// The policy's name.
    pub policy: String,
    /// `wall`, `cpu` or `work`.
    pub resource: &'static str,
    /// Where the run is.
    pub status: Status,
    /// Whether gains are those a policy believes, similar arms included, not the plain estimates.
    pub is_believed: bool,
    /// What to use.
    pub answer: Option<Answer>,
    /// Prices over the limits.
    pub price: Option<PriceCurves>,
    /// The best arms in full.
    pub best: Vec<BestArm>,
    /// What matters.
    pub matters: Option<Matters>,
    /// How it went.
    pub course: Course,
    /// Who solves what.
    pub instances: Option<Instances>,
    /// Names of the instances, by number; empty where they have none or too many.
    pub instance_names: Vec<String>,
    /// The table of arms.
    pub arms: Arms,
    /// The rounds.
    pub rounds: Rounds,
    /// What failed.
    pub failures: Vec<FailureGroup>,
    /// z-RCUCB: the grids as they were refined.
    pub grids: Vec<ArmGrid>,
    /// What the run is, and how to do it again.
    pub facts: Facts,
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// `finished`, `interrupted`, `stopped`, `calibrating` or `open`.
    pub state: &'static str,
    /// The same in words.
    pub words: String,
    /// Pulls that were started.
    pub launched: usize,
    /// Pulls with an outcome.
    pub learned: usize,
    /// Those with a reward.
    pub rewarded: usize,
    /// Those cut off.
    pub censored: usize,
    /// Those that failed.
    pub failed: usize,
    /// Pulls that were lost with their launcher and ran again.
    pub lost: u64,
    /// Pulls without an outcome: number, arm, limit.
    pub in_flight: Vec<(u64, u32, Num)>,
    /// Seconds over all sessions; none in virtual time.
    pub seconds: Option<Num>,
    /// What all pulls used of the limited resource.
    pub used: Num,
    /// The sum of all gains.
    pub gain: Num,
    /// Whether the journal ends in half a line.
    pub is_torn: bool,
}

/// The limits of one arm, with the round in which each joined.
#[derive(Debug, Clone, Serialize)]
pub struct ArmGrid {
    /// The arm, counted from 1.
    pub arm: u32,
    /// Its configuration on one line.
    pub label: String,
    /// Limit, round.
    pub points: Vec<(Num, u64)>,
}

/// What the run is.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// The captime that started it.
    pub captime: String,
    /// The captime that made this page.
    pub made_by: &'static str,
    /// The journal's version.
    pub journal: u64,
    /// When it was started.
    pub started: String,
    /// The scenario's file as it was given.
    pub file: String,
    /// The folder its paths are relative to.
    pub folder: String,
    /// BLAKE3 of its text.
    pub hash: String,
    /// Its text.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Whether it ran in virtual time.
    pub is_virtual: bool,
    /// What pulls run on.
    pub target: String,
    /// Options of the policy, defaults included.
    pub options: Map<String, Value>,
    /// The limits.
    pub limits: Vec<String>,
    /// Whether they were measured.
    pub is_calibrated: bool,
    /// Where it ran.
    pub machine: Machine,
    /// Sessions: number, start, slots, budget, enforcement.
    pub sessions: Vec<(u64, Option<String>, usize, String, String)>,
    /// What could be enforced.
    pub enforcement: String,
    /// Commands that do it again.
    pub reproduce: Vec<String>,
}

/// Arms whose grids are shown.
const GRIDS: usize = 40;
/// Names of instances the page holds.
const NAMES: usize = 20_000;

impl Summary {
    /// What is known of a run so far.
    pub fn of(history: &History) -> Self {
        let of_arms = by_arm(history);
        let pairs = Pairs::of(history);
        let stands = standings(history, &pairs);
        let names = &history.brief.instances;
        Self {
            format: 1,
            name: history.header.name.clone(),
            run: run(history),
            policy: history.policy().name().to_owned(),
            resource: history.resource().name(),
            status: Status::of(history),
            is_believed: pairs.is_believed(),
            answer: answer(history, &pairs),
            price: prices(history),
            best: best_arms(history, &pairs, &of_arms, &stands),
            matters: matters(history, &pairs),
            course: course(history, &pairs),
            instances: instances(history, &pairs),
            instance_names: if names.len() <= NAMES {
                names.clone()
            } else {
                vec![]
            },
            arms: arms(history, &pairs, &of_arms, &stands),
            rounds: rounds(history),
            failures: failures(history),
            grids: grids(history),
            facts: facts(history),
        }
    }
}

impl Status {
    /// Where the run is now.
    pub fn of(history: &History) -> Self {
        let rounds = &history.rounds;
        let count = |kind| rounds.iter().filter(|played| played.kind == kind).count();
        let (state, words) = Self::state(history);
        let in_flight: Vec<_> = history
            .in_flight()
            .map(|pull| (pull.round.0, pull.arm.number(), Num(pull.limit.get())))
            .collect();
        Self {
            state,
            words,
            launched: rounds.len() + in_flight.len(),
            learned: rounds.len(),
            rewarded: count(Kind::Rewarded),
            censored: count(Kind::Censored),
            failed: count(Kind::Failed),
            lost: history.lost,
            in_flight,
            seconds: (!history.header.is_virtual).then_some(Num(history.seconds)),
            used: Num(rounds.iter().map(super::Played::used).sum()),
            gain: Num(rounds
                .iter()
                .map(|played| played.gain)
                .filter(|gain| gain.is_finite())
                .sum()),
            is_torn: history.is_torn(),
        }
    }

    /// The state of a run, by name and in words.
    pub fn state(history: &History) -> (&'static str, String) {
        match history.end.map(|end| end.end) {
            Some(EndReason::Rounds) => ("finished", "finished: all rounds were played".into()),
            Some(EndReason::Wall) => ("finished", "finished: the time was over".into()),
            Some(EndReason::Consumption) => {
                ("finished", "finished: the consumption was used up".into())
            }
            Some(EndReason::Interrupted) => (
                "interrupted",
                "interrupted: `captime run` goes on with it".into(),
            ),
            Some(EndReason::FirstFailures) => (
                "stopped",
                "stopped: the first pulls all failed, so the scenario is probably wrong".into(),
            ),
            None if history.known().is_none() => (
                "calibrating",
                "measuring limits: gains are known once that is done".into(),
            ),
            None if history.sessions.is_empty() && history.rounds.is_empty() => {
                ("open", "not started yet".into())
            }
            None => (
                "open",
                "not finished: it is running, or it was killed and `captime run` goes on with it"
                    .into(),
            ),
        }
    }
}

fn grids(history: &History) -> Vec<ArmGrid> {
    let mut by_arm: BTreeMap<_, Vec<(Num, u64)>> = BTreeMap::new();
    for &(round, arm, limit) in &history.refinements {
        by_arm.entry(arm).or_default().push((Num(limit), round));
    }
    let largest = history.limits().and_then(<[_]>::last);
    let mut grids: Vec<ArmGrid> = by_arm
        .into_iter()
        .map(|(arm, mut points)| {
            points.extend(largest.map(|largest| (Num(largest.get()), 0)));
            points.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
            ArmGrid {
                arm: arm.number(),
                label: label(history, arm),
                points,
            }
        })
        .collect();
    grids.sort_by_key(|grid| std::cmp::Reverse(grid.points.len()));
    grids.truncate(GRIDS);
    grids
}

/// The run as commands take it.
fn run(history: &History) -> String {
    shell_word(&history.folder.to_string_lossy())
}

fn facts(history: &History) -> Facts {
    let header = &history.header;
    let amount = |limit: f64| match history.resource() {
        Resource::Work => limit.to_string(),
        resource => resource.amount(limit),
    };
    let limits = history.limits().unwrap_or_default().iter();
    let file = shell_word(&header.file);
    Facts {
        captime: header.captime.clone(),
        made_by: env!("CARGO_PKG_VERSION"),
        journal: header.journal,
        started: header.started.clone(),
        file: header.file.clone(),
        folder: header.folder.clone(),
        hash: header.hash.clone(),
        scenario: header.scenario.clone(),
        seed: header.seed,
        is_virtual: header.is_virtual,
        target: history.brief.target.clone(),
        options: history.brief.options.clone(),
        limits: limits.map(|limit| amount(limit.get())).collect(),
        is_calibrated: history.calibrated.is_some(),
        machine: header.machine.clone(),
        sessions: history
            .sessions
            .iter()
            .map(|start| {
                let session = &start.session;
                (
                    session.session,
                    session.started.clone(),
                    session.slots,
                    budget_in_words(&session.budget, history.resource()),
                    in_words(&session.enforcement),
                )
            })
            .collect(),
        enforcement: in_words(&header.enforcement),
        reproduce: vec![
            format!("captime run {file} --fresh"),
            format!("captime best {}", run(history)),
            format!("captime export {} --format csv", run(history)),
        ],
    }
}

/// A budget as people read it: `400 rounds, 1m 00s on the clock`.
fn budget_in_words(budget: &Value, resource: Resource) -> String {
    let number = |name: &str| budget.get(name).and_then(Value::as_f64);
    let parts = [
        number("rounds").map(|rounds| counted(rounds as u64, "round")),
        number("wall").map(|wall| format!("{} on the clock", Resource::Wall.amount(wall))),
        number("consumption")
            .map(|most| format!("{} of {}", resource.amount(most), resource.name())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A small JSON value as people read it: `level cgroup2, memory sampled`.
fn in_words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(in_words).collect::<Vec<_>>().join("; "),
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !in_words(value).is_empty())
            .map(|(name, value)| format!("{name} {}", in_words(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}
