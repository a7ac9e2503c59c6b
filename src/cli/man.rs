//! `captime man`: the manual page, with every subcommand.

use std::io::Write;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::{Cli, Exit, Failure, exit_code};

const EXAMPLES: &str = "\
Examples:
  captime man | man -l -
  captime man > ~/.local/share/man/man1/captime.1";

/// Print the manual page, with all commands.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ManArgs {}

/// Runs the command.
pub fn run(_: &ManArgs) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut page = vec![];
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    man.render_subcommands_section(&mut page)?;
    examples_and_exit_codes(&command, "SH", &mut page)?;
    man.render_version_section(&mut page)?;
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
        // One page: the sections of a subcommand become subsections.
        let part = String::from_utf8_lossy(&part).replace("\n.SH ", "\n.SS ");
        let part = part
            .strip_prefix(".SH ")
            .map_or(part.clone(), |rest| format!(".SS {rest}"));
        page.extend_from_slice(part.as_bytes());
        examples_and_exit_codes(subcommand, "SS", &mut page)?;
    }
    // There are no pages of subcommands to refer to.
    let page = String::from_utf8_lossy(&page)
        .replace("\ncaptime\\-", "\ncaptime ")
        .replace("(1)\n", "\n");
    std::io::stdout().lock().write_all(page.as_bytes())?;
    Ok(Exit::Done)
}

/// What clap shows after the options. Blocks with command lines are kept as they are: roff would fill and hyphenate
/// them, and they could not be pasted.
fn examples_and_exit_codes(
    command: &Command,
    heading: &str,
    page: &mut Vec<u8>,
) -> std::io::Result<()> {
    let Some(text) = command.get_after_help() else {
        return Ok(());
    };
    let mut roff = Roff::new();
    roff.control(heading, ["EXAMPLES AND EXIT CODES"]);
    for block in text.to_string().split("\n\n") {
        roff.control("PP", []);
        let is_laid_out = block.lines().any(|line| line.starts_with("  "));
        if is_laid_out {
            roff.control("nf", []);
        }
        for line in block.lines() {
            roff.text([roman(line)]);
        }
        if is_laid_out {
            roff.control("fi", []);
        }
    }
    roff.to_writer(page)
}
