//! Checks that concern several sections at once.

use std::sync::Arc;

use super::{Check, TargetKind, arms, forest, limits, placeholders, policy, price, virtual_target};
use crate::policy::PolicyKind;
use crate::resource::Resource;
use crate::scenario::model::{
    Budget, Guards, Isolation, LimitSource, Limits, Prices, StartRun, Target,
};
use crate::scenario::raw::Node;
use crate::scenario::{Caution, Fault, Piece};
use crate::space::{OpenSpace, Space};
use crate::yaml::Span;
use captime_forest::engine::EngineKind;

/// No program starts with less memory.
const LEAST_MEMORY: u64 = 1 << 20;

/// No program starts and ends in less time, in seconds.
const LEAST_TIME: f64 = 1e-3;

/// The sections as far as they could be read.
pub(super) struct Parts<'n> {
    pub(super) kind: Option<TargetKind>,
    pub(super) target: Option<Target>,
    pub(super) target_at: Span,
    pub(super) target_node: Option<&'n Node>,
    pub(super) arms: Option<arms::Read>,
    pub(super) limits: Option<limits::Read>,
    pub(super) price: Option<price::Read>,
    pub(super) policies: Option<Vec<policy::Read>>,
    pub(super) budget: Option<Budget>,
}

/// The sections that depend on one another, checked.
pub(super) struct Whole {
    pub(super) target: Target,
    pub(super) space: Space,
    pub(super) open: Option<Arc<OpenSpace>>,
    pub(super) start_run: Option<StartRun>,
    pub(super) limits: Limits,
    pub(super) price: Prices,
    pub(super) policies: Vec<PolicyKind>,
    pub(super) budget: Budget,
}

impl Parts<'_> {
    pub(super) fn check(mut self, check: &mut Check<'_>) -> Option<Whole> {
        if let (Some(Target::Command(command)), Some(arms)) = (&mut self.target, &self.arms) {
            // A wrapper wants every parameter as `-name value`.
            if self.kind == Some(TargetKind::Command) {
                command.arguments.own.clone_from(&arms.arguments);
            }
            let is_always_there = |name: &str| {
                let place = arms.names.iter().position(|known| known == name);
                let lacks = |place: usize| match (&arms.open, &arms.space) {
                    // Whatever was sampled: `captime pull` accepts any configuration.
                    (Some(open), _) => open.parameters()[place].when.is_some(),
                    (None, Some(space)) => space.first_without(place).is_some(),
                    (None, None) => true,
                };
                place.is_some_and(|place| !lacks(place))
            };
            for template in super::command::templates(command) {
                template.keep_brackets(is_always_there);
            }
        }
        if let (Some(TargetKind::Command), Some(arms), Some(node)) =
            (self.kind, &self.arms, self.target_node)
        {
            placeholders::check(check, node, arms, self.limits.as_ref());
        }
        if let Some(arms) = &self.arms
            && let Some(at) = arms.unsampled_at
            && let Some(policies) = &self.policies
        {
            let sample = affordable(self.budget.as_ref());
            let mut finite = policies.iter().map(|policy| &policy.kind);
            if let Some(policy) = finite.find(|policy| !policy.takes_more_arms()) {
                let policy = policy.name();
                check.fault(at, Fault::NeedsSample { policy, sample });
            }
        }
        if let Some(Target::Command(command)) = &self.target {
            placeholders::check_program(check, command, self.target_node);
        }
        if let (Some(Target::Forest(forest)), Some(arms)) = (&self.target, &self.arms) {
            forest::check_arms(check, forest, arms);
        }
        if let Some(price) = &self.price {
            price.check(check, self.limits.as_ref());
        }
        if let Some(limits) = &self.limits {
            self.guards(check, limits);
            if let Some(policies) = &self.policies {
                limits_for(check, limits, policies);
            }
            if let (Some(LimitSource::Calibrate(calibrate)), Some(arms)) =
                (&limits.from, &self.arms)
                && let Some(space) = &arms.space
                && let Some(wanted) = calibrate.arms.filter(|wanted| *wanted > space.first_arms())
            {
                let at = limits.calibrate_arms_at.unwrap_or(limits.at);
                check.caution(
                    at,
                    Caution::FewerArms {
                        arms: wanted,
                        count: space.first_arms(),
                    },
                );
            }
        }
        for policy in self.policies.iter().flatten() {
            // Only if the user chose it: the default is what the paper's experiments use.
            if let (Some(warning), Some(at)) = (policy.kind.warning(), policy.alpha_at) {
                check.caution(at, Caution::Policy(warning));
            }
        }
        let runs = self.kind.is_some_and(TargetKind::is_run);
        if runs && self.budget == Some(Budget::default()) {
            check.caution(Span::default(), Caution::NoBudget);
        }
        let open = self.arms.as_ref().and_then(|arms| arms.open.clone());
        let start_run = self.arms.as_ref().and_then(|arms| arms.start_run.clone());
        let (space, limits) = match &self.target {
            Some(Target::Synthetic(spec)) => {
                let (space, grid) = virtual_target::synthetic_parts(spec)?;
                let limits = match self.limits {
                    Some(limits) => limits.finish(),
                    None => Some(Limits {
                        of: Resource::Work,
                        guards: Guards::default(),
                        from: LimitSource::Grid(grid),
                        grace: 0.0,
                    }),
                };
                (Some(space), limits)
            }
            Some(Target::Recorded(target)) => {
                let (arms, limits) = (self.arms.as_ref(), self.limits.as_ref());
                let space =
                    virtual_target::recorded_arms(check, target, self.target_at, arms, limits);
                (space, self.limits.and_then(limits::Read::finish))
            }
            target => {
                if let Some(Target::Surrogate(target)) = target {
                    let (arms, limits) = (self.arms.as_ref(), self.limits.as_ref());
                    virtual_target::check_surrogate(check, target, self.target_at, arms, limits);
                }
                (
                    self.arms.and_then(|arms| arms.space),
                    self.limits.and_then(limits::Read::finish),
                )
            }
        };
        Some(Whole {
            target: self.target?,
            space: space?,
            open,
            start_run,
            limits: limits?,
            price: self.price?.finish()?,
            policies: self
                .policies?
                .into_iter()
                .map(|policy| policy.kind)
                .collect(),
            budget: self.budget?,
        })
    }

    /// Guards that cannot be enforced on the target, or that it needs.
    fn guards(&self, check: &mut Check<'_>, limits: &limits::Read) {
        let of_memory = (limits.of == Resource::Memory).then_some(limits.of_at);
        if let (Some(Target::Forest(forest)), Some(at)) =
            (&self.target, limits.memory_at.or(of_memory))
            && forest.isolation == Isolation::Thread
        {
            check.fault(at, Fault::MemoryNeedsProcess);
        }
        if let (Some(Target::Forest(forest)), Resource::Work) = (&self.target, limits.of)
            && forest.engine != EngineKind::Builtin
        {
            let engine = forest.engine.name();
            check.fault(limits.of_at, Fault::WorkNeedsBuiltin { engine });
        }
        // Such a forest runs like a command: besides its limit, only time and memory are guarded.
        let is_apart = matches!(&self.target, Some(Target::Forest(forest)) if forest.isolation == Isolation::Process);
        let is_command = matches!(self.target, Some(Target::Command(_)));
        if let Some(at) = limits.work_at
            && limits.of != Resource::Work
            && (is_command || is_apart)
        {
            check.fault(at, Fault::WorkGuard);
        }
        let reporting = match &self.target {
            Some(Target::Command(command)) if command.consumption.is_some() => Some(command),
            _ => None,
        };
        if let Some(command) = reporting {
            let node = self.target_node;
            let at = node.and_then(|node| placeholders::key_at(node, "consumption"));
            let at = at.unwrap_or(limits.of_at);
            if limits.guards.wall.is_none() {
                check.fault(at, Fault::ConsumptionWithoutGuard);
            } else if !command.uses(&Piece::Limit) {
                check.caution(at, Caution::LimitNotPassed);
            }
        } else if is_command && limits.of == Resource::Cpu && limits.guards.wall.is_none() {
            check.caution(limits.of_at, Caution::NoWallGuard);
        } else if is_command && limits.of == Resource::Memory && limits.guards.wall.is_none() {
            check.caution(limits.of_at, Caution::NothingEnds);
        }
        if is_command || is_apart || matches!(self.target, Some(Target::Forest(_))) {
            self.unlikely(check, limits);
        }
    }

    /// Warns of settings that can be enforced, but leave nothing to learn.
    fn unlikely(&self, check: &mut Check<'_>, limits: &limits::Read) {
        if let (Some(bytes), Some(at)) = (limits.guards.memory, limits.memory_at)
            && bytes < LEAST_MEMORY
        {
            check.caution(at, Caution::TinyMemory { bytes });
        }
        let Some(from) = &limits.from else { return };
        let (smallest, largest) = match from {
            LimitSource::Grid(grid) => (grid.as_slice()[0].get(), grid.max().get()),
            other => (other.largest().get(), other.largest().get()),
        };
        let amount = |value: f64| limits.of.amount(value);
        if limits.of.is_time() && smallest < LEAST_TIME {
            let limit = match amount(smallest) {
                // Too small for the usual digits.
                zero if zero.starts_with("0 ") => format!("{smallest:e} s"),
                limit => limit,
            };
            check.caution(limits.at, Caution::TinyLimit { limit });
        }
        if let (Resource::Cpu, Some(wall)) = (limits.of, limits.guards.wall)
            && wall < largest
        {
            let (guard, limit) = (Resource::Wall.amount(wall), amount(largest));
            check.caution(limits.at, Caution::GuardBelowLimit { guard, limit });
        }
        let is_timed = limits.of == Resource::Wall;
        if let Some(budget) = self.budget {
            let wall = budget.wall.filter(|wall| is_timed && *wall < smallest);
            let used = budget.consumption.filter(|used| *used < smallest);
            if let Some(budget) = wall.or(used) {
                let (budget, limit) = (amount(budget), amount(smallest));
                check.caution(limits.at, Caution::BudgetBelowLimit { budget, limit });
            }
        }
    }
}

/// How many arms a budget can afford, at about ten rounds for each.
fn affordable(budget: Option<&Budget>) -> u64 {
    let rounds = budget.and_then(|budget| budget.rounds);
    rounds.map_or(500, |rounds| (rounds / 10).clamp(10, 1000))
}

/// Policies that find limits themselves make their own grid; all others need one.
fn limits_for(check: &mut Check<'_>, limits: &limits::Read, policies: &[policy::Read]) {
    let zooms = |policy: &policy::Read| policy.kind.finds_limits();
    match &limits.from {
        Some(LimitSource::Grid(_)) if policies.iter().all(zooms) => {
            let policy = policies.first().map_or("", |policy| policy.kind.name());
            check.fault(limits.at, Fault::GridNotNeeded { policy });
        }
        Some(LimitSource::Max(_)) => {
            if let Some(policy) = policies.iter().find(|policy| !zooms(policy)) {
                check.fault(
                    limits.at,
                    Fault::MaxWithoutGrid {
                        policy: policy.kind.name(),
                    },
                );
            }
        }
        _ => {}
    }
}
