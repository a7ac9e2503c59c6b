//! The built-in forest as a target. Fits run on separate threads, or in a separate process.
//!
//! ```
//! use captime::scenario::{Target, parse};
//! use captime::target::forest::read_data;
//!
//! let text = "target: {forest: {data: datasets/ames_like.csv, predict: Sale_Price}}\n\
//!             arms: {grid: {trees: [100, 200]}}\nlimits: {of: cpu, max: 5s, grid: 5}\n";
//! let scenario = parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let Target::Forest(forest) = &scenario.target else { unreachable!("that is what it says") };
//! assert!(read_data(forest)?.rows() > 1000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, mpsc};

use super::{Ended, Ending, Ends, Failing, Guard, Measured, Outcome, Start, Target};
use crate::listed;
use crate::round::{Observation, Pull};
use crate::scenario::{self, Guards, Levels, ScoreForm, ScorePlace, ScoreScale, Template};
use crate::space::{Configuration, Space, Value};
use captime_forest::engine::{self, EngineError, EngineOutcome};
use captime_forest::{
    Allowance, Consumed, Dataset, DatasetError, LevelOrder, Metric, Normalise, Params, ReadOptions,
    Resource, Scoring, Split, Stop, Task,
};

/// What the threads of all slots share.
struct Shared {
    data: Dataset,
    forest: scenario::Forest,
    space: Space,
    of: Resource,
    guards: Guards,
    ends: Ends,
}

/// Fits forests on one thread per slot.
pub struct ForestTarget {
    slots: Vec<Slot>,
}

struct Slot {
    starts: mpsc::Sender<(Start, Arc<Stop>)>,
    /// Bounds on every fit, besides its limit.
    guards: Vec<Allowance>,
    /// Ends the fit under way.
    stop: Arc<Stop>,
}

/// Whether the engine of a scenario's forest can learn from its data.
pub fn accepts(forest: &scenario::Forest, data: &Dataset) -> Result<(), EngineError> {
    forest.engine.engine().accepts(data)?;
    forest.engine.scores_by(forest.reward, data.task())
}

/// Reads the data of a scenario's forest.
pub fn read_data(forest: &scenario::Forest) -> Result<Dataset, DatasetError> {
    let (levels, order) = match &forest.levels {
        Levels::Alphabetical(listed) => {
            (listed.iter().cloned().collect(), LevelOrder::Alphabetical)
        }
        Levels::ByMean => (BTreeMap::new(), LevelOrder::ByResponse),
    };
    let options = ReadOptions {
        predict: forest.predict.clone(),
        drop: forest.drop.clone(),
        levels,
        order,
        task: forest.task,
    };
    Dataset::read(&forest.data, &options)
}

impl ForestTarget {
    /// Starts a thread per slot. `cpus` are those of each slot, if it has its own.
    pub fn start(
        data: Dataset,
        forest: scenario::Forest,
        space: Space,
        limits: &scenario::Limits,
        slots: usize,
        cpus: Option<&[Vec<usize>]>,
        ends: Ends,
    ) -> std::io::Result<Self> {
        let of = limits
            .of
            .of_forest()
            .ok_or_else(|| std::io::Error::other("an in-process forest does not measure memory"))?;
        let shared = Arc::new(Shared {
            data,
            forest,
            space,
            of,
            guards: limits.guards,
            ends,
        });
        let slots = (0..slots)
            .map(|number| {
                let (starts, inbox) = mpsc::channel();
                let shared = Arc::clone(&shared);
                let cpus = cpus.and_then(|cpus| cpus.get(number).cloned());
                std::thread::Builder::new()
                    .name(format!("forest-{number}"))
                    .spawn(move || {
                        pin(cpus.as_deref());
                        work(&shared, &inbox);
                    })?;
                Ok(Slot {
                    starts,
                    guards: guards(of, limits.guards),
                    stop: Arc::new(Stop::new()),
                })
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Self { slots })
    }
}

impl Target for ForestTarget {
    fn start(&mut self, start: Start) {
        let slot = &mut self.slots[start.slot];
        slot.stop = Arc::new(Stop::guarded(slot.guards.clone()));
        // Its thread ends only when this sender is gone.
        let _ = slot.starts.send((start, Arc::clone(&slot.stop)));
    }

    fn stop(&mut self, slot: usize) {
        self.slots[slot].stop.raise();
    }
}

/// Pins this thread, and those it starts, to some CPUs. Without permission it stays unpinned.
fn pin(cpus: Option<&[usize]>) {
    let Some(cpus) = cpus else { return };
    let mut set = nix::sched::CpuSet::new();
    if cpus.iter().all(|&cpu| set.set(cpu).is_ok()) {
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    }
}

fn work(shared: &Shared, inbox: &mpsc::Receiver<(Start, Arc<Stop>)>) {
    while let Ok((start, stop)) = inbox.recv() {
        // A panic in a fit fails that pull and does not end the run.
        let run = std::panic::AssertUnwindSafe(|| fit(shared, &start, &stop));
        let ending = std::panic::catch_unwind(run)
            .unwrap_or_else(|_| failed(&start, "the fit panicked".into(), None));
        if shared
            .ends
            .send(Ended {
                slot: start.slot,
                round: start.round,
                ending,
            })
            .is_err()
        {
            break;
        }
    }
}

fn fit(shared: &Shared, start: &Start, stop: &Arc<Stop>) -> Ending {
    let configuration = start.configuration_in(&shared.space);
    let params = match params(&configuration, start.seed, shared.forest.threads) {
        Ok(params) => params,
        Err(reason) => return failed(start, reason, None),
    };
    let split = match Split::random(shared.data.rows(), shared.forest.train, start.seed) {
        Ok(split) => split,
        Err(error) => return failed(start, error.to_string(), None),
    };
    let allowance = Allowance {
        resource: shared.of,
        amount: start.pull.limit.get(),
    };
    let outcome = shared.forest.engine.engine().run(&engine::Fit {
        data: &shared.data,
        split: &split,
        params: &params,
        stop,
        allowance: Some(allowance),
    });
    match outcome {
        Err(error) => failed(start, error.to_string(), None),
        Ok(EngineOutcome::Stopped { consumed }) => {
            if let Some(guard) = stop.hit() {
                guarded(start, shared.of, &consumed, named(guard))
            } else if stop.is_raised() {
                Ending::Stopped
            } else {
                brought(start.pull, shared.of, &consumed, None)
            }
        }
        Ok(EngineOutcome::Done(fitted)) => {
            let consumed = fitted.consumed;
            // The last part of a fit, and its predictions, come after its last check.
            let over = guards(shared.of, shared.guards)
                .into_iter()
                .find(|guard| consumed.of(guard.resource) > guard.amount);
            if let Some(guard) = over {
                return guarded(start, shared.of, &consumed, named(guard.resource));
            }
            let scoring = Scoring {
                normalise: shared.forest.normalise,
                metric: shared.forest.reward,
            };
            let probabilities = fitted.probabilities.as_deref();
            let seen = shared
                .data
                .evaluate(&split.test, &fitted.predicted, probabilities, scoring);
            let score = seen.score(shared.forest.reward);
            brought(start.pull, shared.of, &consumed, Some((seen.reward, score)))
        }
    }
}

/// The parameters of an arm, by ranger's names.
fn params(configuration: &Configuration, seed: u64, threads: usize) -> Result<Params, String> {
    let mut params = Params {
        seed,
        threads,
        ..Params::default()
    };
    for (name, value) in configuration.iter() {
        let number = value
            .number()
            .ok_or_else(|| format!("`{name}` is {value}, not a number"))?;
        let count = || match value {
            Value::Integer(count) if *count >= 0 => Ok(*count as usize),
            Value::Number(count) if *count >= 0.0 && count.fract() == 0.0 => Ok(*count as usize),
            _ => Err(format!("`{name}` is {value}, not a whole number")),
        };
        match name {
            "trees" => params.trees = count()?,
            "mtry" => params.mtry = Some(count()?),
            "min_node_size" => params.min_node_size = Some(count()?),
            "sample_fraction" => params.sample_fraction = number,
            _ => return Err(format!("a forest has no parameter `{name}`")),
        }
    }
    Ok(params)
}

fn measured(consumed: &Consumed) -> Measured {
    Measured {
        wall: Some(consumed.wall.as_secs_f64()),
        cpu: Some(consumed.cpu.as_secs_f64()),
        ..Measured::default()
    }
}

/// The outcome: a reward with the score behind it, or censored if the fit was stopped at its limit.
fn brought(
    pull: Pull,
    of: Resource,
    consumed: &Consumed,
    reward: Option<(f64, Option<f64>)>,
) -> Ending {
    let used = consumed.of(of);
    let seen = match reward {
        Some((reward, _)) => Observation::ended(pull, reward, used),
        None => Observation::censored(pull, pull.limit.get()),
    };
    let seen = seen.unwrap_or(Observation::failed(pull));
    Ending::Brought(Box::new(Outcome {
        score: reward.and_then(|(_, score)| score),
        ..Outcome::of(seen, Some(used), measured(consumed))
    }))
}

fn guarded(start: &Start, of: Resource, consumed: &Consumed, guard: Guard) -> Ending {
    let failing = Failing {
        guard: Some(guard),
        ..Failing::new(format!("hit the {} guard", guard.name()))
    };
    let outcome = Outcome::failed(
        start.pull,
        failing,
        Some(consumed.of(of)),
        measured(consumed),
    );
    Ending::Brought(Box::new(outcome))
}

fn failed(start: &Start, reason: String, consumption: Option<f64>) -> Ending {
    Ending::Brought(Box::new(Outcome::failed(
        start.pull,
        Failing::new(reason),
        consumption,
        Measured::default(),
    )))
}

/// The guards on resources other than the limited one.
fn guards(of: Resource, guards: Guards) -> Vec<Allowance> {
    let of_each = [
        (Resource::Wall, guards.wall),
        (Resource::Cpu, guards.cpu),
        (Resource::Work, guards.work),
    ];
    of_each
        .into_iter()
        .filter(|(resource, _)| *resource != of)
        .filter_map(|(resource, guard)| guard.map(|amount| Allowance { resource, amount }))
        .collect()
}

fn named(guard: Resource) -> Guard {
    match guard {
        Resource::Cpu => Guard::Cpu,
        Resource::Wall => Guard::Wall,
        Resource::Work => Guard::Work,
    }
}

/// The same forest as a command for a separate process: `captime forest` with the parameters as options.
pub fn as_command(forest: &scenario::Forest, space: &Space, binary: &Path) -> scenario::Command {
    let plain = |text: &str| {
        ['{', '}', '[', ']']
            .iter()
            .fold(text.to_owned(), |text, letter| {
                text.replace(*letter, &format!("{letter}{letter}"))
            })
    };
    let data = std::path::absolute(&forest.data).unwrap_or_else(|_| forest.data.clone());
    let mut words = vec![
        plain(&binary.display().to_string()),
        "forest".into(),
        plain(&data.display().to_string()),
        "--format=json".into(),
        format!("--predict={}", plain(&forest.predict)),
        format!("--train={}", forest.train),
        "--seed={seed}".into(),
        format!("--threads={}", forest.threads),
        format!("--engine={}", forest.engine.name()),
    ];
    if let Some(task) = forest.task {
        words.push(format!("--task={}", task.name()));
    }
    if forest.normalise != Normalise::default() {
        words.push(format!("--normalise={}", forest.normalise.name()));
    }
    if forest.reward != Metric::default() {
        words.push(format!("--reward={}", forest.reward.name()));
    }
    if !forest.drop.is_empty() {
        words.push(format!("--drop={}", plain(&listed::write(&forest.drop))));
    }
    match &forest.levels {
        Levels::ByMean => words.push("--level-order=by-response".into()),
        Levels::Alphabetical(listed) => words.extend(listed.iter().map(|(column, levels)| {
            format!(
                "--levels={}={}",
                plain(column),
                plain(&listed::write(levels))
            )
        })),
    }
    for parameter in space.parameters() {
        let name = parameter.name();
        words.push(format!("--{}={{{name}}}", name.replace('_', "-")));
    }
    let templates = words
        .iter()
        .filter_map(|word| Template::parse(word).ok())
        .collect();
    scenario::Command {
        arguments: scenario::Arguments {
            templates,
            form: scenario::ParamsForm::default(),
            placed: vec![],
            own: BTreeMap::new(),
        },
        env: vec![],
        directory: ".".into(),
        stdin: scenario::Stdin::Empty,
        instances: vec![],
        test: vec![],
        success: vec![0],
        reward: scenario::Reward::Score {
            source: scenario::ScoreSource {
                place: ScorePlace::Stdout,
                form: ScoreForm::Json("/reward".into()),
            },
            scale: None,
        },
        expect: None,
        consumption: None,
        output_limit: 1 << 16,
        contain: None,
    }
}

/// The same with the score behind the reward.
pub fn scored(
    mut command: scenario::Command,
    forest: &scenario::Forest,
    data: &Dataset,
) -> scenario::Command {
    let share = ScoreScale::linear(0.0, 1.0);
    let (pointer, scale) = match (data.task(), forest.reward) {
        (Task::Regression, _) => {
            let worst = data.worst_error(forest.normalise);
            ("/rmse", ScoreScale::linear(worst, 0.0))
        }
        (Task::Classification, Metric::Accuracy) => ("/accuracy", share),
        (Task::Classification, Metric::Auc) => ("/auc", share),
        (Task::Classification, Metric::LogLoss) => (
            "/log_loss",
            ScoreScale {
                is_log_loss: true,
                ..share
            },
        ),
        // Any other metric is shown as its reward.
        (Task::Classification, _) => return command,
    };
    command.reward = scenario::Reward::Score {
        source: scenario::ScoreSource {
            place: ScorePlace::Stdout,
            form: ScoreForm::Json(pointer.into()),
        },
        scale: Some(scale),
    };
    command
}

/// The same with a limit on work, which only the process itself can count.
pub fn counting_work(mut command: scenario::Command) -> scenario::Command {
    let words = ["--resource=work", "--limit={limit}"].into_iter();
    let templates = words.filter_map(|word| Template::parse(word).ok());
    command.arguments.templates.extend(templates);
    command
}
