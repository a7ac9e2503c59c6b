//! Assigns CPUs to slots.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

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

/// CPUs for each slot, if every slot can have `threads` of its own. `None` otherwise.
pub(super) fn cpus_of_slots(
    cpus: &[usize],
    slots: usize,
    threads: usize,
) -> Option<Vec<Vec<usize>>> {
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

/// Shows other captimes on this machine which CPUs the slots of this one are pinned to, for as long as it lives.
///
/// Each CPU has a name in the kernel that one process at a time can hold. It ends with its process, and leaves no file.
#[derive(Debug, Default)]
pub struct CpuClaim {
    held: Vec<UnixDatagram>,
    /// CPUs to which another captime has pinned its slots.
    pub shared: Vec<usize>,
}

impl CpuClaim {
    pub(super) fn of(cpus: impl Iterator<Item = usize>) -> Self {
        Self::named("captime-pinned-to-cpu", cpus)
    }

    fn named(prefix: &str, cpus: impl Iterator<Item = usize>) -> Self {
        let mut claim = Self::default();
        for cpu in cpus {
            let name = SocketAddr::from_abstract_name(format!("{prefix}-{cpu}"));
            match name.and_then(|name| UnixDatagram::bind_addr(&name)) {
                Ok(held) => claim.held.push(held),
                Err(error) if error.kind() == ErrorKind::AddrInUse => claim.shared.push(cpu),
                // Not known to be shared.
                Err(_) => {}
            }
        }
        claim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_claim_learns_which_cpus_are_taken_until_the_first_ends() {
        let prefix = format!("claims-of-{}", std::process::id());
        let claim = |cpus: &[usize]| CpuClaim::named(&prefix, cpus.iter().copied());
        let first = claim(&[0, 1]);
        assert!(first.shared.is_empty());
        assert_eq!(claim(&[1, 2]).shared, [1]);
        drop(first);
        assert!(claim(&[0, 1, 2]).shared.is_empty());
    }

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
