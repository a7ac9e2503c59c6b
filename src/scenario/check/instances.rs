//! `instances`: a pattern of files, a file that lists them, or a list.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Check;
use crate::regular_file;
use crate::scenario::model::resolve;
use crate::scenario::raw::{Node, Raw};
use crate::scenario::{Caution, Fault};

/// More instances than this are an error, and a pattern examines no more files.
const MOST: usize = 1_000_000;

/// More than this are probably a pattern that matches more than was meant.
const MANY: usize = 100_000;

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
    match find(check.folder, &text) {
        Ok(instances) if instances.len() > MOST => {
            check.out_of_range(node, key, format!("at most {MOST} instances"));
            None
        }
        Ok(instances) => {
            let count = instances.len();
            if count > MANY {
                check.caution(node.at, Caution::ManyInstances { count });
            }
            Some(instances)
        }
        Err(fault) => {
            check.fault(node.at, fault);
            None
        }
    }
}

/// The instances that a pattern finds or a file lists, in `folder`.
pub fn find(folder: &Path, text: &str) -> Result<Vec<String>, Fault> {
    if text.contains(['*', '?', '[']) {
        matching(folder, text)
    } else {
        listed(folder, text)
    }
}

/// One instance a line, blank lines and `#` comments aside.
fn listed(folder: &Path, name: &str) -> Result<Vec<String>, Fault> {
    let path = resolve(folder, name);
    let unreadable = |error: std::io::Error| Fault::Unreadable {
        path: path.clone(),
        reason: error.to_string(),
    };
    let file = regular_file::open(&path).map_err(unreadable)?;
    let text = std::io::read_to_string(file).map_err(unreadable)?;
    // Some editors write a byte order mark, which is not part of the first name.
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

/// The files that match, relative to the folder like the pattern, sorted by name.
fn matching(folder: &Path, pattern: &str) -> Result<Vec<String>, Fault> {
    let no_match = || Fault::NoMatch {
        pattern: pattern.into(),
    };
    let mut walk = Walk {
        folder,
        pattern,
        looked_at: 0,
    };
    let (mut found, parts) = match pattern.strip_prefix('/') {
        Some(rest) => (vec![PathBuf::from("/")], rest),
        None => (vec![PathBuf::new()], pattern),
    };
    let mut parts: Vec<&str> = parts
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    // `**` twice in a row is the same as once.
    parts.dedup_by(|next, part| *part == "**" && next == part);
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        let mut next = vec![];
        for base in &found {
            if *part == "**" {
                next.push(base.clone());
                walk.below(base, &mut next)?;
            } else if !part.contains(['*', '?', '[']) {
                let path = base.join(part);
                if folder.join(&path).exists() {
                    next.push(path);
                }
            } else {
                let wanted = glob(part).ok_or_else(no_match)?;
                for name in walk.names(base)? {
                    // A name that is not UTF-8 may still match.
                    let shown = name.to_string_lossy();
                    let hidden = shown.starts_with('.') && !part.starts_with('.');
                    let path = base.join(&name);
                    if !hidden
                        && wanted.is_match(&shown)
                        && (is_last || folder.join(&path).is_dir())
                    {
                        next.push(path);
                    }
                }
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
    let text = |path: PathBuf| match path.into_os_string().into_string() {
        Ok(name) => Ok(name),
        Err(name) => Err(Fault::NameNotUtf8 { path: name.into() }),
    };
    found.into_iter().map(text).collect()
}

/// A bounded walk through folders, however large they are.
struct Walk<'a> {
    folder: &'a Path,
    pattern: &'a str,
    looked_at: usize,
}

impl Walk<'_> {
    /// The names in a folder, sorted.
    fn names(&mut self, base: &Path) -> Result<Vec<OsString>, Fault> {
        let Ok(entries) = std::fs::read_dir(self.folder.join(base)) else {
            return Ok(vec![]);
        };
        let mut names = vec![];
        for entry in entries.flatten() {
            self.looked_at += 1;
            if self.looked_at > MOST {
                let pattern = self.pattern.into();
                return Err(Fault::PatternTooWide {
                    pattern,
                    most: MOST,
                });
            }
            names.push(entry.file_name());
        }
        names.sort();
        Ok(names)
    }

    /// All folders below. Links are not followed, so that loops end.
    fn below(&mut self, base: &Path, to: &mut Vec<PathBuf>) -> Result<(), Fault> {
        let mut waiting = vec![base.to_owned()];
        while let Some(base) = waiting.pop() {
            for name in self.names(&base)? {
                let path = base.join(&name);
                let meta = std::fs::symlink_metadata(self.folder.join(&path));
                let is_hidden = name.as_encoded_bytes().starts_with(b".");
                if meta.is_ok_and(|meta| meta.is_dir()) && !is_hidden {
                    to.push(path.clone());
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }
}

/// Translates `*`, `?` and `[abc]` into a regular expression for one name.
pub(in crate::scenario) fn glob(part: &str) -> Option<regex::Regex> {
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
    use std::os::unix::ffi::OsStringExt;

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
    fn a_file_whose_name_is_not_utf_8_is_refused_and_never_skipped() {
        let folder = folder();
        let name = OsString::from_vec(b"a/\xff.cnf".to_vec());
        std::fs::write(folder.path().join(&name), "").unwrap();
        let path = PathBuf::from(name);
        assert!(matches!(
            matching(folder.path(), "a/*.cnf"),
            Err(Fault::NameNotUtf8 { path: found }) if found == path
        ));
        assert_eq!(matching(folder.path(), "a/1.cnf").unwrap(), ["a/1.cnf"]);
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
