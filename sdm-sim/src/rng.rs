//! A small random number generator: the same seed gives the same numbers in every version.

/// SplitMix64: one word of state, good enough for choosing faults.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x5344_4D00_7369_6D00))
    }

    /// The next 64-bit number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A random number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.word() % bound }
    }

    /// A random number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// A number from `low` to `high`, with each order of magnitude equally likely.
    pub fn skewed(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1), high.max(1));
        let octaves = u64::from((high / low).max(1).ilog2());
        let floor = low << self.below(octaves + 1);
        self.between(floor, (floor * 2).min(high))
    }

    /// True with a probability of one in `count`.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A random element; `None` of an empty list.
    pub fn pick<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        let at = usize::try_from(self.below(things.len() as u64)).unwrap_or(0);
        things.get(at).copied()
    }

    /// Shuffles a slice randomly.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for at in (1..things.len()).rev() {
            let other = usize::try_from(self.below(at as u64 + 1)).unwrap_or(0);
            things.swap(at, other);
        }
    }

    /// A random index with these weights; `None` if all weights are 0.
    pub fn weighted(&mut self, weights: &[u32]) -> Option<usize> {
        let total = weights.iter().map(|weight| u64::from(*weight)).sum();
        let mut at = self.below(total);
        for (position, weight) in weights.iter().enumerate() {
            let weight = u64::from(*weight);
            if at < weight {
                return Some(position);
            }
            at -= weight;
        }
        None
    }
}

/// Spreads a number over all 64 bits.
#[must_use]
pub(crate) fn mix(number: u64) -> u64 {
    let mut word = number;
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_stay_within_their_bounds() {
        let mut rng = Rng::new(7);
        for _ in 0..1000 {
            assert!(rng.below(3) < 3);
            assert!((5..=9).contains(&rng.between(5, 9)));
            assert!((4..=1000).contains(&rng.skewed(4, 1000)));
            assert!(matches!(rng.weighted(&[0, 1, 2]), Some(1 | 2)));
        }
        assert_eq!(rng.weighted(&[0, 0]), None);
        assert_eq!(rng.pick::<u8>(&[]), None);
        assert_eq!(Rng::new(1).word(), Rng::new(1).word());
        assert_ne!(Rng::new(1).word(), Rng::new(2).word());
    }
}
