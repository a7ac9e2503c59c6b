//! A run on a terminal: what is drawn, and what happens when the terminal is closed.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};

use crate::test_run::{TestRun, alive, decisions_follow, houses, nothing_is_left, story, until};

/// A terminal and the captime that has it.
struct Session {
    master: PtyMaster,
    captime: Child,
    shown: String,
}

impl Session {
    /// `captime ARGS` as the leader of a session of its own on a new terminal.
    fn start(test_run: &TestRun, args: &[&str], env: &[(&str, &str)]) -> Self {
        // Not `openpty`: what other tests start meanwhile would inherit the terminal and keep it open.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NOCTTY.bits())
            .open(ptsname_r(&master).unwrap())
            .unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let sized = Command::new("stty")
            .args(["rows", "40", "cols", "120"])
            .stdin(end())
            .status();
        assert!(sized.unwrap().success());
        let captime = Command::new("setsid")
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_captime"))
            .args(args)
            .current_dir(test_run.path())
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .envs(env.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Self {
            master,
            captime,
            shown: String::new(),
        }
    }

    /// Reads what is drawn until it holds this text.
    fn until(&mut self, text: &str) {
        let since = Instant::now();
        while !self.shown.contains(text) {
            assert!(
                since.elapsed() < Duration::from_mins(1),
                "no `{text}` in {:?}",
                self.shown
            );
            assert!(self.read(), "closed before `{text}`: {:?}", self.shown);
        }
    }

    /// Reads what there is; false at the end.
    fn read(&mut self) -> bool {
        let mut waits = [PollFd::new(self.master.as_fd(), PollFlags::POLLIN)];
        poll(&mut waits, PollTimeout::from(200_u16)).unwrap();
        if waits[0].revents().is_none_or(|events| events.is_empty()) {
            return true;
        }
        let mut bytes = [0; 4096];
        match self.master.read(&mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.shown += &String::from_utf8_lossy(&bytes[..count]);
                true
            }
        }
    }

    /// Reads to the end and gives the exit code with all that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        while self.captime.try_wait().unwrap().is_none() {
            self.read();
        }
        let code = self.captime.wait().unwrap().code();
        let mut left = 100;
        while left > 0 && self.read() {
            left -= 1;
        }
        (code, self.shown)
    }
}

fn sleeping(marker: &str, seconds: &str, rounds: u64) -> String {
    format!(
        "
name: watched
target:
  command: [sh, -c, ': {marker}; sleep {seconds}; echo score=0.{{a}}']
  reward: {{stdout: 'score=([0-9.]+)'}}
arms: {{grid: {{a: [1, 5, 9]}}}}
limits: {{of: wall, grid: [500s]}}
price: {{cost: x, penalty: 10 * x}}
policy: rcucb
budget: {{rounds: {rounds}}}
slots: 2
pin: never
"
    )
}

/// Whether there are colours in it; moving the cursor is none.
fn has_colours(text: &str) -> bool {
    text.split("\u{1b}[").skip(1).any(|rest| {
        let end = rest.find(|letter: char| letter.is_ascii_alphabetic());
        end.is_some_and(|end| rest[end..].starts_with('m') && end > 0 && &rest[..end] != "0")
    })
}

#[test]
fn progress_is_drawn_on_a_terminal_and_ctrl_c_there_stops_the_run() {
    let marker = format!("drawn-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, "0.1{a}", 500));
    let mut session = Session::start(&test_run, &["run", "s.yaml"], &[("NO_COLOR", "1")]);
    for text in [
        "best so far",
        "rounds/s",
        "slot 1  round",
        "slot 2  round",
        "up to 8m 20s of wall time, started ",
        "Ctrl-C to stop",
    ] {
        session.until(text);
    }
    // What the terminal's driver does on Ctrl-C: SIGINT for the whole foreground group.
    session.master.write_all(b"\x03").unwrap();
    session.until("stopping; press Ctrl-C again");
    let (code, shown) = session.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("captime run s.yaml"), "{shown}");
    assert!(!has_colours(&shown), "{shown:?}");
    nothing_is_left(&marker);
    decisions_follow(&test_run.run_folder("watched"));
}

/// With other nodes, each has a line instead of each slot. One that is lost is shown as away.
#[test]
fn a_run_on_nodes_shows_a_line_for_each_of_them() {
    let marker = format!("by-node-{}", std::process::id());
    let once = "test ! -e gone && touch gone && exec timeout -s KILL 3 $0 agent";
    let nodes = format!(
        "{{launch: [{{command: [{program:?}, agent], slots: 3}}, [sh, -c, {once:?}, {program:?}]]}}",
        program = env!("CARGO_BIN_EXE_captime")
    );
    let text = sleeping(&marker, "0.1{a}", 500).replace("slots: 2\n", &format!("slots: {nodes}\n"));
    let test_run = TestRun::new(&text);
    let mut session = Session::start(&test_run, &["run", "s.yaml"], &[("NO_COLOR", "1")]);
    for text in [
        "node captime-1: 3 slots, ",
        " rounds",
        "node sh-2: 0 slots, ",
        " lost with it (",
        "(away)",
    ] {
        session.until(text);
    }
    session.master.write_all(b"\x03").unwrap();
    let (code, shown) = session.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(!shown.contains("slot 1  round"), "{shown}");
    nothing_is_left(&marker);
}

#[test]
fn colours_are_shown_on_a_terminal_unless_they_are_unwelcome() {
    let test_run = TestRun::new("target: external\nlimts: 5\n");
    let shown = |env: &[(&str, &str)]| {
        let (code, shown) = Session::start(&test_run, &["check", "s.yaml"], env).end();
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains("did you mean"), "{shown}");
        shown
    };
    assert!(has_colours(&shown(&[])));
    assert!(!has_colours(&shown(&[("NO_COLOR", "1")])));
}

#[test]
fn a_terminal_that_is_closed_ends_the_run_and_it_goes_on() {
    let marker = format!("closed-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, "100{a}", 4));
    let mut session = Session::start(&test_run, &["run", "s.yaml"], &[]);
    session.until("slot 2  round 2");
    until(&mut session.captime, "two pulls", || {
        alive(&marker).len() > 1
    });
    let Session {
        master,
        mut captime,
        ..
    } = session;
    drop(master);
    let status = captime.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{status}");
    nothing_is_left(&marker);
    let journal = fs::read_to_string(test_run.journal("watched")).unwrap();
    let last = journal.lines().last().unwrap();
    assert!(last.starts_with("{\"end\":\"interrupted\""), "{last}");
    let (pulls, _) = story(&test_run.run_folder("watched"));
    // The same pulls run again.
    let mut again = Session::start(&test_run, &["run", "s.yaml"], &[]);
    again.until("slot 2  round 2");
    assert_eq!(story(&test_run.run_folder("watched")).0, pulls);
    let Session {
        master,
        mut captime,
        ..
    } = again;
    drop(master);
    assert_eq!(captime.wait().unwrap().code(), Some(130));
    nothing_is_left(&marker);
}

#[test]
fn a_terminal_that_was_stopped_does_not_stop_the_run() {
    let marker = format!("stuck-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, "0.1{a}", 500));
    let mut session = Session::start(&test_run, &["run", "s.yaml"], &[]);
    session.until("slot 2  round");
    // Ctrl-S: the terminal takes nothing any more.
    session.master.write_all(b"\x13").unwrap();
    let outcomes = || story(&test_run.run_folder("watched")).1.len();
    let (since, before) = (Instant::now(), outcomes());
    // Long enough for a terminal that blocks to block the loop.
    while since.elapsed() < Duration::from_secs(3) || outcomes() < before + 20 {
        assert!(since.elapsed() < Duration::from_mins(1), "{}", outcomes());
        std::thread::sleep(Duration::from_millis(50));
    }
    session.master.write_all(b"\x11\x03").unwrap();
    session.until("stopping; press Ctrl-C again");
    let (code, shown) = session.end();
    assert_eq!(code, Some(130), "{shown}");
    nothing_is_left(&marker);
}

#[test]
fn a_calibration_is_drawn_as_one() {
    let test_run = TestRun::new(
        "
name: calibrating
target: {forest: {data: houses.csv, predict: price}}
arms: {grid: {trees: [1, 2, 3, 4, 5], mtry: [1, 2]}}
limits: {of: cpu, cpu: 20s, calibrate: {points: 3}}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 40}
slots: 1
pin: never
",
    );
    test_run.write("houses.csv", &houses(3000));
    let (code, shown) = Session::start(&test_run, &["run", "s.yaml"], &[]).end();
    assert_eq!(code, Some(0), "{shown}");
    for text in ["their run times set the limits", "calibrated: 3 limits"] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
}
