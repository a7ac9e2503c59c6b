//! A folder with a scenario in it, and captime at work there.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use captime::journal::{By, OutcomeRecord, PullRecord, Reader, Record, Replay, Step};
use captime::orchestrator::{Next, ResolvedScenario, State};

/// Writes a program. A process of its own does it: what is open for writing cannot be executed, and whatever another test
/// forks holds our descriptors for a moment.
pub fn program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    assert!(writer.wait().unwrap().success());
}

pub struct TestRun {
    folder: tempfile::TempDir,
}

impl TestRun {
    /// A fresh folder with this scenario as `s.yaml`.
    pub fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.yaml"), scenario).unwrap();
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A program of this text.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        program(&path, text);
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
        command
            .args(args)
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    pub fn captime(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs the scenario and expects this exit code; gives stdout and stderr.
    pub fn run(&self, exit: i32, args: &[&str]) -> (String, String) {
        let output = self.captime(&[&["run", "s.yaml"], args].concat());
        expect(&output, exit)
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(&[&["run", "s.yaml"], args].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub fn run_folder(&self, name: &str) -> PathBuf {
        self.path().join("runs").join(name)
    }

    pub fn journal(&self, name: &str) -> PathBuf {
        self.run_folder(name).join("journal.jsonl")
    }

    /// Waits until the journal of a run has this many outcomes.
    pub fn wait_for_outcomes(&self, name: &str, count: usize) {
        let since = Instant::now();
        loop {
            let text = fs::read_to_string(self.journal(name)).unwrap_or_default();
            if text
                .lines()
                .filter(|line| line.starts_with("{\"outcome\""))
                .count()
                >= count
            {
                return;
            }
            assert!(
                since.elapsed() < Duration::from_mins(1),
                "no {count} outcomes in a minute"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A table of houses with this many rows, to grow forests on.
pub fn houses(rows: usize) -> String {
    let mut table = String::from("size,zone,price\n");
    for row in 0..rows {
        let (size, zone) = (row * 7 % 53, ["a", "b", "c"][row % 3]);
        writeln!(table, "{size},{zone},{}", size + row % 3).unwrap();
    }
    table
}

pub fn expect(output: &Output, exit: i32) -> (String, String) {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(exit),
        "stdout:\n{stdout}\nstderr:\n{stderr}"
    );
    (stdout, stderr)
}

/// The pulls and outcomes, in the order of the file.
pub fn story(folder: &Path) -> (Vec<PullRecord>, Vec<OutcomeRecord<'static>>) {
    let mut reader = Reader::open(folder).unwrap();
    let (mut pulls, mut outcomes) = (vec![], vec![]);
    while let Some(record) = reader.next().unwrap() {
        match record {
            Record::Pull(pull) => pulls.push(pull),
            Record::Outcome(outcome) => outcomes.push(outcome.into_owned()),
            _ => {}
        }
    }
    (pulls, outcomes)
}

/// Every decision in the journal is the one that an undisturbed run makes that sees the same outcomes in the same order.
pub fn decisions_follow(folder: &Path) {
    let reader = Reader::open(folder).unwrap();
    let plan = ResolvedScenario::read(reader.header(), folder)
        .unwrap()
        .plan();
    let mut state = State::new(plan);
    let mut replay = Replay::new(reader);
    while let Some(step) = replay.next().unwrap() {
        if let Step::Opened(recorded) = &step {
            assert_eq!(state.opening(recorded.arm).as_ref(), Some(&**recorded));
        }
        if let Step::Launched(recorded) = &step
            && recorded.by != Some(By::Earlier)
        {
            let Next::Pull(mut chosen) = state.choose() else {
                panic!("nothing to choose in round {}", recorded.round)
            };
            if recorded.seed.is_some() {
                chosen.seed = Some(state.target_seed(chosen.round));
            }
            assert_eq!(chosen, *recorded);
        }
        assert!(state.replay(&step));
    }
}

/// Processes whose command line holds this text, which only the test_run's own commands have.
pub fn alive(marker: &str) -> Vec<u32> {
    let mut found = vec![];
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(marker) {
            found.push(id);
        }
    }
    found
}

/// Nothing with this text in its command line is alive, at the latest after five seconds.
pub fn nothing_is_left(marker: &str) {
    let since = Instant::now();
    while !alive(marker).is_empty() {
        assert!(
            since.elapsed() < Duration::from_secs(5),
            "still alive: {:?}",
            alive(marker)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until this holds, as long as the child runs.
pub fn until(child: &mut Child, what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "ended before {what}: {ended:?}");
        assert!(since.elapsed() < Duration::from_mins(2), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn send(child: &Child, signal: nix::sys::signal::Signal) {
    let id = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(id, signal).unwrap();
}

/// A seed that differs from run to run. A test that fails shows it; set `CAPTIME_TEST_SEED` to repeat that test.
#[expect(clippy::print_stderr, reason = "a failure must be repeatable")]
pub fn test_seed() -> u64 {
    let given = std::env::var("CAPTIME_TEST_SEED").ok();
    let seed = given.map_or_else(
        || u64::from(std::process::id()),
        |text| text.parse().expect("CAPTIME_TEST_SEED is a whole number"),
    );
    eprintln!("CAPTIME_TEST_SEED={seed}");
    seed
}

/// Reports on stderr that a test cannot run here.
#[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Starts a program that answers lines on its input with lines on its output.
pub fn piped(command: &mut Command) -> (Child, Option<ChildStdin>, BufReader<ChildStdout>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, input, output)
}
