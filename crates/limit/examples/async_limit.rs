//! Two commands at a time under limits, without blocking a thread.

use std::io::Write;
use std::time::Duration;

use captime_limit::{Launch, LimitError, Limits, Output, Report, Setup, Supervisor};

/// Runs `scripts` one after another in one slot.
async fn slot(scripts: &[&str]) -> Result<Vec<Report>, LimitError> {
    let mut supervisor = Supervisor::start(&Setup::default()).await?;
    let limits = Limits {
        cpu: Some(Duration::from_millis(300)),
        ..Limits::default()
    };
    let mut reports = Vec::new();
    for script in scripts {
        let launch = Launch {
            output: Output::Discard,
            ..Launch::new(["sh", "-c", script])
        };
        reports.push(supervisor.run(&launch, &limits).await?);
    }
    supervisor.close().await;
    Ok(reports)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (first, second) = runtime.block_on(async {
        tokio::join!(
            slot(&["while :; do :; done", "exit 3"]),
            slot(&["sleep 0.1", "true"])
        )
    });
    for report in first?.into_iter().chain(second?) {
        writeln!(
            std::io::stdout(),
            "{:?}: {:?}, exit code {:?}, {:.3} s of CPU time",
            report.command,
            report.cause,
            report.exit_code,
            report.cpu_seconds
        )?;
    }
    Ok(())
}
