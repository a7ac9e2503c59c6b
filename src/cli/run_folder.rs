//! Where runs are: `runs/NAME`, `runs/NAME-2`, ... in the current folder, or in the folder that `--runs` or
//! `CAPTIME_RUNS` names.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Failure;
use crate::journal::{FILE, JournalError};
use crate::orchestrator::RunError;

/// The folder that holds runs, unless another is given.
const RUNS: &str = "runs";
/// The environment variable that names another.
const VARIABLE: &str = "CAPTIME_RUNS";

static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// Keeps runs in this folder from now on, as `--runs` asks.
pub(super) fn choose(folder: PathBuf) {
    // Already chosen only if a test calls commands.
    let _ = CHOSEN.set(folder);
}

/// The folder that holds runs.
pub(super) fn runs() -> PathBuf {
    let from_environment = || std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
    let chosen = CHOSEN.get().cloned();
    chosen
        .or_else(|| from_environment().map(PathBuf::from))
        .unwrap_or_else(|| RUNS.into())
}

/// The run that was written to last.
pub(super) fn latest() -> Result<PathBuf, Failure> {
    let folder = runs();
    let written = |run: &PathBuf| {
        std::fs::metadata(run.join(FILE))
            .and_then(|of| of.modified())
            .ok()
    };
    let names = match runs_in(&folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(unreadable(&folder, &error));
        }
        names => names.unwrap_or_default(),
    };
    let all = names.into_iter().map(|name| folder.join(name));
    all.max_by_key(written).ok_or_else(|| {
        Failure::usage(format!("there is no run in `{}`", folder.display())).hint(Some(
            "start one with `captime run SCENARIO`, or name the folder with `--runs` or `CAPTIME_RUNS`",
        ))
    })
}

/// The run that the user names, or the newest.
pub(super) fn find_or_latest(run: Option<&Path>) -> Result<PathBuf, Failure> {
    run.map_or_else(latest, find)
}

/// The newest run of this name, whether it exists or not.
pub(super) fn newest(name: &str) -> PathBuf {
    let number = numbers(name).max().unwrap_or(1);
    numbered(name, number)
}

/// The folder for a new run of this name.
pub(super) fn fresh(name: &str) -> PathBuf {
    match numbers(name).max() {
        Some(number) => numbered(name, number + 1),
        None => numbered(name, 1),
    }
}

fn numbered(name: &str, number: u64) -> PathBuf {
    let folder = if number == 1 {
        name.to_owned()
    } else {
        format!("{name}-{number}")
    };
    runs().join(folder)
}

/// The numbers of the runs of this name that exist.
fn numbers(name: &str) -> impl Iterator<Item = u64> {
    let entries = std::fs::read_dir(runs()).into_iter().flatten().flatten();
    let name = name.to_owned();
    entries.filter_map(move |entry| {
        let folder = entry.file_name().into_string().ok()?;
        let rest = folder.strip_prefix(&name)?;
        let number = if rest.is_empty() {
            1
        } else {
            rest.strip_prefix('-')?.parse().ok().filter(|n| *n > 1)?
        };
        // A folder of another scenario that happens to be called `NAME-7` has a journal with its own name.
        let is_ours = match crate::journal::Reader::open(&entry.path()) {
            Ok(reader) => reader.header().name == name,
            Err(_) => true,
        };
        is_ours.then_some(number)
    })
}

/// The folder of the run that the user names: a folder, its journal, or a name in `runs/`, the newest of that name.
pub(super) fn find(run: &Path) -> Result<PathBuf, Failure> {
    if run.join(FILE).exists() {
        return Ok(run.to_owned());
    }
    if run.ends_with(FILE) && run.is_file() {
        let folder = run.parent().filter(|folder| *folder != Path::new(""));
        return Ok(folder.unwrap_or(Path::new(".")).to_owned());
    }
    let is_name = run.components().count() == 1;
    if is_name && runs().join(run).join(FILE).exists() {
        let exact = runs().join(run);
        let name = run.display().to_string();
        let newest = newest(&name);
        return Ok(if newest.join(FILE).exists() {
            newest
        } else {
            exact
        });
    }
    Err(missing(run, is_name))
}

/// Why there is no such run, and which runs there are.
fn missing(run: &Path, is_name: bool) -> Failure {
    let mut places = vec![run.to_owned()];
    if is_name {
        places.push(runs().join(run));
    }
    for place in places {
        if let Err(error) = place.join(FILE).try_exists()
            && error.kind() == ErrorKind::PermissionDenied
        {
            return unreadable(&place, &error);
        }
    }
    let folder = runs();
    let known = match runs_in(&folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return unreadable(&folder, &error);
        }
        known => known.unwrap_or_default(),
    };
    let wanted = run.display().to_string();
    let hint = of_scenario(run)
        .or_else(|| inside(run))
        .or_else(|| {
            let name = crate::nearest::nearest(&wanted, known.iter().map(String::as_str))?;
            Some(format!("did you mean `{name}`?"))
        })
        .unwrap_or_else(|| {
            if known.is_empty() {
                format!(
                    "there is no run in `{}`; `captime run` starts one",
                    folder.display()
                )
            } else {
                format!("runs in `{}`: {}", folder.display(), listed(&known))
            }
        });
    Failure::usage(format!("there is no run `{wanted}`")).hint(Some(hint))
}

fn unreadable(place: &Path, error: &Error) -> Failure {
    Failure::internal(format!("cannot read `{}`: {error}", place.display()))
        .hint(Some("ask the owner of this run for access"))
}

/// What to give instead of a scenario.
fn of_scenario(file: &Path) -> Option<String> {
    if !file.is_file() {
        return None;
    }
    let name = crate::scenario::read(file).ok()?.scenario.name;
    Some(if newest(&name).join(FILE).exists() {
        format!("that is a scenario; its run is called `{name}`")
    } else {
        format!(
            "that is a scenario; its run would be called `{name}`, but there is none in `{}`",
            runs().display()
        )
    })
}

/// The runs in a folder of runs, or of a study, which has them in its `runs/`.
fn inside(folder: &Path) -> Option<String> {
    let folders = [folder.join(RUNS), folder.to_owned()];
    folders.into_iter().find_map(|folder| {
        let names = runs_in(&folder).ok().filter(|names| !names.is_empty())?;
        let paths: Vec<String> = names
            .iter()
            .map(|name| folder.join(name).display().to_string())
            .collect();
        Some(format!("runs in it: {}", listed(&paths)))
    })
}

/// The names of the runs in a folder, sorted.
pub(super) fn runs_in(folder: &Path) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = std::fs::read_dir(folder)?
        .flatten()
        .filter(|entry| entry.path().join(FILE).exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The first few.
fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let shown = names[..names.len().min(MOST)].join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Suggests another folder, for commands that keep their journals in `--out`.
pub(super) fn elsewhere(failure: Failure, error: &RunError) -> Failure {
    match error {
        RunError::Changed { .. } | RunError::Lowered { .. } | RunError::Foreign { .. } => {
            failure.hint(Some("undo the change, or use another folder with `--out`"))
        }
        RunError::Journal(_)
        | RunError::UnreadableBudget { .. }
        | RunError::Lost { .. }
        | RunError::System(_) => failure,
    }
}

/// Why a run cannot continue, for the user: a usage error if the user can change it, else a failure of captime.
pub(super) fn failure(error: &RunError) -> Failure {
    let is_usage = matches!(
        error,
        RunError::Changed { .. }
            | RunError::Lowered { .. }
            | RunError::Foreign { .. }
            | RunError::Journal(JournalError::Locked { .. } | JournalError::Missing { .. })
    );
    let failure = if is_usage {
        Failure::usage(error)
    } else {
        Failure::internal(error)
    };
    failure.hint(error.hint())
}
