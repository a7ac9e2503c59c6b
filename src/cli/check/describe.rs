//! A scenario as `captime check` shows it.

use std::io::{Result, Write};

use rand::seq::SliceRandom;

use crate::orchestrator::{Earlier, target_seed};
use crate::policy::PolicyKind;
use crate::quantity::{counted, grouped, seconds};
use crate::round::{ArmId, Limit, LimitGrid, Pull, Purpose, Round, instance_of, randomness};
use crate::scenario::{
    LimitSource, Pin, Reward, Scenario, ScoreForm, ScorePlace, ScoreSource, Slots, Target,
};
use crate::space::open::{Opened, Proposal};
use crate::space::{Domain, Spacing, Value};
use crate::target::allowed_cpus;
use crate::target::paste::command_line;

/// Writes everything that is known before the first run.
pub(super) fn write(
    scenario: &Scenario,
    earlier: Option<&Earlier>,
    to: &mut dyn Write,
) -> Result<()> {
    writeln!(
        to,
        "scenario  {} ({})",
        scenario.name,
        scenario.file.display()
    )?;
    target(scenario, to)?;
    arms(scenario, to)?;
    let mut label = "start";
    for note in earlier.into_iter().flat_map(Earlier::notes) {
        writeln!(to, "{label:10}{note}")?;
        label = "";
    }
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
                    writeln!(to, "instances {count}, {how}; {test} held out for testing")?;
                }
            }
            writeln!(to, "reward    {}", reward(&command.reward))?;
            if let Some(expect) = &command.expect {
                let all = || command.instances.iter().chain(&command.test);
                let known = all().filter(|instance| expect.answers(instance).is_some());
                let (known, all) = (known.count(), counted(all().count() as u64, "instance"));
                writeln!(to, "expect    the answer of {known} of {all} is known")?;
            }
            if let Some(source) = &command.consumption {
                let of = scenario.limits.of.name();
                writeln!(
                    to,
                    "consumed  {of}, as the program reports it: {}",
                    where_found(source)
                )?;
            }
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
        Target::Surrogate(surrogate) => writeln!(
            to,
            "target    a surrogate of the recorded runs in {}",
            scenario
                .path_as_written(&surrogate.spec.runs.consumption)
                .display()
        ),
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
                "target    external: your own program runs the pulls, through `captime ask`"
            )
        }
        Target::External(external) => writeln!(
            to,
            "target    external, with {} instances: your own program runs the pulls, through `captime ask`",
            external.instances.len()
        ),
    }
}

/// How the instance of a pull is chosen.
fn chosen(policies: &[PolicyKind]) -> &'static str {
    let choosing = policies.iter().filter(|policy| policy.chooses_instances());
    match choosing.count() {
        0 => "one drawn each round",
        count if count == policies.len() => "chosen by the policy",
        _ => "chosen by the policy or drawn each round",
    }
}

fn codes(codes: &[i32]) -> String {
    let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
    codes.join(" or ")
}

fn reward(reward: &Reward) -> String {
    match reward {
        Reward::Exit(solved) => format!("1 if it exits with {}", codes(solved)),
        Reward::Wrapper { scale: None } => {
            "1 if the wrapper's result line reports success".to_owned()
        }
        Reward::Wrapper { scale: Some(scale) } => format!(
            "the cost on the wrapper's result line, {} is worth 0 and {} is worth 1",
            scale.worst, scale.best
        ),
        Reward::Score { source, scale } => {
            let form = where_found(source);
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

/// Where a number is read from.
fn where_found(source: &ScoreSource) -> String {
    let place = match source.place {
        ScorePlace::Stdout => "its output",
        ScorePlace::Stderr => "its error output",
        ScorePlace::File(_) => "a file it writes",
    };
    match &source.form {
        ScoreForm::Pattern(pattern) => format!("the group of `{pattern}` in {place}"),
        ScoreForm::LastMatch(pattern) => {
            format!("the group of the last match of `{pattern}` in {place}")
        }
        ScoreForm::Json(pointer) => format!("`{pointer}` of the JSON in {place}"),
        ScoreForm::Whole => format!("the number in {place}"),
    }
}

fn arms(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let space = &scenario.space;
    if let Some(opened) = space.opened() {
        return open_space(opened, to);
    }
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
        let shown = values_in_short(parameter.values());
        writeln!(to, "  {:width$}  {shown}", parameter.name())?;
    }
    Ok(())
}

/// Parameters with their ranges, defaults and conditions.
fn open_space(opened: &Opened, to: &mut dyn Write) -> Result<()> {
    let space = opened.space();
    let parameters = counted(space.parameters().len() as u64, "parameter");
    let conditional = space
        .parameters()
        .iter()
        .filter(|known| known.when.is_some());
    let mut parts = vec![format!(
        "{parameters}, {} of them conditional",
        conditional.count()
    )];
    let (forbidden, start) = (space.forbid().len() as u64, opened.len() as u64 - 1);
    if forbidden > 0 {
        parts.push(counted(forbidden, "forbidden combination"));
    }
    if start > 0 {
        parts.push(format!("{} to start with", counted(start, "configuration")));
    }
    writeln!(to, "arms      an open space: {}", parts.join(", "))?;
    let names = space
        .parameters()
        .iter()
        .map(|known| known.name.chars().count());
    let width = names.max().unwrap_or(0);
    let defaults = space.all_defaults();
    for known in space.parameters() {
        let values = match &known.domain {
            Domain::Real {
                low,
                high,
                spacing,
                digits,
            } => {
                let digits = digits.map(|digits| format!(", {}", counted(digits.into(), "digit")));
                let digits = digits.unwrap_or_default();
                format!("{low} to {high}{}{digits}", scale(*spacing))
            }
            Domain::Integer { low, high, spacing } => {
                format!("{low} to {high}, whole{}", scale(*spacing))
            }
            Domain::Choice(values) => values_in_short(values.values()),
            Domain::Ordered(values) => {
                format!("{}, in this order", values_in_short(values.values()))
            }
        };
        let default = defaults.get(&known.name);
        let default = default.map_or(String::new(), |value| format!("; default {value}"));
        let when = known.when.as_ref().map(|rule| space.rule_text(rule));
        let when = when.map_or(String::new(), |rule| format!("; when {rule}"));
        writeln!(to, "  {:width$}  {values}{default}{when}", known.name)?;
    }
    Ok(())
}

fn scale(spacing: Spacing) -> &'static str {
    match spacing {
        Spacing::Linear => "",
        Spacing::Log => ", log scale",
    }
}

fn values_in_short(values: &[Value]) -> String {
    let text = |value: &Value| value.to_string();
    if values.len() <= 8 {
        return values.iter().map(text).collect::<Vec<_>>().join(", ");
    }
    let head: Vec<String> = values[..4].iter().map(text).collect();
    let (last, count) = (&values[values.len() - 1], values.len());
    format!("{}, ..., {last} ({count} values)", head.join(", "))
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
                "limits    of {}: up to {}, chosen by the policy",
                of.name(),
                of.amount(max.get())
            )?;
        }
        LimitSource::Calibrate(calibrate) => {
            let all = scenario.space.first_arms();
            let arms = match calibrate.arms.filter(|arms| *arms < all) {
                Some(arms) => counted(arms as u64, "arm"),
                None if scenario.space.opened().is_some() => format!("the first {all} arms"),
                None => format!("all {all} arms"),
            };
            writeln!(
                to,
                "limits    of {}: {} limits between the quantiles {} and {} of what {arms} take when run once",
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

/// The curves at the limits, or at tenths of x if the limits are not known yet.
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
    // At most ten lines, including the first and the last.
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
                None if value.is_null() => format!("{name} auto"),
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
            (0, _) => ", used by `run`",
            _ => ", for `study`",
        };
        writeln!(to, "policy    {}{options}{by_run}", policy.name())?;
    }
    Ok(())
}

fn budget(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let budget = &scenario.budget;
    let mut shown = vec![];
    shown.extend(budget.rounds.map(|rounds| counted(rounds, "round")));
    shown.extend(
        budget
            .wall
            .map(|wall| format!("{} of wall time", seconds(wall))),
    );
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
    if let Some(text) = affords(scenario) {
        writeln!(to, "affords   {text}")?;
    }
    let slots = match (scenario.slots, &scenario.nodes) {
        (_, Some(nodes)) => format!("of other nodes, by {}", nodes.engine()),
        (Slots::Auto, None) => "auto".into(),
        (Slots::Count(count), None) => count.to_string(),
    };
    let pin = if scenario.pin == Pin::Never {
        ", not pinned"
    } else {
        ""
    };
    writeln!(to, "slots     {slots}{pin}; seed {}", scenario.seed)
}

/// What the budget affords, before anything was run: pulls at the ends of the grid, and per pair.
fn affords(scenario: &Scenario) -> Option<String> {
    let slots = match (scenario.slots, &scenario.nodes) {
        (Slots::Count(count), None) => count,
        (Slots::Auto, None) => allowed_cpus().len().max(1),
        (_, Some(_)) => return None,
    };
    let at = |limit: Limit| {
        let (budget, of) = (&scenario.budget, scenario.limits.of);
        budget.affords(limit.get(), of, slots)
    };
    let about = |pulls: f64| match pulls {
        pulls if pulls >= 1e6 => format!("{pulls:.1e}"),
        pulls if pulls >= 10.0 => grouped(pulls, 0),
        pulls if pulls < 0.05 => "below 0.1".into(),
        pulls => format!("{pulls:.1}").trim_end_matches(".0").to_owned(),
    };
    // The arms of an open space are as many as the policy opens.
    let arms = match scenario.space.opened() {
        Some(_) => None,
        None => Some(scenario.space.len() as f64),
    };
    let per = |pulls: f64, what: &str| {
        let each = |arms| format!("; {} per {what}", about(pulls / arms));
        arms.map_or_else(String::new, each)
    };
    let largest = at(scenario.limits.from.largest())?;
    let Some(grid) = scenario.limits.from.grid() else {
        // Limits are to be found below the guard.
        return Some(format!(
            "at least {} pulls, if each ran to the guard{}",
            about(largest),
            per(largest, "arm")
        ));
    };
    let smallest = at(*grid.as_slice().first()?)?;
    let per_pair = per(
        smallest / grid.as_slice().len() as f64,
        "pair of arm and limit",
    );
    Some(if about(smallest) == about(largest) {
        format!("about {} pulls{per_pair}", about(largest))
    } else {
        format!(
            "about {} pulls at the smallest limit, {} at the largest{per_pair}",
            about(smallest),
            about(largest)
        )
    })
}

/// Three pulls as they would run: the default configuration, and two drawn by the seed.
fn samples(scenario: &Scenario, to: &mut dyn Write) -> Result<()> {
    let limits = sample_limits(scenario);
    let is_run = matches!(
        scenario.target,
        Target::Command(_) | Target::Forest(_) | Target::External(_)
    );
    if limits.is_empty() || !is_run {
        return Ok(());
    }
    writeln!(to, "\nSample pulls:")?;
    let mut scenario = scenario.clone();
    let places = sample_arms(&mut scenario);
    let scenario = &scenario;
    let instances = scenario.target.instances().len();
    for (k, place) in places.into_iter().enumerate() {
        let limit = limits[k.min(limits.len() - 1)];
        let (arm, round) = (ArmId::from_index(place), Round(k as u64 + 1));
        let configuration = scenario.space.configuration(arm);
        let amount = scenario.limits.of.amount(limit.get());
        let label = match (place, scenario.space.opened()) {
            (0, _) => format!("arm {arm} (default)"),
            (_, None) => format!("arm {arm}"),
            // It gets its number when it is pulled for the first time.
            (_, Some(_)) => "an arm drawn from the space".into(),
        };
        writeln!(to, "\n  {label}, limit {amount}: {configuration}")?;
        let pull = Pull {
            instance: instance_of(scenario.seed, round, None, instances),
            ..Pull::new(arm, limit)
        };
        let seed = target_seed(scenario.seed, round);
        if let Some(line) = command_line(scenario, pull, seed) {
            writeln!(to, "    {line}")?;
        } else {
            let pull = serde_json::json!({"pull": {
                "id": round.0,
                "arm": arm,
                "configuration": configuration,
                "limit": limit,
            }});
            writeln!(to, "    {pull}")?;
        }
    }
    Ok(())
}

/// The default arm and up to two others, drawn by the seed; those of an open space are added to it.
fn sample_arms(scenario: &mut Scenario) -> Vec<usize> {
    let seed = scenario.seed;
    if let Some(opened) = scenario.space.opened_mut() {
        let mut places = vec![0];
        for _ in 0..2 {
            let Proposal { point, origin } = opened.propose(seed, &[]);
            if opened.arm(&point).is_none() {
                places.push(opened.open(point, origin).index());
            }
        }
        return places;
    }
    listed_samples(seed, scenario.space.len(), 3)
}

/// Of a list of this many arms: the places of the default arm and of others, drawn by the seed. However many are wanted, the first three are the same.
pub(super) fn listed_samples(seed: u64, arms: usize, count: usize) -> Vec<usize> {
    let others = arms - 1;
    let mut rng = randomness(seed, Round(0), Purpose::Choose);
    let drawn = rand::seq::index::sample(&mut rng, others, others.min(2));
    let mut places: Vec<usize> = drawn.iter().map(|place| place + 1).collect();
    places.sort_unstable();
    places.insert(0, 0);
    if count > places.len() {
        let is_left = |place: &usize| !places.contains(place);
        let mut left: Vec<usize> = (1..=others).filter(is_left).collect();
        left.shuffle(&mut rng);
        places.extend(left);
    }
    places.truncate(count);
    places
}

/// The smallest, the middle and the largest limit. If they still have to be found, the guard.
fn sample_limits(scenario: &Scenario) -> Vec<Limit> {
    match &scenario.limits.from {
        LimitSource::Grid(grid) => {
            let limits = grid.as_slice();
            vec![limits[0], limits[limits.len() / 2], grid.max()]
        }
        other => vec![other.largest()],
    }
}
