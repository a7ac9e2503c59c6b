//! `reward`: how it is read from what a command did.

use super::{Check, Fields};
use crate::scenario::Fault;
use crate::scenario::keys;
use crate::scenario::model::{Reward, ScoreForm, ScorePlace, ScoreScale};
use crate::scenario::raw::{Node, Raw};
use crate::scenario::stored::pattern;
use crate::scenario::template::Template;

const EXAMPLE: &str = r"reward: {stdout: 'score=(\S+)'}";

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Reward> {
    let mut fields = Fields::of(check, node, &keys::REWARD)?;
    let exit = fields.take(check, "exit");
    let stdout = fields.take(check, "stdout");
    let stderr = fields.take(check, "stderr");
    let json = fields.take(check, "json");
    let file = fields.take(check, "file");
    let pattern = fields.take(check, "match");
    let which = fields.take(check, "which");
    let which =
        which.and_then(|node| check.word(node, "which", &[("only", false), ("last", true)]));
    let scale = scale(check, &mut fields);
    let has_scale = fields.has("worst") || fields.has("best");
    // A key that is misspelt or has no value is reported as such.
    let has_any = ["exit", "stdout", "stderr", "json", "file"]
        .iter()
        .any(|key| fields.has(key) || fields.is_misspelt(key));
    let is_file_misspelt = fields.is_misspelt("file");
    fields.finish(check);
    let reward = match (exit, stdout, stderr, json, file) {
        (Some(exit), None, None, None, None) => {
            if has_scale || pattern.is_some() || which.is_some() {
                check.choose_one(
                    node,
                    "reward",
                    vec!["exit", "stdout", "stderr", "json", "file"],
                    "`exit` takes nothing beside it and more is",
                    "reward: {exit: [0]}",
                );
                return None;
            }
            return exit_codes(check, exit, "exit").map(Reward::Exit);
        }
        (None, Some(stdout), None, None, None) => {
            regex(check, stdout, "stdout").map(|form| (ScorePlace::Stdout, form))
        }
        (None, None, Some(stderr), None, None) => {
            regex(check, stderr, "stderr").map(|form| (ScorePlace::Stderr, form))
        }
        (None, None, None, Some(json), None) => {
            pointer(check, json).map(|form| (ScorePlace::Stdout, form))
        }
        (None, None, None, json, Some(file)) => {
            let place = check.template(file, "file").map(ScorePlace::File);
            let form = match (json, pattern) {
                (Some(json), None) => pointer(check, json),
                (None, Some(pattern)) => regex(check, pattern, "match"),
                (None, None) => Some(ScoreForm::Whole),
                (Some(_), Some(pattern)) => {
                    check.choose_one(
                        pattern,
                        "file",
                        vec!["json", "match"],
                        "both are",
                        "file: out.json, json: /score",
                    );
                    None
                }
            };
            place.zip(form)
        }
        (None, None, None, None, None) => {
            if !has_any {
                check.choose_one(
                    node,
                    "reward",
                    vec!["exit", "stdout", "stderr", "json", "file"],
                    "none is",
                    EXAMPLE,
                );
            }
            None
        }
        _ => {
            check.choose_one(
                node,
                "reward",
                vec!["exit", "stdout", "stderr", "json", "file"],
                "several are",
                EXAMPLE,
            );
            None
        }
    };
    if let (Some(pattern), None, false) = (pattern, file, is_file_misspelt) {
        check.fault(
            pattern.at,
            Fault::Missing {
                section: "reward".into(),
                key: "file",
                example: r"file: out.txt, match: 'score=(\S+)'",
            },
        );
    }
    let (place, form) = reward?;
    let form = match form {
        ScoreForm::Pattern(pattern) if which == Some(true) => ScoreForm::LastMatch(pattern),
        form => form,
    };
    Some(Reward::Score {
        place,
        form,
        scale: scale?,
    })
}

#[expect(clippy::option_option, reason = "wrong; not given; given")]
fn scale(check: &mut Check<'_>, fields: &mut Fields<'_>) -> Option<Option<ScoreScale>> {
    if !fields.has("worst") && !fields.has("best") {
        return Some(None);
    }
    needed_scale(check, fields).map(Some)
}

/// The scores worth 0 and 1, which must both be there.
pub(super) fn needed_scale(check: &mut Check<'_>, fields: &mut Fields<'_>) -> Option<ScoreScale> {
    let example = "worst: 1.0, best: 0.0";
    let worst = fields.need(check, "worst", example);
    let best = fields.need(check, "best", example);
    let worst = worst.and_then(|node| check.number(node, "worst"));
    let best_value = best.and_then(|node| check.number(node, "best"));
    let (worst, best_value) = (worst?, best_value?);
    if worst == best_value {
        check.fault(best?.at, Fault::SameWorstBest { value: worst });
        return None;
    }
    Some(ScoreScale {
        worst,
        best: best_value,
    })
}

/// A list of exit codes, or one.
pub(super) fn exit_codes(check: &mut Check<'_>, node: &Node, key: &str) -> Option<Vec<i32>> {
    let items = match &node.value {
        Raw::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if items.is_empty() {
        check.fault(
            node.at,
            Fault::EmptyList {
                key: key.into(),
                example: "[0]",
            },
        );
        return None;
    }
    let codes: Vec<_> = items
        .iter()
        .map(|item| check.whole(item, key, 0, 255, "").map(|code| code as i32))
        .collect();
    codes.into_iter().collect()
}

fn regex(check: &mut Check<'_>, node: &Node, key: &str) -> Option<ScoreForm> {
    let text = check.text(node, key)?;
    let pattern = match pattern::compile(&text) {
        Ok(pattern) => pattern,
        Err(error) => {
            // The last line of the message says what is wrong. Those before only show the position, which captime shows
            // itself.
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ").to_owned();
            check.fault(
                node.at,
                Fault::BadRegex {
                    key: key.into(),
                    reason,
                },
            );
            return None;
        }
    };
    let groups = pattern.captures_len() - 1;
    if groups != 1 {
        check.fault(
            node.at,
            Fault::RegexGroups {
                key: key.into(),
                groups,
            },
        );
        return None;
    }
    Some(ScoreForm::Pattern(pattern))
}

fn pointer(check: &mut Check<'_>, node: &Node) -> Option<ScoreForm> {
    let pointer = check.text(node, "json")?;
    if pointer.is_empty() || pointer.starts_with('/') {
        Some(ScoreForm::Json(pointer))
    } else {
        check.fault(node.at, Fault::BadPointer { pointer });
        None
    }
}

impl Check<'_> {
    /// A text with placeholders. Each mistake points into the text if possible.
    pub(super) fn template(&mut self, node: &Node, key: &str) -> Option<Template> {
        let text = self.text(node, key)?;
        match Template::parse_with_places(&text) {
            Ok((template, placed)) => {
                for placed in placed {
                    let at = self.inside(node, &text, placed.at);
                    self.placeholders
                        .push((placed.piece, at, placed.is_optional));
                }
                Some(template)
            }
            Err(faults) => {
                for (fault, within) in faults {
                    let at = self.inside(node, &text, within);
                    self.fault(at, fault);
                }
                None
            }
        }
    }

    /// The position of a part of a text, if the text is in the source unchanged (escapes and folded lines move things).
    pub(super) fn inside(
        &self,
        node: &Node,
        text: &str,
        within: std::ops::Range<usize>,
    ) -> crate::yaml::Span {
        let written = &self.text[node.at.within(self.text).range()];
        match written.find(text) {
            Some(offset) => {
                let start = node.at.start() + offset;
                crate::yaml::Span::new(start + within.start, start + within.end)
            }
            None => node.at,
        }
    }
}
