//! Lines of the log (`SDM_LOG`), on standard error: bounded in length, and free of control sequences.
//!
//! A server's log reaches the front-end through its launcher, mixed with other text. So its lines have a prefix like
//! that of an announcement, by which they are recognised.

use std::io::{self, Write};

/// Prefix of a server's log lines.
pub const LOG_MAGIC: &str = "SDM1 log ";
/// Maximum length of a line without its line end, in bytes. It is below `PIPE_BUF`, so one write of a line is atomic.
pub const LINE_BYTES_MAX: usize = 2048;

/// A writer of log events to standard error, one line each. One call of `write` is one event.
#[derive(Clone, Copy, Debug)]
pub struct LogWriter {
    before: &'static str,
}

impl LogWriter {
    /// A writer for a process whose standard error a launcher forwards: lines have the prefix.
    #[must_use]
    pub fn forwarded() -> Self {
        Self { before: LOG_MAGIC }
    }

    /// A writer for a process whose standard error a user reads: lines have no prefix.
    #[must_use]
    pub fn direct() -> Self {
        Self { before: "" }
    }

    /// Prints a line that another process has logged.
    pub fn pass_on(line: &str) {
        // If standard error is closed, no log is wanted.
        let _ = Self::direct().write(line.as_bytes());
    }
}

impl Write for LogWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let mut line = line(self.before, event);
        line.push('\n');
        io::stderr().lock().write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// An event as one line without a line end. It begins with `before`, and is shortened if it is too long.
#[must_use]
pub fn line(before: &str, event: &[u8]) -> String {
    const CUT: &str = "...";
    let mut line = before.to_owned();
    for c in String::from_utf8_lossy(event.trim_ascii_end()).chars() {
        let end = line.len();
        match c {
            c if c.is_control() => line.extend(c.escape_default()),
            c if sdm_text::is_hidden(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
        if line.len() > LINE_BYTES_MAX - CUT.len() {
            line.truncate(end);
            line.push_str(CUT);
            break;
        }
    }
    line
}

/// The log line in a text, without the prefix; `None` if the text has none.
#[must_use]
pub fn find(text: &str) -> Option<&str> {
    text.split_once(LOG_MAGIC).map(|(_, line)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_bounded_and_escaped() {
        assert_eq!(line("", b"INFO up\n"), "INFO up");
        let hostile = "a\x1b[2Jb\nSDM1 server=0\r\u{202e}\u{9b}";
        let expect = r"a\u{1b}[2Jb\nSDM1 server=0\r\u{202e}\u{9b}";
        assert_eq!(line("", hostile.as_bytes()), expect);
        let long = line(LOG_MAGIC, "é\n".repeat(4000).as_bytes());
        assert!(long.len() <= LINE_BYTES_MAX && long.ends_with("..."));
        assert_eq!(line("", b"\xff"), "\u{fffd}");
    }

    #[test]
    fn server_log_line_is_found_after_launcher_tag() {
        let said = line(LOG_MAGIC, b"INFO server{id=3}: up\n");
        assert_eq!(find(&said), Some("INFO server{id=3}: up"));
        let tagged = format!("[1,3]<stderr>:{said}");
        assert_eq!(find(&tagged), Some("INFO server{id=3}: up"));
        assert_eq!(find("INFO server{id=3}: up"), None);
    }
}
