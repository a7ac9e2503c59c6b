//! `captime init`: a commented scenario that runs as it is.

mod made_up;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, exit_code};

const EXAMPLES: &str = "\
Examples:
  captime init                 a random forest on a small data set
  captime init solver sat      minisat on random formulas, in a new folder sat
  captime init script && captime check script.yaml

captime never overwrites your files.";

/// Write a commented example scenario, ready to run, with the files it needs.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct Init {
    /// What to tune.
    #[arg(value_enum, default_value_t = Kind::Forest)]
    kind: Kind,
    /// Where to write it.
    #[arg(default_value = ".")]
    folder: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// A random forest on a CSV file; needs nothing else.
    Forest,
    /// A solver on a set of instances; needs minisat.
    Solver,
    /// Your own script that prints a score; needs a shell.
    Script,
}

/// One file to write.
struct File {
    name: String,
    text: String,
    is_program: bool,
}

impl File {
    fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            is_program: false,
        }
    }

    fn program(name: &str, text: &str) -> Self {
        Self {
            is_program: true,
            ..Self::text(name, text)
        }
    }
}

/// A forest on a small table.
fn forest() -> Vec<File> {
    vec![
        File::text("forest.yaml", include_str!("init/forest.yaml")),
        File::text("houses.csv", made_up::houses(1500, 1)),
    ]
}

/// Minisat on random formulas.
fn solver() -> Vec<File> {
    let mut files = vec![File::text("solver.yaml", include_str!("init/solver.yaml"))];
    files.extend((1..=12).map(|k| {
        File::text(
            format!("instances/r{k:02}.cnf"),
            made_up::formula(170 + 5 * k as usize, k),
        )
    }));
    files
}

/// A script that prints a score.
fn script() -> Vec<File> {
    vec![
        File::text("script.yaml", include_str!("init/script.yaml")),
        File::program("score.sh", include_str!("init/score.sh")),
    ]
}

impl Init {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let files = match self.kind {
            Kind::Forest => forest(),
            Kind::Solver => solver(),
            Kind::Script => script(),
        };
        // All or nothing: check first, so that a refusal leaves nothing behind.
        for file in &files {
            let path = self.folder.join(&file.name);
            if path.symlink_metadata().is_ok() {
                return Err(
                    Failure::usage(format!("`{}` already exists", path.display()))
                        .hint(Some("name another folder: `captime init KIND FOLDER`")),
                );
            }
        }
        for file in &files {
            let path = self.folder.join(&file.name);
            write(&path, file).map_err(|error| {
                Failure::internal(format!("cannot write `{}`: {error}", path.display())).hint(Some(
                    "name a folder you may write to: `captime init KIND FOLDER`",
                ))
            })?;
        }
        let mut stdout = std::io::stdout().lock();
        for file in &files {
            writeln!(stdout, "{}", self.folder.join(&file.name).display())?;
        }
        let scenario = self.folder.join(&files[0].name);
        let scenario = crate::scenario::shell_word(&scenario.display().to_string());
        let mut stderr = std::io::stderr().lock();
        writeln!(
            stderr,
            "\nNext: captime check {scenario}\n      captime run {scenario}"
        )?;
        Ok(Exit::Done)
    }
}

/// Never overwrites, not even a file that was created a moment ago.
fn write(path: &Path, file: &File) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mode = if file.is_program { 0o755 } else { 0o644 };
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    out.write_all(file.text.as_bytes())
}
