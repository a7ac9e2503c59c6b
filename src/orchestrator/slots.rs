//! Which CPUs each slot has to itself.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// The CPUs this process may use, ascending; at least one.
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return vec![0];
    };
    (0..CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect()
}

/// CPUs for each slot, if every one can have `threads` of its own; none otherwise.
pub fn cpus_of_slots(cpus: &[usize], slots: usize, threads: usize) -> Option<Vec<Vec<usize>>> {
    let each = cpus.len() / slots.max(1);
    if each < threads.max(1) {
        return None;
    }
    Some(
        cpus.chunks_exact(each)
            .take(slots)
            .map(<[usize]>::to_vec)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_cpus_of_their_own_or_none_has() {
        assert_eq!(
            cpus_of_slots(&[0, 1, 4, 5], 2, 2),
            Some(vec![vec![0, 1], vec![4, 5]])
        );
        assert_eq!(
            cpus_of_slots(&[0, 1, 2], 2, 1),
            Some(vec![vec![0], vec![1]])
        );
        assert_eq!(cpus_of_slots(&[0, 1], 3, 1), None);
        assert_eq!(cpus_of_slots(&[0, 1], 2, 2), None);
        assert!(!allowed_cpus().is_empty());
    }
}
