//! Users without any rights: what they may not signal, and what user namespaces give them.

use std::fs::{File, Permissions, set_permissions};
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::delegated::Somebody;
use super::keeping::pid;
use super::scarce::text;
use super::test_bench::{Book, misbehave, skip};

/// A program that belongs to root and has the setuid bit.
struct SetUser {
    folder: tempfile::TempDir,
}

impl SetUser {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let program = folder.path().join("misbehave");
        // Not by this process: what is open for writing cannot be executed, and other tests fork meanwhile.
        let copied = Command::new("cp").arg(misbehave()).arg(&program).status();
        assert!(copied.unwrap().success());
        set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
        Self { folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("misbehave")
    }
}

/// Starts the program; its stderr goes to a file, since the end of a pipe would wait for what cannot be ended.
fn exec(somebody: &Somebody, flags: &[&str], program: &SetUser, book: &Book) -> (Child, File) {
    let said = tempfile::tempfile().unwrap();
    let mut command = somebody.captime();
    command.args(["exec", "--report=-"]).args(flags).arg("--");
    command
        .arg(program.program())
        .arg(book.path())
        .arg("become-root");
    command
        .stdout(Stdio::null())
        .stderr(said.try_clone().unwrap());
    (command.spawn().unwrap(), said)
}

#[test]
fn a_process_that_may_not_be_signalled_ends_neither_the_wait_nor_the_patience() {
    let Some(somebody) = Somebody::new(54_341) else {
        return;
    };
    let program = SetUser::new();
    // It ends by itself after 20 s.
    let book = Book::open();
    let start = Instant::now();
    let flags = ["--contain=off", "--wall=1s"];
    let (mut front, mut said) = exec(&somebody, &flags, &program, &book);
    let status = front.wait().unwrap();
    let took = start.elapsed();
    let mut stderr = String::new();
    said.rewind().unwrap();
    said.read_to_string(&mut stderr).unwrap();
    assert!(took < Duration::from_secs(8), "{took:?}: {stderr}");
    assert!(stderr.contains("another user"), "{stderr}");
    assert_ne!(status.code(), Some(0));
    // A second Ctrl-C leaves, whatever cannot be ended.
    let book = Book::open();
    let flags = ["--contain=off"];
    let (mut front, _) = exec(&somebody, &flags, &program, &book);
    book.wait_for_start();
    std::thread::sleep(Duration::from_millis(200));
    let asked = Instant::now();
    let id = pid(front.id());
    let interrupt = || rustix::process::kill_process(id, Signal::INT).unwrap();
    interrupt();
    std::thread::sleep(Duration::from_millis(400));
    interrupt();
    let status = front.wait().unwrap();
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_ne!(status.code(), Some(0));
}

#[test]
fn user_namespaces_contain_without_any_rights() {
    let Some(somebody) = Somebody::new(54_342) else {
        return;
    };
    let check = somebody.captime().arg("check").output().unwrap();
    if text(&check.stdout).contains("contain off") {
        skip(&"no user namespaces");
        return;
    }
    let program = SetUser::new();
    for contain in ["pids", "full"] {
        // With `full` it would not see what is below `/tmp`.
        let is_visible = !program.program().starts_with("/tmp") || contain == "pids";
        let inner = if is_visible {
            format!(
                "{} {} become-root",
                program.program().display(),
                "/dev/null"
            )
        } else {
            "sleep 20".to_owned()
        };
        let script = format!(
            "kill -0 {} 2>/dev/null && echo escaped; ls -d /proc/[0-9]* | wc -l; setsid {inner} & exec {inner}",
            std::process::id()
        );
        let mut command = somebody.captime();
        command.args([
            "exec",
            "--report=-",
            "--wall=1s",
            "--contain",
            contain,
            "--",
        ]);
        command.args(["sh", "-c", &script]);
        let start = Instant::now();
        let output = command.output().unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(!stdout.contains("escaped"), "{stdout}{stderr}");
        let seen: usize = stdout
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("{stdout}{stderr}"));
        assert!(seen < 10, "it sees {seen} processes");
        let report = stderr.lines().find(|line| line.starts_with('{'));
        let report: Value = serde_json::from_str(report.unwrap()).unwrap();
        assert_eq!(report["contain"], contain, "{stderr}");
        assert_eq!(report["cause"], "wall", "{stderr}");
        assert_eq!(report["level"], "subreaper", "{stderr}");
    }
}

/// captime's processes are not dumpable, so only root can trace them.
#[test]
fn an_ordinary_user_cannot_trace_its_supervisor() {
    let Some(somebody) = Somebody::new(54_343) else {
        return;
    };
    let program = SetUser::new();
    set_permissions(program.program(), Permissions::from_mode(0o755)).unwrap();
    let book = Book::open();
    let mut command = somebody.captime();
    command.args(["exec", "--contain=off", "--wall=0.5s", "--report=-", "--"]);
    command
        .arg(program.program())
        .arg(book.path())
        .arg("trace-parent");
    let output = command.output().unwrap();
    let stderr = text(&output.stderr);
    let report: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(report["cause"], "wall", "{stderr}");
    book.close();
}

#[test]
fn a_run_of_an_ordinary_user_names_its_level_and_draws_ascii_if_asked() {
    let Some(somebody) = Somebody::new(54_344) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let scenario = "
name: weak
target: {command: [sh, -c, 'echo 0.5'], reward: {stdout: '([0-9.]+)'}}
arms: {list: [{name: a}, {name: b}]}
limits: {of: wall, grid: [10s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 4}
";
    std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let mut command = somebody.captime();
    command.current_dir(folder.path()).env("LC_ALL", "C");
    let output = command.args(["run", "s.yaml"]).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("enforced at level `subreaper`"), "{stderr}");
    assert!(stdout.contains("enforced at level `subreaper`"), "{stdout}");
    assert!(stdout.is_ascii() && stderr.is_ascii(), "{stdout}{stderr}");
}

/// A new run must outlive a power cut, so `runs/` is opened and synced when a folder is made in it. A `runs/` that may be written but
/// not opened shows that: as the root user may open everything, this is about others.
#[test]
fn a_run_whose_folder_cannot_be_synced_is_refused() {
    let is_root = rustix::process::getuid().is_root();
    let somebody = is_root.then(|| Somebody::new(54_345)).flatten();
    let folder = tempfile::tempdir().unwrap();
    set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let write = |name: &str, rounds: u32| {
        let scenario = format!(
            "
name: {name}
target: {{synthetic: {{problem: poscorr}}}}
policy: uniform
budget: {{rounds: {rounds}}}
"
        );
        std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    };
    let runs = folder.path().join("runs");
    let run = |name: &str, rounds: u32| {
        write(name, rounds);
        let mut command = match &somebody {
            Some(somebody) => somebody.captime(),
            None => Command::new(super::captime()),
        };
        let output = command.current_dir(folder.path()).args(["run", "s.yaml"]);
        let output = output.output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let permit = |mode: u32| set_permissions(&runs, Permissions::from_mode(mode)).unwrap();
    let (code, said) = run("first", 2);
    assert_eq!(code, Some(0), "{said}");
    permit(0o300);
    for _ in 0..2 {
        let (code, said) = run("second", 2);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("Permission denied"), "{said}");
        assert!(!runs.join("second").exists(), "nothing is left of it");
    }
    // Nothing is made in it when a run is resumed.
    let (code, said) = run("first", 4);
    assert_eq!(code, Some(0), "{said}");
    permit(0o700);
    let (code, said) = run("second", 2);
    assert_eq!(code, Some(0), "{said}");
}
