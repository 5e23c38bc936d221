//! Comparison of two implementations, each called a few thousand times in turns.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Approximate duration of one turn.
const TURN: Duration = Duration::from_millis(3);
/// Number of turns of each.
const TURNS: usize = 15;

/// Duration of one call of each of the two, in nanoseconds: the median over all turns.
pub fn compare<A, B>(mut ours: impl FnMut() -> A, mut other: impl FnMut() -> B) -> [f64; 2] {
    let mut ours = move || drop(black_box(ours()));
    let mut other = move || drop(black_box(other()));
    let counts = [calibrate(&mut ours), calibrate(&mut other)];
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        took[0].push(turn(&mut ours, counts[0]));
        took[1].push(turn(&mut other, counts[1]));
    }
    took.map(|mut samples| {
        samples.sort_by(f64::total_cmp);
        samples[samples.len() / 2]
    })
}

/// Number of calls in a turn.
fn calibrate(call: &mut impl FnMut()) -> u32 {
    let mut count = 1;
    loop {
        let nanos = turn(call, count) * f64::from(count);
        if nanos >= TURN.as_nanos() as f64 || count >= 1 << 24 {
            return count;
        }
        count *= 2;
    }
}

fn turn(call: &mut impl FnMut(), count: u32) -> f64 {
    let began = Instant::now();
    (0..count).for_each(|_| call());
    began.elapsed().as_nanos() as f64 / f64::from(count)
}

/// A time in nanoseconds, for a table.
#[must_use]
pub fn nanos(nanos: f64) -> String {
    if nanos < 10.0 {
        format!("{nanos:.1}")
    } else {
        format!("{nanos:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_function_measures_as_slower() {
        let sum = |to: u64| (0..black_box(to)).fold(0u64, |sum, n| sum ^ black_box(n));
        let [short, long] = compare(|| sum(10), || sum(10_000));
        assert!(long > short, "{long} {short}");
    }
}
