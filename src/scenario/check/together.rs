//! What concerns several sections at once.

use super::{Check, TargetKind, arms, forest, limits, placeholders, policy, price, virtual_target};
use crate::policy::PolicyKind;
use crate::resource::Resource;
use crate::scenario::model::{
    Budget, Engine, Guards, Isolation, LimitSource, Limits, Prices, Target,
};
use crate::scenario::raw::Node;
use crate::scenario::source::Span;
use crate::scenario::{Caution, Fault};
use crate::space::Space;

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
    pub(super) limits: Limits,
    pub(super) price: Prices,
    pub(super) policies: Vec<PolicyKind>,
    pub(super) budget: Budget,
}

impl Parts<'_> {
    pub(super) fn check(self, check: &mut Check<'_>) -> Option<Whole> {
        if let (Some(TargetKind::Command), Some(arms), Some(node)) =
            (self.kind, &self.arms, self.target_node)
        {
            placeholders::check(check, node, arms, self.limits.as_ref());
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
                && let Some(wanted) = calibrate.arms.filter(|wanted| *wanted > space.len())
            {
                let at = limits.calibrate_arms_at.unwrap_or(limits.at);
                check.caution(
                    at,
                    Caution::FewerArms {
                        arms: wanted,
                        count: space.len(),
                    },
                );
            }
        }
        for policy in self.policies.iter().flatten() {
            // Only where it was chosen: the default is what the paper's own experiments use.
            if let (Some(warning), Some(at)) = (policy.kind.warning(), policy.alpha_at) {
                check.caution(at, Caution::Policy(warning));
            }
        }
        let runs = matches!(self.kind, Some(TargetKind::Command | TargetKind::Forest));
        if runs && self.budget == Some(Budget::default()) {
            check.caution(Span::default(), Caution::NoBudget);
        }
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
            _ => (
                self.arms.and_then(|arms| arms.space),
                self.limits.and_then(limits::Read::finish),
            ),
        };
        Some(Whole {
            target: self.target?,
            space: space?,
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

    /// Guards that the target cannot be held to, or that it needs.
    fn guards(&self, check: &mut Check<'_>, limits: &limits::Read) {
        if let (Some(Target::Forest(forest)), Some(at)) = (&self.target, limits.memory_at)
            && forest.isolation == Isolation::Thread
        {
            check.fault(at, Fault::MemoryNeedsProcess);
        }
        if let (Some(Target::Forest(forest)), Resource::Work) = (&self.target, limits.of)
            && forest.engine != Engine::Builtin
        {
            let engine = forest.engine.name();
            check.fault(limits.of_at, Fault::WorkNeedsBuiltin { engine });
        }
        // Such a forest runs as a command does: besides its limit only time and memory are guarded.
        let is_apart = matches!(&self.target, Some(Target::Forest(forest)) if forest.isolation == Isolation::Process);
        let is_command = matches!(self.target, Some(Target::Command(_)));
        if let Some(at) = limits.work_at
            && limits.of != Resource::Work
            && (is_command || is_apart)
        {
            check.fault(at, Fault::WorkGuard);
        }
        if is_command && limits.of == Resource::Cpu && limits.guards.wall.is_none() {
            check.caution(limits.of_at, Caution::NoWallGuard);
        }
    }
}

/// z-RCUCB makes its own grid; all others need one.
fn limits_for(check: &mut Check<'_>, limits: &limits::Read, policies: &[policy::Read]) {
    let zooms = |policy: &policy::Read| policy.kind.finds_limits();
    match &limits.from {
        Some(LimitSource::Grid(_)) if policies.iter().all(zooms) => {
            check.fault(limits.at, Fault::GridForZrcucb);
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
