//! `captime exec` from outside: exit statuses, the report, and every way in which it can fail.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::unchecked_time_subtraction,
    reason = "test code: a panic is a failure, and a skipped test says so"
)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::limit::captime;
use crate::limit::test_bench::{Book, levels};
use crate::limit::traces::leaving_nothing;
use crate::test_run::program;

fn exec(arguments: &[&str]) -> Output {
    Command::new(captime())
        .arg("exec")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs with `--report -` and reads the last line of stderr.
fn report(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = exec(&[&["--report", "-"], arguments].concat());
    let stderr = text(&output.stderr);
    let line = stderr.lines().last().unwrap_or_default();
    let report = serde_json::from_str(line).unwrap_or_else(|_| panic!("no report: {stderr}"));
    (output.status.code(), report)
}

#[test]
fn the_status_is_the_commands_own() {
    for code in [0, 1, 7, 124, 137] {
        let output = exec(&["--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code(), Some(code));
    }
    let output = exec(&["--wall=10s", "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(output.status.code(), Some(128 + 11));
}

#[test]
fn a_limit_gives_124_and_its_cause() {
    let (status, seen) = report(&["--wall", "0.1s", "--", "sleep", "20"]);
    assert_eq!((status, &seen["cause"]), (Some(124), &"wall".into()));
    let (status, seen) = report(&["--cpu", "50ms", "--", "sh", "-c", "while :; do :; done"]);
    assert_eq!((status, &seen["cause"]), (Some(124), &"cpu".into()));
    let hog = "x=x; while :; do x=$x$x; done";
    let (status, seen) = report(&["--memory", "50MiB", "--", "sh", "-c", hog]);
    assert_eq!((status, &seen["cause"]), (Some(124), &"memory".into()));
}

#[test]
fn a_limit_hit_prints_one_line_for_people() {
    let output = exec(&["--wall", "0.1s", "--", "sleep", "20"]);
    let stderr = text(&output.stderr);
    assert!(
        stderr.starts_with("captime: wall limit of 0.1 s reached after 0.")
            && stderr.ends_with(" s; ended the command\n")
            && stderr.lines().count() == 1,
        "{stderr}"
    );
    assert_eq!(text(&exec(&["--wall", "10s", "--", "true"]).stderr), "");
}

#[test]
fn a_command_that_stops_captime_and_its_supervisor_still_meets_its_limit() {
    for level in levels() {
        for flags in [["--wall", "0.5s"], ["--cpu", "0.2s"]] {
            let book = Book::open();
            let mut child = Command::new(captime())
                .args(["exec", "--contain", "off", "--level", level])
                .args(flags)
                .args(["--report", "-", "--"])
                .args(book.command(&["stop-ancestors", "burn"]))
                .stdin(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // It would end by itself after 20 s, and captime would stay stopped.
            let since = Instant::now();
            while child.try_wait().unwrap().is_none() && since.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let output = child.wait_with_output().unwrap();
            let stderr = text(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(124),
                "{level} {flags:?}: {stderr}"
            );
            let seen: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
            assert_eq!(seen["cause"], flags[0][2..], "{level}: {stderr}");
            book.close();
        }
    }
}

/// Without descriptors, captime can neither list processes nor open handles for them.
#[test]
fn a_command_that_takes_captimes_descriptors_away_leaves_nothing_alive() {
    for level in levels() {
        let book = Book::open();
        let start = Instant::now();
        let output = Command::new(captime())
            .args(["exec", "--contain=off", "--wall=0.5s", "--level", level])
            .arg("--")
            .args(book.command(&["limit-parent"]))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let took = start.elapsed();
        // It would end by itself after 20 s.
        assert!(took < Duration::from_secs(10), "{level}: {took:?}");
        assert_ne!(output.status.code(), Some(0), "{level}");
        book.close();
    }
}

#[test]
fn the_report_has_exactly_the_documented_fields() {
    let (_, seen) = report(&[
        "--output-limit",
        "10",
        "--",
        "printf",
        "%s",
        "0123456789abcdef",
    ]);
    let mut keys: Vec<&str> = seen
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "cause",
            "command",
            "contain",
            "cpu_exact",
            "cpu_seconds",
            "exit_code",
            "left_behind",
            "level",
            "memory_exact",
            "peak_memory_bytes",
            "signal",
            "stderr",
            "stdout",
            "system_seconds",
            "user_seconds",
            "wall_seconds"
        ]
    );
    assert_eq!(seen["cause"], "none");
    assert_eq!(
        (&seen["exit_code"], &seen["signal"]),
        (&0.into(), &Value::Null)
    );
    let expected = serde_json::json!({"head": "01234", "tail": "bcdef", "dropped_bytes": 6});
    assert_eq!(seen["stdout"], expected);
    let (_, seen) = report(&["--", "true"]);
    assert!(seen.get("stdout").is_none());
}

#[test]
fn a_report_file_is_private_and_complete() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let path = file.to_str().unwrap();
    let output = exec(&["--report", path, "--", "echo", "to our stdout"]);
    assert_eq!(text(&output.stdout), "to our stdout\n");
    let seen: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(
        seen["command"],
        serde_json::json!(["echo", "to our stdout"])
    );
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let output = exec(&["--report", "/nonexistent/x", "--", "echo", "never run"]);
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn input_is_empty_a_file_or_ours() {
    assert_eq!(text(&exec(&["cat"]).stdout), "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in");
    std::fs::write(&file, "in a file").unwrap();
    let output = exec(&["--input", file.to_str().unwrap(), "cat"]);
    assert_eq!(text(&output.stdout), "in a file");
    let mut child = Command::new(captime())
        .args(["exec", "--input", "-", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"ours").unwrap();
    assert_eq!(text(&child.wait_with_output().unwrap().stdout), "ours");
    let output = exec(&["--input", "/nonexistent", "--", "cat"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("cannot read the input `/nonexistent`"));
}

#[test]
fn what_cannot_be_run_is_said_with_its_name_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    let broken = folder.path().join("broken");
    program(&broken, "#!/nonexistent/interpreter\n");
    for (command, status, reason) in [
        ("no-such-program", 127, "No such file"),
        ("/no/such/program", 127, "No such file"),
        (folder.path().to_str().unwrap(), 126, "Permission denied"),
        (plain.to_str().unwrap(), 126, "Permission denied"),
        (broken.to_str().unwrap(), 127, "No such file"),
    ] {
        for level in levels() {
            let mut exec = Command::new(captime());
            exec.args(["exec", "--level", level, "--wall", "10s", "--", command]);
            let output = leaving_nothing(&mut exec);
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{command}: {stderr}");
            assert!(
                stderr.contains(command) && stderr.contains(reason),
                "{stderr}"
            );
        }
    }
}

#[test]
fn a_script_without_a_first_line_runs_as_in_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    program(&script, "echo \"$1\"; exit 3\n");
    let output = exec(&["--", script.to_str().unwrap(), "argument"]);
    assert_eq!(text(&output.stdout), "argument\n");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn bad_usage_gives_125_and_says_what_to_write() {
    for (arguments, said) in [
        (
            &["--wall", "0s", "--", "true"][..],
            "the wall limit must not be zero",
        ),
        (
            &["--cpu", "0ms", "--", "true"],
            "the CPU limit must not be zero",
        ),
        (
            &["--memory", "0", "--", "true"],
            "the memory limit must not be zero",
        ),
        (&["--wall", "5", "--", "true"], "write `5s`"),
        (&["--wall=-1s", "--", "true"], "is no time span"),
        (&["--walls", "1s", "--", "true"], "--wall"),
        (
            &["--level", "docker", "--", "true"],
            "auto, cgroup2 or subreaper",
        ),
        (&["--cpus", "900", "--", "true"], "cannot pin"),
        (&["--cpus", "a", "--", "true"], "0,2-3"),
        (&["--input", "-", "--stop-on-stdin-eof", "true"], "stdin"),
        (&["--"], "COMMAND"),
        (&[], "COMMAND"),
    ] {
        let output = exec(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn help_tells_purpose_examples_and_exit_codes() {
    let output = exec(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for part in [
        "under limits",
        "Examples:",
        "Exit codes:",
        "--memory <SIZE>",
        "124",
    ] {
        assert!(help.contains(part), "{part}");
    }
}

#[test]
fn signals_to_us_end_the_tree_and_are_reported() {
    let asked = levels()
        .into_iter()
        .flat_map(|level| [(level, "INT", 130), (level, "TERM", 143)]);
    for (level, signal, status) in asked {
        let book = Book::open();
        let mut child = Command::new(captime())
            .args(["exec", "--level", level, "--report", "-", "--"])
            .args(book.command(&["deaf-daemon"]))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        book.wait_for_start();
        // Gives it time to misbehave.
        std::thread::sleep(Duration::from_millis(200));
        let pid = child.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {pid}")])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(status));
        was_cancelled(book, child, level);
    }
}

/// It ended long before its limit, left nothing alive, and reports what ended it.
fn was_cancelled(book: Book, child: Child, level: &str) {
    let books = book.close();
    assert!(books.end - books.start < Duration::from_secs(5));
    let seen: Value = serde_json::from_reader(child.stderr.unwrap()).unwrap();
    assert_eq!(seen["cause"], "cancelled");
    assert_eq!(seen["level"], level);
}

#[test]
fn a_long_command_line_starts_as_soon_as_a_short_one() {
    let long = "x".repeat(100_000);
    let mut arguments = vec!["--", "true"];
    // More than fits into a socket.
    arguments.extend([long.as_str(); 10]);
    let start = Instant::now();
    assert_eq!(exec(&arguments).status.code(), Some(0));
    assert!(start.elapsed() < Duration::from_millis(1500));
}

#[test]
fn a_request_to_stop_counts_from_the_first_moment() {
    let sleep = |flags: &[&str]| {
        Command::new(captime())
            .arg("exec")
            .args(flags)
            .args(["--", "sleep", "20"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let start = Instant::now();
    // While the supervisor starts, which takes about two milliseconds.
    for step in 0..40 {
        let mut child = sleep(&[]);
        std::thread::sleep(Duration::from_micros(100) * step);
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        child.wait().unwrap();
    }
    // Stdin that is at its end before anything was started.
    sleep(&["--stop-on-stdin-eof"]).wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[test]
fn the_end_of_stdin_can_stop_a_run() {
    for level in levels() {
        let book = Book::open();
        let mut child = Command::new(captime())
            .args(["exec", "--level", level, "--stop-on-stdin-eof"])
            .args(["--wall", "15s", "--report", "-", "--"])
            .args(book.command(&["daemon"]))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"still here\n").unwrap();
        book.wait_for_start();
        // Gives it time to misbehave.
        std::thread::sleep(Duration::from_millis(200));
        assert!(child.try_wait().unwrap().is_none());
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(143));
        was_cancelled(book, child, level);
    }
}

#[test]
fn a_memory_limit_below_what_exec_needs_is_a_clear_end() {
    for level in levels() {
        // From a limit that even a descriptor exceeds to one that some programs could start under.
        for limit in ["1B", "4KiB", "64KiB", "128KiB", "256KiB"] {
            memory_is_too_small(level, limit);
        }
    }
}

/// Before Linux 6.2 a process's own count of its pages is up to 64 behind for each thread: 256 KiB that a look does not see.
fn counts_pages_in_batches() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap(), numbers.next().unwrap());
    version < (6, 2)
}

fn memory_is_too_small(level: &str, limit: &str) {
    let mut command = Command::new(captime());
    command
        .args(["exec", "--level", level, "--memory", limit])
        .args(["--report", "-", "--", "sleep"])
        // Where memory is sampled, long enough for a look on the slowest machine.
        .arg(if level == "cgroup2" { "1" } else { "10" });
    let output = leaving_nothing(&mut command);
    let stderr = text(&output.stderr);
    let seen: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    match output.status.code() {
        // What a start takes differs from kernel to kernel.
        Some(0) if level == "cgroup2" && limit.len() == "128KiB".len() => {
            assert_eq!(seen["cause"], "none");
        }
        Some(0) if level == "subreaper" && counts_pages_in_batches() => {
            assert_eq!(seen["memory_exact"], false);
        }
        Some(124) => {
            assert_eq!(seen["cause"], "memory", "{limit}: {stderr}");
            assert_eq!(seen["level"], level);
        }
        Some(125) => assert!(stderr.contains("memory limit"), "{limit}: {stderr}"),
        other => panic!("{level}, {limit}: {other:?} {stderr}"),
    }
}

#[test]
fn the_command_gets_variables_and_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let directory = path.to_str().unwrap();
    let script = "echo $ONE-$TWO; pwd";
    let said = exec(&[
        "--env",
        "ONE=1",
        "--env=TWO=a=b",
        "--directory",
        directory,
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(
        String::from_utf8_lossy(&said.stdout),
        format!("1-a=b\n{directory}\n")
    );
    for wrong in [&["--env", "ONE", "true"][..], &["--env", "=1", "true"]] {
        let said = exec(wrong);
        assert_ne!(said.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&said.stderr).contains("write NAME=VALUE"));
    }
    let said = exec(&["--directory", "/nonexistent", "--", "true"]);
    assert_eq!(said.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&said.stderr).contains("/nonexistent"));
}
