//! A scenario as `captime check` shows it.

use std::io::{Result, Write};
use std::path::Path;

use rand::{Rng, RngExt};
use serde::Serialize;

use crate::policy::PolicyKind;
use crate::quantity::seconds;
use crate::round::{ArmId, Limit, LimitGrid, Purpose, Round, randomness};
use crate::scenario::{
    Filling, LimitSource, Pin, Reward, Scenario, ScoreForm, ScorePlace, Slots, Target,
};
use crate::space::{Configuration, Value};

/// Writes everything that is known before the first run.
pub(super) fn write(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    writeln!(
        to,
        "scenario  {} ({})",
        scenario.name,
        scenario.file.display()
    )?;
    target(scenario, to)?;
    arms(scenario, to)?;
    limits(scenario, to)?;
    price(scenario, to)?;
    policies(scenario, to)?;
    budget(scenario, to)?;
    samples(scenario, to)
}

fn target(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    match &scenario.target {
        Target::Command(command) => {
            writeln!(to, "target    a command in {}", command.directory.display())?;
            let how = chosen(&scenario.policies);
            match (command.instances.len(), command.test.len()) {
                (0, _) => {}
                (count, 0) => writeln!(to, "instances {count}, {how}")?,
                (count, test) => {
                    writeln!(to, "instances {count}, {how}; {test} kept back for testing")?;
                }
            }
            writeln!(to, "reward    {}", reward(&command.reward))?;
            writeln!(to, "success   exit {}", codes(&command.success))
        }
        Target::Forest(forest) => writeln!(
            to,
            "target    a random forest ({}, in a {}) that predicts {} in {}, trained on {} % of the rows",
            forest.engine.name(),
            forest.isolation.name(),
            forest.predict,
            scenario.path_as_written(&forest.data).display(),
            (1000.0 * forest.train).round() / 10.0,
        ),
        Target::Synthetic(spec) => writeln!(to, "target    the synthetic problem {}", spec.problem),
        Target::Recorded(recorded) => writeln!(
            to,
            "target    recorded runs in {}",
            scenario
                .path_as_written(&recorded.spec.consumption)
                .display()
        ),
        Target::External(external) if external.instances.is_empty() => {
            writeln!(
                to,
                "target    external: pulls are run by whoever calls `captime ask`"
            )
        }
        Target::External(external) => writeln!(
            to,
            "target    external, with {} instances: pulls are run by whoever calls `captime ask`",
            external.instances.len()
        ),
    }
}

/// Who says on which instance a pull runs.
fn chosen(policies: &[PolicyKind]) -> &'static str {
    let chooses = |policy: &PolicyKind| match policy {
        PolicyKind::SimilarTs(parameters) => parameters.instances,
        PolicyKind::Halving(parameters) => parameters.common,
        PolicyKind::Race(_) => true,
        _ => false,
    };
    match policies.iter().filter(|policy| chooses(policy)).count() {
        0 => "one drawn each round",
        count if count == policies.len() => "chosen by the policy",
        _ => "chosen by the policy or drawn each round",
    }
}

fn codes(codes: &[i32]) -> String {
    let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
    codes.join(", ")
}

fn reward(reward: &Reward) -> String {
    match reward {
        Reward::Exit(solved) => format!("1 if it exits with {}", codes(solved)),
        Reward::Score { place, form, scale } => {
            let place = match place {
                ScorePlace::Stdout => "its output",
                ScorePlace::Stderr => "its error output",
                ScorePlace::File(_) => "a file it writes",
            };
            let form = match form {
                ScoreForm::Pattern(pattern) => format!("the group of `{pattern}` in {place}"),
                ScoreForm::Json(pointer) => format!("`{pointer}` of the JSON in {place}"),
                ScoreForm::Whole => format!("the number in {place}"),
            };
            match scale {
                Some(scale) => format!(
                    "{form}, {} is worth 0 and {} is worth 1",
                    scale.worst, scale.best
                ),
                None => format!("{form}, from 0 to 1"),
            }
        }
    }
}

fn arms(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let space = &scenario.space;
    let names = if space.is_named() { ", named" } else { "" };
    let dropped = match space.dropped() {
        0 => String::new(),
        dropped => format!(" ({dropped} combinations dropped)"),
    };
    writeln!(to, "arms      {}{names}{dropped}", space.len())?;
    let width = space
        .parameters()
        .iter()
        .map(|parameter| parameter.name().chars().count())
        .max()
        .unwrap_or(0);
    for parameter in space.parameters() {
        let values = parameter.values();
        let text = |value: &Value| value.to_string();
        let shown = if values.len() <= 8 {
            values.iter().map(text).collect::<Vec<_>>().join(", ")
        } else {
            let head: Vec<String> = values[..4].iter().map(text).collect();
            format!(
                "{}, ..., {} ({} values)",
                head.join(", "),
                values[values.len() - 1],
                values.len()
            )
        };
        writeln!(to, "  {:width$}  {shown}", parameter.name())?;
    }
    Ok(())
}

fn limits(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let limits = &scenario.limits;
    let of = limits.of;
    match &limits.from {
        LimitSource::Grid(grid) => {
            let shown: Vec<String> = grid
                .as_slice()
                .iter()
                .map(|limit| of.amount(limit.get()))
                .collect();
            let shown = if shown.len() <= 12 {
                shown.join(", ")
            } else {
                format!(
                    "{}, ..., {} ({} limits)",
                    shown[..6].join(", "),
                    shown[shown.len() - 1],
                    shown.len()
                )
            };
            writeln!(to, "limits    of {}: {shown}", of.name())?;
        }
        LimitSource::Max(max) => {
            writeln!(
                to,
                "limits    of {}: up to {}, found by the policy",
                of.name(),
                of.amount(max.get())
            )?;
        }
        LimitSource::Calibrate(calibrate) => {
            let arms = match calibrate.arms.filter(|arms| *arms < scenario.space.len()) {
                Some(arms) => format!("{arms} arms"),
                None => format!("all {} arms", scenario.space.len()),
            };
            writeln!(
                to,
                "limits    of {}: {} between the quantiles {} and {} of {arms} run once each",
                of.name(),
                calibrate.points,
                calibrate.quantiles.0,
                calibrate.quantiles.1,
            )?;
        }
    }
    let guards = &limits.guards;
    let mut shown = vec![];
    shown.extend(guards.wall.map(|wall| format!("wall {}", seconds(wall))));
    shown.extend(guards.cpu.map(|cpu| format!("cpu {}", seconds(cpu))));
    shown.extend(guards.work.map(|work| format!("work {work}")));
    shown.extend(
        guards
            .memory
            .map(|memory| format!("memory {}", bytesize::ByteSize(memory).display().iec())),
    );
    if !shown.is_empty() {
        writeln!(to, "guards    {}", shown.join(", "))?;
    }
    if limits.grace > 0.0 {
        writeln!(
            to,
            "grace     {} between SIGTERM and SIGKILL",
            seconds(limits.grace)
        )?;
    }
    Ok(())
}

/// The curves at the limits, or at tenths of x where the limits are not known yet.
fn price(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let of = scenario.limits.of;
    let unit = match scenario.price.unit {
        Some(unit) => of.amount(unit),
        None => "the largest limit".into(),
    };
    writeln!(
        to,
        "price     cost {}, penalty {}, with x = consumption / {unit}",
        scenario.price.cost, scenario.price.penalty
    )?;
    let known = match &scenario.limits.from {
        LimitSource::Grid(grid) => Some(grid.clone()),
        LimitSource::Max(max) => LimitGrid::fractions(max.get(), 10).ok(),
        LimitSource::Calibrate(_) => None,
    };
    let Some(grid) = known else {
        writeln!(to, "  {:>12}  {:>10}  {:>10}", "x", "cost", "penalty")?;
        for k in 1..=5 {
            let x = f64::from(k) / 5.0;
            let (cost, penalty) = (scenario.price.cost.at(x), scenario.price.penalty.at(x));
            writeln!(to, "  {x:>12}  {cost:>10.4}  {penalty:>10.4}")?;
        }
        return Ok(());
    };
    writeln!(to, "  {:>12}  {:>10}  {:>10}", "limit", "cost", "penalty")?;
    let price = scenario.price(grid.max());
    let limits = grid.as_slice();
    // At most ten lines, the first and the last among them.
    let lines = limits.len().min(10);
    for line in 0..lines {
        let place = if lines == 1 {
            0
        } else {
            line * (limits.len() - 1) / (lines - 1)
        };
        let limit = limits[place];
        writeln!(
            to,
            "  {:>12}  {:>10.4}  {:>10.4}",
            of.amount(limit.get()),
            price.cost(limit.get()),
            price.penalty(limit)
        )?;
    }
    Ok(())
}

fn policies(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    for (place, policy) in scenario.policies.iter().enumerate() {
        let options: Vec<String> = policy
            .parameters()
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => format!("{name} {text}"),
                None if value.is_null() => format!("{name} not given"),
                None => format!("{name} {value}"),
            })
            .collect();
        let options = if options.is_empty() {
            String::new()
        } else {
            format!(" ({})", options.join(", "))
        };
        // A study takes all of them.
        let by_run = match (place, scenario.policies.len()) {
            (_, 1) => "",
            (0, _) => ", which `run` takes",
            _ => ", for `study`",
        };
        writeln!(to, "policy    {}{options}{by_run}", policy.name())?;
    }
    Ok(())
}

fn budget(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let budget = &scenario.budget;
    let mut shown = vec![];
    shown.extend(budget.rounds.map(|rounds| format!("{rounds} rounds")));
    shown.extend(budget.wall.map(|wall| format!("{} of wall", seconds(wall))));
    shown.extend(budget.consumption.map(|consumption| {
        format!(
            "{} of {} used by pulls",
            scenario.limits.of.amount(consumption),
            scenario.limits.of.name()
        )
    }));
    let shown = if shown.is_empty() {
        "none".into()
    } else {
        shown.join(", or ")
    };
    writeln!(to, "budget    {shown}")?;
    let slots = match scenario.slots {
        Slots::Auto => "auto".into(),
        Slots::Count(count) => count.to_string(),
    };
    let pin = if scenario.pin == Pin::Never {
        ", not pinned"
    } else {
        ""
    };
    writeln!(to, "slots     {slots}{pin}; seed {}", scenario.seed)
}

/// Three pulls as they would run: the first arm, one in the middle, the last.
fn samples(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let count = scenario.space.len();
    let mut places = vec![0, count / 2, count - 1];
    places.dedup();
    let limits = sample_limits(scenario);
    let is_run = matches!(
        scenario.target,
        Target::Command(_) | Target::Forest(_) | Target::External(_)
    );
    if limits.is_empty() || !is_run {
        return Ok(());
    }
    writeln!(to, "\nSamples of what a pull runs:")?;
    for (k, place) in places.into_iter().enumerate() {
        let limit = limits[k.min(limits.len() - 1)];
        let arm = ArmId::from_index(place);
        let configuration = scenario.space.configuration(arm);
        let round = Round(k as u64 + 1);
        let amount = scenario.limits.of.amount(limit.get());
        writeln!(to, "\n  arm {arm}, limit {amount}: {configuration}")?;
        let line = scenario.command_line(&Filling {
            configuration: &configuration,
            instance: instance(scenario, round),
            seed: randomness(scenario.seed, round, Purpose::Target).next_u64() >> 33,
            limit: limit.get(),
            cpu_limit: scenario.cpu_limit(limit),
            round: round.0,
            scratch: Path::new("/tmp/captime-scratch"),
        });
        if let Some(line) = line {
            writeln!(to, "    {line}")?;
        } else {
            let pull = Pull {
                id: round.0,
                arm,
                configuration,
                limit,
            };
            let pull = serde_json::to_string(&pull).map_err(std::io::Error::from)?;
            writeln!(to, "    {{\"pull\":{pull}}}")?;
        }
    }
    Ok(())
}

/// A pull as `captime ask` hands it out.
#[derive(Serialize)]
struct Pull {
    id: u64,
    arm: ArmId,
    configuration: Configuration,
    limit: Limit,
}

/// The instance that this round would draw.
fn instance(scenario: &Scenario, round: Round) -> Option<&str> {
    let instances = scenario.target.instances();
    if instances.is_empty() {
        return None;
    }
    let mut rng = randomness(scenario.seed, round, Purpose::Instance);
    let drawn = rng.random_range(0..instances.len() as u32);
    Some(&instances[drawn as usize])
}

/// The smallest, the middle and the largest limit; where they are yet to be found, the guard.
fn sample_limits(scenario: &Scenario) -> Vec<Limit> {
    match &scenario.limits.from {
        LimitSource::Grid(grid) => {
            let limits = grid.as_slice();
            vec![limits[0], limits[limits.len() / 2], grid.max()]
        }
        LimitSource::Max(max) => vec![*max],
        LimitSource::Calibrate(_) => {
            let guard = scenario.limits.guards.of(scenario.limits.of);
            guard
                .and_then(|guard| Limit::new(guard).ok())
                .into_iter()
                .collect()
        }
    }
}
