//! A real Slurm cluster: two virtual nodes on this machine.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{
    agents, has_programs, lines, marked, marker, nothing_is_left, nothing_is_lost, outcomes,
    signal, sleeping, wait_for_agents,
};
use crate::test_run::{TestRun, expect};

/// The cluster of one test. Ends with it.
struct Slurm {
    folder: tempfile::TempDir,
}

impl Slurm {
    /// Starts it, on ports of its own; none where Slurm is not installed.
    fn start(port: u16) -> Option<Self> {
        Self::start_with(port, &[])
    }

    fn start_with(port: u16, options: &[(&str, &str)]) -> Option<Self> {
        if !has_programs(&["slurmctld", "slurmd", "srun", "munged"]) {
            return None;
        }
        // Sockets in it need a short path.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let slurm = Self { folder };
        let started = slurm
            .script("start")
            .env("CAPTIME_SLURM_PORT", port.to_string())
            .envs(options.iter().copied())
            .output();
        let started = started.unwrap();
        assert!(
            started.status.success(),
            "{}",
            String::from_utf8_lossy(&started.stderr)
        );
        Some(slurm)
    }

    fn script(&self, action: &str) -> Command {
        let mut command = Command::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/test-slurm"
        ));
        command
            .arg(action)
            .arg(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn conf(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    /// `captime run` in an allocation of both nodes.
    fn run(&self, test_run: &TestRun, marker: &str, minutes: &str) -> Command {
        self.allocated(test_run, marker, &["--exclusive", "--time", minutes], "run")
    }

    /// A command of captime in an allocation of both nodes.
    fn allocated(
        &self,
        test_run: &TestRun,
        marker: &str,
        options: &[&str],
        command: &str,
    ) -> Command {
        let (name, value) = marker.split_once('=').unwrap();
        let captime = [env!("CARGO_BIN_EXE_captime"), command, "s.yaml"];
        let mut command = Command::new("salloc");
        command
            .args(["--nodes=2", "--quiet"])
            .args(options)
            .args(captime)
            .current_dir(test_run.path())
            .env("SLURM_CONF", self.conf())
            .env(name, value)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a command of Slurm says; what it complains about if it fails.
    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let answer = Command::new(program)
            .args(arguments)
            .env("SLURM_CONF", self.conf())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        if answer.status.success() {
            Ok(text(&answer.stdout))
        } else {
            Err(text(&answer.stderr))
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.script("stop").status();
    }
}

/// A scenario whose pulls take a second until the file `quick` is there. So a run does not end before Slurm, on a busy machine, has done
/// what the test asked for: without the file it takes more than a minute.
fn lasting(rounds: u32) -> String {
    assert!(rounds > 240, "four slots");
    sleeping("{slurm: auto, lost_after: 5s}", rounds, "1.0").replace(
        "[sleep, \"{t}\"]",
        "[sh, -c, \"test -e quick || exec sleep $0\", \"{t}\"]",
    )
}

#[test]
fn slurm_nodes_share_the_pulls_and_may_lose_their_srun() {
    let Some(slurm) = Slurm::start(17100) else {
        return;
    };
    let marker = marker("slurm");
    let test_run = TestRun::new(&lasting(300));
    let child = slurm.run(&test_run, &marker, "10").spawn().unwrap();
    test_run.wait_for_outcomes("night", 10);
    let before = wait_for_agents(&marker, 2);
    // srun forks. The first of each pair carries the stream.
    let sruns = marked(&marker);
    let srun = sruns
        .iter()
        .find(|(_, command)| command.starts_with("srun"));
    signal(srun.unwrap().0, Signal::SIGKILL);
    wait_for("another agent", || {
        let now = agents(&marker);
        let is_there = now.len() == 2 && now != before;
        is_there.then_some(()).ok_or(format!("{now:?}"))
    });
    test_run.write("quick", "");
    let (_, said) = expect(&child.wait_with_output().unwrap(), 0);
    assert!(said.contains("node n1: 2 slots"), "{said}");
    assert!(said.contains("was lost and is started again"), "{said}");
    nothing_is_lost(&test_run, 300);
    for node in ["n1", "n2"] {
        assert!(
            outcomes(&test_run)
                .iter()
                .any(|outcome| outcome["node"] == node)
        );
    }
    nothing_is_left(&marker);
}

#[test]
fn a_cancelled_job_blames_no_arm_and_resumes() {
    let Some(slurm) = Slurm::start(17110) else {
        return;
    };
    let marker = marker("scancel");
    let test_run = TestRun::new(&lasting(300));
    let child = slurm.run(&test_run, &marker, "10").spawn().unwrap();
    test_run.wait_for_outcomes("night", 8);
    // The first job of this cluster.
    slurm.ask("scancel", &["1"]).unwrap();
    let ended = child.wait_with_output().unwrap();
    // It does not wait for nodes that cannot come back.
    let (_, said) = expect(&ended, 130);
    assert!(said.contains("the allocation has ended"), "{said}");
    nothing_is_left(&marker);
    test_run.write("quick", "");
    expect(&slurm.run(&test_run, &marker, "10").output().unwrap(), 0);
    nothing_is_lost(&test_run, 300);
    nothing_is_left(&marker);
}

#[test]
fn nothing_is_started_that_cannot_end_before_the_allocation() {
    let Some(slurm) = Slurm::start(17120) else {
        return;
    };
    let marker = marker("ends");
    let text = sleeping("{slurm: auto}", 40, "0.3").replace("[10s, 20s]", "[100s, 200s]");
    let test_run = TestRun::new(&text);
    let (_, said) = expect(&slurm.run(&test_run, &marker, "1").output().unwrap(), 130);
    assert!(
        said.contains("the allocation ends before another pull could"),
        "{said}"
    );
    assert!(outcomes(&test_run).is_empty());
    // With more time the same rounds run.
    expect(&slurm.run(&test_run, &marker, "10").output().unwrap(), 0);
    nothing_is_lost(&test_run, 40);
    nothing_is_left(&marker);
}

/// A limit on CPU time does not bound how long pulls sleep, so the allocation ends while they run.
#[test]
fn pulls_that_outlast_the_allocation_run_again() {
    let Some(slurm) = Slurm::start(17160) else {
        return;
    };
    let marker = marker("timeout");
    let text = sleeping("{slurm: auto}", 8, "0.1").replace("of: wall", "of: cpu");
    let test_run = TestRun::new(&text.replace(
        "[sleep, \"{t}\"]",
        "[sh, -c, \"test -e go || exec sleep 600\", \"{t}\"]",
    ));
    expect(&slurm.run(&test_run, &marker, "1").output().unwrap(), 130);
    assert!(outcomes(&test_run).is_empty());
    nothing_is_left(&marker);
    test_run.write("go", "");
    expect(&slurm.run(&test_run, &marker, "10").output().unwrap(), 0);
    nothing_is_lost(&test_run, 8);
    nothing_is_left(&marker);
}

/// Submits the scenario of a test, with these options.
fn submit(slurm: &Slurm, test_run: &TestRun, marker: &str, options: &[&str]) -> String {
    let (name, value) = marker.split_once('=').unwrap();
    let output = test_run
        .command(&[&["submit", "s.yaml", "--nodes", "2"], options].concat())
        .env("SLURM_CONF", slurm.conf())
        .env(name, value)
        .output()
        .unwrap();
    expect(&output, 0).0
}

/// Waits until no job is left.
fn wait_for_jobs(slurm: &Slurm) {
    wait_for_queue(slurm, "no job", |jobs| jobs.trim().is_empty());
}

/// Slurm waits two minutes before it starts a requeued job. Here it may start earlier, but not in the second in which it was stopped:
/// nodes refuse a job whose permission is not younger than the end of the last one, and then it is gone.
const REQUEUED: Duration = Duration::from_secs(2);

/// Waits until this holds for the list of jobs: a line each, with number, state and reason.
fn wait_for_queue(slurm: &Slurm, what: &str, is_so: impl Fn(&str) -> bool) {
    let mut requeued: Option<Instant> = None;
    wait_for(what, || {
        // Without an answer nothing is known.
        let jobs = slurm.ask("squeue", &["--noheader", "--format=%i %T %r"])?;
        let waiting = jobs.lines().find(|line| line.ends_with(" BeginTime"));
        if let Some(job) = waiting.and_then(|line| line.split_whitespace().next())
            && requeued.get_or_insert_with(Instant::now).elapsed() > REQUEUED
        {
            let job = format!("JobId={job}");
            // Refused if it has just begun.
            let _ = slurm.ask("scontrol", &["update", &job, "StartTime=now"]);
        }
        is_so(&jobs).then_some(()).ok_or(jobs)
    });
}

/// Waits until this succeeds.
fn wait_for(what: &str, mut attempt: impl FnMut() -> Result<(), String>) {
    let since = Instant::now();
    while let Err(why) = attempt() {
        assert!(
            since.elapsed() < Duration::from_mins(3),
            "never: {what}; {why}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Every session but the last ended because it was asked to, and nothing was lost.
fn went_on(test_run: &TestRun, rounds: u64, sessions: usize) {
    nothing_is_lost(test_run, rounds);
    let of = |key: &str| -> Vec<Value> {
        let all = lines(test_run).into_iter();
        all.filter_map(|line| line.get(key).cloned()).collect()
    };
    assert_eq!(of("session").len(), sessions);
    let mut ends = of("end");
    assert_eq!(ends.pop(), Some("rounds".into()));
    assert!(ends.iter().all(|end| end == "interrupted"), "{ends:?}");
}

#[test]
fn a_submitted_job_runs_and_says_how_to_follow_it() {
    let Some(slurm) = Slurm::start(17130) else {
        return;
    };
    let marker = marker("submit");
    let test_run = TestRun::new(&sleeping("{slurm: auto}", 20, "0.05"));
    let said = submit(&slurm, &test_run, &marker, &["--time", "5m"]);
    assert!(said.contains("squeue -j"), "{said}");
    assert!(said.contains("sbatch night.sbatch"), "{said}");
    wait_for_jobs(&slurm);
    went_on(&test_run, 20, 1);
    nothing_is_left(&marker);
}

/// A job of another partition takes the nodes away, then the administrator requeues the job. Each time Slurm starts it again.
#[test]
fn a_preempted_and_requeued_job_resumes() {
    let Some(slurm) = Slurm::start(17140) else {
        return;
    };
    let marker = marker("preempted");
    let test_run = TestRun::new(&lasting(300));
    submit(&slurm, &test_run, &marker, &["--time", "10m"]);
    test_run.wait_for_outcomes("night", 8);
    let urgent = ["--partition=urgent", "--nodes=2", "--exclusive", "true"];
    slurm.ask("srun", &urgent).unwrap();
    runs_again(&slurm, &test_run, 2);
    slurm.ask("scontrol", &["requeue", "1"]).unwrap();
    runs_again(&slurm, &test_run, 3);
    test_run.write("quick", "");
    wait_for_jobs(&slurm);
    went_on(&test_run, 300, 3);
    nothing_is_left(&marker);
}

/// Waits until so many sessions have begun and the last one has outcomes.
fn runs_again(slurm: &Slurm, test_run: &TestRun, sessions: usize) {
    // The last line may not be whole yet.
    let count = |kind: &str| {
        let text = std::fs::read_to_string(test_run.journal("night")).unwrap();
        text.matches(&format!("\n{{\"{kind}\":")).count()
    };
    wait_for_queue(slurm, "another session", |_| count("session") >= sessions);
    test_run.wait_for_outcomes("night", count("outcome") + 8);
}

/// Slurm sends USR1 before the time limit. The script then submits itself again, until the budget is used up.
#[test]
fn a_job_that_reaches_its_time_limit_is_followed_by_another() {
    let Some(slurm) = Slurm::start(17150) else {
        return;
    };
    let marker = marker("chain");
    let test_run = TestRun::new(&lasting(300));
    submit(&slurm, &test_run, &marker, &["--time", "10m", "--resume"]);
    // A job that ends within ten seconds is not followed by another.
    test_run.wait_for_outcomes("night", 44);
    let signal = ["--batch", "--signal=USR1", "1"];
    slurm.ask("scancel", &signal).unwrap();
    runs_again(&slurm, &test_run, 2);
    test_run.write("quick", "");
    wait_for_jobs(&slurm);
    went_on(&test_run, 300, 2);
    let jobs = slurm.ask("scontrol", &["show", "jobs", "--oneliner"]);
    let jobs = jobs.unwrap();
    assert_eq!(jobs.matches("JobName=captime-night ").count(), 2, "{jobs}");
    nothing_is_left(&marker);
}

/// The control groups of captime that are left below those of Slurm's nodes.
fn left_groups(prefix: &str) -> Vec<PathBuf> {
    let below = |group: String| format!("*/{group}/*captime*");
    let mut find = Command::new("find");
    find.args(["/sys/fs/cgroup", "-type", "d", "-path"])
        .arg(below(format!("slurm_{prefix}*")))
        .args(["-o", "-type", "d", "-path"])
        .arg(below(format!("{prefix}*_slurmstepd.scope")));
    // Fails while Slurm is still removing its own.
    let since = Instant::now();
    let found = loop {
        let found = find.output().unwrap();
        if found.status.success() {
            break found;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{found:?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    found.lines().map(PathBuf::from).collect()
}

/// Where Slurm keeps each step in control groups of its own, captime makes its groups inside them: Slurm's limits hold, and so do
/// the scenario's. Each node says how it enforces limits, and leaves no group behind. `scripts/test-cgroup2` runs this with v2 alone.
#[test]
fn limits_hold_inside_the_control_groups_of_slurm() {
    let options = [
        ("CAPTIME_SLURM_CGROUPS", "1"),
        ("CAPTIME_SLURM_NODES", "cg"),
    ];
    let Some(slurm) = Slurm::start_with(17170, &options) else {
        return;
    };
    let marker = marker("slurm-cgroups");
    let test_run = TestRun::new(
        "name: night\ntarget:\n  command: [sh, -c, 'cat /proc/self/cgroup > seen-{round}; dd if=/dev/zero of=/dev/null bs={size} count=1']\n  \
         reward: {exit: [0]}\narms: {list: [{size: 1000}, {size: 200000000}]}\n\
         limits: {of: wall, grid: [60s], memory: 60MiB}\npolicy: uniform\nbudget: {rounds: 16}\nslots: {slurm: auto}\n",
    );
    let own = captime_limit::detect();
    let promised = format!(", level {}, memory {}", own.level, own.memory);
    let exclusive = ["--exclusive", "--time=10"];
    let checked = slurm
        .allocated(&test_run, &marker, &exclusive, "check")
        .output();
    let (said, _) = expect(&checked.unwrap(), 0);
    for node in ["cg1", "cg2"] {
        let line = said
            .lines()
            .find(|line| line.contains(&format!("node {node}: 2 slots")));
        assert!(
            line.is_some_and(|line| line.contains(&promised) && line.contains("s left")),
            "{said}"
        );
    }
    expect(&slurm.run(&test_run, &marker, "10").output().unwrap(), 0);
    let outcomes = outcomes(&test_run);
    // The arms take turns, but slots do not wait for each other.
    let of_memory = |outcome: &&Value| outcome["guard"] == "memory";
    let (cut, ended): (Vec<_>, Vec<_>) = outcomes.iter().partition(of_memory);
    assert!((6..=10).contains(&cut.len()), "{outcomes:?}");
    assert!(
        ended.iter().all(|outcome| outcome["reward"] == 1.0),
        "{outcomes:?}"
    );
    for outcome in &outcomes {
        let seen = format!("seen-{}", outcome["outcome"]);
        let seen = std::fs::read_to_string(test_run.path().join(seen)).unwrap();
        let node = outcome["node"].as_str().unwrap();
        // As v1 and v2 name them.
        let (v1, v2) = (
            format!("/slurm_{node}/"),
            format!("/{node}_slurmstepd.scope/"),
        );
        let of = |controller: &str, group: &str| {
            (seen.lines()).any(|line| line.contains(controller) && line.contains(group))
        };
        assert!(of(":cpuset:", &v1) || of("0::", &v2), "{node}: {seen}");
    }
    // The CPUs of a step are those that Slurm gave it.
    let one = ["--ntasks-per-node=1", "--cpus-per-task=1", "--time=10"];
    let checked = slurm.allocated(&test_run, &marker, &one, "check").output();
    let (said, _) = expect(&checked.unwrap(), 0);
    assert!(said.contains("node cg1: 1 slot, 1 CPU"), "{said}");
    nothing_is_left(&marker);
    assert_eq!(left_groups("cg"), Vec::<PathBuf>::new());
}

/// What docs/cluster.md shows about `captime submit`, on a cluster of four nodes.
#[test]
fn the_commands_of_the_page_on_slurm_work() {
    let options = [
        ("CAPTIME_SLURM_NODES", "page"),
        ("CAPTIME_SLURM_COUNT", "4"),
    ];
    let Some(slurm) = Slurm::start_with(17180, &options) else {
        return;
    };
    let marker = marker("page");
    let (name, value) = marker.split_once('=').unwrap();
    let text = sleeping("{slurm: auto}", 40, "0.05").replace("name: night", "name: sat");
    let test_run = TestRun::new("");
    test_run.write("sat.yaml", &text);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_captime"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let (_, commands) = (crate::docs::blocks("cluster.md").into_iter())
        .find(|(kind, text)| kind == "console" && text.contains("captime submit"))
        .unwrap();
    for command in commands.lines() {
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(test_run.path())
            .env("PATH", &path)
            .env("SLURM_CONF", slurm.conf())
            .env(name, value)
            .output()
            .unwrap();
        let (said, _) = expect(&output, 0);
        assert!(said.contains("sat.sbatch"), "{command}: {said}");
        wait_for_jobs(&slurm);
    }
    assert_eq!(commands.lines().count(), 3);
    let script = std::fs::read_to_string(test_run.path().join("sat.sbatch")).unwrap();
    assert!(script.contains("#SBATCH --account=lab\n"), "{script}");
    let journal = std::fs::read_to_string(test_run.journal("sat")).unwrap();
    for node in 1..=4 {
        assert!(
            journal.contains(&format!("\"node\":\"page{node}\"")),
            "{journal}"
        );
    }
    nothing_is_left(&marker);
}
