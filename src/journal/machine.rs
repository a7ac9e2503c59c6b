//! Where a run takes place.

use std::fs;

use super::Machine;

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let line = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("", |(_, name)| name.trim());
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kibibytes = memory.lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        });
        Self {
            host: line("/proc/sys/kernel/hostname"),
            kernel: format!(
                "{} {}",
                line("/proc/sys/kernel/ostype"),
                line("/proc/sys/kernel/osrelease")
            ),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            cpu: cpu.to_owned(),
            memory: kibibytes.unwrap_or(0) * 1024,
        }
    }
}
