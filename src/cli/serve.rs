//! `captime serve`: the report, live, on loopback.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::net::TcpListener;

use super::{Exit, Failure, exit_code, explain, run_folder};
use crate::journal::FILE;
use crate::orchestrator::Signals;
use crate::report::{Place, runs, serve};

const EXAMPLES: &str = "\
Examples:
  captime serve ames-forest            the newest run of that name in runs/
  captime serve runs                   all runs in a folder, with an index
  captime serve ames-forest --port 8080

From another machine: ssh -L 8080:127.0.0.1:8080 HOST, then open http://127.0.0.1:8080/ here.";

/// The report as a live page on 127.0.0.1: new rounds appear by themselves
///
/// Reads the journal only and changes nothing; serves the run's page and nothing else, to browsers on this machine. The
/// address is written to stdout. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ServeArgs {
    /// A run's folder, its name in runs/, or a folder of runs
    #[arg(default_value = "runs")]
    run: PathBuf,
    /// The port [default: any that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

/// Runs the command.
pub fn run(args: ServeArgs) -> Result<Exit, Failure> {
    let place = place(&args.run)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::ours)?;
    let ended = runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port.unwrap_or(0)));
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::usage(format!("cannot listen on {address}: {error}"))
                .hint(Some("give another `--port`, or none for any that is free"))
        })?;
        let address = listener.local_addr().map_err(Failure::ours)?;
        let mut signals = Signals::listen().map_err(Failure::ours)?;
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "http://{address}/")?;
        stdout.flush()?;
        drop(stdout);
        tokio::select! {
            ended = serve(listener, place, explained) => ended.map_err(Failure::ours),
            () = signals.next() => Ok(()),
        }
    });
    // Pages that are still open are not waited for.
    runtime.shutdown_background();
    ended.map(|()| Exit::Done)
}

fn place(run: &Path) -> Result<Place, Failure> {
    let is_one = run.join(FILE).exists();
    if !is_one && run.is_dir() && (!runs(run).is_empty() || run == Path::new("runs")) {
        return Ok(Place::Many(run.to_owned()));
    }
    run_folder::find(run).map(Place::One)
}

fn explained(folder: &Path, round: u64) -> Result<Option<String>, String> {
    explain::text(folder, round).map_err(|error| error.to_string())
}
