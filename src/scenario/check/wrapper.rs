//! `target: {wrapper: ...}`: a wrapper of AClib, ParamILS or SMAC, called as those call it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::command::Surroundings;
use super::fields::flat;
use super::{Check, Fields, expect, reward};
use crate::scenario::Fault;
use crate::scenario::arguments::{Arguments, ParamsForm};
use crate::scenario::keys;
use crate::scenario::model::{Command, Reward, Stdin};
use crate::scenario::raw::Node;
use crate::scenario::template::Template;

/// Which arguments a wrapper expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Call {
    /// `INSTANCE SPECIFICS CUTOFF RUNLENGTH SEED -name value ...`
    Old,
    /// `--instance INSTANCE --cutoff CUTOFF --seed SEED --config -name value ...`
    New,
}

impl Call {
    /// The arguments after the wrapper's own: parameters follow as `-name value`.
    fn arguments(self) -> Vec<&'static str> {
        match self {
            // ParamILS and SMAC2 send the largest run length when there is none.
            Self::Old => vec![
                "{instance.name}",
                "{instance.specifics}",
                "{limit}",
                "2147483647",
                "{seed}",
                "{params}",
            ],
            Self::New => vec![
                "--instance",
                "{instance.name}",
                "--cutoff",
                "{limit}",
                "--seed",
                "{seed}",
                "--config",
                "{params}",
            ],
        }
    }
}

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Command> {
    let mut fields = Fields::of(check, node, &keys::WRAPPER)?;
    let words = fields.take(check, "wrapper").and_then(|node| {
        let words = check.texts(node, "wrapper")?;
        if words.is_empty() {
            let (key, example) = ("wrapper".into(), "wrapper: [python3, wrapper.py]");
            check.fault(node.at, Fault::EmptyList { key, example });
            return None;
        }
        Some(words)
    });
    let call: Option<Call> = fields.read(check, "call");
    let scale = fields.take(check, "quality").map_or(Some(None), |node| {
        let mut inner = Fields::of(check, node, &keys::QUALITY)?;
        let scale = reward::needed_scale(check, &mut inner);
        inner.finish(check);
        scale.map(Some)
    });
    let expect = fields
        .take(check, "expect")
        .map(|node| expect::read(check, node));
    let surroundings = Surroundings::read(check, &mut fields);
    fields.finish(check);
    let own = words?.into_iter().map(Template::literal);
    let called = call?.arguments().into_iter();
    let arguments = Arguments {
        templates: own
            .chain(called.filter_map(|word| Template::parse(word).ok()))
            .collect(),
        form: ParamsForm {
            arguments: vec!["-{name}".to_owned(), "{value}".to_owned()],
        },
        placed: vec![],
        own: BTreeMap::new(),
    };
    let reward = (vec![0], Reward::Wrapper { scale: scale? });
    let mut command = surroundings?.command(check, arguments, Stdin::Empty, reward);
    if let Some(expect) = flat(expect)? {
        expect.apply(check, &mut command);
    }
    Some(command)
}
