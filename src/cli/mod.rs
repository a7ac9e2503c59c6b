//! The command line: one file per subcommand, exit codes in one list, errors printed in one place.

mod ask;
mod best;
mod check;
mod completions;
mod exec;
mod exit_code;
mod explain;
mod export;
mod failure;
mod forest;
mod forest_data;
mod init;
mod man;
mod record;
mod report;
mod run;
mod run_folder;
mod scenario_file;
mod serve;
mod study;

pub use exit_code::Exit;
pub use failure::Failure;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::limit;

const EXAMPLES: &str = "\
Examples:
  captime init && captime run forest.yaml    a scenario that runs as it is
  captime best forest                        the pair to use, by what was learned
  captime help run                           all about one command";

/// Tune an algorithm and its time limit together.
#[derive(Debug, Parser)]
#[command(name = "captime", version, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::ALL))]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// In the order in which one meets them.
#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Check(check::Check),
    Run(run::RunArgs),
    Best(best::BestArgs),
    Explain(explain::ExplainArgs),
    Report(report::ReportArgs),
    Serve(serve::ServeArgs),
    Export(export::ExportArgs),
    Study(study::StudyArgs),
    Ask(ask::AskArgs),
    Record(record::RecordArgs),
    Exec(exec::Exec),
    Forest(forest::ForestArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// What commands run pulls on: one thread is enough to wait.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::ours)
}

/// Runs the command line of this process and gives its exit status.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    run(&args)
}

fn run(args: &[OsString]) -> ExitCode {
    // Both are started as often as the commands they run, so they do not wait for clap.
    let (first, rest) = (args.get(1), args.get(2..).unwrap_or_default());
    if first.is_some_and(|first| first == limit::SUPERVISE) {
        return limit::supervise(rest).into();
    }
    let is_exec = first.is_some_and(|first| first == "exec");
    if is_exec && let Some(status) = exec::quickly(rest) {
        return status.into();
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // `exec` keeps the low numbers for the command's own status.
        Err(error) if is_exec && error.use_stderr() => {
            usage(&error);
            return Exit::Status(125).into();
        }
        Err(error) => return usage(&error),
    };
    match dispatch(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print(&mut std::io::stderr().lock());
            failure.exit().into()
        }
    }
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Best(args) => best::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Report(args) => report::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Export(args) => export::run(args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Ask(args) => ask::run(args),
        Command::Record(args) => record::run(args),
        Command::Check(check) => check.run(),
        Command::Init(init) => init.run(),
        Command::Study(args) => study::run(args),
        Command::Forest(args) => forest::run(args),
        Command::Exec(exec) => Ok(Exit::Status(exec::run(&exec))),
    }
}

/// Prints clap's message; help and version are data and leave with 0, anything else is bad usage.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let is_data = !error.use_stderr();
    // A reader that went away (`captime --help | head -1`) is not a failure.
    let _ = if is_data {
        write!(std::io::stdout().lock(), "{text}")
    } else {
        write!(std::io::stderr().lock(), "{text}")
    };
    if is_data {
        Exit::Done.into()
    } else {
        Exit::Usage.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Clap breaks longer lines at 100 columns, in the middle of a command line.
    #[test]
    fn no_example_of_any_help_is_broken_by_the_width_of_the_screen() {
        let mut all = Cli::command();
        all.build();
        let commands = std::iter::once(&all).chain(all.get_subcommands());
        for command in commands.filter(|command| command.get_name() != "help") {
            let name = command.get_name();
            let shown = command.get_after_help().expect(name).to_string();
            let examples = shown.split_once("Examples:\n").expect(name).1;
            let examples = examples.split("\n\n").next().unwrap_or_default();
            for line in examples.lines() {
                assert!(line.len() <= 98, "{name}: {line}");
            }
        }
    }
}
