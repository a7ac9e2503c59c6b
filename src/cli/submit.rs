//! `captime submit`: a scenario as a Slurm job.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use super::failure::unless_pipe_closed;
use super::{Exit, Failure, exit_code};
use crate::scenario::{Engines, Scenario, shell_word};

const EXAMPLES: &str = "\
Examples:
  captime submit sat.yaml --nodes 4 --time 8h             four nodes for eight hours
  captime submit sat.yaml --nodes 4 --time 8h --resume    and again until the budget is used up
  captime submit sat.yaml --nodes 1 --time 1h --dry-run   only write sat.sbatch, to read and edit
  captime submit sat.yaml --nodes 2 --time 1h -- --account=lab   any option of sbatch";

/// Submit a scenario to Slurm.
///
/// Writes a batch script into the current folder, submits it with `sbatch`, and says how to follow and resume it. The scenario needs
/// `slots: {slurm: auto}`. A job that reaches its time limit, or is preempted, leaves a run that the next submission resumes.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::RECORD))]
pub struct SubmitArgs {
    /// The scenario
    scenario: PathBuf,
    /// Nodes to allocate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    nodes: u64,
    /// Time limit of the job
    #[arg(long, value_name = "TIME", value_parser = super::exec::time)]
    time: Duration,
    /// Partition to submit to
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// CPUs to allocate on every node; whole nodes by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    cpus: Option<u64>,
    /// When the time limit is reached, submit the script again until the budget is used up
    #[arg(long)]
    resume: bool,
    /// Write the script, but do not submit it
    #[arg(long)]
    dry_run: bool,
    /// Further options of sbatch
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Runs the command.
pub fn run(args: &SubmitArgs) -> Result<Exit, Failure> {
    let scenario = super::scenario_file::read_scenario(&args.scenario)?;
    let is_slurm = (scenario.nodes.as_ref()).is_some_and(|nodes| nodes.engines == Engines::Slurm);
    if !is_slurm {
        return Err(
            Failure::usage("the scenario does not run pulls on the nodes of a Slurm job")
                .hint(Some("write `slots: {slurm: auto}` in it")),
        );
    }
    if let Some(option) = args.options.iter().find(|option| option.contains('\n')) {
        return Err(Failure::usage(format!(
            "the option {option:?} has a line break"
        )));
    }
    let here = std::env::current_dir().map_err(Failure::internal)?;
    let captime = std::env::current_exe().map_err(Failure::internal)?;
    let file = here.join(format!("{}.sbatch", scenario.name));
    let text = script(args, &scenario, &here, &captime, &file);
    std::fs::write(&file, text).map_err(|error| Failure::cannot_write(&file, error))?;
    let shown = file.strip_prefix(&here).unwrap_or(&file).display();
    let mut to = std::io::stdout().lock();
    if args.dry_run {
        let written = writeln!(to, "wrote {shown}\nsubmit it: sbatch {shown}");
        written.or_else(unless_pipe_closed)?;
        return Ok(Exit::Done);
    }
    let job = submit(&file)?;
    let name = &scenario.name;
    let written = writeln!(
        to,
        "submitted job {job}, by {shown}\n\
         follow it: squeue -j {job}; tail -f captime-{name}-{job}.log; captime serve {name}\n\
         stop it:   scancel {job}\n\
         resume it: sbatch {shown}, once it has ended"
    );
    written.or_else(unless_pipe_closed)?;
    Ok(Exit::Done)
}

fn submit(file: &Path) -> Result<String, Failure> {
    let asked = Command::new("sbatch")
        .arg("--parsable")
        .arg(file)
        .stdin(Stdio::null())
        .output();
    let answer = asked.map_err(|error| {
        Failure::internal(format!("cannot run `sbatch`: {error}")).hint(Some(format!(
            "run `sbatch {}` on a machine where Slurm is installed",
            file.display()
        )))
    })?;
    if !answer.status.success() {
        let why = String::from_utf8_lossy(&answer.stderr);
        return Err(
            Failure::usage(format!("sbatch refused the job: {}", why.trim())).hint(Some(format!(
                "edit {} and submit it by hand",
                file.display()
            ))),
        );
    }
    // `12` or `12;cluster`.
    let text = String::from_utf8_lossy(&answer.stdout);
    Ok(text.trim().split(';').next().unwrap_or_default().to_owned())
}

fn script(
    args: &SubmitArgs,
    scenario: &Scenario,
    here: &Path,
    captime: &Path,
    file: &Path,
) -> String {
    let name = &scenario.name;
    let word = |path: &Path| shell_word(&path.display().to_string());
    let absolute = std::path::absolute(&args.scenario).unwrap_or_else(|_| args.scenario.clone());
    let mut options = vec![
        format!("--job-name=captime-{name}"),
        format!("--nodes={}", args.nodes),
        "--ntasks-per-node=1".to_owned(),
        format!("--time={}", slurm_time(args.time)),
        format!("--output=captime-{name}-%j.log"),
        // Preempted jobs are started again, and resume the run.
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        "--signal=B:USR1@30".to_owned(),
    ];
    options.push(match args.cpus {
        Some(cpus) => format!("--cpus-per-task={cpus}"),
        None => "--exclusive".to_owned(),
    });
    options.extend(
        args.partition
            .iter()
            .map(|name| format!("--partition={name}")),
    );
    options.extend(args.options.iter().cloned());
    let options: String = (options.iter())
        .flat_map(|option| ["#SBATCH ", option, "\n"])
        .collect();
    let again = if args.resume {
        format!(
            "# Interrupted, but not cancelled: the time limit was near. The next job resumes the run. A job that ended\n\
             # within ten seconds is not followed by another: it would end just as soon.\n\
             if [ \"$status\" -eq 130 ] && [ -z \"$cancelled\" ] && [ \"$SECONDS\" -ge 10 ]; then\n    sbatch {}\nfi\n",
            word(file)
        )
    } else {
        String::new()
    };
    format!(
        "#!/bin/bash\n\
         # Tunes {} on the nodes of a Slurm job. Written by `captime submit`; edit it as you like and\n\
         # submit it with sbatch. Submitting it again resumes the run.\n\
         {options}\n\
         cd {} || exit 1\n\
         {} run {} &\n\
         captime=$!\n\
         cancelled=\n\
         # Slurm sends USR1 to this script shortly before the time limit. When the job is cancelled or preempted,\n\
         # it sends TERM to this script and to captime.\n\
         trap 'kill -TERM \"$captime\"' USR1\n\
         trap 'cancelled=yes' TERM\n\
         wait \"$captime\"\n\
         status=$?\n\
         # A signal interrupts `wait`, not captime.\n\
         while [ \"$status\" -gt 128 ] && kill -0 \"$captime\" 2>/dev/null; do\n    wait \"$captime\"\n    status=$?\ndone\n\
         {again}exit \"$status\"\n",
        args.scenario.display(),
        word(here),
        word(captime),
        word(&absolute),
    )
}

/// `8h` as `0-08:00:00`; Slurm counts in whole minutes.
fn slurm_time(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60).max(1);
    let (days, hours) = (minutes / 1440, minutes / 60 % 24);
    format!("{days}-{hours:02}:{:02}:00", minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_minutes() {
        assert_eq!(slurm_time(Duration::from_hours(8)), "0-08:00:00");
        assert_eq!(slurm_time(Duration::from_secs(61)), "0-00:02:00");
        assert_eq!(slurm_time(Duration::from_hours(25)), "1-01:00:00");
    }

    #[test]
    fn a_script_can_be_read() {
        let text = "target: {command: [sleep, '{t}'], reward: {exit: [0]}}\narms: {grid: {t: [1, 2]}}\n\
                    limits: {of: wall, grid: [1s, 2s]}\nslots: {slurm: auto}\n";
        let parsed = crate::scenario::parse(text, "sat.yaml".as_ref(), ".".as_ref());
        let scenario = match parsed {
            Ok(checked) => checked.scenario,
            Err(error) => panic!("{error}"),
        };
        let args = SubmitArgs {
            scenario: "/home/me/my work/sat.yaml".into(),
            nodes: 4,
            time: Duration::from_hours(8),
            partition: Some("long".into()),
            cpus: None,
            resume: true,
            dry_run: false,
            options: vec!["--account=lab".into()],
        };
        let text = script(
            &args,
            &scenario,
            "/home/me/my work".as_ref(),
            "/usr/bin/captime".as_ref(),
            "/home/me/my work/sat.sbatch".as_ref(),
        );
        for line in [
            "#SBATCH --nodes=4",
            "#SBATCH --time=0-08:00:00",
            "#SBATCH --partition=long",
            "#SBATCH --account=lab",
            "cd '/home/me/my work' || exit 1",
            "/usr/bin/captime run '/home/me/my work/sat.yaml' &",
            "    sbatch '/home/me/my work/sat.sbatch'",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
