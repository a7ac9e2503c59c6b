//! The answer in a form that can be used at once: a command line if the target has one, and YAML.

use serde::Serialize;

use super::History;
use crate::policy::Recommendation;
use crate::space::Configuration;
use crate::target::paste::{Paster, use_line};

/// Something to copy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paste {
    /// What it is.
    pub title: &'static str,
    /// What to copy.
    pub text: String,
}

/// All forms in which this answer can be copied.
pub fn pastes(history: &History, answer: &Recommendation) -> Vec<Paste> {
    let mut pastes = vec![];
    if let Some(text) = use_line(history.scenario(), answer.pull, Paster::Anywhere) {
        pastes.push(Paste {
            title: "Command line",
            text,
        });
    }
    pastes.push(Paste {
        title: "YAML",
        text: yaml(history, answer),
    });
    pastes
}

fn yaml(history: &History, answer: &Recommendation) -> String {
    #[derive(Serialize)]
    struct PastedAnswer<'a> {
        arm: u32,
        configuration: &'a Configuration,
        limit: String,
    }
    let configuration = history.space.configuration(answer.pull.arm);
    let limit = answer.pull.limit.written();
    let answer = PastedAnswer {
        arm: answer.pull.arm.number(),
        configuration: &configuration,
        limit: history.resource().written(limit.get()),
    };
    serde_yaml::to_string(&answer).unwrap_or_default()
}
