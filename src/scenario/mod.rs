//! The scenario file: YAML text to a tree with places (`raw`), then to a checked [`Scenario`], all mistakes at once.
//!
//! ```
//! use std::path::Path;
//!
//! let text = r#"
//! target: {command: [sort, "--parallel={threads}", /dev/null], reward: {exit: [0]}}
//! arms: {grid: {threads: [1, 2, 4]}}
//! limits: {of: wall, from: 10ms, to: 1s, points: 3, scale: log}
//! budget: {rounds: 30}
//! "#;
//! let checked = captime::scenario::parse(text, Path::new("sort.yaml"), Path::new("."))?;
//! assert_eq!(checked.scenario.space.len(), 3);
//!
//! let mistaken = text.replace("points", "pionts");
//! let error = captime::scenario::parse(&mistaken, Path::new("sort.yaml"), Path::new(".")).unwrap_err();
//! assert!(error.to_string().contains("points"));
//! # Ok::<(), captime::scenario::ScenarioError>(())
//! ```

mod caution;
mod check;
mod diagnosis;
mod fault;
mod identity;
mod model;
mod raw;
mod schema;
mod source;
mod template;

pub use crate::resource::Resource;
pub use caution::{Caution, Notice};
pub use diagnosis::ScenarioError;
pub use fault::{Fault, Mistake};
pub use identity::{Change, Difference, difference};
pub use model::{
    Budget, Calibrate, Command, Engine, External, Forest, Guards, Isolation, Launch, LaunchStdin,
    Levels, LimitSource, Limits, Normalise, Pin, Prices, Recorded, Reward, Scenario, ScoreForm,
    ScorePlace, ScoreScale, Slots, Stdin, Target, Task,
};
pub use schema::schema;
pub use source::Span;
pub use template::{Arguments, Filling, ParamsForm, Piece, Template, shell_word};

use std::path::{Path, PathBuf};

/// A scenario together with what should be known about it.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The scenario.
    pub scenario: Scenario,
    /// What is allowed but should be known.
    pub notices: Vec<Notice>,
}

impl Checked {
    /// The notices, each with its line; with colours for a terminal.
    pub fn render_notices(&self, colours: bool) -> Vec<String> {
        let Scenario { file, text, .. } = &self.scenario;
        self.notices
            .iter()
            .map(|notice| diagnosis::render_notice(file, text, notice, colours))
            .collect()
    }
}

/// Reads and checks a scenario file.
pub fn read(file: &Path) -> Result<Checked, ScenarioError> {
    let refuse = |text: String, fault: Fault| ScenarioError {
        file: file.to_owned(),
        text,
        mistakes: vec![Mistake {
            at: Span::default(),
            fault,
        }],
    };
    let unreadable = |error: std::io::Error| {
        let path = file.to_owned();
        refuse(
            String::new(),
            Fault::NoScenario {
                path,
                reason: error.to_string(),
            },
        )
    };
    let meta = std::fs::metadata(file).map_err(unreadable)?;
    if meta.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    if meta.len() > raw::MOST_BYTES {
        let (bytes, most) = (meta.len(), raw::MOST_BYTES);
        return Err(refuse(String::new(), Fault::TooManyBytes { bytes, most }));
    }
    // A pipe or a device has no size: read no more than we would take.
    let mut bytes = vec![];
    let reader = std::fs::File::open(file).map_err(unreadable)?;
    std::io::Read::read_to_end(
        &mut std::io::Read::take(reader, raw::MOST_BYTES + 1),
        &mut bytes,
    )
    .map_err(unreadable)?;
    if bytes.len() as u64 > raw::MOST_BYTES {
        let (bytes, most) = (bytes.len() as u64, raw::MOST_BYTES);
        return Err(refuse(String::new(), Fault::TooManyBytes { bytes, most }));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let mut refused = refuse(text, Fault::NotUtf8);
        refused.mistakes[0].at = Span::new(start, start + char::REPLACEMENT_CHARACTER.len_utf8());
        refused
    })?;
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    parse(&text, file, &folder)
}

/// Checks a scenario given as text, with paths in it relative to `folder`.
pub fn parse(text: &str, file: &Path, folder: &Path) -> Result<Checked, ScenarioError> {
    let refused = |mut mistakes: Vec<Mistake>| {
        mistakes.sort_by_key(|mistake| mistake.at);
        ScenarioError {
            file: file.to_owned(),
            text: text.to_owned(),
            mistakes,
        }
    };
    // Editors on other systems put a mark in front, which is not part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (root, mistakes) = raw::parse(text).map_err(|mistake| refused(vec![mistake]))?;
    let mut check = check::Check {
        text,
        folder,
        mistakes,
        notices: vec![],
        placeholders: vec![],
    };
    let scenario = check.scenario(&root, file);
    match scenario {
        Some(scenario) if check.mistakes.is_empty() => {
            let mut notices = check.notices;
            notices.sort_by_key(|notice| notice.at);
            Ok(Checked { scenario, notices })
        }
        _ => Err(refused(check.mistakes)),
    }
}

#[cfg(test)]
mod tests;
