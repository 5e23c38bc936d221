//! The actions that a driver requests from its owner: its only effects outside its own state.

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::{Event, Failure, Reply};

/// A request to the owner of a driver.
#[derive(Debug)]
pub enum Action {
    /// Write this line to gdb.
    Send(String),
    /// Answer a command of the front-end.
    Answer {
        /// The command that this answers.
        id: CommandId,
        /// The reply, or the reason for the failure.
        result: Result<Reply, Failure>,
    },
    /// Start a gdb for this process alone and attach with it; that gdb answers the command.
    AttachApart {
        /// The front-end's command to attach to the process.
        id: CommandId,
    },
    /// Send an event to the front-end.
    Event(Event),
    /// Abandon the MI command with this token: withdraw it if gdb has not received it, or interrupt gdb in it, as far
    /// as that harms no program.
    BreakOff(u64),
    /// Send a signal to the program.
    SignalProgram {
        /// The Unix pid of the process.
        pid: i32,
        /// The signal to send.
        signal: Signal,
    },
    /// Send a signal to one of the program's threads.
    SignalThread {
        /// The Unix pid of the process.
        pid: i32,
        /// The kernel thread id.
        thread: i32,
        /// The signal's number.
        signal: i32,
    },
    /// Have the seized program's parent detach from its threads, as gdb attaches next.
    LetGo,
    /// Arm the leash: gdb is about to resume the process and inserts breakpoints. From now on the process must not
    /// outlive gdb unnoticed.
    TieProcess,
    /// Remove gdb's own breakpoints from its running processes, this one or others: they are read-only, and gdb may
    /// have inserted some.
    ClearCode,
    /// The program has opened its standard streams: this process's copies of the program's ends can be closed.
    ProgramOpened,
    /// The program has ended: no more input for it, and its output will end.
    ProgramEnded,
    /// Close gdb's input: it is no longer needed.
    CloseGdb,
}
