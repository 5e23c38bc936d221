//! The local machine for lines of the debug console. Output of commands goes to the client, because
//! standard output carries the protocol.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use sdm_shell::{LocalEnd, LocalMachine, LocalProcess};
use sdm_system::programs;

use super::super::local::ThisMachine;
use super::clients::{self, Mailbox, ToAdapter};

/// The local machine, as one client's console uses it.
pub(super) struct ConsoleMachine {
    /// The client's number.
    pub(super) client: u32,
    pub(super) mailbox: Mailbox,
}

impl LocalMachine for ConsoleMachine {
    fn read_text(&mut self, file: &Path) -> io::Result<String> {
        ThisMachine(None).read_text(file)
    }

    fn write_file(&mut self, file: &Path, contents: &[u8]) -> io::Result<()> {
        ThisMachine(None).write_file(file, contents)
    }

    fn without_links(&mut self, file: &Path) -> PathBuf {
        ThisMachine(None).without_links(file)
    }

    fn home(&mut self) -> PathBuf {
        ThisMachine(None).home()
    }

    fn working_directory(&mut self) -> io::Result<PathBuf> {
        ThisMachine(None).working_directory()
    }

    fn change_directory(&mut self, directory: &Path) -> io::Result<()> {
        ThisMachine(None).change_directory(directory)
    }

    fn start(&mut self, line: &str) -> io::Result<Box<dyn LocalProcess>> {
        if line.is_empty() {
            return Err(io::Error::other(
                "`shell` needs a command here: the console of an editor has no terminal",
            ));
        }
        let mut process = programs::user_shell(line);
        process.stdin(Stdio::null());
        process.stdout(Stdio::piped()).stderr(Stdio::piped());
        // A process group of its own, so that a kill reaches the child processes, too.
        let mut child = process.process_group(0).spawn()?;
        let printed = [
            child
                .stdout
                .take()
                .map(|it| Box::new(it) as Box<dyn io::Read + Send>),
            child
                .stderr
                .take()
                .map(|it| Box::new(it) as Box<dyn io::Read + Send>),
        ];
        for output in printed.into_iter().flatten() {
            let (client, mailbox) = (self.client, self.mailbox.clone());
            clients::read_all(output, move |bytes, slot| {
                bytes.is_empty() || mailbox.say(client, ToAdapter::Printed(bytes), slot)
            })?;
        }
        Ok(Box::new(ConsoleProcess(child)))
    }
}

/// A command with captured output.
struct ConsoleProcess(Child);

impl LocalProcess for ConsoleProcess {
    fn poll_end(&mut self) -> io::Result<Option<LocalEnd>> {
        let status = self.0.try_wait()?;
        Ok(status.map(|status| LocalEnd {
            success: status.success(),
            status: status.to_string(),
        }))
    }

    fn kill(&mut self) {
        // The process may have ended just now.
        if let (Ok(group), Ok(None)) = (i32::try_from(self.0.id()), self.0.try_wait()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

impl Drop for ConsoleProcess {
    fn drop(&mut self) {
        // A line that is given up leaves nothing behind.
        self.kill();
    }
}
