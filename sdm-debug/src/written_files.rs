//! Lines for gdb's command line that write a file which the user names: `gcore`, `dump`, `append`, `save`,
//! `record save` and `set logging`. gdb accepts the beginnings of their words.

/// File formats of `dump` and `append`.
const FORMATS: [&str; 5] = ["binary", "ihex", "srec", "tekhex", "verilog"];
/// Contents of `dump` and `append`.
const CONTENTS: [&str; 2] = ["memory", "value"];
/// Contents of the files of `save`.
const SAVED: [&str; 2] = ["breakpoints", "tracepoints"];
/// gdb's names for the command that writes a core file.
const CORES: [&str; 2] = ["gcore", "generate-core-file"];
/// The words that turn on logging.
const ON: [&str; 4] = ["on", "1", "yes", "enable"];

/// A line that writes a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Writing<'a> {
    /// The line writes a core file of this name; empty if gdb is to choose it.
    Core(&'a str),
    /// The name of the file, and the text around it.
    Named(&'a str, &'a str, &'a str),
    /// The line names the file of gdb's log, without opening it.
    LogName(&'a str, &'a str),
    /// The line turns on gdb's log.
    LogOn,
    /// Another line about gdb's log.
    Log,
}

impl<'a> Writing<'a> {
    /// Parses a line; `None` for one that writes no file.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let mut rest = line;
        let mut words = std::iter::from_fn(|| {
            let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = behind.trim_start();
            (!word.is_empty()).then_some((word, rest))
        });
        let (first, behind) = words.next()?;
        if CORES.iter().any(|name| is_one(name, first, 2)) {
            return Some(Self::Core(behind));
        }
        let mut next = words.next()?;
        let is_dump = is_one("dump", first, 2) || is_one("append", first, 2);
        if is_dump && is_any(&FORMATS, next.0) {
            next = words.next()?;
        }
        let is_named = is_dump && is_any(&CONTENTS, next.0)
            || is_one("save", first, 2) && is_any(&SAVED, next.0)
            || is_one("record", first, 3) && is_one("save", next.0, 1);
        if is_named {
            let (file, behind) = words.next()?;
            let from = line.len() - next.1.len();
            return Some(Self::Named(&line[..from], file, behind));
        }
        let is_log = matches!(first, "set" | "show") && is_one("logging", next.0, 4);
        let setting = words.next().filter(|_| is_log && first == "set");
        let Some((setting, value)) = setting else {
            return is_log.then_some(Self::Log);
        };
        if is_one("file", setting, 1) && !value.is_empty() {
            let from = line.len() - value.len();
            return Some(Self::LogName(&line[..from], value));
        }
        let is_on = match is_one("enabled", setting, 1) {
            true => value.is_empty() || ON.contains(&value),
            false => ON.contains(&setting),
        };
        Some(if is_on { Self::LogOn } else { Self::Log })
    }

    /// The line with another name of its file; `None` if it names no file.
    #[must_use]
    pub fn with_name(&self, name: impl Fn(&str) -> String) -> Option<String> {
        match self {
            Self::Core("") | Self::LogOn | Self::Log => None,
            Self::Core(file) => Some(format!("gcore {}", name(file))),
            Self::Named(before, file, behind) => Some(format!("{before}{} {behind}", name(file))),
            Self::LogName(before, file) => Some(format!("{before}{}", name(file))),
        }
    }
}

fn is_one(name: &str, word: &str, letters_min: usize) -> bool {
    word.len() >= letters_min && name.starts_with(word)
}

fn is_any(names: &[&str], word: &str) -> bool {
    names.iter().any(|name| is_one(name, word, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_write_a_file_are_recognized() {
        for (line, before, file, behind) in [
            ("dump memory /tmp/a 1 2", "dump memory ", "/tmp/a", "1 2"),
            (" du bin val a  n + 1 ", "du bin val ", "a", "n + 1"),
            ("dump ihex  memory a 1 2", "dump ihex  memory ", "a", "1 2"),
            ("append value a n", "append value ", "a", "n"),
            ("save breakpoints all", "save breakpoints ", "all", ""),
            ("rec save a", "rec save ", "a", ""),
        ] {
            let expect = Writing::Named(before, file, behind);
            assert_eq!(Writing::parse(line), Some(expect), "{line:?}");
        }
        for (line, expect) in [
            ("gcore", Writing::Core("")),
            (" gcore  /tmp/a b ", Writing::Core("/tmp/a b")),
            ("gcor x", Writing::Core("x")),
            ("generate-core-file\tx", Writing::Core("x")),
            ("gen x", Writing::Core("x")),
            (
                "set logging file a b",
                Writing::LogName("set logging file ", "a b"),
            ),
            ("set logg f  a", Writing::LogName("set logg f  ", "a")),
            ("set logging on", Writing::LogOn),
            ("set logging enabled on", Writing::LogOn),
            ("set logging enabled", Writing::LogOn),
            ("set logg en 1", Writing::LogOn),
            ("set logging off", Writing::Log),
            ("set logging enabled off", Writing::Log),
            ("set logging file", Writing::Log),
            ("show logging", Writing::Log),
            ("show logging file", Writing::Log),
        ] {
            assert_eq!(Writing::parse(line), Some(expect), "{line:?}");
        }
        for line in [
            "",
            "dump",
            "dump memory",
            "print dump",
            "save gdb-index a",
            "record",
            "set log on",
            "g x",
            "gcorex",
            "print gcore",
        ] {
            assert_eq!(Writing::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn file_of_a_line_gets_another_name() {
        for (line, expect) in [
            ("dump value /tmp/a n + 1", Some("dump value /tmp/a.3 n + 1")),
            ("gen /tmp/a b", Some("gcore /tmp/a b.3")),
            ("set logging file a", Some("set logging file a.3")),
            ("gcore", None),
            ("set logging on", None),
        ] {
            let writing = Writing::parse(line).expect("it writes a file");
            let named = writing.with_name(|file| format!("{file}.3"));
            assert_eq!(named.as_deref().map(str::trim_end), expect, "{line:?}");
        }
    }
}
