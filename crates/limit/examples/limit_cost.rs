//! What running `true` under limits costs compared with starting it plainly, in one interleaved measurement.
//!
//! `cargo run --release -p captime-limit --features tokio --example limit_cost -- [COUNT] [BALLAST_MIB] [CONTAIN]` prints one JSON object:
//! medians in microseconds of a plain spawn (`posix_spawn` and wait) and of [`Supervisor::run`] at each level and containment, or only at
//! CONTAIN, from a parent that holds BALLAST_MIB of memory.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use captime_limit::{Contain, Launch, Level, Limits, Setup, Supervisor};

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let mebibytes: usize = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let only = arguments.next().map(|text| text.parse::<Contain>());
    let only = only.transpose().map_err(|()| "no such containment")?;
    let mut ballast = vec![0_u8; mebibytes << 20];
    for page in ballast.chunks_mut(4096) {
        page[0] = 1;
    }
    let mut slots = Vec::new();
    for level in [Level::Cgroup2, Level::Subreaper] {
        for contain in Contain::ALL {
            if only.is_some_and(|only| only != contain) {
                continue;
            }
            let setup = Setup {
                level: Some(level),
                contain: Some(contain),
                ..Setup::default()
            };
            match Supervisor::start(&setup).await {
                Ok(supervisor) => slots.push((supervisor, Vec::new())),
                Err(error) => writeln!(std::io::stderr(), "{error}")?,
            }
        }
    }
    let launch = Launch::new(["/bin/true"]);
    let limits = Limits {
        wall: Some(Duration::from_secs(10)),
        ..Limits::default()
    };
    let mut plain = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        Command::new("/bin/true").stdin(Stdio::null()).status()?;
        plain.push(start.elapsed().as_secs_f64() * 1e6);
        for (supervisor, times) in &mut slots {
            let start = Instant::now();
            supervisor.run(&launch, &limits).await?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    let mut result = serde_json::json!({"ballast_mib": std::hint::black_box(&ballast).len() >> 20});
    result["plain"] = median(plain).into();
    for (supervisor, times) in slots {
        let name = match supervisor.contain() {
            Contain::Off => supervisor.level().to_string(),
            contain => format!("{}, contain {contain}", supervisor.level()),
        };
        result[name] = median(times).into();
    }
    writeln!(std::io::stdout(), "{result}")?;
    Ok(())
}
