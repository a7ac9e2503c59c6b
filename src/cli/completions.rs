//! `captime completions`: shell completions.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Exit, Failure, exit_code};

const EXAMPLES: &str = "\
Examples:
  captime completions bash \\
      > ~/.local/share/bash-completion/completions/captime
  captime completions zsh > ~/.zfunc/_captime
  captime completions fish > ~/.config/fish/completions/captime.fish";

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "captime", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(Exit::Done)
}
