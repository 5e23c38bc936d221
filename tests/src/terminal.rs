//! `sdm` on a terminal of its own, as a person has it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};

use crate::binaries;

/// Longer than anything here takes: only a hang reaches it.
const BOUND: Duration = Duration::from_secs(60);

/// A terminal with `sdm` in it.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    to: Box<dyn Write + Send>,
    from: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    seen: usize,
    // The terminal hangs up when this is dropped.
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

impl Terminal {
    /// Starts `sdm ARGS` in `directory` on a terminal of `columns`.
    ///
    /// # Panics
    /// Where there is no terminal or `sdm` does not start.
    #[must_use]
    pub fn start(args: &[&str], directory: &Path, columns: u16) -> Self {
        let size = PtySize {
            rows: 40,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(binaries::folder().join("sdm"));
        command.args(args);
        command.cwd(directory);
        command.env("TERM", "xterm");
        command.env("XDG_STATE_HOME", directory.join("state"));
        let child = pair.slave.spawn_command(command).expect("sdm starts");
        drop(pair.slave);
        let to = pair.master.take_writer().expect("the terminal's input");
        let mut screen = pair.master.try_clone_reader().expect("its output");
        let (sent, from) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 4096];
            // A terminal whose other side is gone ends with an error.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                if sent.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            to,
            from,
            bytes: Vec::new(),
            seen: 0,
            _master: pair.master,
        }
    }

    /// Types some keys.
    ///
    /// # Panics
    /// Where the terminal is gone.
    pub fn keys(&mut self, keys: &str) {
        self.to.write_all(keys.as_bytes()).expect("it is there");
        self.to.flush().expect("it is there");
    }

    /// Waits until `wanted` is on the screen behind what was waited for before; gives what came
    /// up to it.
    ///
    /// # Panics
    /// Where it does not come.
    pub fn wait(&mut self, wanted: &str) -> String {
        let until = Instant::now() + BOUND;
        loop {
            let text = plain(&String::from_utf8_lossy(&self.bytes));
            let new = text.get(self.seen..).unwrap_or_default();
            if let Some(found) = new.find(wanted) {
                let came = new[..found + wanted.len()].to_owned();
                self.seen += came.len();
                return came;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.from.recv_timeout(left) {
                Ok(bytes) => self.bytes.extend_from_slice(&bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("waited in vain for {wanted:?}; the screen:\n{text}")
                }
            }
        }
    }

    /// Waits for the end of `sdm`; gives its exit code and all that was on the screen.
    ///
    /// # Panics
    /// Where it does not end.
    pub fn finish(mut self) -> (u32, String) {
        let until = Instant::now() + BOUND;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.from.recv_timeout(left) {
                Ok(bytes) => self.bytes.extend_from_slice(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!("sdm does not end: {}", String::from_utf8_lossy(&self.bytes));
                }
            }
        }
        let status = self.child.wait().expect("it is a child of this process");
        let text = plain(&String::from_utf8_lossy(&self.bytes));
        (status.exit_code(), text)
    }
}

/// Text without what a terminal would not show as letters.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\x1b' => {
                if chars.next() == Some('[') {
                    chars.by_ref().find(|char| ('@'..='~').contains(char));
                }
            }
            '\r' => {}
            char => plain.push(char),
        }
    }
    plain
}

/// Compiles `tests/fixtures/NAME.c` into a folder.
///
/// # Panics
/// Where that fails.
#[must_use]
pub fn compile(name: &str, folder: &Path) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let program = folder.join(name);
    let mut command = Command::new("cc");
    command.args(["-g", "-O0", "-pthread", "-o"]).arg(&program);
    command.arg(fixtures.join(name).with_extension("c"));
    let done = command.output().expect("cc runs: see scripts/install-deps");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}: {errors}");
    program
}
