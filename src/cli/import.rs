//! `captime import`: converts spaces and scenarios of other tools.

mod aclib;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, exit_code};
use crate::quantity::counted;
use crate::scenario::{Fault, Mistake, ScenarioError, Span};
use crate::space::format::{self, Format, Note, line_column};

const EXAMPLES: &str = "\
Examples:
  captime import params.pcs                  the space as `arms:` of a scenario
  captime import space.json --to irace       from ConfigSpace to irace
  captime import scenario.txt > clasp.yaml   an AClib or SMAC scenario as captime's";

/// Convert parameter files and scenarios of other tools
///
/// Reads PCS (old and new), ConfigSpace (JSON and YAML) and irace parameter files and prints the space. Reads AClib and SMAC scenario
/// files and prints a captime scenario. What cannot be carried over is listed on stderr.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ImportArgs {
    /// The file to read
    file: PathBuf,
    /// Output format; scenarios are always written as captime YAML
    #[arg(long, value_enum, default_value_t = To::Yaml)]
    to: To,
    /// Input format [default: inferred from name and content]
    #[arg(long, value_enum)]
    from: Option<To>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// captime
    Yaml,
    /// PCS, new
    Pcs,
    /// PCS, old
    PcsOld,
    /// ConfigSpace, JSON
    Configspace,
    /// ConfigSpace, YAML
    ConfigspaceYaml,
    /// irace
    Irace,
}

impl From<To> for Format {
    fn from(to: To) -> Self {
        match to {
            To::Yaml => Self::Captime,
            To::Pcs => Self::Pcs,
            To::PcsOld => Self::PcsOld,
            To::Configspace => Self::ConfigSpaceJson,
            To::ConfigspaceYaml => Self::ConfigSpaceYaml,
            To::Irace => Self::Irace,
        }
    }
}

/// Runs the command.
pub fn run(args: ImportArgs) -> Result<Exit, Failure> {
    let (text, encoding) = read(&args.file)?;
    if args.from.is_none()
        && let Some(parameters) = parameters_of_irace(&text)
    {
        return Err(Failure::usage(format!(
            "`{}` is a scenario of irace, which captime does not read",
            args.file.display()
        ))
        .hint(Some(format!("import its parameter file {parameters}"))));
    }
    if args.from.is_none() && aclib::looks_like(&text) {
        if args.to != To::Yaml {
            return Err(Failure::usage("a scenario can only be written as YAML")
                .hint(Some("import its parameter file to convert that")));
        }
        let scenario = aclib::convert(&text, &args.file);
        let mut notes = lines_of(&text, encoding.iter());
        notes.extend(scenario.notes);
        tell(&args.file, notes)?;
        write!(std::io::stdout().lock(), "{}", scenario.text)?;
        return Ok(Exit::Done);
    }
    let format = args
        .from
        .map_or_else(|| Format::detect(&args.file, &text), Format::from);
    let file = format::read(&text, format).map_err(|mistakes| ScenarioError {
        file: args.file.clone(),
        text: text.clone(),
        mistakes: mistakes
            .into_iter()
            .map(|mistake| Mistake {
                at: Span::new(mistake.at.start, mistake.at.end),
                fault: Fault::OpenSpace(mistake.error),
            })
            .collect(),
    })?;
    let written = format::write(&file.space, args.to.into())
        .map_err(|error| Failure::usage(error).hint(Some("`--to yaml` can express every space")))?;
    let parameters = file.space.parameters();
    let (count, forbidden) = (parameters.len(), file.space.forbid().len());
    // Several conditions of one parameter count as one in ConfigSpace.
    let conditional = parameters
        .iter()
        .filter(|known| known.when.is_some())
        .count();
    let mut notes = lines_of(&text, encoding.iter().chain(&file.notes));
    notes.extend(written.notes);
    notes.insert(
        0,
        format!(
            "{}: {}, {conditional} of them conditional; conditions: {}; forbidden combinations: {forbidden}",
            format.name(),
            counted(count as u64, "parameter"),
            file.conditions
        ),
    );
    tell(&args.file, notes)?;
    write!(std::io::stdout().lock(), "{}", written.text)?;
    Ok(Exit::Done)
}

/// The parameter file that a scenario of irace names, in its quotes.
fn parameters_of_irace(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let rest = line
            .trim_start()
            .strip_prefix("parameterFile")?
            .trim_start();
        let value = rest.strip_prefix('=').or_else(|| rest.strip_prefix("<-"))?;
        Some(value.trim())
    })
}

fn lines_of<'n>(text: &str, notes: impl Iterator<Item = &'n Note>) -> Vec<String> {
    let line = |note: &Note| line_column(text, note.at.start).0;
    notes
        .map(|note| format!("line {}: {}", line(note), note.text))
        .collect()
}

fn tell(file: &Path, notes: Vec<String>) -> Result<(), Failure> {
    let mut stderr = std::io::stderr().lock();
    for note in notes {
        writeln!(stderr, "{}: {note}", file.display())?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<(String, Option<Note>), Failure> {
    format::load(file)
        .map_err(|reason| Failure::usage(format!("cannot read `{}`: {reason}", file.display())))
}
