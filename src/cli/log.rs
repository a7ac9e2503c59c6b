//! The log on stderr: warnings, or whatever `CAPTIME_LOG` asks for.

use tracing_subscriber::EnvFilter;

use super::Failure;

/// The variable that selects what is logged.
const VARIABLE: &str = "CAPTIME_LOG";

/// How `captime --help` describes it.
pub(super) const HELP: &str = "Log: set CAPTIME_LOG to a level (error, warn, info, debug, trace) or to a filter such as \
`captime::orchestrator=debug` to log to stderr. The default is warn.";

/// Starts the log of this process.
pub(super) fn start() -> Result<(), Failure> {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let filter = match wanted.trim() {
        "" => EnvFilter::new("warn"),
        wanted => EnvFilter::try_new(wanted).map_err(|error| {
            Failure::usage(format!("{VARIABLE} `{wanted}` is not a filter: {error}")).hint(Some(
                "write a level, such as `debug`, or a filter, such as `captime::orchestrator=debug`",
            ))
        })?,
    };
    let colours = super::failure::has_colours(&std::io::stderr());
    // Already set only if a test calls commands.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        // Reporting that stderr is gone would panic.
        .log_internal_errors(false)
        .try_init();
    Ok(())
}
