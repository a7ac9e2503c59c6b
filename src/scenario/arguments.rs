//! The arguments of a command: templates, and the form in which `{params}` passes each parameter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::template::{Filling, Template};
use crate::space::Value;

/// The arguments of a command, and the form in which `{params}` passes each parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arguments {
    /// The program first.
    pub templates: Vec<Template>,
    /// One or two arguments, with `{name}` and `{value}`.
    pub form: ParamsForm,
    /// Parameters with their own placeholder, which `{params}` therefore leaves out.
    pub placed: Vec<String>,
    /// Parameters with their own form, instead of `form`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, ParamsForm>,
}

/// `--{name}={value}`, or `["-{name}", "{value}"]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParamsForm {
    /// One or two texts with `{name}` and `{value}`.
    pub arguments: Vec<String>,
}

impl Default for ParamsForm {
    fn default() -> Self {
        Self {
            arguments: vec!["--{name}={value}".into()],
        }
    }
}

impl ParamsForm {
    /// Whether it is the value and nothing else.
    fn is_bare(&self) -> bool {
        self.arguments == ["{value}"]
    }

    fn fill<'a>(&'a self, name: &'a str, value: &'a str) -> impl Iterator<Item = String> + 'a {
        self.arguments.iter().map(move |form| {
            // In one pass, so that a value that contains `{name}` stays as it is.
            let mut out = String::new();
            let mut rest = form.as_str();
            while let Some(at) = rest.find('{') {
                out.push_str(&rest[..at]);
                let tail = &rest[at..];
                if let Some(after) = tail.strip_prefix("{name}") {
                    out.push_str(name);
                    rest = after;
                } else if let Some(after) = tail.strip_prefix("{value}") {
                    out.push_str(value);
                    rest = after;
                } else {
                    out.push('{');
                    rest = &tail[1..];
                }
            }
            out.push_str(rest);
            out
        })
    }
}

impl Arguments {
    /// The arguments of one pull.
    pub fn fill(&self, with: &Filling<'_>) -> Vec<String> {
        let mut out = vec![];
        for template in &self.templates {
            if template.is_params() {
                for (name, value) in with.configuration.iter() {
                    if !self.placed.iter().any(|placed| placed == name) {
                        out.extend(self.parameter(name, value));
                    }
                }
            } else {
                let filled = template.fill(with);
                // An argument whose parts have all disappeared is left out.
                if !(filled.is_empty() && template.is_optional()) {
                    out.push(filled);
                }
            }
        }
        out
    }

    /// The arguments of one parameter. A flag's own argument is either there or not.
    pub(super) fn parameter(&self, name: &str, value: &Value) -> Vec<String> {
        let own = self.own.get(name);
        let shows_value =
            |form: &ParamsForm| form.arguments.iter().any(|part| part.contains("{value}"));
        match (own, value) {
            (Some(form), Value::Flag(false)) if !shows_value(form) => vec![],
            // irace's way to write a flag: the argument itself, or an empty value.
            (Some(form), Value::Text(text)) if form.is_bare() && text.trim().is_empty() => vec![],
            (form, value) => form
                .unwrap_or(&self.form)
                .fill(name, &value.to_string())
                .collect(),
        }
    }
}
