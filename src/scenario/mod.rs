//! The scenario file: from YAML text to a tree with positions (`raw`), then to a checked [`Scenario`], all mistakes at
//! once.
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

mod arguments;
mod caution;
mod check;
mod diagnosis;
mod fault;
mod features;
mod keys;
mod model;
mod raw;
mod stored;
mod template;

pub use crate::resource::Resource;
pub use crate::yaml::Span;
pub use arguments::{Arguments, ParamsForm};
pub use caution::{Caution, Notice};
pub use diagnosis::ScenarioError;
pub use fault::{Fault, Mistake};
pub use features::Features;
pub use model::{
    Budget, Calibrate, Command, Compare, Engines, Expect, External, FilledCommand, Forest, Guards,
    Isolation, LaunchCommand, Levels, LimitSource, Limits, Nodes, Pin, Prices, RecordedTarget,
    Reward, Scenario, ScoreForm, ScorePlace, ScoreScale, ScoreSource, Slots, SshHost, StartRun,
    Stdin, Target, TestPlan,
};
pub use template::Template;

#[doc(hidden)]
pub use {
    crate::markup::shell_word,
    check::instances::find as find_instances,
    keys::schema,
    stored::{ScenarioChange, difference},
    template::{Filling, Piece},
};

use std::path::{Path, PathBuf};

use crate::regular_file;

/// A scenario with its warnings.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The scenario.
    pub scenario: Scenario,
    /// Its warnings.
    pub notices: Vec<Notice>,
}

impl Checked {
    /// The warnings, each with its line, and with colours for a terminal.
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
    let bytes = match regular_file::read(file, raw::MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            let most = raw::MOST_BYTES;
            return Err(refuse(String::new(), Fault::TooManyBytes { most }));
        }
        Err(error) => return Err(unreadable(error)),
    };
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
    // Editors on other systems write a byte order mark, which is not part of the text.
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
