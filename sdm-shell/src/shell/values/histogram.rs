//! The bins of the histogram that `stats` shows.

use sdm_debug::rules::{Bins, Extreme, Number, Stats};

/// Maximum number of bins.
const BINS: u16 = 12;

/// Bins between the smallest and the largest number. Between whole numbers that are near each other a bin is 1 wide, so
/// that integers have one each. None without two distinct numbers.
pub(super) fn bins(stats: &Stats) -> Option<Bins> {
    let ends = [&stats.min, &stats.max].map(|end| end.as_ref().map(|it| it.value));
    if let [Some(Number::Int(low)), Some(Number::Int(high))] = ends
        && let Ok(count @ 2..=BINS) = u16::try_from(high + 1 - low)
    {
        let edge = |number| Number::Int(number).to_f64();
        let (low, high) = (edge(low), edge(high + 1));
        return Bins::decode(&Bins { low, high, count }.encode());
    }
    let value = |extreme: &Option<Extreme>| extreme.as_ref().map(|e| e.value.to_f64());
    let bins = Bins {
        low: value(&stats.min)?,
        high: value(&stats.max)?,
        count: BINS,
    };
    Bins::decode(&bins.encode())
}

#[cfg(test)]
mod tests {
    use sdm_debug::Reply;
    use sdm_debug::reply::Value;
    use sdm_idset::{IdSet, TaskId};

    use super::*;

    fn bins_of(numbers: &[&str]) -> Option<(f64, f64, u16)> {
        let mut stats = Stats::over(None);
        for (task, number) in (0..).zip(numbers) {
            let value = Value {
                text: (*number).to_owned(),
                cut: None,
            };
            let tasks = IdSet::single(TaskId(task));
            let own = Stats::of(&tasks, &Reply::Value(value), None).expect("a number");
            stats.absorb(&own).expect("equal bins");
        }
        bins(&stats).map(|it| (it.low, it.high, it.count))
    }

    #[test]
    fn close_integers_have_a_histogram_bin_each() {
        for (numbers, expect) in [
            (&["200", "202", "201"][..], Some((200.0, 203.0, 3))),
            (&["-1", "0"], Some((-1.0, 1.0, 2))),
            (&["0", "11"], Some((0.0, 12.0, 12))),
            (&["0", "12"], Some((0.0, 12.0, 12))),
            (&["0.5", "2.5"], Some((0.5, 2.5, 12))),
            (&["0", "2.5"], Some((0.0, 2.5, 12))),
            (&["7", "7"], None),
        ] {
            assert_eq!(bins_of(numbers), expect, "{numbers:?}");
        }
    }
}
