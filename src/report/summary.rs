//! Everything the page shows, as data.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::answer::{Answer, OnFront, answer, front, label};
use super::answer_tests::{Test, tests};
use super::arms::{
    Arms, FailureGroup, Rounds, arms, best_arms, by_arm, failures, rounds, standings,
};
use super::course::{Course, course};
use super::curves::{BestArm, PriceCurves, prices};
use super::importance::{Importance, importance};
use super::instances::{Instances, instances};
use super::pairs::Pairs;
use super::{History, Kind, Num};
use crate::answer::NodeRow;
use crate::journal::{EndReason, Machine, RunLock};
use crate::quantity::counted;
use crate::scenario::{Budget, Compare, Resource, shell_word};
use crate::target::Enforcement;

/// The page's data.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The version of this form.
    pub format: u32,
    /// The run's name.
    pub name: String,
    /// The run as an argument for commands: its folder, quoted for a shell. Its name may also be that of a newer run.
    pub run: String,
    /// The policy's name.
    pub policy: String,
    /// `wall`, `cpu` or `work`.
    pub resource: &'static str,
    /// The state of the run.
    pub status: Status,
    /// What to use.
    pub(crate) answer: Option<Answer>,
    /// Without an answer: why, and what to change.
    pub(crate) no_answer: Option<(String, String)>,
    /// The arms that no other beats in both reward and consumption.
    pub(crate) front: Vec<OnFront>,
    /// Tests of the answer, the newest first.
    pub(crate) tests: Vec<Test>,
    /// Prices over the limits.
    pub(crate) price: Option<PriceCurves>,
    /// The best arms in full.
    pub(crate) best: Vec<BestArm>,
    /// Which parameters matter.
    pub(crate) importance: Option<Importance>,
    /// How it went.
    pub(crate) course: Course,
    /// Which arms solve which instances.
    pub(crate) instances: Option<Instances>,
    /// Names of the instances, by number. Empty if they have none or too many.
    pub(crate) instance_names: Vec<String>,
    /// The table of arms.
    pub(crate) arms: Arms,
    /// The rounds.
    pub(crate) rounds: Rounds,
    /// What failed.
    pub(crate) failures: Vec<FailureGroup>,
    /// What every node did, where pulls ran on others.
    pub(crate) nodes: Vec<NodeRow>,
    /// z-RCUCB: the grids as they were refined.
    pub(crate) grids: Vec<ArmGrid>,
    /// What the run is, and how to repeat it.
    pub(crate) facts: Facts,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// `finished`, `interrupted`, `stopped`, `calibrating`, `running`, `killed` or `open`.
    pub state: &'static str,
    /// The same in words.
    pub words: String,
    /// How much of the budget is used, from 0 to 1. Null without a budget.
    pub(crate) progress: Num,
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
    /// Pulls that were lost with their runner and ran again.
    pub lost: u64,
    /// Pulls without an outcome: number, arm, limit.
    pub(crate) in_flight: Vec<(u64, u32, Num)>,
    /// Seconds over all sessions. Null in virtual time.
    pub(crate) seconds: Option<Num>,
    /// What all pulls used of the limited resource.
    pub(crate) used: Num,
    /// The sum of all gains.
    pub(crate) gain: Num,
    /// Whether the journal ends in an incomplete line.
    pub is_torn: bool,
}

/// The limits of one arm, with the round in which each was added.
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
    /// BLAKE3 of the scenario.
    pub hash: String,
    /// Its text.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// How runs on nodes of different speed are compared.
    pub compare: Compare,
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
    /// Commands that repeat it.
    pub reproduce: Vec<String>,
}

/// How many arms' grids are shown.
const GRIDS: usize = 40;
/// How many names of instances the page holds.
const NAMES: usize = 20_000;

impl Summary {
    /// What is known about a run so far.
    pub fn of(history: &History) -> Self {
        let of_arms = by_arm(history);
        let pairs = Pairs::of(history);
        let stands = standings(history, &pairs);
        let names = &history.resolved.instances;
        Self {
            format: 1,
            name: history.header.name.clone(),
            run: run(history),
            policy: history.policy().name().to_owned(),
            resource: history.resource().name(),
            status: Status::of(history),
            answer: answer(history, &pairs),
            no_answer: history.verdict().no_answer.clone(),
            front: front(history),
            tests: tests(history),
            price: prices(history),
            best: best_arms(history, &pairs, &of_arms, &stands),
            importance: importance(history, &pairs),
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
            nodes: history.nodes(),
            grids: grids(history),
            facts: facts(history),
        }
    }
}

impl Status {
    /// The current state of the run.
    pub fn of(history: &History) -> Self {
        let rounds = &history.rounds;
        let count = |kind| rounds.iter().filter(|played| played.kind == kind).count();
        let (state, words) = Self::state(history);
        let in_flight: Vec<_> = history
            .in_flight()
            .map(|pull| (pull.round.0, pull.arm.number(), Num(pull.limit.get())))
            .collect();
        let used = rounds.iter().map(super::Played::used).sum();
        Self {
            state,
            words,
            progress: Num::of(progress(history, used)),
            launched: rounds.len() + in_flight.len(),
            learned: rounds.len(),
            rewarded: count(Kind::Rewarded),
            censored: count(Kind::Censored),
            failed: count(Kind::Failed),
            lost: history.lost,
            in_flight,
            seconds: (!history.header.is_virtual).then_some(Num(history.seconds)),
            used: Num(used),
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
        let resume = "run the same `captime run` command to resume";
        let (state, words) = match history.end.map(|end| end.end) {
            Some(EndReason::Rounds) => ("finished", "finished: all rounds done".into()),
            Some(EndReason::Wall) => ("finished", "finished: time budget used up".into()),
            Some(EndReason::Consumption) => {
                ("finished", "finished: consumption budget used up".into())
            }
            Some(EndReason::Interrupted) => ("interrupted", format!("interrupted; {resume}")),
            Some(EndReason::FirstFailures) => (
                "stopped",
                "stopped because the first pulls all failed: the scenario is probably wrong".into(),
            ),
            None => match RunLock::holder(&history.folder) {
                Some(holder) if history.known().is_none() => (
                    "calibrating",
                    format!("running ({holder}): calibrating limits; gains are known after that"),
                ),
                Some(holder) => ("running", format!("running ({holder})")),
                None if history.sessions.is_empty() && history.rounds.is_empty() => {
                    ("open", "not started yet".into())
                }
                None => ("killed", format!("killed before it was finished; {resume}")),
            },
        };
        (state, words)
    }
}

/// How much of the budget of the last session is used.
fn progress(history: &History, used: f64) -> Option<f64> {
    let budget = &history.sessions.last()?.session.budget;
    let budget: Budget = serde_json::from_value(budget.clone()).ok()?;
    budget.share(history.rounds.len() as u64, history.seconds, used)
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

/// The run as an argument for commands.
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
        compare: history.scenario().compare,
        is_virtual: header.is_virtual,
        target: history.scenario().target.name().to_owned(),
        options: history.policy().parameters(),
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
                    session_in_words(&session.enforcement),
                )
            })
            .collect(),
        enforcement: enforcement_in_words(
            &header.enforcement,
            history
                .sessions
                .iter()
                .map(|start| &start.session.enforcement),
        ),
        reproduce: vec![
            format!("captime run {file} --fresh"),
            format!("captime best {}", run(history)),
            format!("captime export {} --format csv", run(history)),
        ],
    }
}

/// Formats a budget for people: `400 rounds, 1m 00s on the clock`.
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

/// How limits were enforced in the last session, and what that leaves open in any of them. The header has only what the machine of the
/// orchestrator could do.
fn enforcement_in_words<'a>(
    header: &Value,
    sessions: impl DoubleEndedIterator<Item = &'a Value> + Clone,
) -> String {
    let last = sessions.clone().rfind(|enforcement| !enforcement.is_null());
    let mut text = in_words(&without_nodes(last.unwrap_or(header)));
    if last.is_some_and(|enforcement| enforcement.get("nodes").is_some()) {
        text += " on every node at least";
    }
    let weakest = sessions
        .filter_map(Enforcement::of_session)
        .reduce(Enforcement::weaker);
    let Some(weakest) = weakest else {
        return text;
    };
    for sentence in weakest.not_counted() {
        text = format!("{text}. {sentence}");
    }
    if let Some(escape) = weakest.escape() {
        text = format!("{text}. Without containment, {escape}");
    }
    text
}

/// How a session enforced limits, with a line for each of its nodes.
fn session_in_words(enforcement: &Value) -> String {
    let mut lines = vec![in_words(&without_nodes(enforcement))];
    let nodes = enforcement.get("nodes").and_then(Value::as_array);
    lines.extend(nodes.into_iter().flatten().map(|node| {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let (slots, machine) = (number(&node["slots"]), &node["machine"]);
        format!(
            "{}: {}, {} of {} ({}), {}",
            in_words(&node["node"]),
            counted(slots, "slot"),
            counted(number(&machine["cpus"]), "CPU"),
            in_words(&machine["host"]),
            in_words(&machine["cpu"]),
            in_words(&node["enforcement"]),
        )
    }));
    lines.join("\n")
}

/// What holds on all nodes.
fn without_nodes(enforcement: &Value) -> Value {
    let mut all = enforcement.clone();
    if let Some(fields) = all.as_object_mut() {
        fields.remove("nodes");
    }
    all
}

/// Formats a small JSON value for people: `level cgroup2, memory sampled`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_enforcement_leaves_open_is_said() {
        let session = |level: &str, memory: &str, contain: &str| serde_json::json!({"level": level, "memory": memory, "contain": contain});
        let words = |sessions: &[Value]| enforcement_in_words(&Value::Null, sessions.iter());
        let contained = session("cgroup2", "cgroup2", "pids");
        assert!(!words(std::slice::from_ref(&contained)).contains('.'));
        let off = words(&[session("cgroup2", "cgroup1", "off")]);
        assert_eq!(
            off,
            "contain off, level cgroup2, memory cgroup1. Without containment, a hostile command can stop or kill captime's own \
             processes, run past its limit and leave processes behind"
        );
        let sampled = words(&[session("subreaper", "sampled", "pids")]);
        assert!(
            sampled.contains("waited for is not counted. Memory"),
            "{sampled}"
        );
        assert!(!sampled.contains("Without containment"), "{sampled}");
        // An earlier session counts too.
        let mixed = words(&[session("subreaper", "sampled", "off"), contained]);
        assert!(
            mixed.starts_with("contain pids, level cgroup2, memory cgroup2. The CPU"),
            "{mixed}"
        );
        assert!(
            mixed.ends_with("leave processes behind, and a fork bomb can end late"),
            "{mixed}"
        );
        // Nothing was run.
        assert_eq!(words(&[Value::Null]), "");
    }

    #[test]
    fn a_session_on_nodes_has_a_line_for_each() {
        let node = |name: &str, level: &str| {
            serde_json::json!({
                "node": name, "slots": 2, "process": 7, "shared_cpus": [0],
                "machine": {"host": "vm", "cpus": 4, "cpu": "Fast"}, "enforcement": {"level": level},
            })
        };
        let nodes = [node("n1", "cgroup2"), node("n2", "subreaper")];
        let session = serde_json::json!({
            "level": "subreaper", "memory": "sampled", "contain": "pids", "nodes": nodes,
        });
        assert_eq!(
            session_in_words(&session),
            "contain pids, level subreaper, memory sampled\nn1: 2 slots, 4 CPUs of vm (Fast), level cgroup2\nn2: 2 slots, 4 CPUs of vm (Fast), level subreaper"
        );
        let all = enforcement_in_words(&Value::Null, [&session].into_iter());
        assert!(
            all.starts_with(
                "contain pids, level subreaper, memory sampled on every node at least. The CPU time"
            ),
            "{all}"
        );
    }
}
