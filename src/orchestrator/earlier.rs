//! Warm start: what a new run takes over from an earlier one.
//!
//! Its arms always, as far as the new space has them. Its rounds too where they were measured as this run would measure
//! them: same target, same limits, same instance. They become the first rounds of the new journal, so that the new run
//! needs the earlier one never again, and the policy learns from them as it learns from its own.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::{RunError, RunReader, State};
use crate::journal::{By, Calibrated, Header, Learned, Machine, OutcomeRecord, PullRecord, Step};
use crate::quantity::counted;
use crate::round::{ArmId, Round};
use crate::scenario::{LimitSource, Scenario, Target, difference};
use crate::space::open::{OpenSpace, Point};
use crate::space::{Configuration, Parameter, Space, Value};

/// What a new run takes over.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    /// The run it is from, as the scenario names it.
    run: String,
    /// What was taken over and what was not, in words.
    notes: Vec<String>,
    /// Configurations that were added to the arms.
    arms: Vec<Configuration>,
    /// Limits that calibration found.
    limits: Option<Calibrated>,
    /// Rounds in the order they were learned from, with arms of the new run.
    rounds: Vec<Learned>,
    /// How many rounds the earlier run has.
    rounds_before: u64,
    /// The names of the earlier run's instances.
    instances: Vec<String>,
}

/// An arm of the earlier run in the new one.
struct Match {
    arm: ArmId,
    /// Whether its rounds are rounds of the new arm: what the new space leaves out was at its default.
    is_same: bool,
}

impl Earlier {
    /// Takes the run in `folder` over. Adds its arms to those of the scenario, where these come from an open space.
    pub fn take(scenario: &mut Scenario, folder: &Path) -> Result<Self, RunError> {
        let mut rounds: Vec<Box<Learned>> = vec![];
        let run = RunReader::read(folder, |step| {
            if let Step::Learned(learned) = step {
                rounds.push(learned.clone());
            }
        })?;
        let name = scenario.start_run.as_ref();
        let mut earlier = Self {
            run: name.map_or_else(|| folder.display().to_string(), |start| start.path.clone()),
            rounds_before: rounds.len() as u64,
            ..Self::default()
        };
        let obstacle = obstacle(&run, scenario);
        let order = order(
            &run,
            &rounds,
            obstacle.is_none() && scenario.space.opened().is_some(),
        );
        let mut refused = BTreeMap::new();
        if let Some(open) = scenario.open.clone() {
            let mut points: Vec<Point> = vec![];
            for arm in &order {
                let configuration = run.state.space().configuration(*arm);
                match point_of(&open, &configuration) {
                    Ok(point) => points.push(point),
                    Err(reason) => *refused.entry(reason).or_insert(0) += 1,
                }
            }
            scenario.add_arms(&points);
            earlier.arms = points
                .iter()
                .map(|point| open.configuration(point))
                .collect();
        }
        let matches = matches(run.state.space(), scenario, &order);
        earlier.take_rounds(&run, &rounds, &matches, obstacle.as_deref());
        earlier.note(&run, (order.len(), matches.len()), (&refused, obstacle));
        Ok(earlier)
    }

    /// Gives a scenario whose run exists already the arms that the run took over.
    pub fn resume(scenario: &mut Scenario, header: &Header) -> Self {
        let stored = &header.resolved["earlier"];
        let items = |key: &str| stored[key].as_array().into_iter().flatten();
        if let Some(open) = scenario.open.clone() {
            let points = items("arms").filter_map(|arm| open.read_point(arm.as_object()?));
            scenario.add_arms(&points.collect::<Vec<_>>());
        }
        Self {
            run: stored["run"].as_str().unwrap_or_default().to_owned(),
            notes: items("notes")
                .filter_map(|note| note.as_str().map(str::to_owned))
                .collect(),
            ..Self::default()
        }
    }

    /// What was taken over and what was not, in words.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What is stored in the header of the new run.
    pub(super) fn stored(&self) -> Json {
        json!({"run": self.run, "arms": self.arms, "notes": self.notes})
    }

    /// Lets a new run learn from the rounds. `each` gets every step before the run does.
    pub fn teach<E>(
        &self,
        state: &mut State,
        mut each: impl FnMut(&Step) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut replay = |state: &mut State, step: Step| {
            each(&step)?;
            let is_known = state.replay(&step);
            debug_assert!(is_known, "arms and limits were matched");
            Ok(())
        };
        if let Some(limits) = &self.limits {
            replay(state, Step::Calibrated(limits.clone()))?;
        }
        for (round, learned) in (1..).zip(&self.rounds) {
            let pull = PullRecord {
                round: Round(round),
                seen: round - 1,
                ..learned.pull
            };
            let outcome = OutcomeRecord {
                outcome: round,
                ..learned.outcome.clone()
            };
            let observation = outcome
                .observation(pull.pull())
                .expect("the earlier journal was read in the same way");
            if let Some(arm) = state.opening(pull.arm) {
                replay(state, Step::Opened(Box::new(arm)))?;
            }
            replay(state, Step::Launched(pull))?;
            let learned = Learned {
                pull,
                observation,
                outcome,
            };
            replay(state, Step::Learned(Box::new(learned)))?;
        }
        Ok(())
    }

    fn take_rounds(
        &mut self,
        run: &RunReader,
        rounds: &[Box<Learned>],
        matches: &HashMap<ArmId, Match>,
        obstacle: Option<&str>,
    ) {
        if obstacle.is_some() {
            return;
        }
        if let LimitSource::Calibrate(_) = run.resolved.scenario.limits.from {
            let limits = run.state.limits().as_slice().to_vec();
            self.limits = Some(Calibrated { limits, at: None });
        }
        for learned in rounds {
            let Some(found) = matches.get(&learned.pull.arm).filter(|found| found.is_same) else {
                continue;
            };
            let pull = PullRecord {
                arm: found.arm,
                by: Some(By::Earlier),
                ..learned.pull
            };
            let outcome = OutcomeRecord {
                slot: None,
                at: learned.outcome.at.map(|_| 0.0),
                ..learned.outcome.clone()
            };
            let observation = learned.observation;
            self.rounds.push(Learned {
                pull,
                observation,
                outcome,
            });
        }
        self.instances.clone_from(&run.resolved.instances);
    }

    /// Finds the instances of the rounds among those of the new run, and leaves out the rounds on others.
    pub fn on_instances(&mut self, names: &[String]) {
        let before = self.rounds.len();
        let numbers: HashMap<&str, u32> = names.iter().map(String::as_str).zip(1..).collect();
        let old = std::mem::take(&mut self.instances);
        self.rounds.retain_mut(|learned| {
            let Some(number) = learned.pull.instance else {
                return names.is_empty();
            };
            let name = old.get(number as usize - 1);
            learned.pull.instance = name.and_then(|name| numbers.get(name.as_str()).copied());
            learned.pull.instance.is_some()
        });
        let kept = self.rounds.len();
        if before > 0 {
            let all = counted(self.rounds_before, "round");
            self.notes
                .insert(1, format!("{kept} of its {all} taken over"));
        }
        if kept < before {
            let lost = counted((before - kept) as u64, "round");
            let why = "on instances that this scenario does not have";
            self.notes.push(format!("{lost} not taken over: {why}"));
        }
    }

    fn note(
        &mut self,
        run: &RunReader,
        (arms, found): (usize, usize),
        (refused, obstacle): (&BTreeMap<String, u64>, Option<String>),
    ) {
        let Self { run: name, .. } = self;
        let mut notes = vec![format!(
            "from {name}: {found} of its {} taken over",
            counted(arms as u64, "arm")
        )];
        for (reason, count) in refused {
            notes.push(format!(
                "{} not in this space: {reason}",
                counted(*count, "arm")
            ));
        }
        let other = self.rounds_before - self.rounds.len() as u64;
        let (then, now) = (&run.header.machine, Machine::here());
        if let Some(why) = obstacle {
            notes.push(format!("no rounds taken over: {why}"));
        } else if other > 0 {
            notes.push(format!(
                "{} not taken over: of other arms, or of arms whose removed parameters were not at their defaults",
                counted(other, "round")
            ));
        }
        if !run.header.is_virtual && then.cpu != now.cpu && !self.rounds.is_empty() {
            notes.push(format!(
                "they were measured on another CPU ({} instead of {}), so their times may not be comparable",
                then.cpu, now.cpu
            ));
        }
        self.notes = notes;
    }
}

/// Why no round can be taken over, if that is so.
fn obstacle(run: &RunReader, scenario: &Scenario) -> Option<String> {
    let before = &run.resolved.scenario;
    let (old, new) = (
        how_measured(before, scenario),
        how_measured(scenario, before),
    );
    let changes = difference(&old, &new);
    if let Some(change) = changes.first() {
        let more = match changes.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return Some(format!("the target or the limits changed ({change}{more})"));
    }
    let is_calibrating = run.state.problem().is_none();
    is_calibrating.then(|| "its calibration did not finish".to_owned())
}

/// Everything that outcomes depend on, besides arm, limit, instance and seed.
fn how_measured(scenario: &Scenario, other: &Scenario) -> Json {
    let mut stored = scenario.stored();
    let mut target = stored["target"].take();
    let is_in_both = |name: &String| {
        let has = |of: &Scenario| match &of.target {
            Target::Command(command) => command.instances.contains(name),
            _ => false,
        };
        has(scenario) && has(other)
    };
    for of_kind in target.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let Some(keys) = of_kind.as_object_mut() else {
            continue;
        };
        keys.remove("instances");
        keys.remove("test");
        // Answers of instances that only one of them runs on, or that are held out, change no round that is taken over.
        let answers = keys
            .get_mut("expect")
            .and_then(|expect| expect.pointer_mut("/column/known"));
        if let Some(Json::Object(answers)) = answers {
            answers.retain(|name, _| is_in_both(name));
        }
        // A parameter that only one of them has is at its default.
        let own = keys
            .get_mut("arguments")
            .and_then(|arguments| arguments.get_mut("own"));
        if let Some(Json::Object(own)) = own {
            let has = |name: &str| {
                let known = other.space.parameters().iter();
                known.into_iter().any(|known| known.name() == name)
            };
            own.retain(|name, _| has(name));
        }
        if let Some(Json::Object(arguments)) = keys.get_mut("arguments")
            && arguments
                .get("own")
                .and_then(Json::as_object)
                .is_some_and(Map::is_empty)
        {
            arguments.remove("own");
        }
    }
    json!({"target": target, "limits": stored["limits"].take()})
}

/// The arms that have rounds: by their first round if arms get numbers in that order, else the answer first and then those
/// that were pulled most.
fn order(run: &RunReader, rounds: &[Box<Learned>], is_by_round: bool) -> Vec<ArmId> {
    let mut pulls: HashMap<ArmId, u64> = HashMap::new();
    let mut order = vec![];
    for learned in rounds {
        let arm = learned.pull.arm;
        let count = pulls.entry(arm).or_default();
        if *count == 0 {
            order.push(arm);
        }
        *count += 1;
    }
    if !is_by_round {
        let best = run.state.recommend().map(|best| best.pull.arm);
        order.sort_by_key(|arm| (Some(*arm) != best, std::cmp::Reverse(pulls[arm]), *arm));
    }
    order
}

/// The configuration in the new space, without the parameters it lacks.
fn point_of(open: &OpenSpace, configuration: &Configuration) -> Result<Point, String> {
    let is_known = |name: &str| open.parameters().iter().any(|known| &*known.name == name);
    let kept = configuration.iter().filter(|(name, _)| is_known(name));
    open.point(kept).map_err(|error| error.to_string())
}

/// For arms of the earlier run the arms that they are now.
fn matches(before: &Space, scenario: &Scenario, order: &[ArmId]) -> HashMap<ArmId, Match> {
    let now = &scenario.space;
    let old_default = before.configuration(ArmId::from_index(0));
    let new_default = now.configuration(ArmId::from_index(0));
    let known_now: Vec<&str> = now.parameters().iter().map(Parameter::name).collect();
    let known_before: Vec<&str> = before.parameters().iter().map(Parameter::name).collect();
    // By configuration: the arm of a point, or of the same values.
    let by_values: HashMap<String, ArmId> = match now.opened() {
        Some(_) => HashMap::new(),
        None => now
            .arms()
            .map(|arm| (key(&now.configuration(arm)), arm))
            .collect(),
    };
    let mut found = HashMap::new();
    for &arm in order {
        let old = before.configuration(arm);
        let arm_now = if let (Some(opened), Some(open)) = (now.opened(), &scenario.open) {
            point_of(open, &old)
                .ok()
                .and_then(|point| opened.arm(&point))
        } else if let Some(open) = &scenario.open {
            let point = point_of(open, &old).ok();
            point.and_then(|point| by_values.get(&key(&open.configuration(&point))).copied())
        } else {
            let kept = old.iter().filter(|(name, _)| known_now.contains(name));
            let added = new_default
                .iter()
                .filter(|(name, _)| !known_before.contains(name));
            let values = kept
                .chain(added)
                .map(|(name, value)| (name.to_owned(), value.clone()));
            let mut wanted: Configuration = values.collect();
            if wanted.is_empty() {
                wanted = old.clone();
            }
            by_values.get(&key(&wanted)).copied()
        };
        let is_gone = |name: &str| !known_now.contains(&name);
        let gone = known_before.iter().filter(|name| is_gone(name));
        let is_same = gone
            .into_iter()
            .all(|name| means(old.get(name), old_default.get(name)));
        found.extend(arm_now.map(|now| (arm, Match { arm: now, is_same })));
    }
    found
}

fn means(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.means(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// The same for configurations that mean the same. Names count only where there is nothing else.
fn key(configuration: &Configuration) -> String {
    if configuration.is_empty() {
        return configuration.name().unwrap_or_default().to_owned();
    }
    let mut parts: Vec<String> = configuration
        .iter()
        .map(|(name, value)| match value.number() {
            Some(number) => format!("{name}={number:?}"),
            None => format!("{name}={}", json!(value)),
        })
        .collect();
    parts.sort_unstable();
    parts.join("\n")
}
