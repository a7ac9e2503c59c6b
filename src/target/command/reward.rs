//! The reward of a command, from its exit code or from what it wrote.

use crate::scenario::{Reward, ScoreForm, ScoreScale};
use captime_limit::Captured;

/// What a reward was read from, and what it came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The text it was read from, as short as can be shown.
    pub text: String,
    /// The score as written, where it is not the reward itself.
    pub score: Option<f64>,
    /// In [0, 1].
    pub reward: f64,
    /// Whether the score lay outside of `worst` and `best`.
    pub is_clamped: bool,
}

/// What a score is looked for in.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// What a stream kept: all of it, or its beginning and end.
    Stream(&'a Captured),
    /// A file.
    File(&'a [u8]),
}

/// More of a text than this is not shown.
const SHOWN: usize = 200;

/// Reads the reward of a command that ended by itself, or says why there is none.
pub fn read(
    reward: &Reward,
    success: &[i32],
    exit: i32,
    source: Option<Source<'_>>,
) -> Result<Reading, String> {
    match reward {
        Reward::Exit(solved) if solved.contains(&exit) => Ok(Reading {
            text: format!("exit code {exit}"),
            score: None,
            reward: 1.0,
            is_clamped: false,
        }),
        Reward::Exit(solved) => Err(format!("exit code {exit}, which is not {}", either(solved))),
        Reward::Wrapper { .. } => Err("a wrapper reports on a line of its own".to_owned()),
        Reward::Score { .. } if !success.contains(&exit) => Err(format!(
            "exit code {exit}, which is not {}",
            either(success)
        )),
        Reward::Score {
            source: found,
            scale,
        } => {
            let source = source.ok_or("there is nothing to read the reward from")?;
            let text = score_text(&found.form, source)?;
            let score = number(&text)?;
            scaled(text, score, *scale)
        }
    }
}

/// Reads what a command says it consumed.
pub fn consumption(form: &ScoreForm, source: Option<Source<'_>>) -> Result<f64, String> {
    let source = source.ok_or("there is nothing to read the consumption from")?;
    let consumption = number(&score_text(form, source)?)?;
    if consumption < 0.0 {
        return Err(format!("{consumption} is below 0"));
    }
    Ok(consumption)
}

fn either(codes: &[i32]) -> String {
    let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
    codes.join(" or ")
}

fn scaled(text: String, score: f64, scale: Option<ScoreScale>) -> Result<Reading, String> {
    match scale {
        Some(scale) => {
            let (reward, is_clamped) = scale.reward(score);
            Ok(Reading {
                text,
                score: Some(score),
                reward,
                is_clamped,
            })
        }
        None if (0.0..=1.0).contains(&score) => Ok(Reading {
            text,
            score: None,
            reward: score,
            is_clamped: false,
        }),
        None => Err(format!(
            "score {score} is not from 0 to 1, and the scenario gives no `worst` and `best`"
        )),
    }
}

fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(score) if score.is_finite() => Ok(score),
        _ => Err(format!("`{}` is not a number", shown(text.trim()))),
    }
}

/// The part of the output that is the score.
fn score_text(form: &ScoreForm, source: Source<'_>) -> Result<String, String> {
    let (head, tail, dropped) = match source {
        Source::Stream(kept) => (
            kept.head.as_slice(),
            kept.tail.as_slice(),
            kept.dropped_bytes,
        ),
        Source::File(bytes) => (bytes, &[][..], 0),
    };
    match form {
        ScoreForm::Pattern(pattern) | ScoreForm::LastMatch(pattern) => {
            let is_last = matches!(form, ScoreForm::LastMatch(_));
            let (head, tail) = (utf8(head, false)?, utf8(tail, true)?);
            let is_cut = dropped > 0;
            // A match that touches the gap may continue in it: `score=0.12` and then `345`.
            let heads = pattern.captures_iter(head).map(|found| {
                (
                    is_cut && touches(&found, |all| all.end() == head.len()),
                    found,
                    head,
                )
            });
            // A pattern may match nothing at all; an end that is not there must not count as a match.
            let tails = is_cut
                .then(|| pattern.captures_iter(tail))
                .into_iter()
                .flatten()
                .map(|found| (touches(&found, |all| all.start() == 0), found, tail));
            let mut found = heads.chain(tails);
            let Some(mut taken) = found.next() else {
                return Err(format!("nothing in the output matches `{pattern}`"));
            };
            if let Some(other) = found.next() {
                if !is_last {
                    return Err(format!(
                        "more than one match of `{pattern}` in the output; `which: last` takes the last one"
                    ));
                }
                taken = found.last().unwrap_or(other);
            }
            let (is_torn, only, text) = taken;
            if is_torn {
                return Err(format!(
                    "the match of `{pattern}` touches the part of the output that was too long to be kept; \
                     raise `output_limit`, or write less"
                ));
            }
            let group = only
                .get(1)
                .ok_or_else(|| format!("the group of `{pattern}` matched nothing"))?;
            whole_number(group.as_str(), &text[group.end()..], pattern)?;
            Ok(group.as_str().to_owned())
        }
        ScoreForm::Whole => {
            if dropped > 0 {
                return Err("the output is too long to be a score".into());
            }
            Ok(utf8(head, false)?.trim().to_owned())
        }
        ScoreForm::Json(pointer) => {
            let last = if dropped > 0 {
                utf8(tail, true)?
            } else {
                utf8(head, false)?
            };
            let value = json(last, dropped > 0)?;
            match value.pointer(pointer) {
                Some(serde_json::Value::Number(number)) => Ok(number.to_string()),
                Some(other) => Err(format!(
                    "`{pointer}` is {}, not a number",
                    shown(&other.to_string())
                )),
                None => Err(format!("the JSON output has no `{pointer}`")),
            }
        }
    }
}

/// Refuses a group that ends in the middle of a number: `([0-9.]+)` takes 1 of `1e-3`.
fn whole_number(group: &str, rest: &str, pattern: &regex::Regex) -> Result<(), String> {
    let more: String = rest
        .chars()
        .take_while(|letter| is_of_number(*letter))
        .collect();
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    let longer = (1..=more.len())
        .map(|length| format!("{}{}", group.trim_start(), &more[..length]))
        .rfind(|longer| is_number(longer));
    match longer {
        // `0.5.` ends a sentence.
        Some(longer) if is_number(group) && !longer.ends_with('.') => Err(format!(
            "the match of `{pattern}` ends in the middle of the number {longer}; write `(\\S+)` to take the whole word"
        )),
        _ => Ok(()),
    }
}

/// What a number may consist of; ASCII only.
fn is_of_number(letter: char) -> bool {
    letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E' | '+' | '-')
}

fn touches(found: &regex::Captures<'_>, gap: impl Fn(regex::Match<'_>) -> bool) -> bool {
    found.get(0).is_some_and(gap)
}

/// All of it if that is JSON, else its last line that is not empty: programs talk before they answer.
fn json(text: &str, is_cut: bool) -> Result<serde_json::Value, String> {
    if !is_cut && let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let text = text.trim_end();
    let start = text.rfind('\n');
    if is_cut && start.is_none() {
        return Err("the last line of the output is too long to be kept; raise `output_limit`, or write less".into());
    }
    let last = &text[start.map_or(0, |newline| newline + 1)..];
    serde_json::from_str(last.trim()).map_err(|error| format!("the output is not JSON: {error}"))
}

/// The text of these bytes; what was cut out of a longer one may begin in the middle of a character.
fn utf8(bytes: &[u8], is_cut: bool) -> Result<&str, String> {
    let broken = if is_cut {
        bytes
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80)
            .count()
    } else {
        0
    };
    let text = match std::str::from_utf8(&bytes[broken..]) {
        Ok(text) => text,
        // The beginning of a longer text may end in the middle of one.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[broken..broken + error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Err("the output is not UTF-8".into()),
    };
    // What came through a lossy channel carries the replacement character instead.
    if text.contains('\u{fffd}') {
        Err("the output is not UTF-8".into())
    } else {
        Ok(text)
    }
}

fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ScorePlace, ScoreSource};

    fn captured(head: &[u8], tail: &[u8], dropped_bytes: u64) -> Captured {
        Captured {
            head: head.to_vec(),
            tail: tail.to_vec(),
            dropped_bytes,
        }
    }

    fn score(form: ScoreForm, scale: Option<(f64, f64)>) -> Reward {
        Reward::Score {
            source: ScoreSource {
                place: ScorePlace::Stdout,
                form,
            },
            scale: scale.map(|(worst, best)| ScoreScale::linear(worst, best)),
        }
    }

    fn pattern(text: &str) -> ScoreForm {
        ScoreForm::Pattern(regex::Regex::new(text).unwrap())
    }

    fn reward(reward: &Reward, output: &[u8]) -> Result<f64, String> {
        let kept = captured(output, b"", 0);
        read(reward, &[0], 0, Some(Source::Stream(&kept))).map(|reading| reading.reward)
    }

    #[test]
    fn exit_codes_solve_or_fail() {
        let solved = Reward::Exit(vec![10, 20]);
        assert_eq!(read(&solved, &[0], 10, None).unwrap().reward, 1.0);
        assert_eq!(
            read(&solved, &[0], 0, None).unwrap_err(),
            "exit code 0, which is not 10 or 20"
        );
        let scored = score(pattern("x=(.*)"), None);
        assert_eq!(
            read(&scored, &[0], 3, None).unwrap_err(),
            "exit code 3, which is not 0"
        );
    }

    #[test]
    fn a_pattern_must_match_once_and_be_a_number() {
        let rmse = score(pattern("rmse=([0-9.naif-]+)"), Some((1.0, 0.0)));
        assert_eq!(reward(&rmse, b"start\nrmse=0.25"), Ok(0.75));
        assert_eq!(reward(&rmse, b"rmse=7"), Ok(0.0));
        for (output, reason) in [
            (&b"nothing"[..], "matches"),
            (b"rmse=0.1 rmse=0.2", "more than one"),
            (b"rmse=nan", "`nan` is not a number"),
            (b"rmse=inf", "`inf` is not a number"),
            (b"rmse=1.2.3", "`1.2.3` is not a number"),
            (b"rmse=0.5 \xff\xfe", "not UTF-8"),
        ] {
            let error = reward(&rmse, output).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let optional = score(pattern("rmse(?:=([0-9.]+))?"), None);
        assert!(
            reward(&optional, b"rmse")
                .unwrap_err()
                .contains("matched nothing")
        );
    }

    #[test]
    fn a_match_that_ends_in_the_middle_of_a_number_is_refused() {
        let digits = score(pattern("rmse=([0-9.]+)"), Some((1.0, 0.0)));
        let error = reward(&digits, b"rmse=1e-3\n").unwrap_err();
        assert!(
            error.contains("the number 1e-3") && error.contains(r"(\S+)"),
            "{error}"
        );
        assert!(reward(&digits, b"rmse=0.5e0").is_err());
        for whole in [
            "rmse=0.5\n",
            "rmse=0.5, r2=3",
            "rmse=0.5e",
            "rmse=0.5s",
            "rmse=0.5-",
        ] {
            assert_eq!(reward(&digits, whole.as_bytes()), Ok(0.5), "{whole}");
        }
        let word = score(pattern(r"rmse=(\S+)"), Some((1.0, 0.0)));
        assert_eq!(reward(&word, b"rmse=1e-3\n"), Ok(0.999));
    }

    #[test]
    fn the_last_match_counts_if_asked_for() {
        let last = |text: &str| {
            let form = ScoreForm::LastMatch(regex::Regex::new(text).unwrap());
            score(form, Some((1.0, 0.0)))
        };
        let epochs = b"epoch 1 loss=0.9\nepoch 2 loss=0.5\nepoch 3 loss=0.25\n";
        assert_eq!(reward(&last(r"loss=(\S+)"), epochs), Ok(0.75));
        assert_eq!(reward(&last(r"loss=(\S+)"), b"loss=0.5"), Ok(0.5));
        assert!(reward(&last(r"loss=(\S+)"), b"").is_err());
        let only = score(pattern(r"loss=(\S+)"), None);
        let error = reward(&only, epochs).unwrap_err();
        assert!(error.contains("`which: last`"), "{error}");
    }

    #[test]
    fn a_score_without_a_scale_is_a_reward() {
        let plain = score(ScoreForm::Whole, None);
        assert_eq!(reward(&plain, b" 0.5\n"), Ok(0.5));
        assert!(
            reward(&plain, b"1.5")
                .unwrap_err()
                .contains("`worst` and `best`")
        );
        assert!(reward(&plain, b"").unwrap_err().contains("not a number"));
        let kept = captured(b"0.5", b"0.7", 10);
        assert!(read(&plain, &[0], 0, Some(Source::Stream(&kept))).is_err());
    }

    #[test]
    fn json_may_follow_other_talk() {
        let json = score(ScoreForm::Json("/a/score".into()), Some((0.0, 10.0)));
        assert_eq!(reward(&json, br#"{"a":{"score":5}}"#), Ok(0.5));
        assert_eq!(
            reward(&json, b"loading\n{\"a\":{\"score\":10.0}}\n\n"),
            Ok(1.0)
        );
        assert!(
            reward(&json, b"{\"a\":1}")
                .unwrap_err()
                .contains("no `/a/score`")
        );
        assert!(
            reward(&json, b"{\"a\":{\"score\":\"high\"}}")
                .unwrap_err()
                .contains("not a number")
        );
        assert!(reward(&json, b"hello").unwrap_err().contains("not JSON"));
    }

    #[test]
    fn the_score_is_found_in_what_was_kept_of_a_flood() {
        let form = score(pattern("score=([0-9.]+)"), None);
        let kept = captured(
            "a\u{e9}".as_bytes().split_at(2).0,
            b"\xa9 lots\nscore=0.25\n",
            1 << 30,
        );
        let reading = read(&form, &[0], 0, Some(Source::Stream(&kept))).unwrap();
        assert_eq!((reading.reward, reading.text.as_str()), (0.25, "0.25"));
        let json = score(ScoreForm::Json("/score".into()), None);
        let kept = captured(b"x", b"garbage\n{\"score\":0.5}\n", 100);
        assert_eq!(
            read(&json, &[0], 0, Some(Source::Stream(&kept)))
                .unwrap()
                .reward,
            0.5
        );
    }

    #[test]
    fn a_score_that_touches_what_was_dropped_is_none() {
        let form = score(pattern("score=([0-9.]+)"), None);
        let of = |head: &[u8], tail: &[u8]| {
            let kept = captured(head, tail, 7);
            read(&form, &[0], 0, Some(Source::Stream(&kept))).map(|reading| reading.reward)
        };
        let torn = of(b"x\nscore=0.12", b"345\nthe end\n").unwrap_err();
        assert!(
            torn.contains("touches") && torn.contains("output_limit"),
            "{torn}"
        );
        // It may have been `bestscore`, or a number cut in two.
        assert!(of(b"x", b"score=0.5\n").unwrap_err().contains("touches"));
        assert_eq!(of(b"x\nscore=0.12\n", b"345\n"), Ok(0.12));
        assert_eq!(of(b"x", b"\nscore=0.5"), Ok(0.5), "the end is the end");
        let whole = score(pattern("^([0-9.]+)$"), None);
        let kept = captured(b"0.5", b"25", 3);
        assert!(read(&whole, &[0], 0, Some(Source::Stream(&kept))).is_err());
        let plain = captured(b"score=0.12", b"", 0);
        let reading = read(&form, &[0], 0, Some(Source::Stream(&plain))).unwrap();
        assert_eq!(reading.reward, 0.12, "nothing was dropped");
        let json = score(ScoreForm::Json("/score".into()), None);
        let kept = captured(b"x", b"{\"score\":0.5}\n", 100);
        let torn = read(&json, &[0], 0, Some(Source::Stream(&kept))).unwrap_err();
        assert!(torn.contains("too long to be kept"), "{torn}");
    }
}
