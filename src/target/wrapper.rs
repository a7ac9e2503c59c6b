//! Wrappers of AClib, ParamILS, SMAC and irace: what their result lines say. Pure functions.
//!
//! ```
//! use captime::target::wrapper::{WrapperStatus, result_of};
//!
//! let stdout = "c some log\nResult for ParamILS: SAT, 1.25, 0, 0, 12345\n";
//! let result = result_of(stdout).unwrap();
//! assert_eq!((result.status, result.runtime), (WrapperStatus::Sat, Some(1.25)));
//! ```

use std::sync::LazyLock;

use regex::Regex;

/// How a run ended, by its wrapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrapperStatus {
    /// Solved: the instance is satisfiable.
    Sat,
    /// Solved: the instance is unsatisfiable.
    Unsat,
    /// Succeeded, without saying more.
    Success,
    /// Out of time. Some wrappers also report this when out of memory.
    Timeout,
    /// The run failed, or its result cannot be read.
    Crashed,
    /// Stop the whole configuration.
    Abort,
    /// Out of memory.
    Memout,
}

/// A result line.
#[derive(Debug, Clone, PartialEq)]
pub struct WrapperResult {
    /// How the run ended.
    pub status: WrapperStatus,
    /// Seconds, if given.
    pub runtime: Option<f64>,
    /// What is minimised if time is not, if given.
    pub cost: Option<f64>,
    /// What else the wrapper said.
    pub misc: String,
    /// The line itself.
    pub line: String,
}

static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^\s*(?:(?:(?:Final)?\s*[Rr]esult\s+(?:[Ff]or|[oO]f)\s+",
        r"(?:HAL|ParamILS|SMAC|[tT]his [wW]rapper|(GPS|Configurator)):)",
        r"|(?:Result\s*of\s*(?:this)?\s*[Aa]lgorithm\s*[rR]un\s*:))(.*)$"
    ))
    .expect("the pattern is a constant")
});

/// The last result line of an output, if there is one.
pub fn result_of(stdout: &str) -> Option<WrapperResult> {
    let line = stdout
        .lines()
        .filter_map(|line| HEAD.captures(line))
        .next_back()?;
    let rest = line.get(2).map_or("", |rest| rest.as_str()).trim();
    let result = if rest.starts_with('{') {
        json(rest)
    } else {
        fields(rest, line.get(1).is_some())
    };
    Some(WrapperResult {
        line: line[0].trim().to_owned(),
        ..result
    })
}

fn crashed(misc: impl Into<String>) -> WrapperResult {
    WrapperResult {
        status: WrapperStatus::Crashed,
        runtime: None,
        cost: None,
        misc: misc.into(),
        line: String::new(),
    }
}

fn status(word: &str) -> Option<WrapperStatus> {
    match word.to_ascii_uppercase().as_str() {
        "SAT" => Some(WrapperStatus::Sat),
        "UNSAT" => Some(WrapperStatus::Unsat),
        "SUCCESS" => Some(WrapperStatus::Success),
        "TIMEOUT" => Some(WrapperStatus::Timeout),
        "CRASHED" => Some(WrapperStatus::Crashed),
        "ABORT" => Some(WrapperStatus::Abort),
        "MEMOUT" | "MEMORYOUT" => Some(WrapperStatus::Memout),
        _ => None,
    }
}

/// `status, runtime, runlength, quality, seed[, more]`; GPS leaves out run length and seed.
fn fields(rest: &str, is_short: bool) -> WrapperResult {
    let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
    let Some(status) = parts.first().and_then(|word| status(word)) else {
        return crashed(format!("unknown status in `{rest}`"));
    };
    let (least, cost_at, misc_at) = if is_short || parts.len() == 4 {
        (3, 2, 3)
    } else {
        (5, 3, 5)
    };
    if parts.len() < least {
        return crashed(format!("`{rest}` has {} fields, not {least}", parts.len()));
    }
    let numbers: Result<Vec<f64>, _> = parts[1..least].iter().map(|part| part.parse()).collect();
    match numbers {
        Ok(numbers) if numbers.iter().all(|number| !number.is_nan()) => WrapperResult {
            status,
            runtime: Some(numbers[0]),
            cost: Some(numbers[cost_at - 1]),
            // The remaining parts were one field to the wrapper.
            misc: parts[misc_at.min(parts.len())..].join(", "),
            line: String::new(),
        },
        _ => crashed(format!("a field of `{rest}` is not a number")),
    }
}

fn json(rest: &str) -> WrapperResult {
    let parsed: serde_json::Value = match serde_json::from_str(rest) {
        Ok(parsed) => parsed,
        Err(error) => return crashed(format!("the result is not JSON: {error}")),
    };
    let number = |key: &str| match &parsed[key] {
        serde_json::Value::Number(number) => number.as_f64(),
        // Some wrappers quote their numbers.
        serde_json::Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let Some(status) = parsed["status"].as_str().and_then(status) else {
        return crashed("the result has no known `status`");
    };
    let misc = [&parsed["misc"], &parsed["additional-run-data"]];
    WrapperResult {
        status,
        runtime: number("runtime"),
        cost: number("cost").filter(|cost| cost.is_finite()),
        misc: misc
            .into_iter()
            .find_map(|text| text.as_str())
            .unwrap_or_default()
            .to_owned(),
        line: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn result(line: &str) -> (WrapperStatus, Option<f64>, Option<f64>, String) {
        let result = result_of(line).unwrap();
        (result.status, result.runtime, result.cost, result.misc)
    }

    #[test]
    fn old_lines_are_read_in_all_their_spellings() {
        for head in [
            "Result for ParamILS:",
            "Result for SMAC:",
            "  Final Result for HAL:",
            "result of this wrapper:",
            "Result of this Algorithm Run:",
            "Result of this algorithm run:",
        ] {
            let line = format!("{head} SAT, 1.5, 10, 0.25, 77, some, data");
            let expected = (
                WrapperStatus::Sat,
                Some(1.5),
                Some(0.25),
                "some, data".to_owned(),
            );
            assert_eq!(result(&line), expected, "{head}");
        }
        let short = result("Result for GPS: TIMEOUT, 5, 99, cut off");
        assert_eq!(
            short,
            (
                WrapperStatus::Timeout,
                Some(5.0),
                Some(99.0),
                "cut off".to_owned()
            )
        );
    }

    #[test]
    fn the_last_line_counts_and_nonsense_is_a_crash() {
        let two = "Result for SMAC: SAT, 1, 0, 0, 1\nResult for SMAC: TIMEOUT, 9, 0, 0, 1\n";
        assert_eq!(result(two).0, WrapperStatus::Timeout);
        assert_eq!(result_of("no result here\n"), None);
        for line in [
            "Result for ParamILS: SAT, 1.5",
            "Result for ParamILS: SAT, fast, 0, 0, 1",
            "Result for ParamILS: HAPPY, 1, 0, 0, 1",
            "Result of this algorithm run: {\"runtime\": 3}",
            "Result of this algorithm run: {\"status\": ",
        ] {
            assert_eq!(result(line).0, WrapperStatus::Crashed, "{line}");
        }
    }

    #[test]
    fn new_lines_are_json() {
        let line = "Result of this algorithm run: {\"status\": \"SUCCESS\", \"cost\": \"12.5\", \"runtime\": 3.2, \"misc\": \"ok\"}";
        assert_eq!(
            result(line),
            (
                WrapperStatus::Success,
                Some(3.2),
                Some(12.5),
                "ok".to_owned()
            )
        );
        let bare = "Result of this algorithm run: SUCCESS, 3.2, 0, 12.5, 1";
        assert_eq!(result(bare).2, Some(12.5));
    }

    proptest! {
        #[test]
        fn no_output_makes_it_panic(rest in "[A-Z0-9a-z,.{}\": -]{0,60}") {
            result_of(&format!("Result for ParamILS: {rest}"));
            result_of(&format!("Result of this algorithm run: {rest}"));
        }
    }
}
