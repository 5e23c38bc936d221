//! Execution of the screen's requests.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use nix::sys::signal::{Signal, raise};
use rustyline::completion::FilenameCompleter;
use sdm_screen::{Debugger, Deed, Terminal, TerminalError};
use sdm_shell::commands::{self, Wanted};
use sdm_shell::{COMPLETE_WAIT, Control, ScriptLine};

use super::{Full, Shared};

impl Full {
    pub(super) fn carry_out(
        self: &Arc<Self>,
        deed: Deed,
        terminal: &mut Terminal,
        debugger: &mut Debugger,
        shared: &Shared,
    ) -> Result<(), TerminalError> {
        let control = match deed {
            Deed::Line(text) => {
                self.lock().asked = None;
                let origin = String::new();
                Control::Line(ScriptLine { text, origin })
            }
            Deed::Eof => {
                self.lock().asked = None;
                Control::Eof
            }
            Deed::Interrupt => Control::Interrupt,
            Deed::Unwait => Control::Suspend,
            Deed::Complete(typed) => {
                self.complete(typed, shared);
                return Ok(());
            }
            Deed::Suspend => {
                terminal.suspend();
                raise(Signal::SIGSTOP).map_err(std::io::Error::from)?;
                terminal.resume()?;
                debugger.handle_resize();
                self.measure();
                return Ok(());
            }
            Deed::Redraw => {
                terminal.renew()?;
                debugger.handle_resize();
                return Ok(());
            }
            Deed::Copy(text) => return terminal.copy(&text),
            Deed::Leave(typed) => {
                (shared.keep_typed)(&typed);
                self.lock().on = false;
                return Ok(());
            }
        };
        // The receiver is gone once the session is over.
        let _ = shared.controls.send(control);
        (shared.wake)();
        Ok(())
    }

    /// Completes a line in the background.
    fn complete(self: &Arc<Self>, typed: String, shared: &Shared) {
        if let Wanted::File(_) = commands::completions(&typed, &[]) {
            let files = FilenameCompleter::new().complete_path(&typed, typed.len());
            if let Ok((from, files)) = files {
                let words = files.into_iter().map(|pair| pair.replacement).collect();
                self.lock().completions = Some((from, words));
                self.wake();
            }
            return;
        }
        let (answer, answered) = channel();
        if shared
            .controls
            .send(Control::Complete(typed, answer))
            .is_err()
        {
            return;
        }
        (shared.wake)();
        let full = Arc::clone(self);
        let waits = thread::Builder::new().name("completion".to_owned());
        // Without it nothing is offered.
        let _ = waits.spawn(move || {
            if let Ok(found) = answered.recv_timeout(COMPLETE_WAIT * 2) {
                full.lock().completions = Some(found);
                full.wake();
            }
        });
    }
}
