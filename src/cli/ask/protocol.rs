//! Requests and answers, one JSON object per line.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::lines::{self, Bad};
use crate::journal::PullRecord;
use crate::nearest::nearest;
use crate::orchestrator::{Next, Run, RunError};
use crate::policy::{Explanation, Weighed, Why};
use crate::round::{Limit, Observation, Seen};
use crate::scenario::Scenario;
use crate::target::{Ending, Failing, Measured, Outcome};

/// Answers requests.
pub(super) struct AskSession<'s> {
    scenario: &'s Scenario,
    run: Run,
    open: BTreeMap<u64, PullRecord>,
    last: Option<(PullRecord, Explanation)>,
}

/// Either a bad request, which changes nothing, or an error that ends the run.
enum Trouble {
    Bad(Bad),
    Run(RunError),
}

impl From<Bad> for Trouble {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<RunError> for Trouble {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl<'s> AskSession<'s> {
    /// Pulls that were handed out earlier are still open.
    pub(super) fn new(scenario: &'s Scenario, mut run: Run) -> Self {
        let open = run.take_open().into_iter();
        Self {
            scenario,
            open: open.map(|pull| (pull.round.0, pull)).collect(),
            run,
            last: None,
        }
    }

    /// The answer to the request on this line. Fails only if it cannot be recorded.
    pub(super) fn answer(&mut self, number: u64, line: &[u8]) -> Result<Value, RunError> {
        match self.handle(line) {
            Ok(answer) => Ok(answer),
            Err(Trouble::Bad(bad)) => Ok(bad.answer(number)),
            Err(Trouble::Run(error)) => Err(error),
        }
    }

    /// When this returns, every request and outcome is on disk.
    pub(super) fn close(mut self) -> Result<(), RunError> {
        self.run.finish(None)
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
        let pull = match self.run.next() {
            Next::Pull(pull) => pull,
            Next::Wait | Next::Over(_) => {
                let open: Vec<String> = self.open.keys().map(ToString::to_string).collect();
                return Err(Bad::new(
                    "calibration waits for the pulls that are open",
                    format!("tell the outcome of {} first", open.join(", ")),
                )
                .into());
            }
        };
        let explanation = self.run.state().explain();
        self.run.launch(&pull)?;
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
            "configuration": self.run.state().space().configuration(pull.arm),
            "limit": pull.limit,
        });
        // Counted from 1, as in the journal. Left out if the scenario lists no instances.
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
            return Err(Bad::new(format!("`tell` has no key `{unknown}`"), fix).into());
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
        let outcome = match observation.seen() {
            Seen::Rewarded { consumption, .. } => {
                Outcome::of(observation, Some(consumption), Measured::default())
            }
            Seen::Censored { at } => Outcome::of(observation, Some(at.get()), Measured::default()),
            Seen::Failed => Outcome {
                failure: Some(Failing::new("reported by your program")),
                ..Outcome::of(observation, None, Measured::default())
            },
        };
        let ending = Ending::Brought(Box::new(outcome));
        if let Some(line) = self.run.settle(None, pull, ending)? {
            self.run.durable(line, &[])?;
        }
        self.open.remove(&id);
        Ok(json!({"told": {"id": id}}))
    }

    fn not_open(&self, id: u64) -> Bad {
        let is_old = id >= 1 && id <= self.run.state().tally().launched;
        if is_old {
            return Bad::new(
                format!("pull {id} already has an outcome"),
                "tell each pull once",
            );
        }
        let open: Vec<String> = self.open.keys().map(ToString::to_string).collect();
        let fix = if open.is_empty() {
            "ask first".into()
        } else {
            format!("open pulls: {}", open.join(", "))
        };
        Bad::new(format!("there is no pull {id}"), fix)
    }

    /// The best pair, or, if a limit is given, the arm to use if every run gets that limit.
    fn best(&self, content: &Map<String, Value>) -> Result<Value, Bad> {
        if let Some(unknown) = content.keys().find(|key| *key != "limit") {
            let what = format!("`best` takes no `{unknown}`");
            return Err(Bad::new(
                what,
                r#"write {"best":{}} or {"best":{"limit":300}}"#,
            ));
        }
        let best = match content.get("limit").filter(|value| !value.is_null()) {
            None => self.run.state().recommend(),
            Some(limit) => self.run.state().answer(Some(self.known_limit(limit)?)),
        };
        // As in `captime best`: without any reward, even the least bad pair is not recommended.
        let best = best.filter(|_| self.run.state().tally().rewarded > 0);
        let best = best.map(|best| {
            json!({
                "arm": best.pull.arm,
                "configuration": self.run.state().space().configuration(best.pull.arm),
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
        let grid = self.run.state().limits();
        let known = || {
            let limits = grid.as_slice().iter().map(ToString::to_string);
            format!("limits are {}", limits.collect::<Vec<_>>().join(", "))
        };
        let number = given
            .as_f64()
            .ok_or_else(|| Bad::new(format!("`limit` is {given}, not a number"), known()))?;
        // A number that another program wrote may differ in its last digits.
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
            configuration: Option<crate::space::Configuration>,
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
            configuration: self.run.state().space().known(weighed.pull.arm),
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
    let object = lines::object(line, WRITE)?;
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

/// The outcome of a pull, if a policy can learn from it.
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
        (None, None, None, None) => Err(Bad::new("`tell` has no outcome", TELL)),
        _ => Err(Bad::new("`tell` gives more than one outcome", TELL)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use crate::cli::ask::answers;

    const SCENARIO: &str =
        "target: external\narms: {grid: {a: [1, 2, 3]}}\nlimits: {of: wall, grid: [1s, 5s]}\n";

    fn answered(requests: &str) -> Vec<Value> {
        let scenario = crate::scenario::parse(SCENARIO, "s.yaml".as_ref(), ".".as_ref());
        answers(&scenario.unwrap().scenario, requests.as_bytes()).unwrap()
    }

    /// Any request that a careless program might write.
    fn any_request() -> impl Strategy<Value = String> {
        let number = prop_oneof![
            any::<i8>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| format!("{number:e}")),
            Just("null".to_owned()),
            Just("\"1\"".to_owned()),
            Just("true".to_owned()),
        ];
        let key = prop_oneof![
            Just("id"),
            Just("reward"),
            Just("consumption"),
            Just("censored"),
            Just("failed"),
            Just("limit"),
            Just("x"),
        ];
        let field = (key, number).prop_map(|(key, value)| format!("\"{key}\": {value}"));
        let content = proptest::collection::vec(field, 0..4)
            .prop_map(|all| format!("{{{}}}", all.join(", ")));
        let name = prop_oneof![
            Just("ask"),
            Just("tell"),
            Just("best"),
            Just("explain"),
            Just("aks")
        ];
        prop_oneof![
            4 => (name, content).prop_map(|(name, content)| format!("{{\"{name}\": {content}}}")),
            1 => "\\PC{0,30}",
        ]
    }

    proptest! {
        #[test]
        fn every_line_has_one_answer_and_a_refused_one_changes_nothing(
            lines in proptest::collection::vec(any_request(), 0..8),
        ) {
            let ask = "{\"ask\": {}}";
            let mut all = vec![ask.to_owned()];
            all.extend(lines.into_iter().map(|line| line.replace(['\n', '\r'], " ")));
            all.push(ask.to_owned());
            let text = format!("{}\n", all.join("\n"));
            let answers = answered(&text);
            prop_assert_eq!(answers.len(), all.len());
            for (number, answer) in (1_u64..).zip(&answers) {
                if let Some(error) = answer.get("error") {
                    prop_assert_eq!(error["line"].as_u64(), Some(number));
                    let is_said = |key: &str| error[key].as_str().is_some_and(|text| !text.is_empty());
                    prop_assert!(is_said("what") && is_said("fix"), "{error}");
                }
            }
            // Without the refused lines, the other answers are the same.
            let kept = all.iter().zip(&answers).filter(|(_, answer)| answer.get("error").is_none());
            let (kept, expected): (Vec<&String>, Vec<&Value>) = kept.unzip();
            let kept: String = kept.into_iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let again = answered(&kept);
            prop_assert_eq!(again.iter().collect::<Vec<_>>(), expected);
        }
    }
}
