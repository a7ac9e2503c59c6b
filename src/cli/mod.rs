//! The command line: one file per subcommand, exit codes in one list, errors printed in one place.

mod agent;
mod ask;
mod best;
mod check;
mod completions;
mod driving;
mod exec;
mod exit_code;
mod explain;
mod export;
mod failure;
mod forest;
mod import;
mod init;
mod lines;
mod list;
mod log;
mod man;
mod predict;
mod pull;
mod record;
mod report;
mod run;
mod run_folder;
mod scenario_file;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod study;
mod submit;
mod test;

#[doc(hidden)]
pub use ask::answers;
pub use exit_code::Exit;
pub use failure::Failure;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  captime init && captime run forest.yaml    write an example scenario and tune it
  captime best                               the answer of the newest run
  captime help run                           everything about one command";

/// Tune an algorithm and its time limit together.
#[derive(Debug, Parser)]
#[command(name = "captime", version, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{}\n\n{}", log::HELP, exit_code::ALL))]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The folder that holds runs [default: CAPTIME_RUNS, or runs]
    #[arg(long, global = true, value_name = "DIR")]
    runs: Option<std::path::PathBuf>,
}

/// The output format of commands that have just these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TextOrJson {
    Text,
    Json,
}

/// In the order in which new users need them.
#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Check(check::Check),
    Run(run::RunArgs),
    Best(best::BestArgs),
    Test(test::TestArgs),
    List(list::ListArgs),
    Explain(explain::ExplainArgs),
    Report(report::ReportArgs),
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    Export(export::ExportArgs),
    Study(study::StudyArgs),
    Import(import::ImportArgs),
    Ask(ask::AskArgs),
    Pull(pull::PullArgs),
    Record(record::RecordArgs),
    Submit(submit::SubmitArgs),
    Agent(agent::AgentArgs),
    Exec(exec::Exec),
    Forest(forest::ForestArgs),
    Predict(predict::PredictArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// What needs a finite list of arms cannot work on an open space.
fn needs_sample(what: &str) -> Failure {
    Failure::usage(format!(
        "{what} needs a finite list of arms, and this space is open"
    ))
    .hint(Some(
        "add `sample: 500` to `arms` to draw 500 arms from the space",
    ))
}

/// What commands run pulls on: one thread is enough to wait.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::internal)
}

/// Runs the command line of this process and returns its exit status.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    run(&args)
}

fn run(args: &[OsString]) -> ExitCode {
    // Started as often as the commands it runs, so it does not wait for clap.
    let (first, rest) = (args.get(1), args.get(2..).unwrap_or_default());
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
    if let Some(folder) = cli.runs {
        run_folder::choose(folder);
    }
    if !is_exec {
        // What a pull leaves that kills its supervisor and the guardian of that is ended here.
        captime_limit::adopt_orphans();
    }
    // `exec` has exit codes of its own, and logs nothing.
    let started = if is_exec { Ok(()) } else { log::start() };
    let ended = started.and_then(|()| dispatch(cli.command));
    if !is_exec {
        captime_limit::leave_shelter();
    }
    match ended {
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
        Command::List(args) => list::run(&args),
        Command::Explain(args) => explain::run(args),
        Command::Report(args) => report::run(args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args),
        Command::Test(args) => test::run(&args),
        Command::Export(args) => export::run(args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Import(args) => import::run(args),
        Command::Ask(args) => ask::run(args),
        Command::Pull(args) => pull::run(args),
        Command::Record(args) => record::run(args),
        Command::Submit(args) => submit::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Check(check) => check.run(),
        Command::Init(init) => init.run(),
        Command::Study(args) => study::run(args),
        Command::Forest(args) => forest::run(args),
        Command::Predict(args) => predict::run(&args),
        Command::Exec(exec) => Ok(Exit::Status(exec::run(&exec))),
    }
}

/// Prints clap's message. Help and version are data and exit with 0, anything else is bad usage.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let is_data = !error.use_stderr();
    // A reader that went away (`captime --help | head -1`) is not an error.
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
