//! What a captime leaves behind: its groups and its processes.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// The variable that processes inherit, so that they can be found again wherever they went.
const MARK: &str = "CAPTIME_TEST_MARK";

/// Runs a command that is, or becomes by `exec`, a captime, with empty input; nothing of it may be there afterwards.
pub fn leaving_nothing(command: &mut Command) -> Output {
    command.stdin(Stdio::null());
    leaving_nothing_after(command, |_| {})
}

/// The same, with something to be done once it has started.
///
/// Its output goes to files: the end of a pipe would wait for what was left behind, and so hide it.
pub fn leaving_nothing_after(command: &mut Command, then: impl FnOnce(&mut Child)) -> Output {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    let mark = format!("{}-{next}", std::process::id());
    let mut written = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
    let [stdout, stderr] = written.each_ref().map(|file| file.try_clone().unwrap());
    let mut child = command
        .env(MARK, &mark)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .unwrap();
    then(&mut child);
    let id = child.id();
    let status = child.wait().unwrap();
    let [stdout, stderr] = written.each_mut().map(|file| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let said = String::from_utf8_lossy(&stderr);
    are_gone(|| groups_of(id), &said);
    are_gone(|| processes_of(&mark), &said);
    Output {
        status,
        stdout,
        stderr,
    }
}

/// Waits until no group of the process `pid` is there any more.
pub fn groups_of_are_gone(pid: u32) {
    are_gone(|| groups_of(pid), "");
}

/// Waits a little for dying processes. Fails if something stays.
fn are_gone(left: impl Fn() -> Vec<PathBuf>, said: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = left();
        if left.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "left behind: {left:?}, after: {said}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes with this mark, as folders of `/proc`.
fn processes_of(mark: &str) -> Vec<PathBuf> {
    let wanted = format!("{MARK}={mark}");
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            // A dead one has none. Those of other users cannot be read, and do not belong to the test.
            let variables = std::fs::read(path.join("environ")).unwrap_or_default();
            variables
                .split(|&byte| byte == 0)
                .any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

/// Removes groups that carry captime's mark and that no process holds, as every captime does when it starts.
pub fn sweep() {
    let is_marked = |path: &PathBuf| {
        ["user.captime", "trusted.captime"]
            .iter()
            .any(|mark| rustix::fs::getxattr(path, *mark, &mut [0; 128][..]).is_ok())
    };
    for path in groups().into_iter().filter(is_marked) {
        if let Ok(folder) = File::open(&path)
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = std::fs::remove_dir(&path);
        }
    }
}

fn groups_of(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("captime-slot-{pid}-");
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(&prefix)
    };
    groups().into_iter().filter(is_its).collect()
}

/// Groups of captime that exist at this moment below our own cgroup2 group and v1 memory group.
fn groups() -> Vec<PathBuf> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = |prefix: &str| {
        membership
            .lines()
            .find_map(|line| line.split_once(prefix).map(|(_, group)| group.to_owned()))
    };
    let mut folders = Vec::new();
    if let Some(group) = own("0::") {
        let mount = Path::new("/sys/fs/cgroup/unified");
        let mount = if mount.exists() {
            mount
        } else {
            Path::new("/sys/fs/cgroup")
        };
        folders.push(mount.join(group.trim_start_matches('/')));
    }
    if let Some(group) = own(":memory:") {
        folders.push(Path::new("/sys/fs/cgroup/memory").join(group.trim_start_matches('/')));
    }
    folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("captime-slot-")
        })
        .map(|entry| entry.path())
        .collect()
}
