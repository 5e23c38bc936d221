//! The merge rule for numbers: count, sum, mean, deviation, extremes, and a histogram.

use std::cmp::Ordering;

use bytes::Bytes;
use sdm_core::aggregate::{Acc, Merge, Rejected};
use sdm_idset::IdSet;

use super::array::{NumberArray, element};
use super::bins::{Bins, Histogram};
use super::coding::{Reader, Writer, is_merged};
use super::number::{Number, Parsed};
use super::rule_numbers::RULE_STATS;
use crate::{Reply, wire};

/// The error for a histogram whose bins cannot be decoded.
const INVALID_BINS: Rejected = Rejected("the encoded statistics have invalid histogram bins");

/// Statistics of the numbers that tasks answered.
///
/// Merged payload: `fe 02`, counts, the sums (`i128` and `f64`, little-endian), mean and squared deviations, the
/// extremes with their tasks, the tasks without a number, and the bins.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Stats {
    /// Count of finite numbers: one per task, or one per element of the tasks' arrays.
    pub count: u64,
    /// Exact sum of the integers among them.
    pub int_sum: i128,
    /// The sum of the finite numbers that are not integers, within rounding.
    pub float_sum: f64,
    /// The mean of the finite numbers, within rounding.
    pub mean: f64,
    /// Sum of the squared deviations from the mean, within rounding.
    pub squares: f64,
    /// The smallest finite number; `None` if there is no finite number.
    pub min: Option<Extreme>,
    /// The largest finite number; `None` if there is no finite number.
    pub max: Option<Extreme>,
    /// Tasks that answered `nan`.
    pub not_a_number: Who,
    /// Tasks that answered `inf`.
    pub infinite_up: Who,
    /// Tasks that answered `-inf`.
    pub infinite_down: Who,
    /// Histogram of the finite numbers; `None` if the command gave no bins.
    pub histogram: Option<Histogram>,
}

/// A set of tasks: their count, and the tasks themselves if there is room for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The number of tasks in the set.
    pub count: u64,
    /// The tasks; `None` if there was no room to name them.
    pub tasks: Option<IdSet>,
}

/// The smallest or largest number.
#[derive(Clone, Debug, PartialEq)]
pub struct Extreme {
    /// The smallest or largest number.
    pub value: Number,
    /// The tasks that answered this number.
    pub who: Who,
}

impl Default for Who {
    fn default() -> Self {
        Self {
            count: 0,
            tasks: Some(IdSet::new()),
        }
    }
}

impl Who {
    fn of(tasks: &IdSet) -> Self {
        Self {
            count: tasks.len(),
            tasks: Some(tasks.clone()),
        }
    }

    fn join(&mut self, other: &Self) {
        match (&mut self.tasks, &other.tasks) {
            (Some(tasks), Some(more)) => {
                tasks.union_with(more);
                self.count = tasks.len();
            }
            (tasks, _) => {
                *tasks = None;
                self.count = self.count.saturating_add(other.count);
            }
        }
    }
}

impl Stats {
    /// Reads a task's own answer or a merged payload of these sources.
    ///
    /// # Errors
    /// The payload is not a number.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        if is_merged(payload) {
            return read(sources, payload);
        }
        own(sources, payload, None)
    }

    /// Empty statistics with `bins`.
    #[must_use]
    pub fn over(bins: Option<Bins>) -> Self {
        Self {
            histogram: bins.map(Histogram::new),
            ..Self::default()
        }
    }

    /// Statistics of the number, or the array's elements, that each of these tasks has answered.
    ///
    /// # Errors
    /// The answer is no number.
    pub fn of(tasks: &IdSet, reply: &Reply, bins: Option<Bins>) -> Result<Self, Rejected> {
        let mut stats = Self::over(bins);
        let who = Who::of(tasks);
        match reply {
            // A value is without its type: this may be a pointer.
            Reply::Value(value) if is_address(&value.text) => {
                return Err(Rejected("an address"));
            }
            Reply::Value(value) if value.cut.is_none() => {
                stats.insert(element(&value.text).ok_or(Rejected("no number"))?, &who);
            }
            Reply::Text(text) => {
                let array = NumberArray::parse(text).ok_or(Rejected("no numbers"))?;
                for element in array.elements {
                    stats.insert(element, &who);
                }
            }
            _ => return Err(Rejected("no value")),
        }
        Ok(stats)
    }

    /// True if no task has answered a number. Infinite numbers and `nan` count as numbers here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let odd = [&self.not_a_number, &self.infinite_up, &self.infinite_down];
        self.count == 0 && odd.iter().all(|who| who.count == 0)
    }

    /// The sum of all finite numbers.
    #[must_use]
    pub fn sum(&self) -> f64 {
        Number::Int(self.int_sum).to_f64() + self.float_sum
    }

    /// The population variance of the finite numbers; `None` if there are none.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / to_f64(self.count))
    }

    /// Adds one number that all of these tasks answered.
    fn insert(&mut self, parsed: Parsed, who: &Who) {
        let value = match parsed {
            Parsed::NotANumber => return self.not_a_number.join(who),
            Parsed::InfiniteUp => return self.infinite_up.join(who),
            Parsed::InfiniteDown => return self.infinite_down.join(who),
            Parsed::Finite(value) => value,
        };
        let (int_sum, float_sum) = match value {
            Number::Int(int) => (int.saturating_mul(who.count.into()), 0.0),
            Number::Float(float) => (0, float * to_f64(who.count)),
        };
        let more = Self {
            count: who.count,
            int_sum,
            float_sum,
            mean: value.to_f64(),
            ..Self::default()
        };
        self.join_moments(&more, self.int_sum.saturating_add(int_sum));
        let is_least = self.min.as_ref().is_none_or(|min| value < min.value);
        let is_most = self.max.as_ref().is_none_or(|max| value > max.value);
        let extreme = |wins: bool| {
            wins.then(|| Extreme {
                value,
                who: who.clone(),
            })
        };
        self.min = extreme(is_least).or(self.min.take());
        self.max = extreme(is_most).or(self.max.take());
        if let Some(histogram) = &mut self.histogram {
            histogram.insert(value.to_f64(), who.count);
        }
    }

    /// Merges in the statistics of other tasks.
    ///
    /// # Errors
    /// The other statistics have other bins, or the sum is too large. Nothing is changed then.
    pub fn absorb(&mut self, other: &Self) -> Result<(), Rejected> {
        let (mine, theirs) = (&self.histogram, &other.histogram);
        if mine.as_ref().map(|h| h.bins) != theirs.as_ref().map(|h| h.bins) {
            return Err(Rejected(
                "the answers have statistics with different histogram bins",
            ));
        }
        let sum = self.int_sum.checked_add(other.int_sum);
        let sum = sum.ok_or(Rejected("a sum exceeds 128 bits"))?;
        self.join_moments(other, sum);
        join_extreme(&mut self.min, other.min.as_ref(), Ordering::Less);
        join_extreme(&mut self.max, other.max.as_ref(), Ordering::Greater);
        self.not_a_number.join(&other.not_a_number);
        self.infinite_up.join(&other.infinite_up);
        self.infinite_down.join(&other.infinite_down);
        if let (Some(mine), Some(theirs)) = (&mut self.histogram, &other.histogram) {
            mine.join(theirs);
        }
        Ok(())
    }

    /// Merges in the count, sums, mean and squared deviations of other numbers; `int_sum` is the sum of the integers of
    /// both. Both orders of the operands give the same bits.
    fn join_moments(&mut self, other: &Self, int_sum: i128) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            (self.count, self.int_sum) = (other.count, int_sum);
            (self.float_sum, self.mean, self.squares) =
                (other.float_sum, other.mean, other.squares);
            return;
        }
        let (a, b) = (to_f64(self.count), to_f64(other.count));
        let exact = self.exactly_apart(other);
        let apart = exact.unwrap_or(self.mean - other.mean);
        (self.count, self.int_sum) = (self.count.saturating_add(other.count), int_sum);
        self.float_sum += other.float_sum;
        self.mean = match exact {
            Some(_) => quotient(int_sum, self.count.into()),
            // The sum of two parts of it can differ from it.
            None if apart == 0.0 => self.mean,
            None => self.mean * (a / (a + b)) + other.mean * (b / (a + b)),
        };
        self.squares = (self.squares + other.squares) + apart * apart * ((a * b) / (a + b));
    }

    /// The difference of the two means, computed from exact integer sums. Integers beyond 2^53 are rounded as `f64`,
    /// and the difference can be smaller than that rounding. `None` if floats are among the numbers, or if a product
    /// overflows.
    fn exactly_apart(&self, other: &Self) -> Option<f64> {
        if self.float_sum != 0.0 || other.float_sum != 0.0 {
            return None;
        }
        let (a, b) = (i128::from(self.count), i128::from(other.count));
        let one = self.int_sum.checked_mul(b)?;
        let apart = one.checked_sub(other.int_sum.checked_mul(a)?)?;
        Some(quotient(apart, a.checked_mul(b)?))
    }
}

#[allow(clippy::cast_precision_loss)]
fn to_f64(count: u64) -> f64 {
    count as f64
}

/// The quotient of integers; the divisor is positive.
#[allow(clippy::cast_precision_loss)]
fn quotient(dividend: i128, divisor: i128) -> f64 {
    let whole = dividend.div_euclid(divisor);
    whole as f64 + dividend.rem_euclid(divisor) as f64 / divisor as f64
}

/// Keeps `mine`, or takes `theirs` if comparing its value with that of `mine` gives `wins`. If both values are equal,
/// their tasks are united.
fn join_extreme(mine: &mut Option<Extreme>, theirs: Option<&Extreme>, wins: Ordering) {
    let Some(theirs) = theirs else {
        return;
    };
    match mine {
        Some(kept) if kept.value == theirs.value => {
            // 3 and 3.0 are the same number in two forms. The integer's form is kept, in either order.
            if let Number::Int(_) = theirs.value {
                kept.value = theirs.value;
            }
            kept.who.join(&theirs.who);
        }
        Some(kept) if theirs.value.cmp(&kept.value) != wins => {}
        _ => *mine = Some(theirs.clone()),
    }
}

pub(super) struct Rule {
    pub(super) bins: Option<Bins>,
}

impl Merge for Rule {
    fn start(&self) -> Acc {
        Box::new(Stats::over(self.bins))
    }

    fn merge(&self, acc: &mut Acc, sources: &IdSet, payload: &[u8]) -> Result<(), Rejected> {
        let stats = if is_merged(payload) {
            read(sources, payload)?
        } else {
            own(sources, payload, self.bins)?
        };
        let acc: &mut Stats = acc.downcast_mut().expect("made by start");
        acc.absorb(&stats)
    }

    fn finish(&self, acc: Acc, bytes_max: usize) -> Bytes {
        let stats: Box<Stats> = acc.downcast().expect("made by start");
        let bytes = write(&stats, true);
        if bytes.len() <= bytes_max {
            return Bytes::from(bytes);
        }
        Bytes::from(write(&stats, false))
    }
}

fn write(stats: &Stats, named: bool) -> Vec<u8> {
    let mut writer = Writer::new(RULE_STATS);
    writer.number(stats.count);
    writer.fixed(&stats.int_sum.to_le_bytes());
    for float in [stats.float_sum, stats.mean, stats.squares] {
        writer.fixed(&float.to_le_bytes());
    }
    for extreme in [&stats.min, &stats.max] {
        match extreme.as_ref().map(|e| e.value) {
            None => writer.number(0),
            Some(Number::Int(int)) => {
                writer.number(1);
                writer.fixed(&int.to_le_bytes());
            }
            Some(Number::Float(float)) => {
                writer.number(2);
                writer.fixed(&float.to_le_bytes());
            }
        }
        if let Some(extreme) = extreme {
            write_who(&mut writer, &extreme.who, named);
        }
    }
    for who in [
        &stats.not_a_number,
        &stats.infinite_up,
        &stats.infinite_down,
    ] {
        write_who(&mut writer, who, named);
    }
    match &stats.histogram {
        None => writer.size(0),
        Some(histogram) => {
            let params = histogram.bins.encode();
            writer.size(params.len());
            writer.fixed(&params);
            let edges = [histogram.below, histogram.above];
            for count in edges.iter().chain(&histogram.counts) {
                writer.number(*count);
            }
        }
    }
    writer.out
}

fn write_who(writer: &mut Writer, who: &Who, named: bool) {
    writer.number(who.count);
    match &who.tasks {
        Some(tasks) if named || tasks.is_empty() => {
            writer.number(1);
            writer.set(tasks);
        }
        _ => writer.number(0),
    }
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<Stats, Rejected> {
    let mut reader = Reader::new(RULE_STATS, payload, sources)?;
    let count = reader.number()?;
    let int_sum = i128::from_le_bytes(reader.fixed()?);
    let mut floats = [0.0; 3];
    for float in &mut floats {
        *float = f64::from_le_bytes(reader.fixed()?);
    }
    let [float_sum, mean, squares] = floats;
    let (min, max) = (read_extreme(&mut reader)?, read_extreme(&mut reader)?);
    let mut who = || read_who(&mut reader);
    let (not_a_number, infinite_up, infinite_down) = (who()?, who()?, who()?);
    let histogram = match reader.count()? {
        0 => None,
        18 => {
            let params: [u8; 18] = reader.fixed()?;
            let bins = Bins::decode(&params).ok_or(INVALID_BINS)?;
            let mut histogram = Histogram::new(bins);
            histogram.below = reader.number()?;
            histogram.above = reader.number()?;
            for count in &mut histogram.counts {
                *count = reader.number()?;
            }
            Some(histogram)
        }
        _ => return Err(INVALID_BINS),
    };
    reader.end()?;
    Ok(Stats {
        count,
        int_sum,
        float_sum,
        mean,
        squares,
        min,
        max,
        not_a_number,
        infinite_up,
        infinite_down,
        histogram,
    })
}

fn read_extreme(reader: &mut Reader<'_>) -> Result<Option<Extreme>, Rejected> {
    let value = match reader.number()? {
        0 => return Ok(None),
        1 => Number::Int(i128::from_le_bytes(reader.fixed()?)),
        2 => Number::Float(f64::from_le_bytes(reader.fixed()?)),
        _ => return Err(Rejected("a number is neither an integer nor a float")),
    };
    if !value.is_valid() {
        return Err(Rejected("a number is not finite or out of bounds"));
    }
    let who = read_who(reader)?;
    Ok(Some(Extreme { value, who }))
}

fn read_who(reader: &mut Reader<'_>) -> Result<Who, Rejected> {
    let count = reader.number()?;
    let tasks = match reader.number()? {
        0 => None,
        1 => Some(reader.set()?),
        _ => return Err(Rejected("a set of tasks has an unknown encoding")),
    };
    if tasks.as_ref().is_some_and(|tasks| tasks.len() != count) {
        return Err(Rejected("a set of tasks has another size than announced"));
    }
    Ok(Who { count, tasks })
}

/// True for the text of a value in hexadecimal digits, as gdb prints a pointer.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.starts_with("0x")
}

/// Statistics of the equal answers of these tasks.
fn own(sources: &IdSet, payload: &[u8], bins: Option<Bins>) -> Result<Stats, Rejected> {
    let reply = wire::decode(payload).map_err(|_| Rejected("no value"))?;
    Stats::of(sources, &reply, bins)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `f64` the first two of the integers from 2^53 on are equal.
    #[test]
    fn statistics_of_large_integers_are_exact() {
        let check = |texts: &[&str], mean: f64, variance: f64| {
            let mut all = Stats::default();
            for (task, text) in texts.iter().enumerate() {
                let mut one = Stats::default();
                let who = Who::of(&task.to_string().parse().unwrap());
                one.insert(element(text).unwrap(), &who);
                all.absorb(&one).unwrap();
            }
            let found = all.variance().unwrap();
            assert!((found - variance).abs() < 1e-9, "{texts:?}: {found}");
            assert!((all.mean - mean).abs() < 1e-9, "{texts:?}: {}", all.mean);
        };
        let below = ["9007199254740992", "9007199254740993", "9007199254740994"];
        check(&below, 9_007_199_254_740_993.0, 2.0 / 3.0);
        let last = ["18446744073709551615", "18446744073709551613"];
        check(&last, 18_446_744_073_709_551_614.0, 1.0);
        check(&["-1", "0", "1"], 0.0, 2.0 / 3.0);
        check(&["3", "0.5", "2.5"], 2.0, 3.5 / 3.0);
    }

    #[test]
    fn equal_numbers_have_no_deviation() {
        let array = format!("{{0.1{}}}", ", 0.1".repeat(2000));
        let of = |task: &str| Stats::of(&task.parse().unwrap(), &Reply::Text(array.clone()), None);
        let mut all = of("0").unwrap();
        all.absorb(&of("1-2").unwrap()).unwrap();
        assert_eq!((all.count, all.variance()), (6003, Some(0.0)));
    }
}
