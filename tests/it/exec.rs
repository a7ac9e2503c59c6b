//! `captime exec` from outside: exit statuses, the report, and every way in which it can fail.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::unchecked_time_subtraction,
    reason = "test code: a panic is a failure, and a skipped test says so"
)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use captime::limit::{Launch, Level, LimitError, Limits};
use serde_json::Value;

use crate::limit::stage::{Book, Stage, captime, groups, wall};

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
    std::fs::write(&broken, "#!/nonexistent/interpreter\n").unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (command, status, reason) in [
        ("no-such-program", 127, "No such file"),
        ("/no/such/program", 127, "No such file"),
        (folder.path().to_str().unwrap(), 126, "Permission denied"),
        (plain.to_str().unwrap(), 126, "Permission denied"),
        (broken.to_str().unwrap(), 127, "No such file"),
    ] {
        for level in ["auto", "subreaper"] {
            let output = exec(&["--level", level, "--wall", "10s", "--", command]);
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
    std::fs::write(&script, "echo \"$1\"; exit 3\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = exec(&["--", script.to_str().unwrap(), "argument"]);
    assert_eq!(text(&output.stdout), "argument\n");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn bad_usage_gives_125_and_says_what_to_write() {
    for (arguments, said) in [
        (&["--wall", "0s", "--", "true"][..], "a wall limit of zero"),
        (&["--cpu", "0ms", "--", "true"], "a CPU limit of zero"),
        (&["--memory", "0", "--", "true"], "a memory limit of zero"),
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
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let book = Book::open();
        let mut child = Command::new(captime())
            .args(["exec", "--report", "-", "--"])
            .args(book.command(&["deaf-daemon"]))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let pid = child.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {pid}")])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(status));
        let books = book.close();
        assert!(books.end - books.start < Duration::from_secs(5));
        let seen: Value = serde_json::from_reader(child.stderr.unwrap()).unwrap();
        assert_eq!(seen["cause"], "cancelled");
    }
}

#[test]
fn the_end_of_stdin_can_stop_a_run() {
    let book = Book::open();
    let mut child = Command::new(captime())
        .args(["exec", "--stop-on-stdin-eof", "--wall", "15s", "--"])
        .args(book.command(&["daemon"]))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"still here\n").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let books = book.close();
    assert!(books.end - books.start < Duration::from_secs(5));
}

#[test]
fn a_memory_limit_below_what_exec_needs_is_a_clear_end() {
    // From a limit that even a descriptor exceeds to one that some programs could start under.
    for limit in ["1B", "4KiB", "64KiB", "128KiB", "256KiB"] {
        let output = exec(&["--memory", limit, "--report", "-", "--", "sleep", "0.1"]);
        let stderr = text(&output.stderr);
        let seen: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
        match output.status.code() {
            // What a start takes differs from kernel to kernel.
            Some(0) if limit.len() == "128KiB".len() => assert_eq!(seen["cause"], "none"),
            Some(124) => assert_eq!(seen["cause"], "memory", "{limit}: {stderr}"),
            Some(125) => assert!(stderr.contains("memory limit"), "{limit}: {stderr}"),
            other => panic!("{limit}: {other:?} {stderr}"),
        }
    }
}

#[test]
fn ten_megabytes_of_arguments_are_refused_by_name() {
    for level in [Level::Cgroup2, Level::Subreaper] {
        let Some(mut stage) = Stage::at(level) else {
            continue;
        };
        let mut command = vec!["true".to_owned()];
        command.extend((0..100).map(|_| "x".repeat(100_000)));
        let error = stage
            .launch(&Launch::new(command), &wall(15_000))
            .unwrap_err();
        assert!(
            matches!(&error, LimitError::Exec { errno, .. } if errno.0 == libc::E2BIG),
            "{error}"
        );
        assert!(error.to_string().contains("`true`"), "{error}");
        // The slot goes on.
        let report = stage.launch(&Launch::new(["true"]), &wall(15_000)).unwrap();
        assert_eq!(report.exit_code, Some(0));
    }
}

#[test]
fn nul_in_an_argument_is_refused() {
    let mut stage = Stage::at(Level::Subreaper).unwrap();
    let error = stage.launch(&Launch::new(["true", "a\0b"]), &Limits::default());
    assert!(matches!(error, Err(LimitError::Nul { .. })), "{error:?}");
    let error = stage.launch(&Launch::default(), &Limits::default());
    assert_eq!(error, Err(LimitError::NoCommand));
}

#[test]
fn exhausted_descriptors_are_a_clear_error() {
    for level in ["auto", "subreaper"] {
        let mut outcomes = Vec::new();
        for limit in 3..28 {
            let script = format!(
                "ulimit -n {limit}; exec \"$0\" exec --level {level} --output-limit 1KiB --wall 10s -- true"
            );
            let output = Command::new("sh")
                .args(["-c", &script])
                .arg(captime())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let stderr = text(&output.stderr);
            assert!(!stderr.contains("panicked"), "{limit}: {stderr}");
            match output.status.code() {
                Some(0) => {}
                Some(125) => assert!(stderr.contains("Too many open files"), "{limit}: {stderr}"),
                // The dynamic linker itself could not open our libraries.
                Some(127) => assert!(stderr.contains("shared libraries"), "{limit}: {stderr}"),
                other => panic!("{limit}: {other:?} {stderr}"),
            }
            outcomes.push(output.status.code());
        }
        assert!(
            outcomes.contains(&Some(125)) && outcomes.contains(&Some(0)),
            "{outcomes:?}"
        );
    }
}

/// A user without any rights, to whom nothing belongs.
const NOBODY: u32 = 54_321;

/// `captime` as an unprivileged user; `None` unless we are root.
fn unprivileged(uid: u32) -> Option<Command> {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: needs root to become somebody else");
        return None;
    }
    let mut command = Command::new(captime());
    command
        .uid(uid)
        .gid(uid)
        .stdin(Stdio::null())
        .current_dir("/");
    Some(command)
}

/// True if the user may execute captime where it was built.
fn can_execute(uid: u32) -> bool {
    let able = unprivileged(uid).is_some_and(|mut command| {
        command
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    });
    if !able {
        eprintln!("skipped: the build folder is closed to other users");
    }
    able
}

#[test]
fn without_any_rights_the_level_is_subreaper_and_says_so() {
    if !can_execute(NOBODY) {
        return;
    }
    let mut command = unprivileged(NOBODY).unwrap();
    let output = command
        .args([
            "exec", "--wall", "0.1s", "--report", "-", "--", "sleep", "20",
        ])
        .output()
        .unwrap();
    let seen: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(seen["level"], "subreaper");
    assert_eq!(
        (&seen["cpu_exact"], &seen["memory_exact"]),
        (&false.into(), &false.into())
    );
    let mut command = unprivileged(NOBODY).unwrap();
    let output = command
        .args(["exec", "--level", "cgroup2", "--", "true"])
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr.contains("level `cgroup2` is not available"),
        "{stderr}"
    );
    assert!(stderr.contains("captime check"), "{stderr}");
    let output = unprivileged(NOBODY).unwrap().arg("check").output().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("level   subreaper"), "{said}");
    assert!(said.contains("systemd-run --user --scope"), "{said}");
}

#[test]
fn a_delegated_subtree_is_enough_for_exact_limits() {
    let uid = NOBODY + 1;
    let hybrid = Path::new("/sys/fs/cgroup/unified");
    if !can_execute(uid) || !hybrid.join("cgroup.procs").exists() || groups_are_closed() {
        eprintln!("skipped: needs root and a hybrid cgroup machine");
        return;
    }
    let unified = hybrid.join(format!("delegated-{}", std::process::id()));
    let memory = Path::new("/sys/fs/cgroup/memory").join(unified.file_name().unwrap());
    for (folder, files) in [
        (
            &unified,
            &["cgroup.procs", "cgroup.subtree_control", "cgroup.threads"][..],
        ),
        (&memory, &["cgroup.procs", "tasks"][..]),
    ] {
        std::fs::create_dir(folder).unwrap();
        std::os::unix::fs::chown(folder, Some(uid), Some(uid)).unwrap();
        for file in files {
            std::os::unix::fs::chown(folder.join(file), Some(uid), Some(uid)).unwrap();
        }
    }
    let script = format!(
        "echo $$ > {0}/cgroup.procs; echo $$ > {1}/cgroup.procs; \
         exec setpriv --reuid {uid} --regid {uid} --clear-groups \"$0\" exec --memory 50MiB --report - -- \
         sh -c 'x=x; while :; do x=$x$x; done'",
        unified.display(),
        memory.display()
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(captime())
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    let left = [&unified, &memory].map(std::fs::remove_dir);
    let seen: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(124), "{stderr}");
    assert_eq!(
        (&seen["level"], &seen["cause"]),
        (&"cgroup2".into(), &"memory".into())
    );
    assert_eq!(
        (&seen["cpu_exact"], &seen["memory_exact"]),
        (&true.into(), &true.into())
    );
    assert!(
        left.iter().all(Result::is_ok),
        "groups were left behind: {left:?}"
    );
}

/// True where even root cannot make groups.
fn groups_are_closed() -> bool {
    Stage::at(Level::Cgroup2).is_none()
}

#[test]
fn without_a_cgroup_filesystem_limits_still_hold() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: needs root to hide the cgroup filesystem");
        return;
    }
    let script = "umount -R -l /sys/fs/cgroup || exit 77; \"$0\" check; \
                  exec \"$0\" exec --wall 0.1s --report - -- sleep 20";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(captime())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if output.status.code() == Some(77) || text(&output.stderr).contains("unshare failed") {
        eprintln!("skipped: no private mounts here");
        return;
    }
    let seen: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(
        (&seen["level"], &seen["cause"]),
        (&"subreaper".into(), &"wall".into())
    );
    let said = text(&output.stdout);
    assert!(said.contains("no cgroup2 filesystem is mounted"), "{said}");
}

#[test]
fn a_reached_process_limit_is_a_clear_error() {
    // A user of its own, since the kernel counts the processes of a user, not of a program.
    let uid = NOBODY + 2;
    if !can_execute(uid) {
        return;
    }
    let mut outcomes = Vec::new();
    for limit in 1..4 {
        let id = uid.to_string();
        let output = Command::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .args(["prlimit", &format!("--nproc={limit}")])
            .arg(captime())
            .args(["exec", "--wall", "10s", "--", "true"])
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert!(!stderr.contains("panicked"), "{stderr}");
        match output.status.code() {
            Some(0) => {}
            Some(125) => assert!(
                stderr.contains("Resource temporarily unavailable"),
                "{stderr}"
            ),
            other => panic!("{limit}: {other:?} {stderr}"),
        }
        outcomes.push(output.status.code());
    }
    assert!(
        outcomes.contains(&Some(125)) && outcomes.contains(&Some(0)),
        "{outcomes:?}"
    );
}

#[test]
fn nothing_is_left_behind_by_a_run_that_failed() {
    let mine = |pid: u32| {
        let name = format!("captime-{pid}-");
        groups()
            .iter()
            .filter(|path| path.to_string_lossy().contains(&name))
            .count()
    };
    let child = Command::new(captime())
        .args(["exec", "--memory", "1B", "--", "no-such-program"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(125 | 127)));
    assert_eq!(mine(pid) + mine(pid + 1), 0);
}
