//! Short tokens for gdb's commands: gdb reads its input byte by byte, with a system call for each.

/// Allocates short tokens for gdb in place of the drivers' tokens.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The last owner of each number; index 0 belongs to number 1.
    given: Vec<Given>,
    /// Count of numbers in use.
    taken_count: usize,
    /// The latest number; 0 before the first.
    last: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Given {
    token: u64,
    taken: bool,
}

impl Numbers {
    /// Allocates a number for a driver's `token`, as short as possible. Freed numbers are reused late, as gdb may
    /// send a second record for an answered command.
    pub(super) fn take(&mut self, token: u64) -> u64 {
        let mut limit = 9;
        while 2 * (self.taken_count + 1) > limit {
            limit = 10 * limit + 9;
        }
        loop {
            self.last = self.last % limit + 1;
            if self.given.len() < self.last {
                self.given.resize(self.last, Given::default());
            }
            let given = &mut self.given[self.last - 1];
            if !given.taken {
                *given = Given { token, taken: true };
                self.taken_count += 1;
                return self.last as u64;
            }
        }
    }

    /// Frees a number that gdb has answered, and returns its token; `None` if the number was never allocated.
    pub(super) fn free(&mut self, number: u64) -> Option<u64> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let given = self.given.get_mut(index)?;
        if std::mem::take(&mut given.taken) {
            self.taken_count -= 1;
        }
        Some(given.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_mi_token_is_one_digit_and_still_maps_to_its_command() {
        let mut numbers = Numbers::default();
        for token in 1000..1100 {
            let number = numbers.take(token);
            assert!((1..=9).contains(&number));
            assert_eq!(numbers.free(number), Some(token));
            let others: Vec<u64> = (2000..2003).map(|token| numbers.take(token)).collect();
            assert_eq!(numbers.free(number), Some(token), "said twice");
            for other in others {
                numbers.free(other);
            }
        }
        assert_eq!((numbers.free(0), numbers.free(10)), (None, None));
        assert_eq!(numbers.free(u64::MAX), None);
    }

    #[test]
    fn mi_tokens_in_use_are_never_given_twice() {
        let mut numbers = Numbers::default();
        let mut taken: Vec<(u64, u64)> =
            (0..300).map(|token| (numbers.take(token), token)).collect();
        taken.sort_unstable();
        taken.dedup_by_key(|(number, _)| *number);
        assert_eq!(taken.len(), 300);
        assert!(taken.iter().all(|(number, _)| *number <= 999));
        for (number, token) in taken {
            assert_eq!(numbers.free(number), Some(token));
        }
    }
}
