//! The indices of a slice, and the reasons why slices cannot be expanded.

/// The indices of a slice in brackets: `count` of them from `first` on, each larger by `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Indices {
    pub(super) first: i64,
    pub(super) step: u64,
    pub(super) count: u64,
}

impl Indices {
    /// Parses a slice with its brackets.
    ///
    /// # Errors
    /// [`SliceError`]: the slice has not two or three numbers, its step is not positive, or its last index is before
    /// the first.
    pub(super) fn parse(written: &str) -> Result<Self, SliceError> {
        let numbers = written[1..written.len() - 1].split(':');
        let numbers: Result<Vec<i64>, _> = numbers.map(|it| it.trim().parse()).collect();
        let (first, last, step) = match numbers.as_deref() {
            Ok(&[first, last]) => (first, last, 1),
            Ok(&[first, last, step]) if step > 0 => (first, last, step),
            _ => return Err(SliceError::NoNumber(written.to_owned())),
        };
        let span = last.checked_sub(first).map(u64::try_from);
        let Some(Ok(span)) = span else {
            return Err(SliceError::Backwards(written.to_owned()));
        };
        let step = step.unsigned_abs();
        let count = span / step + 1;
        Ok(Self { first, step, count })
    }

    pub(super) fn at(self, place: u64) -> i64 {
        self.first.saturating_add_unsigned(place * self.step)
    }

    /// The gdb expression for `count` elements of an array, of which the first has this index among those of the slice.
    pub(super) fn elements(self, array: &str, from: u64, count: u64) -> String {
        if self.step == 1 {
            return format!("{array}[{}]@{count}", self.at(from));
        }
        // What an `operator[]` returns is a reference, and gdb would show where each leads to.
        let each = (from..from + count).map(|place| format!("*&{array}[{}]", self.at(place)));
        format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
    }
}

/// The reason why an expression's slices cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::shell) enum SliceError {
    /// A bound is not a number.
    #[error("slice `{0}`: expected numbers, as in [0:63] or [0:63:8]")]
    NoNumber(String),
    /// The last index is before the first.
    #[error("slice `{0}`: its last element is before its first")]
    Backwards(String),
    /// The slice has too many elements.
    #[error("slice `{slice}`: more than {max} elements")]
    TooLong {
        /// The slice, as written.
        slice: String,
        /// The maximum number of elements.
        max: u64,
    },
    /// The array has no length of its own.
    #[error("array `{0}` has no length: write `{0}[0]@n` with a number for n")]
    NoLength(String),
    /// The slice has too much memory.
    #[error("the slice has {bytes} bytes on each rank, more than {max}")]
    TooLarge {
        /// Number of bytes of its elements.
        bytes: u64,
        /// The maximum number of bytes.
        max: u64,
    },
}
