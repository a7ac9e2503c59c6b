//! What this machine can enforce, and how to get more.

use std::io::Write;

use crate::limit::{Detected, Level, MemoryControl};

/// Writes what was detected, one fact per line.
pub(super) fn write(detected: &Detected, to: &mut dyn Write) -> std::io::Result<()> {
    let level = match detected.level {
        Level::Cgroup2 => "a control group per run, ended as a whole",
        Level::Subreaper => "every process of a run is our descendant, ended one by one",
    };
    writeln!(to, "level   {}: {level}", detected.level)?;
    writeln!(to, "wall    exact")?;
    let cpu = if detected.is_cpu_exact() {
        "exact, of the whole process tree"
    } else {
        "a lower bound: children that nobody waits for are not counted once they have ended"
    };
    writeln!(to, "cpu     {cpu}")?;
    let memory = match detected.memory {
        MemoryControl::Cgroup2 => "exact, kept by the kernel (cgroup2 memory controller)",
        MemoryControl::Cgroup1 => "exact, kept by the kernel (cgroup v1 memory controller)",
        MemoryControl::Sampled => {
            "sampled every 10 ms: a fast program can exceed its limit for that long; peaks are lower bounds"
        }
    };
    writeln!(to, "memory  {memory}")?;
    for missing in &detected.missing {
        writeln!(to, "missing {missing}")?;
    }
    for advice in &detected.advice {
        writeln!(to, "more    {advice}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let detected = Detected {
            level: Level::Subreaper,
            memory: MemoryControl::Sampled,
            missing: vec!["no cgroup2 filesystem is mounted".to_owned()],
            advice: vec!["mount it".to_owned()],
        };
        let mut text = Vec::new();
        write(&detected, &mut text).unwrap();
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @r"
        level   subreaper: every process of a run is our descendant, ended one by one
        wall    exact
        cpu     a lower bound: children that nobody waits for are not counted once they have ended
        memory  sampled every 10 ms: a fast program can exceed its limit for that long; peaks are lower bounds
        missing no cgroup2 filesystem is mounted
        more    mount it
        ");
    }
}
