//! A policy in your own loop: it chooses the arm and the limit, and you run the pull.
//!
//! `cargo run --release --example embed_policy`

use std::io::Write;

use captime::policy::{PolicyKind, Problem};
use captime::round::{LimitGrid, Observation, Price, Purpose, Round, randomness};

/// Seconds that each of three programs takes. Yours would be started here, and stopped at the limit.
const SECONDS: [f64; 3] = [8.0, 0.5, 20.0];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Three arms, four limits from 1 s to 10 s, and PAR10 as the price of time.
    let limits = LimitGrid::logarithmic(1.0, 10.0, 4)?;
    let problem = Problem::new(3, limits, Price::new("linear", "par10", 10.0)?)?;
    let mut policy = PolicyKind::parse("levels")?.build(&problem);
    let seed = 1;
    for round in (1..=200).map(Round) {
        let pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
        policy.launched(round, pull);
        let seconds = SECONDS[pull.arm.index()];
        let seen = if seconds <= pull.limit.get() {
            Observation::ended(pull, 1.0, seconds)?
        } else {
            Observation::censored(pull, pull.limit.get())?
        };
        policy.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
    }
    let answer = policy.recommend().ok_or("nothing was observed")?;
    if answer.pull.arm.index() != 1 {
        return Err("the second program is the fastest".into());
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "use arm {} with a limit of {} s",
        answer.pull.arm.number(),
        answer.pull.limit.get()
    )?;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
