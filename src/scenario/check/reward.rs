//! `reward`: how it is read from what a command did.

use super::{Check, Fields};
use crate::scenario::Fault;
use crate::scenario::keys;
use crate::scenario::model::{Reward, ScoreForm, ScorePlace, ScoreScale, ScoreSource};
use crate::scenario::raw::{Node, Raw};
use crate::scenario::stored::pattern;
use crate::scenario::template::Template;

const EXAMPLE: &str = r"reward: {stdout: 'score=(\S+)'}";

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Reward> {
    let mut fields = Fields::of(check, node, &keys::REWARD)?;
    let exit = fields.take(check, "exit");
    let scale = scale(check, &mut fields);
    if let Some(exit) = exit {
        let has_any = |keys: &[&str]| keys.iter().any(|key| fields.has(key));
        let (has_place, has_more) = (
            has_any(&PLACES),
            has_any(&["match", "which", "worst", "best"]),
        );
        fields.finish(check);
        if has_place {
            check.choose_one(node, "reward", with_exit(), "several are", EXAMPLE);
        } else if has_more {
            let given = "`exit` takes nothing beside it and more is";
            check.choose_one(node, "reward", with_exit(), given, "reward: {exit: [0]}");
        } else {
            return exit_codes(check, exit, "exit").map(Reward::Exit);
        }
        return None;
    }
    let has_exit = fields.is_misspelt("exit") || fields.has("exit");
    let known = (with_exit(), EXAMPLE);
    let source = source(check, node, &mut fields, known, has_exit);
    fields.finish(check);
    Some(Reward::Score {
        source: source?,
        scale: scale?,
    })
}

/// `consumption`: where the program reports what it consumed.
pub(super) fn consumption(check: &mut Check<'_>, node: &Node) -> Option<ScoreSource> {
    let mut fields = Fields::of(check, node, &keys::CONSUMPTION)?;
    let known = (
        PLACES.to_vec(),
        r"consumption: {stdout: 'conflicts: (\S+)'}",
    );
    let source = source(check, node, &mut fields, known, false);
    fields.finish(check);
    source
}

/// Where a number can be.
const PLACES: [&str; 4] = ["stdout", "stderr", "json", "file"];

fn with_exit() -> Vec<&'static str> {
    let mut all = vec!["exit"];
    all.extend(PLACES);
    all
}

/// Where a number is found in what a command wrote.
fn source(
    check: &mut Check<'_>,
    node: &Node,
    fields: &mut Fields<'_>,
    (known, example): (Vec<&'static str>, &'static str),
    has_other: bool,
) -> Option<ScoreSource> {
    let section = fields.section().to_owned();
    let stdout = fields.take(check, "stdout");
    let stderr = fields.take(check, "stderr");
    let json = fields.take(check, "json");
    let file = fields.take(check, "file");
    let pattern = fields.take(check, "match");
    let which = fields.take(check, "which");
    let which =
        which.and_then(|node| check.word(node, "which", &[("only", false), ("last", true)]));
    // A key that is misspelt or has no value is reported as such.
    let has_any = has_other
        || PLACES
            .iter()
            .any(|key| fields.has(key) || fields.is_misspelt(key));
    let found = match (stdout, stderr, json, file) {
        (Some(stdout), None, None, None) => {
            regex(check, stdout, "stdout").map(|form| (ScorePlace::Stdout, form))
        }
        (None, Some(stderr), None, None) => {
            regex(check, stderr, "stderr").map(|form| (ScorePlace::Stderr, form))
        }
        (None, None, Some(json), None) => {
            pointer(check, json).map(|form| (ScorePlace::Stdout, form))
        }
        (None, None, json, Some(file)) => {
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
        (None, None, None, None) => {
            if !has_any {
                check.choose_one(node, &section, known, "none is", example);
            }
            None
        }
        _ => {
            check.choose_one(node, &section, known, "several are", example);
            None
        }
    };
    if let (Some(pattern), None, false) = (pattern, file, fields.is_misspelt("file")) {
        check.fault(
            pattern.at,
            Fault::Missing {
                section,
                key: "file",
                example: r"file: out.txt, match: 'score=(\S+)'",
            },
        );
    }
    let (place, form) = found?;
    let form = match form {
        ScoreForm::Pattern(pattern) if which == Some(true) => ScoreForm::LastMatch(pattern),
        form => form,
    };
    Some(ScoreSource { place, form })
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
    Some(ScoreScale::linear(worst, best_value))
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
