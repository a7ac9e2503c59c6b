//! The machine of a run: its hardware, and how busy it is now.

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use super::Machine;

impl Machine {
    /// The machine this runs on.
    pub fn here() -> Self {
        let system = System::new_with_specifics(
            RefreshKind::nothing()
                .with_cpu(CpuRefreshKind::nothing())
                .with_memory(MemoryRefreshKind::nothing().with_ram()),
        );
        let cpu = system.cpus().first().map_or("", |cpu| cpu.brand().trim());
        Self {
            host: System::host_name().unwrap_or_default(),
            kernel: System::kernel_long_version(),
            cpus: cpus(),
            cpu: cpu.to_owned(),
            memory: system.total_memory(),
        }
    }
}

/// How busy a machine is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// CPUs this process may use.
    pub cpus: usize,
    /// Processes that ran or waited for a CPU, on average over the last minute.
    pub running: f64,
    /// Bytes that programs can still use without swapping, by the kernel's estimate and the limit of this control
    /// group.
    pub free_memory: u64,
    /// Total bytes, or what this control group may use.
    pub memory: u64,
}

impl Load {
    /// The load of this machine, now.
    pub fn now() -> Self {
        let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(memory);
        let (mut free_memory, mut memory) = (system.available_memory(), system.total_memory());
        if let Some(group) = system.cgroup_limits() {
            free_memory = free_memory.min(group.free_memory);
            memory = memory.min(group.total_memory);
        }
        Self {
            cpus: cpus(),
            running: System::load_average().one,
            free_memory,
            memory,
        }
    }
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_line(path: &str) -> String {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().next().unwrap_or_default().trim().to_owned()
    }

    #[test]
    fn the_facts_are_those_of_the_kernel() {
        let machine = Machine::here();
        assert_eq!(machine.host, first_line("/proc/sys/kernel/hostname"));
        let release = first_line("/proc/sys/kernel/osrelease");
        assert_eq!(machine.kernel, format!("Linux {release}"));
        let total = first_line("/proc/meminfo");
        let kibibytes = total.trim_start_matches("MemTotal:").trim_end_matches("kB");
        assert_eq!(
            machine.memory,
            kibibytes.trim().parse::<u64>().unwrap() * 1024
        );
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        assert!(info.contains(&machine.cpu), "{}", machine.cpu);
        assert!(machine.cpus >= 1);
    }

    #[test]
    fn free_memory_is_part_of_all_memory() {
        let load = Load::now();
        assert!(
            load.free_memory > 0 && load.free_memory <= load.memory,
            "{load:?}"
        );
        assert!(load.running >= 0.0 && load.cpus >= 1, "{load:?}");
    }
}
