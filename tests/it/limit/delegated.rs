//! Unprivileged users to whom a part of the control groups was delegated.

use std::fs::{Permissions, create_dir, read_to_string, remove_dir, set_permissions, write};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use captime_limit::Level;
use serde_json::Value;

use super::captime;
use super::scarce::text;
use super::test_bench::{TestBench, skip};
use super::traces::{leaving_nothing, leaving_nothing_after};

/// An unprivileged user.
pub struct Somebody {
    uid: u32,
    program: PathBuf,
    /// Where the build folder is closed to others.
    _copy: Option<tempfile::TempDir>,
}

impl Somebody {
    /// `None`, said on stderr, unless we are root.
    pub fn new(uid: u32) -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            skip(&"needs root to become somebody else");
            return None;
        }
        let plain = Self {
            uid,
            program: captime(),
            _copy: None,
        };
        let version = plain.captime().arg("--version").output();
        if version.is_ok_and(|output| output.status.success()) {
            return Some(plain);
        }
        let folder = tempfile::tempdir().unwrap();
        set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join("captime");
        // Not by this process: what is open for writing cannot be executed, and other tests fork meanwhile.
        let copied = Command::new("cp").arg(captime()).arg(&program).status();
        assert!(copied.unwrap().success());
        Some(Self {
            uid,
            program,
            _copy: Some(folder),
        })
    }

    fn start(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let uid = self.uid;
        command.uid(uid).gid(uid).current_dir("/");
        command.stdin(Stdio::null());
        command
    }

    /// `captime`, to be given arguments.
    pub fn captime(&self) -> Command {
        self.start(&self.program)
    }

    /// `captime` after some lines of shell.
    pub fn shell(&self, before: &str) -> Command {
        let mut command = self.start(Path::new("sh"));
        command
            .args(["-c", &format!("{before}\nexec \"$@\""), "sh"])
            .arg(&self.program);
        command
    }
}

/// Where the cgroup2 hierarchy is.
fn unified() -> &'static Path {
    let hybrid = Path::new("/sys/fs/cgroup/unified");
    if hybrid.exists() {
        hybrid
    } else {
        Path::new("/sys/fs/cgroup")
    }
}

/// Where the v1 memory hierarchy is, on hybrid machines.
fn legacy() -> Option<&'static Path> {
    Some(Path::new("/sys/fs/cgroup/memory")).filter(|folder| folder.join("tasks").exists())
}

/// Groups that were delegated to a user.
pub struct Delegated<'a> {
    to: &'a Somebody,
    /// All of them, the outermost first.
    folders: Vec<PathBuf>,
    /// Those whose member the user is.
    entered: Vec<PathBuf>,
}

impl<'a> Delegated<'a> {
    /// Groups in which captime will be the only process, as in a scope of systemd's.
    pub fn alone(to: &'a Somebody) -> Option<Self> {
        Self::new(to, false)
    }

    /// Groups in which captime is beside the shell it was started from.
    fn beside_a_shell(to: &'a Somebody) -> Option<Self> {
        Self::new(to, true)
    }

    fn new(to: &'a Somebody, beside: bool) -> Option<Self> {
        TestBench::at(Level::Cgroup2)?;
        let name = format!("delegated-{}-{}", std::process::id(), to.uid);
        let outer = unified().join(&name);
        let mut folders = vec![outer.clone()];
        let mut entered = vec![outer.clone()];
        let mut to_enable = Vec::new();
        if let Some(legacy) = legacy() {
            folders.push(legacy.join(&name));
            entered.push(legacy.join(&name));
        } else {
            to_enable.push(unified().to_owned());
            if beside {
                folders.push(outer.join("shell"));
                entered = vec![outer.join("shell")];
                to_enable.push(outer);
            }
        }
        for folder in &folders {
            create_dir(folder).unwrap();
            chown(folder, Some(to.uid), Some(to.uid)).unwrap();
            for file in ["cgroup.procs", "cgroup.subtree_control"] {
                let file = folder.join(file);
                if file.exists() {
                    chown(file, Some(to.uid), Some(to.uid)).unwrap();
                }
            }
        }
        for folder in to_enable {
            write(folder.join("cgroup.subtree_control"), "+memory").unwrap();
        }
        Some(Self {
            to,
            folders,
            entered,
        })
    }

    /// `captime` after some lines of shell, for [`run`](Self::run).
    pub fn shell(&self, before: &str) -> Command {
        let mut command = self.to.shell(&format!("read go\n{before}"));
        command.stdin(Stdio::piped());
        command
    }

    /// Runs it in the groups: only root may put it there.
    pub fn run(&self, command: &mut Command) -> Output {
        leaving_nothing_after(command, |child| {
            for folder in &self.entered {
                write(folder.join("cgroup.procs"), child.id().to_string()).unwrap();
            }
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        })
    }

    /// Removes the groups; fails if captime has left some of its own in them.
    pub fn close(self) {
        remove(&self.folders);
    }
}

fn remove(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let removed = remove_dir(folder);
        let left: Vec<_> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .collect();
        assert!(removed.is_ok(), "{removed:?}, left behind: {left:?}");
    }
}

/// A program that wants ever more memory, under a limit of 50 MiB.
const GREEDY: [&str; 8] = [
    "exec",
    "--memory=50MiB",
    "--report=-",
    "--wall=60s",
    "--",
    "sh",
    "-c",
    "x=x; while :; do x=$x$x; done",
];

/// Level `cgroup2`, and a memory limit that the kernel kept.
fn was_exact(output: &Output) {
    let stderr = text(&output.stderr);
    let seen: Value = serde_json::from_str(stderr.lines().last().unwrap_or_default())
        .unwrap_or_else(|_| panic!("{stderr}"));
    assert_eq!(output.status.code(), Some(124), "{stderr}");
    assert_eq!(
        (&seen["level"], &seen["cause"]),
        (&"cgroup2".into(), &"memory".into()),
        "{stderr}"
    );
    assert_eq!(
        (&seen["cpu_exact"], &seen["memory_exact"]),
        (&true.into(), &true.into()),
        "{stderr}"
    );
    assert!(seen["peak_memory_bytes"].as_u64().unwrap() <= 50 << 20);
}

#[test]
fn a_delegated_subtree_is_enough_for_exact_limits() {
    let Some(somebody) = Somebody::new(54_331) else {
        return;
    };
    for delegate in [Delegated::alone, Delegated::beside_a_shell] {
        let Some(delegated) = delegate(&somebody) else {
            return;
        };
        // Alone means that even its shell is gone; a shell that waits is another process in the group.
        let output = delegated.run(delegated.shell("").args(GREEDY));
        was_exact(&output);
        delegated.close();
    }
    let Some(delegated) = Delegated::beside_a_shell(&somebody) else {
        return;
    };
    let before = "\"$@\"; status=$?; true; exit $status";
    was_exact(&delegated.run(delegated.shell(before).args(GREEDY)));
    delegated.close();
}

/// The lines of `captime check` that begin with `word`, without it.
fn said(check: &str, word: &str) -> Vec<String> {
    check
        .lines()
        .filter_map(|line| line.strip_prefix(word))
        .map(|rest| rest.trim_start().to_owned())
        .collect()
}

#[test]
fn what_check_advises_gives_exact_limits() {
    let Some(somebody) = Somebody::new(54_332) else {
        return;
    };
    if TestBench::at(Level::Cgroup2).is_none() {
        return;
    }
    let check = leaving_nothing(somebody.captime().arg("check"));
    assert_eq!(check.status.code(), Some(0));
    let check = text(&check.stdout);
    assert!(check.starts_with("level   subreaper: "), "{check}");
    assert_eq!(said(&check, "missing").len(), 1, "{check}");
    let advice = said(&check, "more");
    assert!(
        advice[0].contains("systemd-run --user --scope -p Delegate=yes"),
        "{check}"
    );
    let command = advice
        .iter()
        .find_map(|line| line.split('`').find(|part| part.starts_with("sudo sh ")))
        .unwrap_or_else(|| panic!("{check}"));
    // As a person would do it: paste the command into a shell, then go on in that shell. Here the shell is root's, so `sudo`
    // has nothing to do, and `id` must say whose shell it would have been. Nobody else's folder is touched.
    let uid = somebody.uid;
    let folder = format!("advised-{}", std::process::id());
    let command = command.replace("captime.", &format!("{folder}."));
    let script =
        format!("sudo() {{ \"$@\"; }}\nid() {{ echo {uid}; }}\n{command} || exit 99\nread go");
    let mut root = Command::new("sh");
    root.args(["-c", &script]).stdin(Stdio::piped());
    let mut root = root.spawn().unwrap();
    let pid = root.id();
    let is_inside = || {
        let groups = read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        groups.lines().filter(|line| line.contains(&folder)).count()
    };
    let expected = if legacy().is_some() { 2 } else { 1 };
    let start = std::time::Instant::now();
    while is_inside() < expected && start.elapsed().as_secs() < 10 {
        assert!(root.try_wait().unwrap().is_none(), "refused: {command}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // The groups as the shell sees itself in them, which a captime started from it inherits.
    let membership = read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mut folders = Vec::new();
    for line in membership.lines().filter(|line| line.contains(&folder)) {
        let mut parts = line.splitn(3, ':').skip(1);
        let mount = if parts.next() == Some("") {
            unified()
        } else {
            legacy().unwrap()
        };
        folders.push(mount.join(parts.next().unwrap().trim_start_matches('/')));
    }
    let inside = Delegated {
        to: &somebody,
        folders: Vec::new(),
        entered: folders.clone(),
    };
    let output = inside.run(inside.shell("").args(GREEDY));
    let check = inside.run(inside.shell("").arg("check"));
    drop(root.stdin.take());
    root.wait().unwrap();
    for inner in folders {
        let name = format!("{folder}.{uid}");
        let all = inner
            .ancestors()
            .take_while(|path| path.to_string_lossy().contains(&name));
        let mut all: Vec<PathBuf> = all.map(Path::to_owned).collect();
        all.reverse();
        remove(&all);
    }
    was_exact(&output);
    let check = text(&check.stdout);
    assert!(check.starts_with("level   cgroup2: "), "{check}");
    assert!(check.contains("memory  exact"), "{check}");
    assert!(said(&check, "more").is_empty(), "{check}");
}

#[test]
fn check_without_a_scenario_says_what_this_machine_enforces() {
    let output = leaving_nothing(Command::new(captime()).arg("check"));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
    let check = text(&output.stdout);
    let words: Vec<&str> = check.lines().map(|line| &line[..8]).collect();
    assert_eq!(
        words[..5],
        ["level   ", "wall    ", "cpu     ", "memory  ", "contain "]
    );
    let level = TestBench::at(Level::Cgroup2).map_or("subreaper", |bench| bench.level().name());
    assert!(check.starts_with(&format!("level   {level}: ")), "{check}");
    // If something is missing, `check` says what, and what to do. Otherwise it says nothing.
    let is_contained = !check.contains("contain off");
    let is_whole = level == "cgroup2" && check.contains("memory  exact") && is_contained;
    assert_eq!(said(&check, "missing").is_empty(), is_whole, "{check}");
    assert_eq!(said(&check, "more").is_empty(), is_whole, "{check}");
}
