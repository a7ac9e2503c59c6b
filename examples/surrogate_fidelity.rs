//! How well a surrogate ranks configurations that it has not seen.
//!
//! `cargo run --release --example surrogate_fidelity -- SCENARIO`, where the scenario has a `recorded` target and its
//! configurations as `arms: {file: ...}`. Prints Spearman's correlation of true and surrogate PAR10 over arms left out, a
//! tenth at a time.

use captime::scenario::{self, Target};
use captime::target::recorded::{Recorded, fidelity};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("give a scenario file")?;
    let scenario = scenario::read(file.as_ref())?.scenario;
    let Target::Recorded(target) = &scenario.target else {
        return Err("the scenario's target must be `recorded`".into());
    };
    let runs = Recorded::open(&target.spec)?;
    for seed in 1..=3 {
        let correlation = fidelity(&runs, &scenario.space, 10, seed);
        #[expect(
            clippy::print_stdout,
            reason = "the figure is what this example is for"
        )]
        {
            println!("seed {seed}: rank correlation {correlation:.3}");
        }
    }
    Ok(())
}
