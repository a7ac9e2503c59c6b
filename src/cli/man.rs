//! `captime man`: the manual page, with every subcommand.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use super::{Cli, Exit, Failure};

/// Write the manual page to stdout: captime and every command of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  captime man | man -l -
  captime man > ~/.local/share/man/man1/captime.1

Exit codes: 0 done; 1 failure of ours; 2 bad usage.")]
pub struct ManArgs {}

/// Runs the command.
pub fn run(_: &ManArgs) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut page = vec![];
    Man::new(command.clone()).render(&mut page)?;
    for subcommand in command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
    {
        if subcommand.get_name() == "help" {
            continue;
        }
        let title = format!("captime {}", subcommand.get_name()).to_uppercase();
        writeln!(page, ".SH {title}")?;
        let man = Man::new(subcommand.clone());
        let mut part = vec![];
        man.render_synopsis_section(&mut part)?;
        man.render_description_section(&mut part)?;
        man.render_options_section(&mut part)?;
        man.render_extra_section(&mut part)?;
        // One page: the sections of a subcommand are subsections of its own.
        let part = String::from_utf8_lossy(&part).replace("\n.SH ", "\n.SS ");
        let part = part
            .strip_prefix(".SH ")
            .map_or(part.clone(), |rest| format!(".SS {rest}"));
        page.extend_from_slice(part.as_bytes());
    }
    // There are no pages of subcommands to refer to, and what clap shows after the options has no name.
    let page = String::from_utf8_lossy(&page)
        .replace("\ncaptime\\-", "\ncaptime ")
        .replace("(1)\n", "\n")
        .replace(".SH EXTRA\n", ".SH EXIT CODES\n")
        .replace(".SS EXTRA\n", ".SS EXAMPLES AND EXIT CODES\n");
    std::io::stdout().lock().write_all(page.as_bytes())?;
    Ok(Exit::Done)
}
