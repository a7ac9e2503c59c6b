//! `expect`: the answers that instances are known to have.

use super::{Check, Fields};
use crate::scenario::check::instances::glob;
use crate::scenario::keys;
use crate::scenario::model::{Command, Expect, Reward};
use crate::scenario::raw::{Node, Raw};
use crate::scenario::{Caution, Fault};
use crate::yaml::Span;

const EXAMPLE: &str = "expect: {name: {'*unsat*': 20, '*sat*': 10}}";

/// The rule, and where each of its patterns is.
pub(super) struct Read {
    rule: Expect,
    at: Span,
    places: Vec<Span>,
}

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Read> {
    let mut fields = Fields::of(check, node, &keys::EXPECT)?;
    let column = fields.read_optional(check, "column")?;
    let name = fields.take(check, "name");
    let at = fields.key_at("column").unwrap_or(fields.at());
    let has_any = ["column", "name"]
        .iter()
        .any(|key| fields.has(key) || fields.is_misspelt(key));
    fields.finish(check);
    match (column, name) {
        (Some(place), None) => {
            let known = std::collections::BTreeMap::new();
            let rule = Expect::Column { place, known };
            Some(Read {
                rule,
                at,
                places: vec![],
            })
        }
        (None, Some(name)) => patterns(check, name).map(|(patterns, places)| Read {
            rule: Expect::Name(patterns),
            at: name.at,
            places,
        }),
        (None, None) if has_any => None,
        (both, _) => {
            let given = if both.is_some() {
                "both are"
            } else {
                "none is"
            };
            check.choose_one(node, "expect", vec!["column", "name"], given, EXAMPLE);
            None
        }
    }
}

type Patterns = Vec<(String, Vec<String>)>;

fn patterns(check: &mut Check<'_>, node: &Node) -> Option<(Patterns, Vec<Span>)> {
    let Raw::Map(entries) = &node.value else {
        let expected = "a mapping from patterns to answers like {'*unsat*': 20, '*sat*': 10}";
        check.wrong_type(node, "name", expected);
        return None;
    };
    if entries.is_empty() {
        let key = "name".into();
        let example = EXAMPLE;
        check.fault(node.at, Fault::EmptyList { key, example });
        return None;
    }
    let mut patterns = vec![];
    for entry in entries {
        if glob(&entry.key).is_none() {
            let pattern = entry.key.clone();
            check.fault(entry.key_at, Fault::NoMatch { pattern });
            return None;
        }
        let answers = check.texts(&entry.value, &entry.key)?;
        patterns.push((entry.key.clone(), answers));
    }
    let places = entries.iter().map(|entry| entry.key_at).collect();
    Some((patterns, places))
}

impl Read {
    /// Gives the rule to a command, once its instances and its reward are known.
    pub(super) fn apply(mut self, check: &mut Check<'_>, command: &mut Command) {
        for instances in [&mut command.instances, &mut command.test] {
            *instances = self.rule.instances(std::mem::take(instances));
        }
        let all = || command.instances.iter().chain(&command.test);
        if all().next().is_none() {
            let (section, key) = ("expect".into(), "instances");
            let example = "instances: instances/*.cnf";
            check.fault(
                self.at,
                Fault::Missing {
                    section,
                    key,
                    example,
                },
            );
            return;
        }
        let mut used = vec![false; self.places.len()];
        let mut has_any = false;
        for instance in all() {
            let Some(answers) = self.rule.answers(instance) else {
                continue;
            };
            has_any = true;
            if let Expect::Name(patterns) = &self.rule {
                let of = |(_, of): &(_, Vec<String>)| std::ptr::eq(of.as_slice(), answers);
                if let Some(place) = patterns.iter().position(of) {
                    used[place] = true;
                }
            }
            if let Some(answer) = answers
                .iter()
                .find(|answer| !is_possible(answer, &command.reward))
            {
                let (answer, instance) = (answer.clone(), instance.clone());
                check.fault(self.at, Fault::ImpossibleAnswer { answer, instance });
                return;
            }
        }
        if !has_any && let Expect::Column { place, .. } = self.rule {
            check.fault(self.at, Fault::NoAnswerColumn { place });
        }
        for (at, is_used) in self.places.iter().zip(used) {
            if !is_used {
                check.caution(*at, Caution::UnusedPattern);
            }
        }
        command.expect = Some(self.rule);
    }
}

/// Whether a rewarded run can have this answer at all.
fn is_possible(answer: &str, reward: &Reward) -> bool {
    match reward {
        Reward::Exit(codes) => codes.iter().any(|code| code.to_string() == answer),
        Reward::Wrapper { scale: None } => matches!(answer, "SAT" | "UNSAT"),
        Reward::Score { .. } | Reward::Wrapper { scale: Some(_) } => {
            answer.trim().parse::<f64>().is_ok()
        }
    }
}
