//! A place to run the misbehaving programs, and the reader of their books.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use captime_limit::{
    Contain, Launch, Level, LimitError, Limits, MemoryControl, Output, Report, Setup, Supervisor,
};

/// The misbehaving program; built here if it is not there or older than its source.
///
/// `cargo test` builds it along with all else, `cargo test --test it` does not.
pub fn misbehave() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            // This file is part of two test programs, in two packages of one workspace.
            let package = Path::new(env!("CARGO_MANIFEST_DIR"));
            let crates = package.join("crates/limit");
            let package = if crates.exists() { &crates } else { package };
            let source = package.join("tests/fixtures/misbehave.rs");
            let test = std::env::current_exe().expect("a test is a program");
            let built = test.parent().and_then(Path::parent);
            let built = built.expect("tests are in a folder of the build");
            let path = built.join("examples/misbehave");
            let changed = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
            // `None`, a missing program, is older than everything.
            if changed(&path) < changed(&source) {
                build_misbehave(package, built);
            }
            assert!(
                path.exists(),
                "{} is missing: run `cargo build -p captime-limit --example misbehave` with the profile of this test",
                path.display()
            );
            path
        })
        .clone()
}

/// Builds the misbehaving program with the profile and into the folder that this test was built with.
fn build_misbehave(package: &Path, folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--example", "misbehave"])
        .args(["--profile", profile, "--target-dir"])
        .arg(folder.parent().expect("a profile's folder is in another"))
        .current_dir(package)
        .status();
    assert!(
        built.as_ref().is_ok_and(ExitStatus::success),
        "the tests need a program of theirs; run `cargo build -p captime-limit --example misbehave` first ({built:?})"
    );
}

/// Now, on the clock the fixtures use.
pub fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A named pipe that is read to its end in the background.
pub struct Book {
    folder: tempfile::TempDir,
    started: mpsc::Receiver<()>,
    done: mpsc::Receiver<Books>,
}

/// What the processes of one run wrote, and when the last one was gone.
#[derive(Debug, Default, Clone)]
pub struct Books {
    pub start: Duration,
    pub end: Duration,
    cpu: HashMap<u64, Duration>,
    /// Process and bytes touched, in the order in which they were noted.
    touched: Vec<(u64, u64)>,
    pub allocated: bool,
}

impl Books {
    /// CPU time used, by the processes' own clocks.
    pub fn cpu(&self) -> f64 {
        self.cpu.values().map(Duration::as_secs_f64).sum()
    }

    pub fn processes(&self) -> usize {
        self.cpu.len()
    }

    /// The most memory that processes were sure to hold at the same moment.
    ///
    /// Processes keep what they touched until they end. At each note, those hold their last noted memory that still note
    /// something later; whether the others were already killed cannot be known, so they do not count from their last note on.
    pub fn touched_at_once(&self) -> u64 {
        let last: HashMap<u64, usize> = self
            .touched
            .iter()
            .enumerate()
            .map(|(at, &(pid, _))| (pid, at))
            .collect();
        let mut held = HashMap::new();
        let mut most = 0;
        for (at, &(pid, bytes)) in self.touched.iter().enumerate() {
            held.insert(pid, bytes);
            most = most.max(held.values().sum());
            if last[&pid] == at {
                held.remove(&pid);
            }
        }
        most
    }

    fn read(file: File, tell_start: &mpsc::Sender<()>) -> Self {
        let mut books = Self::default();
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
            match (words[0], number(1), number(2)) {
                ("start", Some(at), _) => {
                    books.start = Duration::from_nanos(at);
                    let _ = tell_start.send(());
                }
                ("cpu", Some(pid), Some(used)) => {
                    books.cpu.insert(pid, Duration::from_nanos(used));
                }
                ("touched", Some(pid), Some(bytes)) => {
                    books.touched.push((pid, bytes));
                }
                ("allocated", ..) => books.allocated = true,
                _ => {}
            }
        }
        books.end = now();
        books
    }
}

impl Book {
    pub fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
        std::fs::set_permissions(
            folder.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .unwrap();
        let (tell, done) = mpsc::channel();
        let (tell_start, started) = mpsc::channel();
        std::thread::spawn(move || {
            // Waits for the first process to open it.
            if let Ok(file) = File::open(path) {
                let _ = tell.send(Books::read(file, &tell_start));
            }
        });
        Self {
            folder,
            started,
            done,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("book")
    }

    /// `misbehave BOOK ARGS...` as a command line.
    pub fn command(&self, arguments: &[&str]) -> Vec<OsString> {
        let mut command = vec![misbehave().into_os_string(), self.path().into_os_string()];
        command.extend(arguments.iter().map(OsString::from));
        command
    }

    /// Waits until the program runs.
    pub fn wait_for_start(&self) {
        self.started
            .recv_timeout(Duration::from_secs(10))
            .expect("the program has not started");
    }

    /// As [`wait_for_start`](Self::wait_for_start), for what shares a thread with the run; then leaves the program some time
    /// to misbehave.
    pub async fn misbehaves(&self) {
        let since = now();
        while self.started.try_recv().is_err() {
            let waited = now() - since;
            assert!(
                waited < Duration::from_secs(10),
                "the program has not started"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    /// The books, once every process is gone; fails if that takes ten more seconds.
    pub fn close(self) -> Books {
        // On a busy machine a run may have ended before its program opened the pipe: then the reader still waits for a writer.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut writer = File::options();
        let writer = writer.write(true).custom_flags(nonblocking);
        drop(writer.open(self.path()));
        self.done
            .recv_timeout(Duration::from_secs(10))
            .expect("some process of the run is still alive")
    }
}

/// Says, past the test harness, that this test could not do all it should; where it must be able to, it fails.
///
/// `scripts/test` sets the variable when it runs as root on a machine with control groups: then there is no excuse.
pub fn skip(why: &dyn std::fmt::Display) {
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    assert!(
        std::env::var_os("CAPTIME_REQUIRE_GROUPS").is_none(),
        "{name} must not be skipped here: {why}"
    );
    // Not `eprintln`, which the harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

/// The levels this machine offers, by name.
pub fn levels() -> Vec<&'static str> {
    let offered = |level: &Level| TestBench::at(*level).is_some();
    [Level::Cgroup2, Level::Subreaper]
        .iter()
        .filter(|level| offered(level))
        .map(|level| level.name())
        .collect()
}

/// One supervisor at a given level.
pub struct TestBench {
    pub runtime: tokio::runtime::Runtime,
    pub supervisor: Supervisor,
}

impl TestBench {
    /// A supervisor at this level; `None`, said on stderr, where the machine does not offer it.
    pub fn at(level: Level) -> Option<Self> {
        Self::with(&Setup {
            level: Some(level),
            ..Setup::default()
        })
    }

    /// The same with commands that can get at their supervisor.
    pub fn open_to_attack(level: Level) -> Option<Self> {
        Self::contained(level, Contain::Off)
    }

    /// The same with commands that are kept from what `contain` says.
    pub fn contained(level: Level, contain: Contain) -> Option<Self> {
        Self::with(&Setup {
            level: Some(level),
            contain: Some(contain),
            ..Setup::default()
        })
    }

    fn with(setup: &Setup) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        match runtime.block_on(Supervisor::start(setup)) {
            Ok(supervisor) => Some(Self {
                runtime,
                supervisor,
            }),
            Err(error @ (LimitError::Level { .. } | LimitError::Contain { .. })) => {
                skip(&error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub fn level(&self) -> Level {
        self.supervisor.level()
    }

    /// Whether the kernel keeps memory limits here.
    pub fn keeps_memory(&self) -> bool {
        self.supervisor.memory_control() != MemoryControl::Sampled
    }

    /// Runs any launch.
    pub fn launch(&mut self, launch: &Launch, limits: &Limits) -> Result<Report, LimitError> {
        self.runtime.block_on(self.supervisor.run(launch, limits))
    }

    /// Runs `misbehave` with its output captured, and reads its books.
    ///
    /// Whatever it did, all of it is gone when the report arrives.
    pub fn run(&mut self, arguments: &[&str], limits: &Limits) -> (Report, Books) {
        let book = Book::open();
        let mut launch = Launch::new(book.command(arguments));
        launch.output = Output::Capture { limit: 1 << 16 };
        let report = self.launch(&launch, limits).unwrap();
        let reported = now();
        let books = book.close();
        // The reader of the book is a thread of ours that may have to wait for a CPU.
        let late = books.end.saturating_sub(reported);
        assert!(
            late < Duration::from_secs(2),
            "alive {late:?} after the report"
        );
        assert_eq!(report.level, self.level());
        (report, books)
    }
}

pub fn wall(millis: u64) -> Limits {
    Limits {
        wall: Some(Duration::from_millis(millis)),
        ..Limits::default()
    }
}

pub fn cpu(millis: u64) -> Limits {
    Limits {
        cpu: Some(Duration::from_millis(millis)),
        ..wall(15_000)
    }
}

pub fn memory(mebibytes: u64) -> Limits {
    Limits {
        memory: Some(mebibytes << 20),
        ..wall(15_000)
    }
}
