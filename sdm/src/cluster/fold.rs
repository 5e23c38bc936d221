//! Many names in few words: `n[1-3,7],login`.

use std::collections::{BTreeMap, BTreeSet};

/// Names in the way in which Slurm writes hosts: those that differ in the number at their end together. Order and repetitions
/// of the names do not matter.
pub(super) fn fold<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    // By what is in front of the number, and how many digits that has.
    let mut families: BTreeMap<(&str, usize), Vec<u64>> = BTreeMap::new();
    let mut padded: BTreeSet<(&str, usize)> = BTreeSet::new();
    let mut plain: Vec<&str> = Vec::new();
    for name in names {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[stem.len()..];
        match digits.parse() {
            Ok(number) if !stem.is_empty() => {
                let family = (stem, digits.len());
                families.entry(family).or_default().push(number);
                if digits.starts_with('0') {
                    padded.insert(family);
                }
            }
            _ => plain.push(name),
        }
    }
    // Without zeros in front, the number of digits makes no difference.
    let mut merged: BTreeMap<(&str, usize), Vec<u64>> = BTreeMap::new();
    for ((stem, digits), numbers) in families {
        let width = if padded.contains(&(stem, digits)) {
            digits
        } else {
            0
        };
        merged.entry((stem, width)).or_default().extend(numbers);
    }
    let mut parts: Vec<String> = merged
        .into_iter()
        .map(|((stem, width), numbers)| family(stem, width, numbers))
        .collect();
    plain.sort_unstable();
    plain.dedup();
    parts.extend(plain.into_iter().map(str::to_owned));
    parts.join(",")
}

fn family(stem: &str, width: usize, mut numbers: Vec<u64>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    if let [one] = numbers[..] {
        return format!("{stem}{one:0width$}");
    }
    format!("{stem}[{}]", ranges(&numbers, width))
}

/// Ascending numbers as ranges: `1-3,7`.
pub(super) fn ranges(numbers: &[u64], width: usize) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let texts = runs.map(|run| match run {
        [one] => format!("{one:0width$}"),
        [first, .., last] => format!("{first:0width$}-{last:0width$}"),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_numbers_are_ranges() {
        for (names, expected) in [
            ("n1 n3 n2 n7", "n[1-3,7]"),
            ("n01 n02 n1", "n1,n[01-02]"),
            ("n08 n09 n10 n11", "n[08-11]"),
            ("n8 n9 n10", "n[8-10]"),
            ("login 17 n5", "n5,17,login"),
            ("a9 b9 a9", "a9,b9"),
            ("", ""),
        ] {
            assert_eq!(fold(names.split_whitespace()), expected, "{names}");
        }
    }

    #[test]
    fn a_number_that_is_too_long_is_a_name() {
        let name = "n99999999999999999999999";
        assert_eq!(fold([name]), name);
    }
}
