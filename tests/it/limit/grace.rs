//! A grace period is cut short by a further request, and by the death of captime.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::captime;
use super::keeping::{for_each_level, pid};
use super::test_bench::TestBench;
use super::traces::groups_of_are_gone;

/// Says when it is asked to leave, and stays; ends by itself after 20 s.
const DEAF: &str =
    "trap 'echo asked' TERM; echo ready; i=0; while [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done";
/// Takes its time to leave when asked.
const SLOW: &str = "trap 'echo asked; sleep 1; echo done; exit 0' TERM; echo ready; i=0; while [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done";

/// A `captime exec` with a grace period of 15 s, whose command holds our end of its stdout for as long as it lives.
struct Patient {
    front: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Patient {
    /// Starts it and returns when its command is ready.
    fn start(bench: &TestBench, flags: &[&str], script: &str) -> Self {
        let level = bench.level().name();
        let mut front = Command::new(captime())
            .args(["exec", "--level", level, "--grace", "15s"])
            .args(flags)
            .args(["--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(front.stdout.take().unwrap());
        let stdin = front.stdin.take();
        let mut patient = Self {
            front,
            stdin,
            lines,
        };
        patient.says("ready");
        patient
    }

    fn says(&mut self, expected: &str) {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), expected);
    }

    fn send(&self, signal: Signal) {
        rustix::process::kill_process(pid(self.front.id()), signal).unwrap();
    }

    /// Everything ends long before the grace period does; gives the exit status.
    fn ends_soon(mut self) -> Option<i32> {
        let start = Instant::now();
        self.lines.read_to_end(&mut Vec::new()).unwrap();
        let lasted = start.elapsed();
        assert!(lasted < Duration::from_secs(6), "{lasted:?}");
        let status = self.front.wait().unwrap();
        groups_of_are_gone(self.front.id());
        status.code()
    }
}

#[test]
fn killing_captime_exec_in_a_grace_period_leaves_nothing_alive() {
    for_each_level(|bench| {
        let mut patient = Patient::start(bench, &["--wall", "1s"], DEAF);
        patient.says("asked");
        patient.send(Signal::KILL);
        assert_eq!(patient.ends_soon(), None);
    });
}

#[test]
fn a_signal_to_us_ends_the_grace_period_after_a_limit() {
    for_each_level(|bench| {
        let mut patient = Patient::start(bench, &["--wall", "1s"], DEAF);
        patient.says("asked");
        patient.send(Signal::TERM);
        assert_eq!(patient.ends_soon(), Some(124), "the limit was first");
    });
}

#[test]
fn a_second_signal_to_us_ends_the_grace_period_after_the_first() {
    for_each_level(|bench| {
        let mut patient = Patient::start(bench, &[], DEAF);
        patient.send(Signal::INT);
        patient.says("asked");
        // Later than what counts as one request.
        std::thread::sleep(Duration::from_millis(600));
        assert!(patient.front.try_wait().unwrap().is_none());
        patient.send(Signal::INT);
        assert_eq!(patient.ends_soon(), Some(130));
    });
}

#[test]
fn two_signals_in_the_same_moment_are_one_request() {
    for_each_level(|bench| {
        let mut patient = Patient::start(bench, &[], SLOW);
        patient.send(Signal::STOP);
        patient.send(Signal::INT);
        patient.send(Signal::TERM);
        patient.send(Signal::CONT);
        patient.says("asked");
        patient.says("done");
        assert!(matches!(patient.ends_soon(), Some(130 | 143)));
    });
}

#[test]
fn the_end_of_stdin_is_a_request_and_then_none() {
    for_each_level(|bench| {
        let mut patient = Patient::start(bench, &["--stop-on-stdin-eof"], SLOW);
        drop(patient.stdin.take());
        patient.says("asked");
        patient.says("done");
        assert_eq!(patient.ends_soon(), Some(143));
    });
}

#[test]
fn the_end_of_stdin_ends_the_grace_period_after_a_limit() {
    for_each_level(|bench| {
        let flags = ["--stop-on-stdin-eof", "--wall", "1s"];
        let mut patient = Patient::start(bench, &flags, DEAF);
        patient.says("asked");
        drop(patient.stdin.take());
        assert_eq!(patient.ends_soon(), Some(124));
    });
}
