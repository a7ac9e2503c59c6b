//! `policy` and `recommend`: how pulls and the answer are chosen.

use super::{Check, Fields};
use crate::policy::{OptionValue, PolicyError, PolicyKind};
use crate::scenario::Fault;
use crate::scenario::raw::{Node, Raw};
use crate::yaml::Span;

/// A policy, and where its alpha is set.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) kind: PolicyKind,
    pub(super) alpha_at: Option<Span>,
}

/// The default policy.
const DEFAULT: &str = PolicyKind::DEFAULT;

pub(super) fn read(check: &mut Check<'_>, fields: &mut Fields<'_>) -> Option<Vec<Read>> {
    let recommend = match fields.take(check, "recommend") {
        Some(node) => Some((check.text(node, "recommend")?, node.at)),
        None => None,
    };
    let recommend = recommend.as_ref();
    let Some(node) = fields.take(check, "policy") else {
        return one(check, DEFAULT, Span::default(), &[], recommend).map(|read| vec![read]);
    };
    match &node.value {
        Raw::List(items) if items.is_empty() => {
            check.fault(
                node.at,
                Fault::EmptyList {
                    key: "policy".into(),
                    example: "policy: rcucb",
                },
            );
            None
        }
        Raw::List(items) => {
            let read: Vec<_> = items
                .iter()
                .map(|item| entry(check, item, recommend))
                .collect();
            read.into_iter().collect()
        }
        _ => entry(check, node, recommend).map(|read| vec![read]),
    }
}

/// `rcucb`, `rcucb:alpha=0.25` or `{rcucb: {alpha: 0.25}}`.
fn entry(check: &mut Check<'_>, node: &Node, recommend: Option<&(String, Span)>) -> Option<Read> {
    match &node.value {
        Raw::Text(text) if text.contains(':') => match PolicyKind::parse(text) {
            Ok(kind) => Some(Read {
                kind,
                alpha_at: Some(node.at),
            }),
            Err(errors) => {
                for error in errors {
                    check.fault(node.at, Fault::Policy(error));
                }
                None
            }
        },
        Raw::Text(name) => one(check, name, node.at, &[], recommend),
        Raw::Map(entries) => {
            let [policy] = &entries[..] else {
                check.wrong_type(
                    node,
                    "policy",
                    "one name with its options, as `{rcucb: {alpha: 0.25}}`",
                );
                return None;
            };
            let options: &[_] = match &policy.value.value {
                Raw::Null => &[],
                Raw::Map(options) => options,
                _ => {
                    check.wrong_type(&policy.value, &policy.key, "a mapping of options");
                    return None;
                }
            };
            one(check, &policy.key, policy.key_at, options, recommend)
        }
        _ => {
            check.wrong_type(node, "policy", "a name, or one with its options");
            None
        }
    }
}

fn one(
    check: &mut Check<'_>,
    name: &str,
    at: Span,
    options: &[crate::scenario::raw::Entry],
    recommend: Option<&(String, Span)>,
) -> Option<Read> {
    let mut given = vec![];
    for option in options {
        let value = match &option.value.value {
            Raw::Flag(flag) => OptionValue::Flag(*flag),
            Raw::Integer(number) => OptionValue::Number(*number as f64),
            Raw::Number(number) => OptionValue::Number(*number),
            Raw::Text(text) => OptionValue::Text(text.clone()),
            Raw::Null => {
                check.fault(
                    option.key_at,
                    Fault::NoValue {
                        key: option.key.clone(),
                    },
                );
                return None;
            }
            Raw::List(_) | Raw::Map(_) => {
                check.wrong_type(
                    &option.value,
                    &option.key,
                    "a number, a word, or true or false",
                );
                return None;
            }
        };
        given.push((option.key.clone(), value));
    }
    let mut recommend_at = None;
    if let Some((word, at)) = recommend
        && !given.iter().any(|(option, _)| option == "recommend")
    {
        given.push(("recommend".into(), OptionValue::Text(word.clone())));
        recommend_at = Some(*at);
    }
    let place = |wanted: &str| {
        options
            .iter()
            .find(|option| option.key == wanted || option.key.replace('_', "-") == wanted)
    };
    match PolicyKind::from_options(name, given) {
        Ok(kind) => Some(Read {
            kind,
            alpha_at: place("alpha").map(|option| option.value.at),
        }),
        Err(errors) => {
            for error in errors {
                let place_of_error = match (&error, error.option()) {
                    (_, Some("recommend")) if recommend_at.is_some() => recommend_at,
                    (PolicyError::UnknownOption { .. }, Some(option)) => {
                        place(option).map(|option| option.key_at)
                    }
                    (_, Some(option)) => place(option).map(|option| option.value.at),
                    _ => None,
                };
                check.fault(place_of_error.unwrap_or(at), Fault::Policy(error));
            }
            None
        }
    }
}
