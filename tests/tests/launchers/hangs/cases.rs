//! A list of test cases that are all run, also after one of them has failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::job::Under;

/// Number of cases tried, and the failed ones.
#[derive(Default)]
pub(super) struct Cases {
    tried: usize,
    wrong: Vec<String>,
}

impl Cases {
    /// Tries one: `case` panics where it is wrong.
    pub(super) fn run(&mut self, under: Under, way: &str, case: impl FnOnce()) {
        let began = Instant::now();
        let is_right = catch_unwind(AssertUnwindSafe(case)).is_ok();
        let seconds = began.elapsed().as_secs_f64();
        let verdict = if is_right { "right" } else { "WRONG" };
        let name = format!("{way}, {:?}, {} ranks", under.compiler, under.ranks);
        println!("{verdict} after {seconds:.1} s: {name}");
        self.tried += 1;
        if !is_right {
            self.wrong.push(name);
        }
    }

    /// Fails where a case was wrong; the messages of the cases are printed above.
    pub(super) fn finish(self) {
        let (count, tried) = (self.wrong.len(), self.tried);
        assert!(
            count == 0,
            "{count} of {tried} are wrong: {}",
            self.wrong.join("; ")
        );
    }
}
