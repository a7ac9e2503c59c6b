//! `target: {command: ...}`: a program, its arguments, and how its reward is read.

use std::collections::BTreeMap;

use captime_limit::Contain;

use super::fields::flat;
use super::{Check, Fields, expect, instances, reward};
use crate::scenario::Fault;
use crate::scenario::arguments::{Arguments, ParamsForm};
use crate::scenario::keys;
use crate::scenario::model::{Command, Reward, Stdin, resolve};
use crate::scenario::raw::{Node, Raw};
use crate::scenario::template::Template;

/// How many bytes of stdout and stderr are kept by default.
const OUTPUT: u64 = 1 << 20;

/// What commands and wrappers have in common.
pub(super) struct Surroundings {
    pub(super) instances: Vec<String>,
    pub(super) test: Vec<String>,
    env: Vec<(String, Template)>,
    directory: Option<std::path::PathBuf>,
    output_limit: u64,
    contain: Option<Contain>,
}

impl Surroundings {
    pub(super) fn read(check: &mut Check<'_>, fields: &mut Fields<'_>) -> Option<Self> {
        let read_instances = |check: &mut Check<'_>, fields: &mut Fields<'_>, key| {
            fields
                .take(check, key)
                .map_or(Some(vec![]), |node| instances::read(check, node, key))
        };
        let instances = read_instances(check, fields, "instances");
        let test = read_instances(check, fields, "test");
        let env = fields
            .take(check, "env")
            .map_or(Some(vec![]), |node| env(check, node));
        let directory = fields
            .take(check, "directory")
            .map(|node| directory(check, node));
        let output_limit = fields
            .take(check, "output_limit")
            .map_or(Some(OUTPUT), |node| check.bytes(node, "output_limit"));
        let contain = fields.read_optional(check, "contain");
        Some(Self {
            instances: instances?,
            test: test?,
            env: env?,
            directory: flat(directory)?,
            output_limit: output_limit?,
            contain: contain?,
        })
    }

    /// The command with these arguments, and how its reward is read.
    pub(super) fn command(
        self,
        check: &Check<'_>,
        arguments: Arguments,
        stdin: Stdin,
        (success, reward): (Vec<i32>, Reward),
    ) -> Command {
        let is_elsewhere = self.directory.is_some();
        let at_home = |instances: Vec<String>| -> Vec<String> {
            if is_elsewhere {
                instances
                    .into_iter()
                    .map(|instance| from_anywhere(check, instance))
                    .collect()
            } else {
                instances
            }
        };
        let mut command = Command {
            arguments,
            env: self.env,
            directory: self.directory.unwrap_or_else(|| check.folder.to_owned()),
            stdin,
            instances: at_home(self.instances),
            test: at_home(self.test),
            success,
            reward,
            expect: None,
            consumption: None,
            output_limit: self.output_limit,
            contain: self.contain,
        };
        command.arguments.placed = placed(&mut command);
        command
    }
}

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Command> {
    let mut fields = Fields::of(check, node, &keys::COMMAND)?;
    let command = fields.take(check, "command");
    let templates = command.and_then(|node| arguments(check, node, "command"));
    let form = fields
        .take(check, "params")
        .map_or(Some(ParamsForm::default()), |node| params(check, node));
    let rule = fields
        .take(check, "reward")
        .map_or(Some(Reward::Exit(vec![0])), |node| {
            reward::read(check, node)
        });
    let success = fields
        .take(check, "success")
        .map(|node| reward::exit_codes(check, node, "success"));
    let expect = fields
        .take(check, "expect")
        .map(|node| expect::read(check, node));
    let consumption = fields
        .take(check, "consumption")
        .map(|node| reward::consumption(check, node));
    let surroundings = Surroundings::read(check, &mut fields);
    let stdin = fields
        .take(check, "stdin")
        .map_or(Some(Stdin::Empty), |node| stdin(check, node));
    fields.finish(check);
    let rule = rule?;
    let success = match (flat(success)?, &rule) {
        (Some(success), _) => success,
        (None, Reward::Exit(codes)) => codes.clone(),
        (None, Reward::Score { .. } | Reward::Wrapper { .. }) => vec![0],
    };
    let arguments = Arguments {
        templates: templates?,
        form: form?,
        placed: vec![],
        own: BTreeMap::new(),
    };
    let mut command = surroundings?.command(check, arguments, stdin?, (success, rule));
    command.consumption = flat(consumption)?;
    if let Some(expect) = flat(expect)? {
        expect.apply(check, &mut command);
    }
    command.arguments.placed = placed(&mut command);
    Some(command)
}

/// An instance file is found from another directory by its full path. More words may follow it.
fn from_anywhere(check: &Check<'_>, instance: String) -> String {
    let first = instance.split_whitespace().next().unwrap_or_default();
    for name in [instance.as_str(), first] {
        let path = check.folder.join(name);
        if let Ok(full) = std::path::absolute(&path)
            && !name.is_empty()
            && path.exists()
        {
            return instance.replacen(name, &full.to_string_lossy(), 1);
        }
    }
    instance
}

fn arguments(check: &mut Check<'_>, node: &Node, key: &'static str) -> Option<Vec<Template>> {
    let Raw::List(items) = &node.value else {
        check.wrong_type(
            node,
            key,
            "a list of arguments like [minisat, \"{instance}\"] (a shell is [sh, -c, \"...\"])",
        );
        return None;
    };
    if items.is_empty() {
        check.fault(
            node.at,
            Fault::EmptyList {
                key: key.into(),
                example: "command: [./solver, \"{instance}\"]",
            },
        );
        return None;
    }
    let templates: Vec<_> = items
        .iter()
        .map(|item| match &item.value {
            // Without quotes, `[run, {instance}]` is a mapping in YAML.
            Raw::Map(entries) if entries.len() == 1 && entries[0].value.value == Raw::Null => {
                let name = entries[0].key.clone();
                check.fault(item.at, Fault::Unquoted { name });
                None
            }
            Raw::Text(text) if text.contains('\0') => {
                check.out_of_range(item, key, "text without a NUL byte");
                None
            }
            _ => check.template(item, key),
        })
        .collect();
    templates.into_iter().collect()
}

/// One or two texts with `{name}` and `{value}`.
fn params(check: &mut Check<'_>, node: &Node) -> Option<ParamsForm> {
    let arguments = check.texts(node, "params")?;
    let expected = "one or two texts with {name} and {value}, like \"--{name}={value}\" or [\"-{name}\", \"{value}\"]";
    let all = arguments.concat();
    if !(1..=2).contains(&arguments.len()) || !all.contains("{value}") {
        check.out_of_range(node, "params", expected);
        return None;
    }
    Some(ParamsForm { arguments })
}

fn env(check: &mut Check<'_>, node: &Node) -> Option<Vec<(String, Template)>> {
    let Raw::Map(entries) = &node.value else {
        check.wrong_type(node, "env", "a mapping from variables to their values");
        return None;
    };
    let variables: Vec<_> = entries
        .iter()
        .map(|entry| {
            let is_name = !entry.key.is_empty()
                && !entry
                    .key
                    .starts_with(|letter: char| letter.is_ascii_digit())
                && entry
                    .key
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if !is_name {
                check.fault(
                    entry.key_at,
                    Fault::BadVariable {
                        name: entry.key.clone(),
                    },
                );
                return None;
            }
            if entry.value.value == Raw::Null {
                return Some((entry.key.clone(), Template::default()));
            }
            let value = check.template(&entry.value, &entry.key)?;
            Some((entry.key.clone(), value))
        })
        .collect();
    variables.into_iter().collect()
}

fn directory(check: &mut Check<'_>, node: &Node) -> Option<std::path::PathBuf> {
    let path = resolve(check.folder, &check.text(node, "directory")?);
    if path.is_dir() {
        Some(path)
    } else {
        let reason = if path.exists() {
            "it is not a folder"
        } else {
            "there is no such folder"
        };
        check.fault(
            node.at,
            Fault::Unreadable {
                path,
                reason: reason.into(),
            },
        );
        None
    }
}

fn stdin(check: &mut Check<'_>, node: &Node) -> Option<Stdin> {
    let mut fields = Fields::of(check, node, &keys::STDIN)?;
    let file = fields.take(check, "file");
    let text = fields.take(check, "text");
    let stdin = match (file, text) {
        (Some(file), None) => check.template(file, "file").map(Stdin::File),
        (None, Some(text)) => check.template(text, "text").map(Stdin::Text),
        // A misspelt key is reported as such.
        (None, None) if fields.is_misspelt("file") || fields.is_misspelt("text") => None,
        _ => {
            let given = if file.is_some() {
                "both are"
            } else {
                "none is"
            };
            check.choose_one(
                node,
                "stdin",
                vec!["file", "text"],
                given,
                "stdin: {file: \"{instance}\"}",
            );
            None
        }
    };
    fields.finish(check);
    stdin
}

/// Every template of a command, the arguments first.
pub(super) fn templates(command: &mut Command) -> Vec<&mut Template> {
    use crate::scenario::model::ScorePlace;
    let mut all: Vec<&mut Template> = command.arguments.templates.iter_mut().collect();
    all.extend(command.env.iter_mut().map(|(_, value)| value));
    match &mut command.stdin {
        Stdin::Empty => {}
        Stdin::File(template) | Stdin::Text(template) => all.push(template),
    }
    let reward = match &mut command.reward {
        Reward::Score { source, .. } => Some(source),
        Reward::Exit(_) | Reward::Wrapper { .. } => None,
    };
    for source in reward.into_iter().chain(&mut command.consumption) {
        if let ScorePlace::File(template) = &mut source.place {
            all.push(template);
        }
    }
    all
}

/// The parameters with their own placeholder.
fn placed(command: &mut Command) -> Vec<String> {
    let mut names = vec![];
    let templates = templates(command);
    for name in templates.iter().flat_map(|template| template.parameters()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}
