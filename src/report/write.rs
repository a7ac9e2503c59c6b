//! Writes the report to a file: completely or not at all, readable only by its owner, and regularly during a run.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{History, ReportError, Summary, page};

/// The report's name in a run's folder.
pub const FILE: &str = "report.html";

/// Writes the report of the run in `folder` into that folder. Returns what it was made from.
pub fn write_report(folder: &Path) -> Result<History, ReportError> {
    let mut history = History::open(folder)?;
    history.catch_up()?;
    let page = page(&Summary::of(&history), None);
    write_file(&folder.join(FILE), page.as_bytes())?;
    Ok(history)
}

/// Writes a temporary file and renames it, so that a reader always sees a complete one.
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

/// Rewrites the report of a run every few minutes, on its own thread, until it is dropped.
///
/// It reads the journal like any other reader. It uses less than a hundredth of the time.
#[derive(Debug)]
pub struct ReportUpdater {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReportUpdater {
    /// Starts to update the report of the run in `folder`. If a report fails, that is logged and tried again.
    pub fn start(folder: &Path, every: Duration) -> Self {
        let folder = folder.to_owned();
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            let mut pause = every;
            while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                let began = Instant::now();
                if let Err(error) = write_report(&folder) {
                    tracing::warn!("cannot write the report, will try again: {error}");
                }
                pause = every.max(began.elapsed() * 100);
            }
        };
        let thread = std::thread::Builder::new()
            .name("report".into())
            .spawn(work);
        Self {
            stop: Some(stop),
            // Without a thread there is only a report at the end.
            thread: thread.ok(),
        }
    }
}

impl Drop for ReportUpdater {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
