//! The resource that a limit applies to, named alike in scenarios, the forest and reports.

use serde::{Deserialize, Serialize};

/// A resource that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Seconds on the clock
    Wall,
    /// Seconds of CPU time, of all threads and processes
    Cpu,
    /// A plain count; in a forest, rows times predictors looked at, which is the same on every machine
    Work,
    /// Bytes of memory at the peak, of all processes
    Memory,
}

impl Resource {
    /// Its name in scenarios, on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Work => "work",
            Self::Memory => "memory",
        }
    }

    /// Whether it is seconds.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Wall | Self::Cpu)
    }

    /// A limit as scenarios write it.
    pub fn written(self, limit: f64) -> String {
        match self {
            Self::Wall | Self::Cpu => format!("{limit}s"),
            Self::Work => limit.to_string(),
            Self::Memory => format!("{}B", limit.ceil()),
        }
    }

    /// Formats an amount of it for people.
    pub fn amount(self, value: f64) -> String {
        match self {
            Self::Wall | Self::Cpu => crate::quantity::seconds(value),
            Self::Work => count(value),
            Self::Memory => bytesize::ByteSize(value as u64).display().iec().to_string(),
        }
    }

    /// The same as an in-process forest counts it. It does not count memory.
    pub fn of_forest(self) -> Option<captime_forest::Resource> {
        match self {
            Self::Wall => Some(captime_forest::Resource::Wall),
            Self::Cpu => Some(captime_forest::Resource::Cpu),
            Self::Work => Some(captime_forest::Resource::Work),
            Self::Memory => None,
        }
    }
}

/// Formats a plain count for people: four significant digits, and whole from a thousand to a million.
fn count(value: f64) -> String {
    if (1e3..1e6).contains(&value.abs()) {
        crate::quantity::grouped(value, 0)
    } else if value.abs() >= 1e6 {
        let text = format!("{value:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        format!("{digits}e{exponent}")
    } else {
        let decimals = match value.abs() {
            100.0.. => 1,
            10.0.. => 2,
            1.0.. => 3,
            _ => 4,
        };
        let text = format!("{value:.decimals$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!(Resource::Cpu.amount(0.25), "250 ms");
        assert_eq!(Resource::Work.amount(3e7), "3e7");
        assert_eq!(Resource::Work.amount(0.1 + 4.0 * 0.8 / 9.0), "0.4556");
        assert_eq!(Resource::Work.amount(1.0), "1");
        assert_eq!(Resource::Work.amount(897.6886), "897.7");
        assert_eq!(Resource::Work.amount(123_456.789), "123,457");
        assert_eq!(Resource::Work.amount(3e7), "3e7");
        assert_eq!(Resource::Work.amount(123_456_789.0), "1.235e8");
        assert_eq!(Resource::Cpu.amount(0.25), "250 ms");
        assert_eq!(Resource::Memory.amount(1.5 * 1_073_741_824.0), "1.5 GiB");
        assert_eq!(Resource::Memory.written(52_100_000.3), "52100001B");
    }
}
