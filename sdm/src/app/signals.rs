//! Handling of Ctrl-C, Ctrl-Z and the signals that request the end of `sdm`.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::{Signal, raise};
use sdm_shell::Control;

use super::wake::Wake;
use crate::blocked_output;
use crate::sink::complain;
use crate::sys::{self, Interrupt};

/// The signal handler, in a thread of its own.
pub(super) struct Signals {
    target: Target,
    interrupted: Arc<AtomicBool>,
}

type Target = Arc<Mutex<Option<(Sender<Control>, Wake)>>>;

impl Signals {
    /// Starts handling signals. Before [`Signals::send_to`] the signals that end a program end this one,
    /// together with the programs that it has started.
    ///
    /// `reading` is true while the user edits a line. Ctrl-Z then stops `sdm` like any program. With
    /// `batch`, SIGUSR1 is a warning of the job's end, as with Slurm's `--signal`.
    pub(super) fn listen(
        interactive: bool,
        batch: bool,
        reading: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let mut signals = vec![Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
        if batch {
            signals.push(Signal::SIGUSR1);
        }
        if interactive {
            signals.push(Signal::SIGTSTP);
        }
        let pipe = File::from(sys::signal_pipe(&signals)?);
        // The calling thread does all output, so it is the one to interrupt.
        let main = Interrupt::of_this_thread()?;
        let target = Target::default();
        let heard = Arc::clone(&target);
        let interrupted = Arc::<AtomicBool>::default();
        let noted = Arc::clone(&interrupted);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || hear(pipe, main, &heard, &reading, &noted))?;
        Ok(Self {
            target,
            interrupted,
        })
    }

    /// A flag that is set by Ctrl-C or a signal that ends `sdm`. A caller that begins an interruptible
    /// action resets it.
    pub(super) fn interrupted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    /// Forwards signals to a shell from now on.
    pub(super) fn send_to(&self, controls: Sender<Control>, wake: Wake) {
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        *target = Some((controls, wake));
    }
}

fn hear(
    mut pipe: File,
    main: Interrupt,
    target: &Target,
    reading: &AtomicBool,
    interrupted: &AtomicBool,
) {
    let mut ends = 0;
    let mut byte = [0];
    while pipe.read_exact(&mut byte).is_ok() {
        let number = byte[0];
        let control = match Signal::try_from(i32::from(number)) {
            Ok(Signal::SIGINT) => Control::Interrupt,
            Ok(Signal::SIGUSR1) => Control::Warned,
            Ok(Signal::SIGTSTP) if reading.load(Ordering::SeqCst) => {
                // If this fails, `sdm` continues to run.
                let _ = raise(Signal::SIGSTOP);
                continue;
            }
            Ok(Signal::SIGTSTP) => Control::Suspend,
            _ => Control::Terminate(number),
        };
        if matches!(control, Control::Interrupt | Control::Terminate(_)) {
            interrupted.store(true, Ordering::SeqCst);
        }
        if matches!(control, Control::Terminate(_)) {
            ends += 1;
            let at_once = ends > 1;
            // If the thread cannot be started, pending writes are waited for.
            let unread = thread::Builder::new().name("unread".to_owned());
            let _ = unread.spawn(move || blocked_output::give_up(&main, at_once));
        }
        let target = target.lock().unwrap_or_else(PoisonError::into_inner);
        match &*target {
            Some((controls, wake)) => {
                // The receiver is gone once the session is over.
                let _ = controls.send(control);
                wake();
            }
            None if matches!(control, Control::Suspend) => {
                let _ = raise(Signal::SIGSTOP);
            }
            None => {
                let name = Signal::try_from(i32::from(number)).map_or("a signal", Signal::as_str);
                complain(format_args!("\nsdm: ended by {name} while starting"));
                sdm_session::withdraw_all();
                std::process::exit(128 + i32::from(number));
            }
        }
    }
}
