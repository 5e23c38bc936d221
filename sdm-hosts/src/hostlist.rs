//! Compact lists of hosts, as Slurm and ClusterShell write them: `n[1-3,07],rack[1-2]n[01-16]`; and patterns of host
//! names: `login*`.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of names in one list.
const NAMES_MAX: usize = 1 << 20;
/// Maximum number of bytes of the names of one pattern: a short pattern can stand for many long names.
const NAMES_BYTES_MAX: usize = 64 << 20;
/// Maximum number of digits of a number. Every such number fits into a `u64`.
const DIGITS_MAX: usize = 18;
/// Maximum number of stars in one pattern, which bounds the cost of a comparison.
const STARS_MAX: usize = 4;

/// The names of a list, in its order. `None` if the list is malformed, has a star, has over a million names, or has a
/// pattern with over 64 MiB of names.
#[must_use]
pub fn names(list: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for pattern in split(list) {
        let pattern = HostPattern::parse(pattern).ok()?;
        all.extend(pattern.names(NAMES_MAX.checked_sub(all.len())?)?);
    }
    Some(all)
}

/// The patterns of a list, which are separated by commas outside brackets.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut is_within = false;
    let parts = list.split(move |c: char| {
        is_within = (is_within || c == '[') && c != ']';
        c == ',' && !is_within
    });
    parts.filter(|part| !part.is_empty())
}

/// Formats a list of names; names that differ only in the number at their end are combined. Order and repetitions
/// of the names do not matter.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    // By the part before the number, and the number of digits.
    let mut families: BTreeMap<(&str, usize), BTreeSet<u64>> = BTreeMap::new();
    let mut plain: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[stem.len()..];
        match digits.parse() {
            Ok(number) if !stem.is_empty() => {
                let family = families.entry((stem, digits.len()));
                family.or_default().insert(number);
            }
            _ => drop(plain.insert(name)),
        }
    }
    // Without zeros in front, the number of digits makes no difference.
    let mut merged: BTreeMap<(&str, usize), BTreeSet<u64>> = BTreeMap::new();
    for ((stem, digits), numbers) in families {
        let shortest = numbers.first().map_or(0, |first| first.to_string().len());
        let width = if shortest < digits { digits } else { 0 };
        merged.entry((stem, width)).or_default().extend(numbers);
    }
    let families = merged.iter().map(|((stem, width), numbers)| {
        let (width, numbers) = (*width, Vec::from_iter(numbers.iter().copied()));
        match numbers[..] {
            [one] => format!("{stem}{one:0width$}"),
            _ => format!("{stem}[{}]", ranges(&numbers, width)),
        }
    });
    let plain = plain.into_iter().map(str::to_owned);
    families.chain(plain).collect::<Vec<_>>().join(",")
}

/// Ascending numbers as ranges: `1-3,7`.
fn ranges(numbers: &[u64], width: usize) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let texts = runs.map(|run| match run {
        [one] => format!("{one:0width$}"),
        [first, .., last] => format!("{first:0width$}-{last:0width$}"),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(",")
}

/// A pattern of host names: `n1`, `n[01-04,07]`, `login*`.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Star,
    Ranges(Vec<Range>),
}

/// First and last number of a range, and the number of digits of padded numbers; 0 if they are not padded.
type Range = (u64, u64, usize);

/// A syntax error in a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct PatternError {
    /// Offset of the error, in bytes.
    pub at: usize,
    /// The error message: the expected text, or the limit that is exceeded.
    pub what: &'static str,
}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`PatternError`]: the first place that is wrong.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let wrong = |at, what| PatternError { at, what };
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            match first {
                '[' => {
                    let inner = &text[at + 1..];
                    let end = inner.find(']').ok_or(wrong(at, "expected a `]`"))?;
                    parts.push(Part::Ranges(read_ranges(&inner[..end], at + 1)?));
                    at += end + 2;
                }
                '*' => {
                    let stars = parts.iter().filter(|part| **part == Part::Star).count();
                    if stars == STARS_MAX {
                        return Err(wrong(at, "expected at most 4 `*` in the host list"));
                    }
                    parts.push(Part::Star);
                    at += 1;
                }
                _ => {
                    let rest = &text[at..];
                    let end = rest.find(['[', '*']).unwrap_or(rest.len());
                    parts.push(Part::Text(rest[..end].to_owned()));
                    at += end;
                }
            }
        }
        Ok(Self { parts })
    }

    /// True if the pattern matches the full name of the host, or the part before its first dot.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let short = host.split('.').next().unwrap_or(host);
        is_match(&self.parts, host) || is_match(&self.parts, short)
    }

    /// All names that match the pattern; `None` for a pattern with a star, more than `room` names, or names too
    /// long in total.
    fn names(&self, room: usize) -> Option<Vec<String>> {
        let mut names = vec![String::new()];
        for part in &self.parts {
            match part {
                Part::Star => return None,
                Part::Text(text) => {
                    if bytes_of(&names)? + text.len().checked_mul(names.len())? > NAMES_BYTES_MAX {
                        return None;
                    }
                    names.iter_mut().for_each(|name| name.push_str(text));
                }
                Part::Ranges(ranges) => {
                    let mut next = Vec::new();
                    let mut bytes = 0;
                    for name in &names {
                        for &(first, last, width) in ranges {
                            let more = usize::try_from(last - first).ok()?;
                            if more >= room - next.len() {
                                return None;
                            }
                            bytes += (more + 1) * (name.len() + width.max(1));
                            if bytes > NAMES_BYTES_MAX {
                                return None;
                            }
                            next.extend((first..=last).map(|n| format!("{name}{n:0width$}")));
                        }
                    }
                    names = next;
                }
            }
        }
        (names.len() <= room).then_some(names)
    }
}

/// Total length of these names, in bytes; `None` if it exceeds a `usize`.
fn bytes_of(names: &[String]) -> Option<usize> {
    let mut lengths = names.iter().map(String::len);
    lengths.try_fold(0_usize, usize::checked_add)
}

fn is_match(parts: &[Part], host: &str) -> bool {
    let Some((part, rest)) = parts.split_first() else {
        return host.is_empty();
    };
    match part {
        Part::Text(text) => host
            .strip_prefix(text.as_str())
            .is_some_and(|host| is_match(rest, host)),
        Part::Star => host
            .char_indices()
            .map(|(at, _)| at)
            .chain([host.len()])
            .any(|at| is_match(rest, &host[at..])),
        Part::Ranges(ranges) => {
            let digits = host.bytes().take_while(u8::is_ascii_digit).count();
            (1..=digits.min(DIGITS_MAX)).any(|length| {
                let number = &host[..length];
                holds(ranges, number) && is_match(rest, &host[length..])
            })
        }
    }
}

fn holds(ranges: &[Range], number: &str) -> bool {
    let Ok(value) = number.parse::<u64>() else {
        return false;
    };
    ranges.iter().any(|(low, high, width)| {
        let padded = if *width == 0 {
            number.len() == 1 || !number.starts_with('0')
        } else {
            number.len() == *width
        };
        padded && (*low..=*high).contains(&value)
    })
}

fn read_ranges(text: &str, at: usize) -> Result<Vec<Range>, PatternError> {
    let mut ranges = Vec::new();
    let mut at = at;
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let wrong = |what| PatternError { at, what };
        let number = |text: &str| {
            let is_number = text.len() <= DIGITS_MAX && text.bytes().all(|it| it.is_ascii_digit());
            let value = is_number.then(|| text.parse::<u64>().ok()).flatten();
            value.ok_or(wrong("expected a number or a range, as in n[01-04,7]"))
        };
        let (first, last) = (number(low)?, number(high)?);
        if first > last {
            return Err(wrong("expected a last number not smaller than the first"));
        }
        let is_padded = low.len() > 1 && low.starts_with('0');
        ranges.push((first, last, if is_padded { low.len() } else { 0 }));
        at += part.len() + 1;
    }
    Ok(ranges)
}

/// Parses arbitrary text as a host list. Checks that nothing panics, the result is bounded, and a list survives
/// formatting and parsing.
pub(crate) fn fuzz(text: &str) {
    let Some(found) = names(text) else { return };
    let bytes: usize = found.iter().map(String::len).sum();
    assert!(found.len() <= NAMES_MAX && bytes <= 2 * NAMES_BYTES_MAX);
    for pattern in split(text) {
        let pattern = HostPattern::parse(pattern).expect("it was read");
        let named = pattern.names(16).into_iter().flatten();
        named.for_each(|name| assert!(pattern.matches(&name), "{name}"));
    }
    let known: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let is_plain = |name: &&str| !name.contains(['[', ']', '*', ',']) && !name.is_empty();
    if known.iter().all(is_plain) {
        let again = names(&list(known.iter().copied())).expect("a list of ours");
        assert_eq!(
            again.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            known
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_list_with_too_many_bytes_of_names_is_refused() {
        let long = "x".repeat(1 << 16);
        assert_eq!(names(&format!("[1-1000000]{long}")), None);
        assert_eq!(names(&format!("{long}[1-1000000]")), None);
        assert_eq!(
            names(&format!("n[1-2]{long}")).map(|all| all.len()),
            Some(2)
        );
    }

    #[test]
    fn host_lists_are_expanded() {
        for (text, expected) in [
            ("n1", "n1"),
            ("n[1-3,7],login", "n1 n2 n3 n7 login"),
            ("a[08-11]-ib", "a08-ib a09-ib a10-ib a11-ib"),
            ("n[8-10]", "n8 n9 n10"),
            ("r[1-2]n[1,3]", "r1n1 r1n3 r2n1 r2n3"),
            ("", ""),
        ] {
            assert_eq!(names(text).unwrap().join(" "), expected, "{text}");
        }
    }

    #[test]
    fn oversized_or_malformed_host_lists_are_refused() {
        for list in [
            "n[1-",
            "n[x]",
            "n[]",
            "n[3-1]",
            "n*",
            "n[0-99999999]",
            "n[1-999999999999]",
            "a[0-999]b[0-9999]",
            "n[0-1048575],a,b[1-2]",
        ] {
            assert_eq!(names(list), None, "{list}");
        }
    }

    #[test]
    fn numbered_host_names_fold_to_ranges() {
        for (names, expected) in [
            ("n1 n3 n2 n7", "n[1-3,7]"),
            ("n01 n02 n1", "n1,n[01-02]"),
            ("n08 n09 n10 n11", "n[08-11]"),
            ("n8 n9 n10", "n[8-10]"),
            ("n0 n1", "n[0-1]"),
            ("login 17 n5", "n5,17,login"),
            ("a9 b9 a9", "a9,b9"),
            ("n99999999999999999999999", "n99999999999999999999999"),
            ("", ""),
        ] {
            assert_eq!(list(names.split_whitespace()), expected, "{names}");
        }
    }

    proptest::proptest! {
        #[test]
        fn folded_host_list_expands_to_its_names(all in proptest::collection::btree_set("[a-c]{1,2}[0-9]{0,3}", 0..40)) {
            let list = list(all.iter().map(String::as_str));
            let back = names(&list).unwrap();
            proptest::prop_assert_eq!(back.len(), all.len(), "{}", &list);
            proptest::prop_assert_eq!(back.into_iter().collect::<BTreeSet<_>>(), all, "{}", &list);
        }

        #[test]
        fn host_pattern_matches_the_names_it_expands_to(text in "[a-b]{0,1}(\\[[0-9]{1,2}(-[0-9]{2})?\\]){1,2}[a-b]{0,1}") {
            let pattern = HostPattern::parse(&text);
            for name in names(&text).into_iter().flatten() {
                proptest::prop_assert!(pattern.as_ref().unwrap().matches(&name), "{} {}", &text, &name);
            }
        }
    }

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern = HostPattern::parse(pattern).unwrap();
        for host in yes {
            assert!(pattern.matches(host), "{pattern:?} {host}");
        }
        for host in no {
            assert!(!pattern.matches(host), "{pattern:?} {host}");
        }
    }

    #[test]
    fn host_pattern_matches_full_and_short_host_names() {
        check("n1", &["n1", "n1.cluster"], &["n11", "n", "xn1"]);
        check(
            "n[01-04,07]",
            &["n01", "n04.site.org", "n07"],
            &["n1", "n05", "n001"],
        );
        check("n[9-11]x", &["n9x", "n10x", "n11x"], &["n09x", "n9", "n1x"]);
        check(
            "r[1-2]n[1-3]",
            &["r1n1", "r2n3"],
            &["r3n1", "r1n4", "r12n1"],
        );
        check("login*", &["login", "login3.site"], &["n1"]);
        check("*", &["anything"], &[]);
    }

    #[test]
    fn malformed_pattern_error_points_at_its_position() {
        for (text, at) in [
            ("n[1", 1),
            ("n[1-]", 2),
            ("n[1,x]", 4),
            ("n[4-1]", 2),
            ("*****", 4),
        ] {
            let error = HostPattern::parse(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
        }
    }
}
