//! Execution of the screen's requests.

use std::sync::Arc;
use std::thread;

use nix::sys::signal::{Signal, raise};
use sdm_screen::{Debugger, ScreenAction, Terminal, TerminalError};
use sdm_shell::{Control, ScriptLine};

use super::super::words;
use super::{Full, Shared};

impl Full {
    pub(super) fn carry_out(
        self: &Arc<Self>,
        deed: ScreenAction,
        terminal: &mut Terminal,
        debugger: &mut Debugger,
        shared: &Shared,
    ) -> Result<(), TerminalError> {
        let control = match deed {
            ScreenAction::Line(text) => {
                self.lock().asked = None;
                let origin = String::new();
                Control::Line(ScriptLine { text, origin })
            }
            ScreenAction::Eof => {
                self.lock().asked = None;
                Control::Eof
            }
            ScreenAction::Interrupt => Control::Interrupt,
            ScreenAction::Unwait => Control::Suspend,
            ScreenAction::Complete(typed) => {
                self.complete(typed, shared);
                return Ok(());
            }
            ScreenAction::Suspend => {
                terminal.suspend();
                raise(Signal::SIGSTOP).map_err(std::io::Error::from)?;
                terminal.resume()?;
                debugger.handle_resize();
                self.measure();
                return Ok(());
            }
            ScreenAction::Redraw => {
                terminal.renew()?;
                debugger.handle_resize();
                return Ok(());
            }
            ScreenAction::Copy(text) => return terminal.copy(&text),
            ScreenAction::Leave(typed) => {
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
        let (controls, wake) = (shared.controls.clone(), Arc::clone(&shared.wake));
        let full = Arc::clone(self);
        let waits = thread::Builder::new().name("completion".to_owned());
        // Without it nothing is offered.
        let _ = waits.spawn(move || {
            if let Some(found) = words::find(&typed, &controls, &wake) {
                full.lock().completions = Some(found);
                full.wake();
            }
        });
    }
}
