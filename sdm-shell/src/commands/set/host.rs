//! Hosts by pattern: `n1`, `n[01-04,07]`, `login*`.

/// The most ranges in the brackets of one pattern.
const RANGES_MAX: usize = 1024;
/// The most stars of one pattern: what a comparison can cost.
const STARS_MAX: usize = 4;

/// A pattern of host names.
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

/// First, last, and the digits of a padded number (0: not padded).
type Range = (u64, u64, usize);

impl HostPattern {
    /// Reads a pattern; an error gives the place in bytes and what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        if text.is_empty() {
            return Err((0, "expected a host, as in @host:n[01-04]"));
        }
        let mut parts = Vec::new();
        let mut at = 0;
        let mut stars = 0;
        while let Some(first) = text[at..].chars().next() {
            match first {
                '[' => {
                    let inner = &text[at + 1..];
                    let end = inner.find(']').ok_or((at, "expected a `]`"))?;
                    parts.push(Part::Ranges(ranges(&inner[..end], at + 1)?));
                    at += end + 2;
                }
                '*' => {
                    stars += 1;
                    if stars > STARS_MAX {
                        return Err((at, "expected fewer stars"));
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

    /// True for a host that it means: by its whole name, or by the part before the first dot.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let short = host.split('.').next().unwrap_or(host);
        is_match(&self.parts, host) || is_match(&self.parts, short)
    }
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
            // A number of 18 digits fits.
            (1..=digits.min(18)).any(|length| {
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

fn ranges(text: &str, at: usize) -> Result<Vec<Range>, (usize, &'static str)> {
    let mut ranges = Vec::new();
    let mut here = at;
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let good = !text.is_empty()
                && text.len() <= 18
                && text.bytes().all(|byte| byte.is_ascii_digit());
            let value = good.then(|| text.parse::<u64>().ok()).flatten();
            value.ok_or((here, "expected a number or a range, as in n[01-04,7]"))
        };
        let (first, last) = (number(low)?, number(high)?);
        if first > last || ranges.len() == RANGES_MAX {
            return Err((here, "expected a last number not below the first"));
        }
        let padded = low.len() > 1 && low.starts_with('0');
        ranges.push((first, last, if padded { low.len() } else { 0 }));
        here += part.len() + 1;
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn hosts_are_named_as_in_clustershell() {
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
    fn broken_patterns_point_at_their_place() {
        for (text, at) in [
            ("", 0),
            ("n[1", 1),
            ("n[1-]", 2),
            ("n[1,x]", 4),
            ("n[4-1]", 2),
        ] {
            let error = HostPattern::parse(text).unwrap_err();
            assert_eq!(error.0, at, "{text}: {}", error.1);
        }
    }
}
