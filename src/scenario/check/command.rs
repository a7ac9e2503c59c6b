//! `target: {command: ...}`: a program, what it is given, and how its reward is read.

use super::budget::flat;
use super::{Check, Fields, instances, reward};
use crate::scenario::Fault;
use crate::scenario::model::{Command, Reward, Stdin, resolve};
use crate::scenario::raw::{Node, Raw};
use crate::scenario::template::{Arguments, ParamsForm, Piece, Template};

pub(in crate::scenario) const KEYS: &[&str] = &[
    "command",
    "params",
    "instances",
    "test",
    "reward",
    "success",
    "env",
    "directory",
    "stdin",
    "output_limit",
];

/// What is kept of stdout and stderr unless the scenario says otherwise.
const OUTPUT: u64 = 1 << 20;

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Command> {
    let mut fields = Fields::new(check, node, "target", KEYS)?;
    let command = fields.take(check, "command");
    let templates = command.and_then(|node| arguments(check, node));
    let form = fields
        .take(check, "params")
        .map_or(Some(ParamsForm::default()), |node| params(check, node));
    let read_instances = |check: &mut Check<'_>, fields: &mut Fields<'_>, key| {
        fields
            .take(check, key)
            .map_or(Some(vec![]), |node| instances::read(check, node, key))
    };
    let instances = read_instances(check, &mut fields, "instances");
    let test = read_instances(check, &mut fields, "test");
    let rule = fields
        .take(check, "reward")
        .map_or(Some(Reward::Exit(vec![0])), |node| {
            reward::read(check, node)
        });
    let success = fields
        .take(check, "success")
        .map(|node| reward::exit_codes(check, node, "success"));
    let env = fields
        .take(check, "env")
        .map_or(Some(vec![]), |node| env(check, node));
    let directory = fields
        .take(check, "directory")
        .map(|node| directory(check, node));
    let stdin = fields
        .take(check, "stdin")
        .map_or(Some(Stdin::Empty), |node| stdin(check, node));
    let output_limit = fields
        .take(check, "output_limit")
        .map_or(Some(OUTPUT), |node| check.bytes(node, "output_limit"));
    fields.finish(check);
    let (templates, rule, env, stdin) = (templates?, rule?, env?, stdin?);
    let success = match (flat(success)?, &rule) {
        (Some(success), _) => success,
        (None, Reward::Exit(codes)) => codes.clone(),
        (None, Reward::Score { .. }) => vec![0],
    };
    let directory = flat(directory)?;
    let is_elsewhere = directory.is_some();
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
    let (instances, test) = (at_home(instances?), at_home(test?));
    let mut command = Command {
        arguments: Arguments {
            templates,
            form: form?,
            placed: vec![],
        },
        env,
        directory: directory.unwrap_or_else(|| check.folder.to_owned()),
        stdin,
        instances,
        test,
        success,
        reward: rule,
        output_limit: output_limit?,
    };
    command.arguments.placed = placed(&command);
    Some(command)
}

/// An instance that is a file of ours is found from another directory by its full path.
fn from_anywhere(check: &Check<'_>, instance: String) -> String {
    let path = check.folder.join(&instance);
    match std::path::absolute(&path) {
        Ok(full) if path.exists() => full.to_string_lossy().into_owned(),
        _ => instance,
    }
}

fn arguments(check: &mut Check<'_>, node: &Node) -> Option<Vec<Template>> {
    let Raw::List(items) = &node.value else {
        check.wrong_type(
            node,
            "command",
            "a list of arguments like [minisat, \"{instance}\"] (a shell is [sh, -c, \"...\"])",
        );
        return None;
    };
    if items.is_empty() {
        check.fault(
            node.at,
            Fault::EmptyList {
                key: "command".into(),
                example: "command: [./solver, \"{instance}\"]",
            },
        );
        return None;
    }
    let templates: Vec<_> = items
        .iter()
        .map(|item| match &item.value {
            // `[run, {instance}]` without quotes is a mapping to YAML.
            Raw::Map(entries) if entries.len() == 1 && entries[0].value.value == Raw::Null => {
                let name = entries[0].key.clone();
                check.fault(item.at, Fault::Unquoted { name });
                None
            }
            Raw::Text(text) if text.contains('\0') => {
                check.out_of_range(item, "command", "text without a NUL byte");
                None
            }
            _ => check.template(item, "command"),
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
    let mut fields = Fields::new(check, node, "stdin", &["file", "text"])?;
    let file = fields.take(check, "file");
    let text = fields.take(check, "text");
    let stdin = match (file, text) {
        (Some(file), None) => check.template(file, "file").map(Stdin::File),
        (None, Some(text)) => check.template(text, "text").map(Stdin::Text),
        // A key that is misspelt is complained about as such.
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
pub(super) fn templates(command: &Command) -> Vec<&Template> {
    use crate::scenario::model::ScorePlace;
    let mut all: Vec<&Template> = command.arguments.templates.iter().collect();
    all.extend(command.env.iter().map(|(_, value)| value));
    match &command.stdin {
        Stdin::Empty => {}
        Stdin::File(template) | Stdin::Text(template) => all.push(template),
    }
    if let Reward::Score {
        place: ScorePlace::File(template),
        ..
    } = &command.reward
    {
        all.push(template);
    }
    all
}

/// The parameters that have a placeholder of their own.
fn placed(command: &Command) -> Vec<String> {
    let mut names = vec![];
    for template in templates(command) {
        for piece in template.pieces() {
            if let Piece::Parameter(name) = piece
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
    }
    names
}
