//! Bins of a histogram, and the count of numbers in each.

/// Maximum number of bins of a histogram.
pub const BINS_MAX: u16 = 4096;

/// Histogram bins of equal width over `low..=high`, as given by the command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// Lower edge of the first bin; finite.
    pub low: f64,
    /// Upper edge of the last bin; finite and above `low`.
    pub high: f64,
    /// Number of bins, 1 to [`BINS_MAX`].
    pub count: u16,
}

/// Counts of numbers by bin.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The bins in which the numbers were counted.
    pub bins: Bins,
    /// Count of each bin; the last one includes `high`.
    pub counts: Vec<u64>,
    /// Count of numbers below the first bin.
    pub below: u64,
    /// Count of numbers above the last bin.
    pub above: u64,
}

impl Bins {
    /// Encodes the parameters of the rule: two `f64` and a `u16`, little-endian.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(18);
        out.extend_from_slice(&self.low.to_le_bytes());
        out.extend_from_slice(&self.high.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out
    }

    /// Decodes the bins from a rule's parameters; `None` if these are invalid.
    #[must_use]
    pub fn decode(params: &[u8]) -> Option<Self> {
        let (low, rest) = params.split_first_chunk()?;
        let (high, rest) = rest.split_first_chunk()?;
        let bins = Self {
            low: f64::from_le_bytes(*low),
            high: f64::from_le_bytes(*high),
            count: u16::from_le_bytes(rest.try_into().ok()?),
        };
        let ordered = bins.low < bins.high && (bins.high - bins.low).is_finite();
        (ordered && (1..=BINS_MAX).contains(&bins.count)).then_some(bins)
    }

    /// Lower edge of a bin. For an index of `count` or more, the upper edge of the last bin.
    #[must_use]
    pub fn edge(&self, index: u16) -> f64 {
        if index >= self.count {
            return self.high;
        }
        self.low + (self.high - self.low) * f64::from(index) / f64::from(self.count)
    }
}

impl Histogram {
    pub(super) fn new(bins: Bins) -> Self {
        Self {
            bins,
            counts: vec![0; bins.count.into()],
            below: 0,
            above: 0,
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn insert(&mut self, value: f64, count: u64) {
        let Bins { low, high, .. } = self.bins;
        let slot = if value < low {
            &mut self.below
        } else if value > high {
            &mut self.above
        } else {
            let share = (value - low) / (high - low) * f64::from(self.bins.count);
            // The value is not negative, and a cast saturates.
            let last = self.counts.len() - 1;
            &mut self.counts[(share as usize).min(last)]
        };
        *slot = slot.saturating_add(count);
    }

    pub(super) fn join(&mut self, other: &Self) {
        let pairs = self.counts.iter_mut().zip(&other.counts);
        for (mine, theirs) in pairs {
            *mine = mine.saturating_add(*theirs);
        }
        self.below = self.below.saturating_add(other.below);
        self.above = self.above.saturating_add(other.above);
    }
}
