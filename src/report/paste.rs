//! The answer in a form that can be used at once: a command line where the target has one, and YAML.

use std::path::Path;

use serde::Serialize;
use serde_yaml::Value as Yaml;

use super::History;
use crate::policy::Recommendation;
use crate::scenario::{Arguments, Filling, ParamsForm, Piece, Resource, Template, shell_word};
use crate::space::Configuration;

/// Something to copy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paste {
    /// What it is.
    pub title: &'static str,
    /// What to copy.
    pub text: String,
}

/// All forms this answer can be copied in.
pub fn pastes(history: &History, answer: &Recommendation) -> Vec<Paste> {
    let scenario: Yaml = serde_yaml::from_str(&history.header.scenario).unwrap_or_default();
    let target = scenario.get("target");
    let mut pastes = vec![];
    let line = target.and_then(|target| {
        let command = command_line(history, answer, target);
        command.or_else(|| forest_line(history, answer, target))
    });
    if let Some(text) = line {
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

/// `--cpu 2.5s`, to the digit: what is copied must be what was measured.
fn limit_words(resource: Resource, limit: f64) -> String {
    match resource {
        Resource::Wall => format!("--wall {limit}s"),
        Resource::Cpu => format!("--cpu {limit}s"),
        Resource::Work => String::new(),
    }
}

fn command_line(history: &History, answer: &Recommendation, target: &Yaml) -> Option<String> {
    let texts = |key: &str| -> Option<Vec<String>> {
        let words = target.get(key)?.as_sequence()?.iter();
        words
            .map(|word| match word {
                Yaml::String(text) => Some(text.clone()),
                Yaml::Number(number) => Some(number.to_string()),
                Yaml::Bool(flag) => Some(flag.to_string()),
                _ => None,
            })
            .collect()
    };
    let templates = texts("command")?
        .iter()
        .map(|text| Template::parse(text).ok())
        .collect::<Option<Vec<_>>>()?;
    let form =
        texts("params").map_or_else(ParamsForm::default, |arguments| ParamsForm { arguments });
    let placed = templates.iter().flat_map(Template::pieces);
    let placed = placed.filter_map(|piece| match piece {
        Piece::Parameter(name) => Some(name.clone()),
        _ => None,
    });
    let arguments = Arguments {
        placed: placed.collect(),
        templates,
        form,
    };
    let configuration = history.space.configuration(answer.pull.arm);
    let limit = answer.pull.limit.get();
    let with = Filling {
        configuration: &configuration,
        instance: Some("INSTANCE"),
        seed: 1,
        limit,
        cpu_limit: (history.resource() == Resource::Cpu).then_some(limit),
        round: 1,
        scratch: Path::new("."),
    };
    let words: Vec<String> = arguments
        .fill(&with)
        .iter()
        .map(|word| shell_word(word))
        .collect();
    let limit = limit_words(history.resource(), limit);
    Some(format!("captime exec {limit} -- {}", words.join(" ")))
}

fn forest_line(history: &History, answer: &Recommendation, target: &Yaml) -> Option<String> {
    let forest = target.get("forest")?;
    let text = |key: &str| -> Option<String> {
        match forest.get(key)? {
            Yaml::String(text) => Some(text.clone()),
            Yaml::Number(number) => Some(number.to_string()),
            _ => None,
        }
    };
    let mut words = vec![
        "captime forest".to_owned(),
        shell_word(&text("data")?),
        "--predict".to_owned(),
        shell_word(&text("predict")?),
    ];
    if let Some(train) = text("train") {
        words.push(format!("--train {}", shell_word(&train)));
    }
    for (name, value) in history.space.configuration(answer.pull.arm).iter() {
        words.push(format!(
            "--{} {}",
            name.replace('_', "-"),
            shell_word(&value.to_string())
        ));
    }
    let limit = answer.pull.limit.get();
    words.push(match history.resource() {
        Resource::Work => format!("--limit {limit} --resource work"),
        resource => format!("--limit {limit}s --resource {}", resource.name()),
    });
    Some(words.join(" "))
}

fn yaml(history: &History, answer: &Recommendation) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        arm: u32,
        configuration: &'a Configuration,
        limit: String,
    }
    let configuration = history.space.configuration(answer.pull.arm);
    let limit = answer.pull.limit.get();
    let answer = Answer {
        arm: answer.pull.arm.number(),
        configuration: &configuration,
        limit: match history.resource() {
            Resource::Work => limit.to_string(),
            Resource::Wall | Resource::Cpu => format!("{limit}s"),
        },
    };
    serde_yaml::to_string(&answer).unwrap_or_default()
}
