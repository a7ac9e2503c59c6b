//! `captime schema`: the JSON schema of scenarios.

use std::io::Write;

use clap::Args;

use super::{Exit, Failure, exit_code};

const EXAMPLES: &str = "\
Examples:
  captime schema                          print it
  captime schema > captime.schema.json    keep it beside your scenarios

For editors with the YAML language server, put this in the first line of a scenario:
  # yaml-language-server: $schema=captime.schema.json";

/// Print the JSON schema of scenarios, for editors to check and complete them.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct SchemaArgs {}

/// Runs the command.
pub fn run(_: &SchemaArgs) -> Result<Exit, Failure> {
    let mut text =
        serde_json::to_string_pretty(&crate::scenario::schema()).map_err(Failure::internal)?;
    text.push('\n');
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}
