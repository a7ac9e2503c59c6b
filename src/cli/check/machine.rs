//! What this machine can enforce, and how to get more.

use std::io::Write;

use bytesize::ByteSize;
use captime_limit::{Contain, Detected, Level, MemoryControl};

use crate::journal::Load;

/// Writes what was detected, one fact per line.
pub(super) fn write(detected: &Detected, to: &mut dyn Write) -> std::io::Result<()> {
    let level = match detected.level {
        Level::Cgroup2 => "a control group per run, ended as a whole",
        Level::Subreaper => "every process of a run is a descendant of captime, ended one by one",
    };
    writeln!(to, "level   {}: {level}", detected.level)?;
    writeln!(to, "wall    exact")?;
    let cpu = if detected.is_cpu_exact() {
        "exact, of the whole process tree"
    } else {
        "a lower bound: children that no process waits for are not counted once they have ended"
    };
    writeln!(to, "cpu     {cpu}")?;
    let memory = match detected.memory {
        MemoryControl::Cgroup2 => "exact, enforced by the kernel (cgroup2 memory controller)",
        MemoryControl::Cgroup1 => "exact, enforced by the kernel (cgroup v1 memory controller)",
        MemoryControl::Sampled => {
            "sampled every 10 ms: a fast program can exceed its limit for that long; peaks are lower bounds; memory that no process maps \
             (files in /dev/shm, memfd) is not counted"
        }
    };
    writeln!(to, "memory  {memory}")?;
    let contain = match detected.contain {
        Contain::Off => "off: commands can see and signal other processes of this user",
        Contain::Pids => "pids: commands see their own processes only",
        Contain::Full => {
            "full: commands see their own processes only; on request also no network and their own /tmp"
        }
    };
    writeln!(to, "contain {contain}")?;
    for missing in &detected.missing {
        writeln!(to, "missing {missing}")?;
    }
    for advice in &detected.advice {
        writeln!(to, "more    {advice}")?;
    }
    Ok(())
}

/// Writes what the commands of a scenario are kept from here, if that is not the default.
pub(super) fn write_contain(wanted: Option<Contain>, to: &mut dyn Write) -> std::io::Result<()> {
    match wanted {
        None => Ok(()),
        Some(Contain::Off) => writeln!(to, "contain   off"),
        Some(wanted) => write_wanted(wanted, captime_limit::detect().contain, to),
    }
}

fn write_wanted(wanted: Contain, possible: Contain, to: &mut dyn Write) -> std::io::Result<()> {
    if wanted <= possible {
        return writeln!(to, "contain   {wanted}");
    }
    writeln!(
        to,
        "contain   {wanted}: not possible here, so that a run would fail; `captime check` says why"
    )
}

/// Writes how busy the machine is, because pulls take longer on a busy one.
pub(super) fn write_load(load: &Load, to: &mut dyn Write) -> std::io::Result<()> {
    let (free, memory) = (ByteSize(load.free_memory), ByteSize(load.memory));
    writeln!(to, "free    {free} of {memory} memory")?;
    let busy = if load.running >= load.cpus as f64 {
        ": all in use, so wall times are not to be trusted now"
    } else {
        ""
    };
    let cpus = crate::quantity::counted(load.cpus as u64, "CPU");
    writeln!(to, "load    {:.2} on {cpus}{busy}", load.running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_pointed_out() {
        let mut load = Load {
            cpus: 2,
            running: 0.5,
            free_memory: 3 << 30,
            memory: 16 << 30,
        };
        let written = |load: &Load| {
            let mut text = Vec::new();
            write_load(load, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(
            written(&load),
            "free    3.0 GiB of 16.0 GiB memory\nload    0.50 on 2 CPUs\n"
        );
        load.running = 2.5;
        let busy = "load    2.50 on 2 CPUs: all in use, so wall times are not to be trusted now\n";
        assert!(written(&load).ends_with(busy));
    }

    #[test]
    fn a_containment_that_is_not_possible_here_is_pointed_out() {
        let written = |wanted, possible| {
            let mut text = Vec::new();
            write_wanted(wanted, possible, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(written(Contain::Pids, Contain::Full), "contain   pids\n");
        assert!(written(Contain::Full, Contain::Pids).contains("not possible here"));
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let mut detected = Detected::default();
        detected.missing = vec!["no cgroup2 filesystem is mounted".to_owned()];
        detected.advice = vec!["mount it".to_owned()];
        let mut text = Vec::new();
        write(&detected, &mut text).unwrap();
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @r"
        level   subreaper: every process of a run is a descendant of captime, ended one by one
        wall    exact
        cpu     a lower bound: children that no process waits for are not counted once they have ended
        memory  sampled every 10 ms: a fast program can exceed its limit for that long; peaks are lower bounds; memory that no process maps (files in /dev/shm, memfd) is not counted
        contain off: commands can see and signal other processes of this user
        missing no cgroup2 filesystem is mounted
        more    mount it
        ");
    }
}
