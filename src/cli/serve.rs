//! `captime serve`: the report, live, on loopback.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;

use super::{Exit, Failure, exit_code, explain, run_folder};
use crate::journal::FILE;
use crate::orchestrator::Signals;
use crate::report::{ServedRuns, runs, serve, token};

const EXAMPLES: &str = "\
Examples:
  captime serve ames-forest            the newest run of that name in runs/
  captime serve runs                   all runs in a folder, with an index
  captime serve ames-forest --port 8080

The address contains a secret token, so that other users of this machine cannot read your report.
From another machine: ssh -L 8080:127.0.0.1:8080 HOST, then open the printed address there.";

/// Serve the report as a live page on 127.0.0.1
///
/// New rounds appear as they finish. captime only reads the journal and only answers browsers on this machine. Prints the
/// address; Ctrl-C to stop.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ServeArgs {
    /// A run's folder, its name in runs/, or a folder of runs [default: all runs in runs/]
    run: Option<PathBuf>,
    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Leave the secret token out of the address, so that every user of this machine may read the report
    #[arg(long)]
    no_token: bool,
}

/// Runs the command.
pub fn run(args: ServeArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::internal)?;
    let ended = runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port.unwrap_or(0)));
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::usage(format!("cannot listen on {address}: {error}"))
                .hint(Some("give another `--port`, or none for any that is free"))
        })?;
        let address = listener.local_addr().map_err(Failure::internal)?;
        let mut signals = Signals::listen().map_err(Failure::internal)?;
        let place = match &args.run {
            None => ServedRuns::Many(run_folder::runs()),
            Some(run) => tokio::select! {
                place = await_run(run) => place?,
                () = signals.next() => return Ok(()),
            },
        };
        let token = if args.no_token {
            None
        } else {
            Some(token().map_err(Failure::internal)?)
        };
        let mut stdout = std::io::stdout().lock();
        match &token {
            Some(token) => writeln!(stdout, "http://{address}/{token}/")?,
            None => writeln!(stdout, "http://{address}/")?,
        }
        stdout.flush()?;
        drop(stdout);
        tokio::select! {
            ended = serve(listener, place, token, explained) => ended.map_err(Failure::internal),
            () = signals.next() => Ok(()),
        }
    });
    // Does not wait for pages that are still open.
    runtime.shutdown_background();
    ended.map(|()| Exit::Done)
}

/// The run to serve. Waits for a name or a folder without a run yet.
async fn await_run(run: &Path) -> Result<ServedRuns, Failure> {
    let is_awaited = !run.exists();
    let mut is_told = false;
    loop {
        match place(run) {
            Err(missing) if is_awaited && missing.exit() == Exit::Usage => {
                if !is_told {
                    missing.print(&mut std::io::stderr().lock());
                    // The reader may be gone.
                    let _ = writeln!(
                        std::io::stderr(),
                        "captime: waiting for it to start; Ctrl-C to stop"
                    );
                    is_told = true;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            found => return found,
        }
    }
}

fn place(run: &Path) -> Result<ServedRuns, Failure> {
    let is_one = run.join(FILE).exists();
    if !is_one && run.is_dir() && (!runs(run).is_empty() || run == run_folder::runs()) {
        return Ok(ServedRuns::Many(run.to_owned()));
    }
    run_folder::find(run).map(ServedRuns::One)
}

fn explained(folder: &Path, round: u64) -> Result<Option<String>, String> {
    explain::text(folder, round).map_err(|error| error.to_string())
}
