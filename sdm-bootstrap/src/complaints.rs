//! Error output with control characters escaped: logs, errors of the command line, and panics.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};

use sdm_text::printable;

/// Standard error for logs and errors. Control characters of a text are escaped, except line ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Complaints;

impl Write for Complaints {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let mut text = String::with_capacity(bytes.len());
        for line in lines {
            let end = usize::from(line.ends_with(b"\n"));
            text.push_str(&printable(&line[..line.len() - end]));
            text.push_str(&"\n"[..end]);
        }
        io::stderr().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Parses the command line of this process. If it is wrong, the error is printed and the process exits. The error
/// quotes the command line, with control characters escaped.
pub fn arguments<T: clap::Parser>() -> T {
    T::try_parse().unwrap_or_else(|error| {
        if error.use_stderr() {
            let text = error.render().to_string();
            // A failed write to standard error is ignored.
            let _ = write!(Complaints, "{text}");
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// Installs a panic hook that escapes the panic's message, as it may quote foreign text.
pub fn escape_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        // A failed write to standard error is ignored.
        let _ = writeln!(Complaints, "thread '{name}' {panic}");
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            let _ = writeln!(Complaints, "{backtrace}");
        }
    }));
}
