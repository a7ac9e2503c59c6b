//! Requests and answers, one JSON object per line.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Recording;
use crate::journal::{JournalError, Learned, OutcomeRecord, PullRecord};
use crate::nearest::nearest;
use crate::orchestrator::{Next, State};
use crate::policy::{Explanation, Weighed, Why};
use crate::round::{Limit, Observation, Seen};
use crate::scenario::Scenario;

/// Longer lines are refused.
pub(super) const LONGEST: usize = 1 << 20;

/// Answers requests.
pub(super) struct Desk<'s> {
    scenario: &'s Scenario,
    state: State,
    recording: Option<Recording>,
    open: BTreeMap<u64, PullRecord>,
    last: Option<(PullRecord, Explanation)>,
}

/// What is wrong with a request, and how to put it right.
#[derive(Debug, PartialEq)]
struct Bad {
    what: String,
    fix: String,
}

impl Bad {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
        }
    }
}

/// Either a bad request, which changes nothing, or the end of us.
enum Trouble {
    Bad(Bad),
    Journal(JournalError),
}

impl From<Bad> for Trouble {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<JournalError> for Trouble {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl<'s> Desk<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        state: State,
        recording: Option<Recording>,
        open: Vec<PullRecord>,
    ) -> Self {
        Self {
            scenario,
            state,
            recording,
            open: open.into_iter().map(|pull| (pull.round.0, pull)).collect(),
            last: None,
        }
    }

    /// The answer to the request on this line; fails only if it cannot be recorded.
    pub(super) fn answer(&mut self, number: u64, line: &[u8]) -> Result<Value, JournalError> {
        match self.handle(line) {
            Ok(answer) => Ok(answer),
            Err(Trouble::Bad(Bad { what, fix })) => {
                Ok(json!({"error": {"line": number, "what": what, "fix": fix}}))
            }
            Err(Trouble::Journal(error)) => Err(error),
        }
    }

    /// Everything asked and told is on disk when this returns.
    pub(super) fn close(mut self) -> Result<(), JournalError> {
        match &mut self.recording {
            Some(recording) => recording.journal.sync(),
            None => Ok(()),
        }
    }

    fn handle(&mut self, line: &[u8]) -> Result<Value, Trouble> {
        let (request, content) = parse(line)?;
        match request.as_str() {
            "tell" => return self.tell(&content),
            "best" => return Ok(self.best(&content)?),
            _ => nothing_in(&request, &content)?,
        }
        if request == "ask" {
            self.ask()
        } else {
            Ok(self.explain())
        }
    }

    fn ask(&mut self) -> Result<Value, Trouble> {
        let pull = match self.state.choose() {
            Next::Pull(pull) => pull,
            Next::Wait | Next::Hopeless => {
                let open: Vec<String> = self.open.keys().map(ToString::to_string).collect();
                return Err(Bad::new(
                    "calibration waits for the pulls that are open",
                    format!("tell what became of {} first", open.join(", ")),
                )
                .into());
            }
        };
        let explanation = self.state.explain();
        if let Some(recording) = &mut self.recording {
            recording.journal.append(&pull)?;
        }
        self.state.launched(&pull);
        self.open.insert(pull.round.0, pull);
        self.last = Some((
            pull,
            explanation
                .filter(|_| pull.by.is_none())
                .unwrap_or(Explanation::NOTHING),
        ));
        let mut answer = json!({
            "id": pull.round,
            "arm": pull.arm,
            "configuration": self.scenario.space.configuration(pull.arm),
            "limit": pull.limit,
        });
        // Counted from 1, as in the journal; where the scenario lists none, nothing is said.
        if let (Some(number), Some(index)) = (pull.instance, pull.pull().instance) {
            answer["instance"] = json!(number);
            let names = self.scenario.target.instances();
            answer["instance_name"] = json!(names.get(index as usize));
        }
        Ok(json!({"pull": answer}))
    }

    fn tell(&mut self, content: &Map<String, Value>) -> Result<Value, Trouble> {
        let known = ["id", "reward", "consumption", "censored", "failed"];
        if let Some(unknown) = content.keys().find(|key| !known.contains(&key.as_str())) {
            let fix = match nearest(unknown, known) {
                Some(name) => format!("did you mean `{name}`?"),
                None => TELL.into(),
            };
            return Err(Bad::new(format!("`tell` knows no `{unknown}`"), fix).into());
        }
        let id = content
            .get("id")
            .ok_or_else(|| Bad::new("`tell` without `id`", TELL))?;
        let id = id.as_u64().ok_or_else(|| {
            Bad::new(
                format!("`id` is {id}, not the number of a pull"),
                "give the `id` that `ask` answered with",
            )
        })?;
        let Some(pull) = self.open.get(&id).copied() else {
            return Err(self.not_open(id).into());
        };
        let observation = observation(content, &pull)?;
        let outcome = OutcomeRecord {
            outcome: id,
            reward: match observation.seen() {
                Seen::Rewarded { reward, .. } => Some(reward),
                _ => None,
            },
            censored: match observation.seen() {
                Seen::Censored { at } => Some(at.get()),
                _ => None,
            },
            failed: (observation.seen() == Seen::Failed).then(|| "told".into()),
            consumption: match observation.seen() {
                Seen::Rewarded { consumption, .. } => Some(consumption),
                Seen::Censored { at } => Some(at.get()),
                Seen::Failed => None,
            },
            ..OutcomeRecord::default()
        };
        if let Some(recording) = &mut self.recording {
            recording.journal.append(&outcome)?;
            recording.journal.sync()?;
        }
        self.open.remove(&id);
        let found = self.state.learned(&Learned {
            pull,
            observation,
            outcome,
        });
        if let Some(found) = found {
            if let Some(recording) = &mut self.recording {
                recording.journal.append(&found)?;
            }
            // They were made from a grid, so they are one.
            let _ = self.state.calibrated(&found.limits);
        }
        Ok(json!({"told": {"id": id}}))
    }

    fn not_open(&self, id: u64) -> Bad {
        let is_old = id >= 1 && id <= self.state.tally().launched;
        if is_old {
            return Bad::new(format!("pull {id} was told already"), "tell each pull once");
        }
        let open: Vec<String> = self.open.keys().map(ToString::to_string).collect();
        let fix = if open.is_empty() {
            "ask first".into()
        } else {
            format!("open are {}", open.join(", "))
        };
        Bad::new(format!("there is no pull {id}"), fix)
    }

    /// The best pair, or where a limit is given the arm to use where every run is granted it.
    fn best(&self, content: &Map<String, Value>) -> Result<Value, Bad> {
        if let Some(unknown) = content.keys().find(|key| *key != "limit") {
            let what = format!("`best` takes no `{unknown}`");
            return Err(Bad::new(
                what,
                r#"write {"best":{}} or {"best":{"limit":300}}"#,
            ));
        }
        let best = match content.get("limit").filter(|value| !value.is_null()) {
            None => self.state.recommend(),
            Some(limit) => self.state.answer(Some(self.known_limit(limit)?)),
        };
        // As in `captime best`: where no pull brought a reward, the least bad pair is none to use.
        let best = best.filter(|_| self.state.tally().rewarded > 0);
        let best = best.map(|best| {
            json!({
                "arm": best.pull.arm,
                "configuration": self.scenario.space.configuration(best.pull.arm),
                "limit": best.pull.limit,
                "gain": best.gain,
                "interval": best.interval,
                "pulls": best.pulls,
                "censored": best.censored,
            })
        });
        Ok(json!({"best": best}))
    }

    /// The limit of the grid that was meant.
    fn known_limit(&self, given: &Value) -> Result<Limit, Bad> {
        let grid = self.state.limits();
        let known = || {
            let limits = grid.as_slice().iter().map(ToString::to_string);
            format!("limits are {}", limits.collect::<Vec<_>>().join(", "))
        };
        let number = given
            .as_f64()
            .ok_or_else(|| Bad::new(format!("`limit` is {given}, not a number"), known()))?;
        // A number that was written by somebody else may differ in its last digits.
        let is_meant = |limit: &&Limit| (limit.get() / number - 1.0).abs() < 1e-9;
        let found = grid.as_slice().iter().find(is_meant);
        found
            .copied()
            .ok_or_else(|| Bad::new(format!("there is no limit {given}"), known()))
    }

    fn explain(&self) -> Value {
        let Some((pull, explanation)) = &self.last else {
            return json!({"explain": {"why": Why::Nothing, "chosen": null, "runner_up": null}});
        };
        let why = if pull.by.is_some() {
            json!("calibration")
        } else {
            json!(explanation.why)
        };
        json!({"explain": {
            "id": pull.round,
            "why": why,
            "chosen": explanation.chosen.map(|weighed| self.weighed(weighed)),
            "runner_up": explanation.runner_up.map(|weighed| self.weighed(weighed)),
            "turn": explanation.turn,
        }})
    }

    fn weighed(&self, weighed: Weighed) -> Value {
        #[derive(Serialize)]
        struct Flat {
            arm: crate::round::ArmId,
            limit: Limit,
            configuration: crate::space::Configuration,
            compared_at: Limit,
            index: f64,
            mean: f64,
            width: f64,
            interval: (f64, f64),
            refinement: f64,
            count: u64,
            arm_count: u64,
            pending: u64,
            survival: f64,
        }
        json!(Flat {
            arm: weighed.pull.arm,
            limit: weighed.pull.limit,
            configuration: self.scenario.space.configuration(weighed.pull.arm),
            compared_at: weighed.compared_at,
            index: weighed.index,
            mean: weighed.mean,
            width: weighed.width,
            interval: weighed.interval,
            refinement: weighed.refinement,
            count: weighed.count,
            arm_count: weighed.arm_count,
            pending: weighed.pending,
            survival: weighed.survival,
        })
    }
}

const TELL: &str = r#"write {"tell":{"id":1,"reward":1.0,"consumption":3.2}}, {"tell":{"id":1,"censored":12.5}} or {"tell":{"id":1,"failed":true}}"#;
const REQUESTS: [&str; 4] = ["ask", "tell", "best", "explain"];
const WRITE: &str = r#"write one of {"ask":{}}, {"tell":{...}}, {"best":{}}, {"best":{"limit":300}}, {"explain":{}}"#;

/// The request and what it holds.
fn parse(line: &[u8]) -> Result<(String, Map<String, Value>), Bad> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.len() > LONGEST {
        return Err(Bad::new("the line is longer than 1 MiB", WRITE));
    }
    let text = std::str::from_utf8(line).map_err(|_| Bad::new("the line is not UTF-8", WRITE))?;
    if text.trim().is_empty() {
        return Err(Bad::new("the line is empty", WRITE));
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Bad::new(format!("not JSON: {error}"), WRITE))?;
    let Value::Object(object) = value else {
        return Err(Bad::new("not a JSON object", WRITE));
    };
    let mut entries = object.into_iter();
    let (Some((request, content)), None) = (entries.next(), entries.next()) else {
        return Err(Bad::new("not exactly one request", WRITE));
    };
    if !REQUESTS.contains(&request.as_str()) {
        let fix = match nearest(&request, REQUESTS) {
            Some(name) => format!("did you mean `{name}`?"),
            None => WRITE.into(),
        };
        return Err(Bad::new(format!("there is no request `{request}`"), fix));
    }
    match content {
        Value::Object(content) => Ok((request, content)),
        _ => Err(Bad::new(format!("`{request}` must hold an object"), WRITE)),
    }
}

fn nothing_in(request: &str, content: &Map<String, Value>) -> Result<(), Bad> {
    match content.keys().next() {
        None => Ok(()),
        Some(key) => Err(Bad::new(
            format!("`{request}` takes no `{key}`"),
            format!("write {{\"{request}\":{{}}}}"),
        )),
    }
}

/// What was told of a pull, if it can be learned from.
fn observation(content: &Map<String, Value>, pull: &PullRecord) -> Result<Observation, Bad> {
    let given = |key: &str| content.get(key).filter(|value| !value.is_null());
    let number = |key: &str, value: &Value| {
        value
            .as_f64()
            .ok_or_else(|| Bad::new(format!("`{key}` is {value}, not a number"), TELL))
    };
    let refused = |error: crate::round::ObservationError| Bad::new(error.to_string(), error.hint());
    let pull = pull.pull();
    match (
        given("reward"),
        given("consumption"),
        given("censored"),
        given("failed"),
    ) {
        (Some(reward), Some(consumption), None, None) => {
            let (reward, consumption) = (
                number("reward", reward)?,
                number("consumption", consumption)?,
            );
            Observation::ended(pull, reward, consumption).map_err(refused)
        }
        (Some(_), None, None, None) => Err(Bad::new("a `reward` without its `consumption`", TELL)),
        (None, Some(_), None, None) => Err(Bad::new("a `consumption` without its `reward`", TELL)),
        (None, None, Some(at), None) => {
            let at = number("censored", at)?;
            Observation::censored(pull, at).map_err(refused)
        }
        (None, None, None, Some(Value::Bool(true))) => Ok(Observation::failed(pull)),
        (None, None, None, Some(other)) => {
            Err(Bad::new(format!("`failed` is {other}, not true"), TELL))
        }
        (None, None, None, None) => Err(Bad::new("`tell` says nothing of the pull", TELL)),
        _ => Err(Bad::new(
            "`tell` says more than one thing of the pull",
            TELL,
        )),
    }
}
