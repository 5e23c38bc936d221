//! Error output with control characters escaped: logs, errors, and panics.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};

use crate::printable;

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

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Panics in a process of its own, which has the hook.
    #[test]
    fn panic_message_is_printed_with_escaped_control_characters() {
        const IS_CHILD: &str = "SDM_TEST_PANICS";
        if std::env::var_os(IS_CHILD).is_some() {
            super::escape_panics();
            panic!("a\x1b[2Jb");
        }
        let own = std::env::current_exe().unwrap();
        let name = "complaints::tests::panic_message_is_printed_with_escaped_control_characters";
        let child = Command::new(own)
            .args(["--exact", "--nocapture", name])
            .env(IS_CHILD, "1")
            .output();
        let said = String::from_utf8(child.unwrap().stderr).unwrap();
        assert!(said.contains("a\\x1b[2Jb"), "{said}");
        assert!(!said.contains('\x1b'), "{said}");
    }
}
