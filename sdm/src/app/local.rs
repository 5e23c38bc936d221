//! The shell's access to this machine: files, the working directory and child processes.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use sdm_shell::{Application, Control, LocalEnd, LocalMachine, LocalProcess};
use sdm_system::programs;
use sdm_view::item::View;

use super::full_screen::Full;
use super::queue::Queue;

/// The application around a shell, with its view and controls.
pub(super) fn application(
    view: Box<dyn View>,
    controls: Receiver<Control>,
    queue: Option<Arc<Queue>>,
) -> Application {
    Application {
        view,
        machine: Box::new(ThisMachine(queue)),
        controls,
        clock: Box::new(Instant::now),
    }
}

/// The local machine: files, working directory and child processes of this process.
pub(super) struct ThisMachine(pub(super) Option<Arc<Queue>>);

impl LocalMachine for ThisMachine {
    fn read_text(&mut self, file: &Path) -> io::Result<String> {
        sdm_system::files::read_text(file)
    }

    fn write_file(&mut self, file: &Path, contents: &[u8]) -> io::Result<()> {
        sdm_system::files::replace(file, contents)
    }

    fn without_links(&mut self, file: &Path) -> PathBuf {
        fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
    }

    fn home(&mut self) -> PathBuf {
        env::var_os("HOME").unwrap_or_else(|| "/".into()).into()
    }

    fn working_directory(&mut self) -> io::Result<PathBuf> {
        env::current_dir()
    }

    fn change_directory(&mut self, directory: &Path) -> io::Result<()> {
        env::set_current_dir(directory)
    }

    fn start(&mut self, line: &str) -> io::Result<Box<dyn LocalProcess>> {
        let mut process = match line {
            "" => programs::at(own_shell().unwrap_or_else(|| "/bin/sh".into())),
            line => programs::user_shell(line),
        };
        // Before it writes anything; one that cannot be started gives the terminal back at once.
        let screen = self.0.as_ref().map(|queue| Lent::new(&queue.full));
        let child = process.spawn()?;
        Ok(Box::new(Started(child, screen)))
    }
}

/// The user's shell; None if it is not known.
fn own_shell() -> Option<OsString> {
    env::var_os("SHELL").filter(|shell| Path::new(shell).is_absolute())
}

/// A local command: a child of this process, and the terminal if it was lent to the child.
struct Started(Child, Option<Lent>);

/// The terminal, lent by the full screen until this is dropped.
struct Lent(Arc<Full>);

impl Lent {
    fn new(full: &Arc<Full>) -> Self {
        full.lend(true);
        Self(Arc::clone(full))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.lend(false);
    }
}

impl LocalProcess for Started {
    fn poll_end(&mut self) -> io::Result<Option<LocalEnd>> {
        let status = self.0.try_wait()?;
        if status.is_some() {
            self.1 = None;
        }
        Ok(status.map(|status| LocalEnd {
            success: status.success(),
            status: status.to_string(),
        }))
    }

    fn kill(&mut self) {
        // The process may have ended just now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
