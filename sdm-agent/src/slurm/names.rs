//! Host lists as Slurm writes them: `n[1-3,7],rack[1-2]n[01-16]`.

/// How many names a list may stand for.
const NAMES_MAX: usize = 1 << 20;

/// The names of a list, in its order; `None` where it is none, or stands for over a million.
pub(super) fn names(list: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for pattern in split(list) {
        let mut names = vec![String::new()];
        let mut rest = pattern;
        while let Some((before, numbers)) = rest.split_once('[') {
            let (numbers, behind) = numbers.split_once(']')?;
            let mut next = Vec::new();
            for name in &names {
                for range in numbers.split(',') {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let width = first.len();
                    let (first, last) = (number(first)?, number(last)?);
                    if last < first || last - first >= NAMES_MAX - all.len() - next.len() {
                        return None;
                    }
                    next.extend((first..=last).map(|n| format!("{name}{before}{n:0width$}")));
                }
            }
            names = next;
            rest = behind;
        }
        for name in &mut names {
            name.push_str(rest);
        }
        all.extend(names);
    }
    Some(all)
}

/// The patterns of a list: commas within brackets part none.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut is_within = false;
    let parts = list.split(move |c: char| {
        is_within = (is_within || c == '[') && c != ']';
        c == ',' && !is_within
    });
    parts.filter(|part| !part.is_empty())
}

fn number(digits: &str) -> Option<usize> {
    let is_number = digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_out() {
        let of = |list| names(list).map(|names| names.join(" "));
        assert_eq!(of("n1").as_deref(), Some("n1"));
        assert_eq!(of("n[1-3,7],login").as_deref(), Some("n1 n2 n3 n7 login"));
        assert_eq!(
            of("a[08-11]-ib").as_deref(),
            Some("a08-ib a09-ib a10-ib a11-ib")
        );
        assert_eq!(of("r[1-2]n[1,3]").as_deref(), Some("r1n1 r1n3 r2n1 r2n3"));
        assert_eq!(of("").as_deref(), Some(""));
    }

    #[test]
    fn what_is_none_is_refused() {
        for list in [
            "n[1-",
            "n[x]",
            "n[3-1]",
            "n[0-99999999]",
            "n[1-999999999999]",
            "a[0-999]b[0-9999]",
        ] {
            assert_eq!(names(list), None, "{list}");
        }
    }
}
