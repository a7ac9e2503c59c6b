//! What `captime run` does, from code: run a scenario, and resume it if its folder has a journal.
//!
//! `cargo run --release --example run_scenario`

use std::io::Write;

use captime::orchestrator::{Driver, Run, RunSetup, Signals, Wall};

const SCENARIO: &str = "
target: {command: [sleep, '{seconds}'], reward: {exit: [0]}}
arms: {list: [{seconds: 5}, {seconds: 0.02}]}
limits: {of: wall, grid: [1s]}
budget: {rounds: 12}
slots: 1
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path().join("sleepers");
    let scenario =
        captime::scenario::parse(SCENARIO, "sleepers.yaml".as_ref(), ".".as_ref())?.scenario;
    let target = captime::target::prepare(&scenario, &folder)?;
    let run = Run::open(&folder, &RunSetup::of(&scenario, &target), ())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let driven = runtime.block_on(async {
        let slots = target.default_slots(scenario.slots);
        let mut pool = target.start(slots, scenario.pin).await?;
        let mut signals = Signals::listen()?;
        let wall = Wall {
            seconds: scenario.budget.wall,
            spent: 0.0,
        };
        let driver = Driver::begin(vec![run], &mut pool, &mut signals, wall)?;
        Ok::<_, Box<dyn std::error::Error>>(driver.drive().await?)
    })?;
    let answer = driven.runs[0].state().recommend().ok_or("no pull ended")?;
    if answer.pull.arm.number() != 2 {
        return Err("the second one sleeps for a shorter time".into());
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "use arm {}: {} pulls",
        answer.pull.arm.number(),
        answer.pulls
    )?;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
