//! Parses gdb's text about locations, sources and addresses, for which there is no typed reply.

/// Maximum number of goto targets with numbers; the oldest are dropped.
const PLACES_MAX: usize = 1024;

/// Targets of `goto`, by the client's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GotoTargets {
    first: i64,
    known: std::collections::VecDeque<String>,
    /// The number of the breakpoint at which tasks stop after the last `goto`. `None` before the first.
    pub(crate) arrival: Option<u32>,
}

impl GotoTargets {
    /// Assigns a number to a location, from 1.
    pub(crate) fn add(&mut self, location: String) -> i64 {
        if self.known.len() >= PLACES_MAX {
            self.known.pop_front();
            self.first += 1;
        }
        self.known.push_back(location);
        self.first + i64::try_from(self.known.len()).unwrap_or(i64::MAX)
    }

    /// The location with this number; `None` for an unknown number.
    pub(crate) fn get(&self, id: i64) -> Option<&str> {
        let at = usize::try_from(id.saturating_sub(self.first).saturating_sub(1)).ok()?;
        self.known.get(at).map(String::as_str)
    }
}

/// The line and the start address of its code, from the output of gdb's `info line`. `None` for a line without code.
pub(crate) fn code_at(text: &str) -> Option<(i64, String)> {
    let rest = text.trim_start().strip_prefix("Line ")?;
    let (line, rest) = rest.split_once(' ')?;
    let (_, address) = rest.split_once("starts at address ")?;
    let end = address.find(|c: char| !c.is_ascii_alphanumeric());
    let address = &address[..end.unwrap_or(address.len())];
    Some((line.parse().ok()?, address.to_owned()))
}

/// The values of all fields with this name in an MI record, in order: `fullname="/a.c"`.
pub(crate) fn fields<'a>(record: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let mut rest = record;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(name)?;
            let is_whole = rest[..at].ends_with(['{', ',', '[']);
            rest = &rest[at + name.len()..];
            if let (true, Some(text)) = (is_whole, rest.strip_prefix("=\"")) {
                let (value, after) = quoted(text);
                rest = after;
                return Some(value);
            }
        }
    })
}

/// The text up to the next quote that is not escaped, with its escapes decoded, and the rest.
fn quoted(text: &str) -> (String, &str) {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => {
                let value = String::from_utf8_lossy(&bytes).into_owned();
                return (value, text.get(at + 1..).unwrap_or_default());
            }
            b'\\' => {
                let digits = text.get(at + 1..at + 4);
                let number = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
                match number {
                    Some(number) => {
                        bytes.push(number);
                        rest.by_ref().take(3).for_each(drop);
                    }
                    None => bytes.extend(rest.next().map(|(_, byte)| byte)),
                }
            }
            byte => bytes.push(byte),
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_line_yields_an_address_only_for_a_line_with_code() {
        let text =
            "Line 27 of \"work.c\" starts at address 0x5555 <twice+11> and ends at 0x5560.\n";
        assert_eq!(code_at(text), Some((27, "0x5555".to_owned())));
        for text in [
            "Line 3 of \"work.c\" is at address 0x1 <f> but contains no code.",
            "Line number 900 is out of range for \"work.c\".",
            "",
        ] {
            assert_eq!(code_at(text), None, "{text}");
        }
    }

    #[test]
    fn fields_of_a_gdb_record_are_parsed() {
        let record = r#"^done,files=[{file="a.c",fullname="/x/a.c"},{fullname="/\303\251\"\\.c"}]"#;
        let found: Vec<String> = fields(record, "fullname").collect();
        assert_eq!(found, ["/x/a.c", "/é\"\\.c"]);
        assert_eq!(fields(record, "name").count(), 0);
        assert_eq!(fields("{addr=\"", "addr").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn goto_targets_are_numbered_and_the_oldest_are_dropped() {
        let mut places = GotoTargets::default();
        assert_eq!(places.add("a".to_owned()), 1);
        for _ in 0..PLACES_MAX {
            places.add("b".to_owned());
        }
        assert_eq!(places.get(1), None);
        assert_eq!(places.get(2), Some("b"));
        assert_eq!(places.add("c".to_owned()), 1026);
        assert_eq!(places.get(1026), Some("c"));
        assert_eq!(places.get(-5), None);
    }
}
