//! The actions that a driver requests from its owner: its only effects outside its own state.

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::{Event, Failure, Reply};

/// One thing that the owner of a driver is to do.
#[derive(Debug)]
pub enum Action {
    /// Write this line to gdb.
    Send(String),
    /// Give the answer to a command of the front-end's.
    Answer {
        /// The command that is answered.
        id: CommandId,
        /// The reply, or the reason for the failure.
        result: Result<Reply, Failure>,
    },
    /// Have the process attached to by a gdb of its own, which answers the command.
    AttachApart {
        /// The command that was to attach to it.
        id: CommandId,
    },
    /// Tell the front-end of an event.
    Event(Event),
    /// Nobody wants the answer to the line of this number any more: gdb need not be told of it, or is to be
    /// interrupted at it, where that harms no program.
    BreakOff(u64),
    /// Send the program a signal.
    SignalProgram {
        /// The Unix pid of the process.
        pid: i32,
        /// The signal that it is sent.
        signal: Signal,
    },
    /// Send one of the program's threads a signal.
    SignalThread {
        /// The Unix pid of the process.
        pid: i32,
        /// The kernel's number of the thread.
        thread: i32,
        /// The signal's number.
        signal: i32,
    },
    /// Have the program's parent, which has seized it, let its threads go: gdb attaches next.
    LetGo,
    /// gdb is to let the process run, and puts breakpoints into it then: from now on it must not outrun gdb's death.
    TieProcess,
    /// gdb can have put breakpoints of its own into processes that run, this one or others that it holds, although nobody wants
    /// any: take them out.
    ClearCode,
    /// The program has opened its standard streams: this process's copies of the program's ends can be closed.
    ProgramOpened,
    /// The program has ended: no more input for it, and its output will end.
    ProgramEnded,
    /// Close gdb's input: it is no longer needed.
    CloseGdb,
}
