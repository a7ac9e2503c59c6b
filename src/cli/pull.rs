//! `captime pull`: one pull, or one per line on stdin, for other tuners and for scripts.

mod request;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use super::lines::{self, Bad};
use super::{Exit, Failure, exit_code, runtime};
use crate::cluster::start_slots;
use crate::orchestrator::Signals;
use crate::round::{Observation, Price, Seen};
use crate::scenario::{Pin, Scenario};
use crate::target::{Ended, Ending, Outcome, Serving, SlotPool, prepare};
use request::{Request, Requests};

const EXAMPLES: &str = r#"With --lines, every line of stdin is a pull, and every pull gets one line on stdout:
  {"configuration":{"decay":0.8},"limit":2.5,"instance":"a.cnf","seed":7,"id":"x"}
      {"id":"x","outcome":"rewarded","reward":1.0,"consumption":0.42, ...}
All keys are optional. A parameter left out, or null, has its default; `arm` names a listed arm by
number or name. Without `limit` it is the largest of the scenario, which no limit may exceed; it is
in seconds, or like "500ms". Without `instance` or `seed` they are drawn from the scenario's seed
and the line's number. An instance is named, or counted from 1; those held out for the test may
be used too. Without `id` it is the number of the line.
`outcome` is rewarded, censored (stopped at its limit), failed (`failure` says why) or lost (the
machine's fault: try again). A bad line gets {"error":{"line","what","fix"}}, and nothing runs.

Examples:
  captime pull solver.yaml                                        the default configuration
  captime pull solver.yaml decay=0.8 --limit 2s --instance a.cnf --seed 7
  captime pull solver.yaml --arm 17
  my-tuner | captime pull solver.yaml --lines --slots 2           results appear as pulls end"#;

/// Run one pull under the scenario's limits and print its outcome as JSON
///
/// For tuners and scripts that choose configurations themselves and want captime to run them: any target of captime, under
/// limits that hold, with every process ended. Nothing is recorded.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PULL))]
pub struct PullArgs {
    /// The scenario file
    scenario: PathBuf,
    /// Values of parameters; those left out have their defaults
    #[arg(value_name = "NAME=VALUE", conflicts_with = "lines")]
    values: Vec<String>,
    /// A listed arm, by its number or name
    #[arg(long, value_name = "ARM", conflicts_with_all = ["lines", "values"])]
    arm: Option<String>,
    /// The limit, like `2s` [default: the largest limit]
    #[arg(long, value_name = "LIMIT", conflicts_with = "lines")]
    limit: Option<String>,
    /// The instance, by name or number
    #[arg(long, value_name = "INSTANCE", conflicts_with = "lines")]
    instance: Option<String>,
    /// The seed for the target
    #[arg(long, value_name = "N", conflicts_with = "lines")]
    seed: Option<u64>,
    /// Run one pull for every JSON line on stdin
    #[arg(long)]
    lines: bool,
    /// How many pulls of `--lines` to run at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096), requires = "lines")]
    slots: u64,
}

impl PullArgs {
    /// The one pull that the options describe.
    fn request(&self) -> Result<Value, Failure> {
        let mut configuration = serde_json::Map::new();
        for text in &self.values {
            let Some((name, value)) = text.split_once('=') else {
                return Err(Failure::usage(format!("`{text}` is not `NAME=VALUE`"))
                    .hint(Some("write the name of a parameter, `=`, and its value")));
            };
            configuration.insert(name.to_owned(), json!(value));
        }
        let given = [
            ("arm", self.arm.as_ref().map(|arm| json!(arm))),
            ("limit", self.limit.as_ref().map(|limit| json!(limit))),
            ("instance", self.instance.as_ref().map(|name| json!(name))),
            ("seed", self.seed.map(|seed| json!(seed))),
        ];
        let mut request: serde_json::Map<String, Value> = given
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect();
        if self.arm.is_none() {
            request.insert("configuration".to_owned(), configuration.into());
        }
        Ok(request.into())
    }
}

/// Runs the command.
pub fn run(args: PullArgs) -> Result<Exit, Failure> {
    let scenario = super::scenario_file::read_scenario(&args.scenario)?;
    let kept_back = scenario.target.test_instances().to_vec();
    let scenario = scenario.with_test_instances();
    let folder = tempfile::Builder::new()
        .prefix("captime-pull-")
        .tempdir()
        .map_err(Failure::internal)?;
    let target = prepare(&scenario, folder.path())?;
    let requests = Requests::new(&scenario, &target, &kept_back);
    let one = if args.lines {
        None
    } else {
        let parsed = requests.read(1, args.request()?);
        Some(parsed.map_err(|bad| Failure::usage(bad.what).hint(Some(bad.fix)))?)
    };
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let slots = start_slots(&scenario, target, args.slots as usize, Pin::Never).await?;
        let mut session = PullSession::new(&scenario, &requests, slots.pool);
        let mut signals = Signals::listen().map_err(Failure::internal)?;
        let ended = if let Some(request) = one {
            session.start(request);
            session.serve(None, &mut signals).await
        } else {
            let input = read_lines().map_err(Failure::internal)?;
            session.serve(Some(input), &mut signals).await
        };
        if !matches!(ended, Ok(Served::Hastily)) {
            session.serving.close().await;
            slots.agents.left().await;
        }
        ended
    });
    // A thread may still wait for a line.
    runtime.shutdown_background();
    match ended? {
        Served::All { lost: 0 } => Ok(Exit::Done),
        Served::All { .. } if args.lines => Ok(Exit::Done),
        Served::All { .. } => Ok(Exit::Failed),
        Served::Interrupted | Served::Hastily => Ok(Exit::Interrupted),
    }
}

/// Lines of stdin as they come, few at a time.
fn read_lines() -> std::io::Result<Receiver<std::io::Result<Vec<u8>>>> {
    let (to, lines) = channel(64);
    std::thread::Builder::new().spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = vec![];
            let read = lines::read(&mut input, &mut line);
            let is_last = read.is_err() || line.is_empty();
            // The end is signalled by closing.
            if (read.is_err() || !line.is_empty()) && to.blocking_send(read.map(|()| line)).is_err()
            {
                return;
            }
            if is_last {
                return;
            }
        }
    })?;
    Ok(lines)
}

/// How a session ended.
enum Served {
    /// All pulls have ended. `lost` of them were lost.
    All { lost: u64 },
    /// The user stopped it.
    Interrupted,
    /// The user asked twice.
    Hastily,
}

/// Runs requests in slots and writes their ends.
struct PullSession<'a> {
    requests: &'a Requests<'a>,
    serving: Serving<Request>,
    price: Option<Price>,
    lost: u64,
}

impl<'a> PullSession<'a> {
    fn new(scenario: &Scenario, requests: &'a Requests<'a>, pool: SlotPool) -> Self {
        let grid = scenario.limits.from.grid();
        Self {
            requests,
            price: grid.map(|grid| scenario.price(grid.max())),
            serving: Serving::new(pool),
            lost: 0,
        }
    }

    /// Until there are no more lines and all pulls have ended, or the user stops it.
    async fn serve(
        &mut self,
        mut input: Option<Receiver<std::io::Result<Vec<u8>>>>,
        signals: &mut Signals,
    ) -> Result<Served, Failure> {
        let mut number = 0;
        loop {
            if input.is_none() && self.serving.is_idle() {
                return Ok(Served::All { lost: self.lost });
            }
            let is_free = self.serving.free().is_some();
            tokio::select! {
                biased;
                () = signals.next() => return Ok(self.stop(signals).await),
                Some(ended) = self.serving.ended() => {
                    let written = self.ended(ended);
                    self.unless_gone(written, signals).await?;
                }
                line = next(&mut input), if is_free => match line {
                    None => input = None,
                    Some(line) => {
                        number += 1;
                        let line = line.map_err(|error| Failure::internal(format!("cannot read stdin: {error}")))?;
                        let request = lines::object(&line, request::WRITE)
                            .and_then(|object| self.requests.read(number, object.into()));
                        match request {
                            Ok(request) => self.start(request),
                            Err(bad) => {
                                let written = write(&request::refused(number, &line, &bad));
                                self.unless_gone(written, signals).await?;
                            }
                        }
                    }
                },
            }
        }
    }

    fn start(&mut self, mut request: Request) {
        // Only called with a free slot.
        let Some(slot) = self.serving.free() else {
            return;
        };
        request.start.slot = slot;
        self.serving.start(request.start.clone(), request);
    }

    fn ended(&mut self, ended: Ended) -> std::io::Result<()> {
        let Some(request) = self.serving.release(ended.slot) else {
            return Ok(());
        };
        let mut answer = self.requests.echo(&request);
        match ended.ending {
            // Nothing ran before, so the scenario may be at fault.
            Ending::Brought(outcome) | Ending::NotStarted(outcome) => {
                self.brought(*outcome, &mut answer);
            }
            Ending::Lost { why } | Ending::NodeLost { why, .. } => {
                self.lost += 1;
                answer["outcome"] = json!("lost");
                answer["failure"] = json!(why);
            }
            Ending::Stopped => answer["outcome"] = json!("stopped"),
        }
        write(&answer)
    }

    fn brought(&self, outcome: Outcome, answer: &mut Value) {
        let observation: &Observation = &outcome.observation;
        let (word, reward) = match observation.seen() {
            Seen::Rewarded { reward, .. } => ("rewarded", Some(reward)),
            Seen::Censored { .. } => ("censored", None),
            Seen::Failed => ("failed", None),
        };
        let consumption = match observation.seen() {
            Seen::Rewarded { consumption, .. } => Some(consumption),
            Seen::Censored { .. } | Seen::Failed => outcome.consumption,
        };
        let gain = self.price.as_ref().map(|price| observation.gain(price));
        let (measured, failing) = (outcome.measured, outcome.failure);
        let failing = failing.filter(|_| word == "failed");
        let stderr = failing.as_ref().map(|failing| failing.stderr.as_str());
        let stderr = stderr.filter(|text| !text.is_empty());
        let fields = [
            ("outcome", json!(word)),
            ("reward", json!(reward)),
            ("consumption", json!(consumption)),
            ("gain", json!(gain)),
            ("score", json!(outcome.score)),
            ("wall_seconds", json!(measured.wall)),
            ("cpu_seconds", json!(measured.cpu)),
            ("peak_memory_bytes", json!(measured.memory)),
            ("exit_code", json!(measured.exit)),
            ("signal", json!(measured.signal)),
            (
                "failure",
                json!(failing.as_ref().map(|failing| &failing.reason)),
            ),
            ("stderr", json!(stderr)),
            ("node", json!(outcome.node.as_deref())),
        ];
        for (key, value) in fields {
            if !value.is_null() {
                answer[key] = value;
            }
        }
    }

    /// If the reader went away, stops what runs.
    async fn unless_gone(
        &mut self,
        written: std::io::Result<()>,
        signals: &mut Signals,
    ) -> Result<(), Failure> {
        if let Err(error) = written {
            self.stop(signals).await;
            return Err(error.into());
        }
        Ok(())
    }

    /// Stops everything that runs and waits for it, unless the user asks again.
    async fn stop(&mut self, signals: &mut Signals) -> Served {
        self.serving.stop_all();
        tokio::select! {
            biased;
            () = signals.next() => Served::Hastily,
            () = self.serving.until_idle() => Served::Interrupted,
        }
    }
}

async fn next(
    input: &mut Option<Receiver<std::io::Result<Vec<u8>>>>,
) -> Option<std::io::Result<Vec<u8>>> {
    match input {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

fn write(answer: &Value) -> std::io::Result<()> {
    lines::write(&mut std::io::stdout().lock(), &mut vec![], answer)
}
