//! The report as a file: whole or not at all, readable by its owner only, made now and then while a run goes on.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{History, ReportError, Summary, page};

/// The report's name in a run's folder.
pub const FILE: &str = "report.html";

/// Makes the report of the run in `folder` and puts it there.
pub fn write_report(folder: &Path) -> Result<PathBuf, ReportError> {
    let path = folder.join(FILE);
    let mut history = History::open(folder)?;
    history.catch_up()?;
    write_file(&path, page(&Summary::of(&history), None).as_bytes())?;
    Ok(path)
}

/// Writes a file beside its place and moves it there, so that whoever opens it sees a whole one.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    let failed = |source| ReportError::Write {
        path: path.to_owned(),
        source,
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(content).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Rewrites the report of a run every few minutes, on a thread of its own, until it is dropped.
///
/// It reads the journal as any other reader does; what it takes is kept below a hundredth of the time.
#[derive(Debug)]
pub struct Keeper {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts to keep the report of the run in `folder`. A report that fails is logged and tried again.
    pub fn start(folder: &Path, every: Duration) -> Self {
        let folder = folder.to_owned();
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            let mut pause = every;
            while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                let began = Instant::now();
                if let Err(error) = write_report(&folder) {
                    tracing::warn!("no report this time: {error}");
                }
                pause = every.max(began.elapsed() * 100);
            }
        };
        let thread = std::thread::Builder::new()
            .name("report".into())
            .spawn(work);
        Self {
            stop: Some(stop),
            // Without a thread there is a report at the end only.
            thread: thread.ok(),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
