//! Parses one line of GDB/MI into one record.

use super::escape::{read_c_string, text_of};
use super::{Results, Value};

/// One record of gdb's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// `12^done,...`: the answer to a command.
    Result {
        /// The token of the command; `None` if it had none.
        token: Option<u64>,
        /// The result class.
        class: ResultClass,
        /// The results.
        results: Results,
    },
    /// `*stopped,...`: a report of an event.
    Async {
        /// Token of the command that caused the event; `None` if gdb gives none.
        token: Option<u64>,
        /// The kind of event: execution, status or notification.
        kind: AsyncKind,
        /// Name of the reported event, for example `stopped`.
        class: String,
        /// The results.
        results: Results,
    },
    /// `~"..."`: text for users.
    Stream {
        /// The origin of the text: console, program (target) or log.
        kind: StreamKind,
        /// The text, line ends included.
        text: String,
    },
    /// `(gdb)`: gdb is ready for the next command.
    Prompt,
    /// A line that was too long to keep.
    TooLong {
        /// The token of the command, if the line was an answer.
        token: Option<u64>,
        /// Length of the line, in bytes.
        bytes: u64,
    },
    /// A line that is not MI, or a record of an unknown kind.
    Unknown(String),
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultClass {
    /// `^done`.
    Done,
    /// `^running`.
    Running,
    /// `^connected`.
    Connected,
    /// `^error`.
    Error,
    /// `^exit`.
    Exit,
}

/// Kinds of asynchronous records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncKind {
    /// `*`: the program runs or has stopped.
    Exec,
    /// `+`: progress.
    Status,
    /// `=`: any other notification.
    Notify,
}

/// The origins of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// `~`: output of a console command.
    Console,
    /// `@`: output of the program, if gdb forwards it.
    Target,
    /// `&`: gdb's log.
    Log,
}

/// Maximum nesting depth of values. A line with deeper values is not parsed: it is [`Record::Unknown`].
const DEPTH_MAX: u32 = 64;

/// Parses one line without its end. Never fails: a line that is not MI becomes [`Record::Unknown`].
#[must_use]
pub fn parse_line(line: &[u8]) -> Record {
    read_record(line).unwrap_or_else(|| Record::Unknown(text_of(line.to_vec())))
}

impl Record {
    /// The record of a line that is too long, from the first bytes of the line and its length.
    pub(super) fn too_long(head: &[u8], bytes: u64) -> Self {
        let (token, rest) = read_token(head);
        let token = token.filter(|_| rest.first() == Some(&b'^'));
        Self::TooLong { token, bytes }
    }
}

fn read_record(line: &[u8]) -> Option<Record> {
    if line.trim_ascii_end() == b"(gdb)" {
        return Some(Record::Prompt);
    }
    let (token, rest) = read_token(line);
    let (&sign, rest) = rest.split_first()?;
    match sign {
        b'^' => {
            let (class, results) = read_class(rest)?;
            let class = match class.as_str() {
                "done" => ResultClass::Done,
                "running" => ResultClass::Running,
                "connected" => ResultClass::Connected,
                "error" => ResultClass::Error,
                "exit" => ResultClass::Exit,
                _ => return None,
            };
            Some(Record::Result {
                token,
                class,
                results,
            })
        }
        b'*' | b'+' | b'=' => {
            let kind = match sign {
                b'*' => AsyncKind::Exec,
                b'+' => AsyncKind::Status,
                _ => AsyncKind::Notify,
            };
            let (class, results) = read_class(rest)?;
            Some(Record::Async {
                token,
                kind,
                class,
                results,
            })
        }
        b'~' | b'@' | b'&' if token.is_none() => {
            let kind = match sign {
                b'~' => StreamKind::Console,
                b'@' => StreamKind::Target,
                _ => StreamKind::Log,
            };
            let (bytes, used) = read_c_string(rest)?;
            let text = text_of(bytes);
            (used == rest.len()).then_some(Record::Stream { kind, text })
        }
        _ => None,
    }
}

/// The token in front of a record, `None` if it has none, and the rest of the line.
fn read_token(line: &[u8]) -> (Option<u64>, &[u8]) {
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = line.split_at(digits);
    let token = std::str::from_utf8(digits)
        .ok()
        .and_then(|t| t.parse().ok());
    (token, rest)
}

/// Parses `class,name=value,...` up to the end of the line; `None` for text of another form.
fn read_class(rest: &[u8]) -> Option<(String, Results)> {
    let mut cursor = Cursor { input: rest, at: 0 };
    let class = cursor.read_name()?;
    let mut results = Results::default();
    while cursor.take(b',') {
        results.0.push(cursor.read_result(DEPTH_MAX)?);
    }
    (cursor.at == rest.len()).then_some((class, results))
}

struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn read_name(&mut self) -> Option<String> {
        let length = self.input[self.at..]
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            .count();
        if length == 0 {
            return None;
        }
        let name = &self.input[self.at..self.at + length];
        self.at += length;
        String::from_utf8(name.to_vec()).ok()
    }

    fn read_result(&mut self, depth: u32) -> Option<(String, Value)> {
        let name = self.read_name()?;
        if !self.take(b'=') {
            return None;
        }
        Some((name, self.read_value(depth)?))
    }

    fn read_value(&mut self, depth: u32) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            b'"' => {
                let (bytes, used) = read_c_string(&self.input[self.at..])?;
                self.at += used;
                Some(Value::Text(text_of(bytes)))
            }
            b'{' => {
                self.at += 1;
                Some(Value::Tuple(self.read_results(b'}', depth)?))
            }
            b'[' => {
                self.at += 1;
                self.read_list(depth)
            }
            _ => None,
        }
    }

    fn read_results(&mut self, close: u8, depth: u32) -> Option<Results> {
        let mut results = Results::default();
        if self.take(close) {
            return Some(results);
        }
        loop {
            results.0.push(self.read_result(depth)?);
            if self.take(close) {
                return Some(results);
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn read_list(&mut self, depth: u32) -> Option<Value> {
        if !matches!(self.peek()?, b'"' | b'{' | b'[' | b']') {
            return Some(Value::Named(self.read_results(b']', depth)?));
        }
        let mut list = Vec::new();
        if self.take(b']') {
            return Some(Value::List(list));
        }
        loop {
            list.push(self.read_value(depth)?);
            if self.take(b']') {
                return Some(Value::List(list));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: &str) {
        assert_eq!(show(&parse_line(line.as_bytes())), expect, "{line}");
    }

    fn show(record: &Record) -> String {
        match record {
            Record::Result {
                token,
                class,
                results,
            } => {
                format!("{token:?} {class:?} {}", show_results(results))
            }
            Record::Async {
                kind,
                class,
                results,
                ..
            } => {
                format!("{kind:?} {class} {}", show_results(results))
            }
            Record::Stream { kind, text } => format!("{kind:?} {text:?}"),
            other => format!("{other:?}"),
        }
    }

    fn show_results(results: &Results) -> String {
        let each = |(name, value): &(String, Value)| format!("{name}={}", show_value(value));
        results.0.iter().map(each).collect::<Vec<_>>().join(",")
    }

    fn show_value(value: &Value) -> String {
        match value {
            Value::Text(text) => format!("{text:?}"),
            Value::Tuple(results) => format!("{{{}}}", show_results(results)),
            Value::Named(results) => format!("[{}]", show_results(results)),
            Value::List(list) => {
                format!(
                    "[{}]",
                    list.iter().map(show_value).collect::<Vec<_>>().join(",")
                )
            }
        }
    }

    #[test]
    fn records_of_every_kind_are_parsed() {
        check("12^done", "Some(12) Done ");
        check("^running", "None Running ");
        check(
            "3^error,msg=\"No symbol \\\"x\\\"\"",
            "Some(3) Error msg=\"No symbol \\\"x\\\"\"",
        );
        check("9^exit", "Some(9) Exit ");
        check(
            "*running,thread-id=\"all\"",
            "Exec running thread-id=\"all\"",
        );
        check(
            "=thread-group-exited,id=\"i1\",exit-code=\"010\"",
            "Notify thread-group-exited id=\"i1\",exit-code=\"010\"",
        );
        check("+download,{}", "Unknown(\"+download,{}\")");
        check("~\"a\\n\"", "Console \"a\\n\"");
        check("&\"w\"", "Log \"w\"");
        check("@\"\"", "Target \"\"");
        check("(gdb) ", "Prompt");
        check("(gdb)", "Prompt");
    }

    #[test]
    fn nested_values_are_parsed() {
        check(
            "1^done,a=[{b=\"1\",c=[]},{b={}}],d=[f={l=\"0\"},f={l=\"1\"}],e=[\"x\",\"y\"]",
            "Some(1) Done a=[{b=\"1\",c=[]},{b={}}],d=[f={l=\"0\"},f={l=\"1\"}],e=[\"x\",\"y\"]",
        );
        check("1^done,ü=\"1\"", "Unknown(\"1^done,ü=\\\"1\\\"\")");
    }

    #[test]
    fn line_that_is_not_mi_is_kept_unchanged() {
        for line in [
            "",
            "12",
            "^",
            "^what",
            "1^done,",
            "1^done,a",
            "1^done,a=",
            "1^done,a=\"x",
            "1^done,a=[",
            "1^done,a={b=\"1\"",
            "1^done,a=\"1\"x",
            "~x",
            "5~\"x\"",
            "segfault",
        ] {
            assert_eq!(
                parse_line(line.as_bytes()),
                Record::Unknown(line.to_owned())
            );
        }
        let deep = format!("1^done,a={}", "[".repeat(100_000));
        assert_eq!(parse_line(deep.as_bytes()), Record::Unknown(deep.clone()));
    }

    #[test]
    fn oversized_token_is_ignored() {
        check("99999999999999999999999^done", "None Done ");
    }
}
