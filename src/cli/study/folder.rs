//! The folder of a study: a page with charts, figures and data.

use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Failure, write_json};
use crate::report::{holdout_page, study_page};
use crate::study::holdout::{self, Marks};
use crate::study::{Standing, Sum, curves_csv, figure, file_name, summary_csv};

/// `study.html`, `study.json`, `study.csv`, `curves.csv`, and figures per problem and grid.
pub(super) fn standings(standings: &[Standing], folder: &Path) -> Result<(), Failure> {
    let write = |name: &str, content: Content<'_>| write(folder, name, content);
    write("study.json", &|to| write_json(&standings, to))?;
    write("study.csv", &|to| Ok(summary_csv(standings, to)?))?;
    write("curves.csv", &|to| Ok(curves_csv(standings, to)?))?;
    write("study.html", &|to| {
        let page = study_page(
            "Study · captime",
            &labelled(standings, |standing| &standing.label),
        );
        Ok(to.write_all(page.as_bytes())?)
    })?;
    for group in standings.chunk_by(|a, b| (&a.problem, &a.grid) == (&b.problem, &b.grid)) {
        let name = format!(
            "{}-{}",
            file_name(&group[0].problem),
            file_name(&group[0].grid)
        );
        for sum in Sum::ALL.into_iter().filter(|sum| sum.is_known(group)) {
            let name = match sum {
                Sum::Regret => format!("{name}.svg"),
                Sum::Reward | Sum::Gain => format!("{name}-{}.svg", sum.name()),
            };
            let drawn = figure(group, sum);
            write(&name, &|to| Ok(to.write_all(drawn.as_bytes())?))?;
        }
    }
    Ok(())
}

/// `study.html`, `study.json`, `study.csv` and `curves.csv` of a study by CPU time.
pub(super) fn marks(marks: &[Marks], folder: &Path) -> Result<(), Failure> {
    let write = |name: &str, content: Content<'_>| write(folder, name, content);
    write("study.json", &|to| write_json(&marks, to))?;
    write("study.csv", &|to| Ok(holdout::summary_csv(marks, to)?))?;
    write("curves.csv", &|to| Ok(holdout::curves_csv(marks, to)?))?;
    write("study.html", &|to| {
        let labelled = labelled(marks, |marks| &marks.label);
        let page = holdout_page("Study · captime", &labelled);
        Ok(to.write_all(page.as_bytes())?)
    })
}

/// Creates the folder before hours of work, not after.
pub(super) fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::cannot_write(folder, error))
}

/// What writes one file.
type Content<'a> = &'a dyn Fn(&mut dyn Write) -> Result<(), Failure>;

fn write(folder: &Path, name: &str, content: Content<'_>) -> Result<(), Failure> {
    let path = folder.join(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .map(BufWriter::new)
        .map_err(|error| Failure::cannot_write(&path, error))?;
    content(&mut file)?;
    file.flush()
        .map_err(|error| Failure::cannot_write(&path, error))
}

/// Data with their label.
#[derive(Debug, serde::Serialize)]
struct Labelled<'a, T> {
    label: &'a str,
    #[serde(flatten)]
    of: &'a T,
}

fn labelled<T>(all: &[T], label: impl Fn(&T) -> &str) -> Vec<Labelled<'_, T>> {
    let labelled = all.iter().map(|of| Labelled {
        label: label(of),
        of,
    });
    labelled.collect()
}
