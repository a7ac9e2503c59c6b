//! The random numbers of a round: a function of (seed, round, purpose), so that replaying a journal restores them.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Round;

/// What random numbers are for. Each purpose has its own stream, so that none can disturb another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The policy choosing a pull.
    Choose,
    /// The policy learning from an outcome.
    Observe,
    /// Drawing the instance of a round.
    Instance,
    /// The seed handed to the target.
    Target,
    /// Sampling the arms to calibrate with.
    Calibrate,
    /// The seed of one repetition of a study. The repetition's number is used as the round.
    Repetition,
    /// Proposing the next arm of an open space. The arm's number is used as the round.
    Propose,
}

/// Gives the generator for one purpose in one round of the run with this seed.
pub fn randomness(seed: u64, round: Round, purpose: Purpose) -> Pcg64Mcg {
    let high = mixed(mixed(seed).wrapping_add(purpose as u64));
    let low = mixed(high ^ round.0);
    let mut state = [0; 16];
    state[..8].copy_from_slice(&low.to_le_bytes());
    state[8..].copy_from_slice(&(high ^ low.rotate_left(32)).to_le_bytes());
    Pcg64Mcg::from_seed(state)
}

/// The instance of a round among `count`, counted from 0: the chosen one (past the last it wraps around to the first), or one
/// drawn by (seed, round). None where there are no instances.
pub fn instance_of(seed: u64, round: Round, chosen: Option<u32>, count: usize) -> Option<u32> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let drawn = || randomness(seed, round, Purpose::Instance).random_range(0..count);
    (count > 0).then(|| chosen.map_or_else(drawn, |chosen| chosen % count))
}

/// `SplitMix64`'s finaliser: every input bit reaches every output bit.
fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn an_instance_is_the_chosen_one_or_a_function_of_seed_and_round() {
        let drawn = |round| instance_of(3, Round(round), None, 5);
        assert_eq!(drawn(1), drawn(1));
        let all: std::collections::BTreeSet<_> = (1..200).map(drawn).collect();
        assert_eq!(all, (0..5).map(Some).collect());
        assert_eq!(instance_of(3, Round(1), Some(7), 5), Some(2));
        assert_eq!(instance_of(3, Round(1), Some(7), 0), None);
    }

    #[test]
    fn every_seed_round_and_purpose_has_its_own_numbers() {
        let draw = |seed, round, purpose| randomness(seed, Round(round), purpose).next_u64();
        let first = draw(1, 1, Purpose::Choose);
        assert_eq!(first, draw(1, 1, Purpose::Choose));
        for other in [
            draw(2, 1, Purpose::Choose),
            draw(1, 2, Purpose::Choose),
            draw(1, 1, Purpose::Observe),
        ] {
            assert_ne!(first, other);
        }
    }
}
