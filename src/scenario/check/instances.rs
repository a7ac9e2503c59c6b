//! `instances`: a pattern of files, a file that lists them, or a list.

use std::path::{Path, PathBuf};

use super::Check;
use crate::scenario::Fault;
use crate::scenario::model::resolve;
use crate::scenario::raw::{Node, Raw};

/// More instances than this are refused.
const MOST: usize = 1_000_000;

pub(super) fn read(check: &mut Check<'_>, node: &Node, key: &str) -> Option<Vec<String>> {
    if let Raw::List(items) = &node.value {
        if items.is_empty() {
            check.fault(
                node.at,
                Fault::EmptyList {
                    key: key.into(),
                    example: "instances: instances/*.cnf",
                },
            );
            return None;
        }
        return check.texts(node, key);
    }
    let text = check.text(node, key)?;
    let found = if text.contains(['*', '?', '[']) {
        matching(check.folder, &text)
    } else {
        listed(check.folder, &text)
    };
    match found {
        Ok(instances) if instances.len() > MOST => {
            check.out_of_range(node, key, format!("at most {MOST} instances"));
            None
        }
        Ok(instances) => Some(instances),
        Err(fault) => {
            check.fault(node.at, fault);
            None
        }
    }
}

/// One instance a line, blank lines and `#` comments aside.
fn listed(folder: &Path, name: &str) -> Result<Vec<String>, Fault> {
    let path = resolve(folder, name);
    let text = std::fs::read_to_string(&path).map_err(|error| Fault::Unreadable {
        path: path.clone(),
        reason: error.to_string(),
    })?;
    // Some editors put a mark before UTF-8, which is no part of the first name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let instances: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if instances.is_empty() {
        return Err(Fault::EmptyInstanceFile { path });
    }
    Ok(instances)
}

/// The files that match, relative to the folder as the pattern is, in the order of their names.
fn matching(folder: &Path, pattern: &str) -> Result<Vec<String>, Fault> {
    let no_match = || Fault::NoMatch {
        pattern: pattern.into(),
    };
    let (mut found, parts) = match pattern.strip_prefix('/') {
        Some(rest) => (vec![PathBuf::from("/")], rest),
        None => (vec![PathBuf::new()], pattern),
    };
    let parts: Vec<&str> = parts
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        let mut next = vec![];
        for base in &found {
            if *part == "**" {
                next.push(base.clone());
                below(folder, base, &mut next);
            } else if !part.contains(['*', '?', '[']) {
                let path = base.join(part);
                if folder.join(&path).exists() {
                    next.push(path);
                }
            } else {
                let wanted = glob(part).ok_or_else(no_match)?;
                for name in names(&folder.join(base)) {
                    let hidden = name.starts_with('.') && !part.starts_with('.');
                    let path = base.join(&name);
                    if !hidden && wanted.is_match(&name) && (is_last || folder.join(&path).is_dir())
                    {
                        next.push(path);
                    }
                }
            }
            if next.len() > MOST {
                break;
            }
        }
        found = next;
    }
    found.retain(|path| folder.join(path).is_file());
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err(no_match());
    }
    Ok(found
        .into_iter()
        .filter_map(|path| path.into_os_string().into_string().ok())
        .collect())
}

/// Names in a folder; those that are not UTF-8 cannot be written in a scenario or a journal and do not match.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return vec![];
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// All folders below, without following links, so that a loop ends.
fn below(folder: &Path, base: &Path, to: &mut Vec<PathBuf>) {
    for name in names(&folder.join(base)) {
        let path = base.join(&name);
        let is_folder =
            std::fs::symlink_metadata(folder.join(&path)).is_ok_and(|meta| meta.is_dir());
        if is_folder && !name.starts_with('.') && to.len() <= MOST {
            to.push(path.clone());
            below(folder, &path, to);
        }
    }
}

/// `*`, `?` and `[abc]` as an expression for one name.
fn glob(part: &str) -> Option<regex::Regex> {
    let mut text = String::from("^");
    let mut letters = part.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => text.push_str(".*"),
            '?' => text.push('.'),
            '[' => {
                let set: String = letters
                    .by_ref()
                    .take_while(|letter| *letter != ']')
                    .collect();
                let (not, set) = match set.strip_prefix('!') {
                    Some(rest) => ("^", rest),
                    None => ("", set.as_str()),
                };
                let set = set
                    .replace('\\', r"\\")
                    .replace('[', r"\[")
                    .replace('^', r"\^")
                    .replace('&', r"\&")
                    .replace('~', r"\~");
                text.extend(["[", not, &set, "]"]);
            }
            letter => text.push_str(&regex::escape(&letter.to_string())),
        }
    }
    text.push('$');
    regex::RegexBuilder::new(&text)
        .dot_matches_new_line(true)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in [
            "a/1.cnf",
            "a/2.cnf",
            "a/b/3.cnf",
            "a/x.txt",
            "a/.hidden.cnf",
            "c/[odd].cnf",
        ] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn patterns_find_files_in_order() {
        let folder = folder();
        let found = |pattern: &str| matching(folder.path(), pattern).unwrap();
        assert_eq!(found("a/*.cnf"), ["a/1.cnf", "a/2.cnf"]);
        assert_eq!(found("./a/?.cnf"), ["a/1.cnf", "a/2.cnf"]);
        assert_eq!(found("a/[!1].cnf"), ["a/2.cnf"]);
        assert_eq!(
            found("**/*.cnf"),
            ["a/1.cnf", "a/2.cnf", "a/b/3.cnf", "c/[odd].cnf"]
        );
        assert_eq!(found("a/**/3.cnf"), ["a/b/3.cnf"]);
        assert!(matching(folder.path(), "a/*.dat").is_err());
        assert!(matching(folder.path(), "a/[.cnf").is_err());
        let absolute = format!("{}/a/1*", folder.path().display());
        assert_eq!(found(&absolute).len(), 1);
    }

    #[test]
    fn a_file_lists_one_instance_a_line() {
        let folder = folder();
        std::fs::write(folder.path().join("list"), "# three\nx 1\n\n y \r\nz").unwrap();
        assert_eq!(listed(folder.path(), "list").unwrap(), ["x 1", "y", "z"]);
        std::fs::write(folder.path().join("marked"), "\u{feff}x 1\r\ny\r\n").unwrap();
        assert_eq!(listed(folder.path(), "marked").unwrap(), ["x 1", "y"]);
        std::fs::write(folder.path().join("remark"), "\u{feff}# two\nx\n").unwrap();
        assert_eq!(listed(folder.path(), "remark").unwrap(), ["x"]);
        std::fs::write(folder.path().join("empty"), "#\n").unwrap();
        assert!(matches!(
            listed(folder.path(), "empty"),
            Err(Fault::EmptyInstanceFile { .. })
        ));
    }
}
