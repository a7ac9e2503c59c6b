//! Requests from another program: one JSON object per line, and one line back for each.

use std::io::{BufRead, Read, Write};

use serde_json::{Map, Value};

/// Longer lines are an error.
const LONGEST: usize = 1 << 20;

/// What is wrong with a request, and how to fix it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bad {
    /// What.
    pub(super) what: String,
    /// How to fix it.
    pub(super) fix: String,
}

impl Bad {
    pub(super) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// The error as an answer to the request on this line.
    pub(super) fn answer(&self, line: u64) -> Value {
        serde_json::json!({"error": {"line": line, "what": self.what, "fix": self.fix}})
    }
}

/// Reads the next line with its newline, but not much more than the longest allowed. Empty at the end.
pub(super) fn read(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<()> {
    line.clear();
    // One byte more than allowed, so that a longer line is noticed.
    let most = LONGEST as u64 + 1;
    Read::take(&mut *input, most).read_until(b'\n', line)?;
    if line.last() != Some(&b'\n') && line.len() as u64 == most {
        input.skip_until(b'\n')?;
    }
    Ok(())
}

/// Writes an answer as one line, and flushes it. `line` is room to write it in.
///
/// Whole, because stdout looks for the end of a line in every piece it gets, and JSON comes in many.
pub(super) fn write(
    output: &mut impl Write,
    line: &mut Vec<u8>,
    answer: &Value,
) -> std::io::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, answer)?;
    line.push(b'\n');
    output.write_all(line)?;
    output.flush()
}

/// The object on a line. `write` shows what requests look like.
pub(super) fn object(line: &[u8], write: &str) -> Result<Map<String, Value>, Bad> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.len() > LONGEST {
        return Err(Bad::new("the line is longer than 1 MiB", write));
    }
    let text = std::str::from_utf8(line).map_err(|_| Bad::new("the line is not UTF-8", write))?;
    if text.trim().is_empty() {
        return Err(Bad::new("the line is empty", write));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let what = error
            .to_string()
            .replace(" at line 1 column ", " at column ");
        Bad::new(format!("not JSON: {what}"), write)
    })?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Bad::new("not a JSON object", write)),
    }
}
