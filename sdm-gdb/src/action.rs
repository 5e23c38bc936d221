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
    /// Start a gdb for this process alone, and attach with that gdb. It answers the command.
    AttachApart {
        /// The front-end's command to attach to the process.
        id: CommandId,
    },
    /// Send an event to the front-end.
    Event(Event),
    /// Abandon the MI command with this token. A query or an attach that gdb has not received is withdrawn. If gdb is
    /// executing it and it is a query, gdb is interrupted. Any other command is carried out.
    BreakOff(u64),
    /// Send a signal to the program. gdb traces the process, so that the pid has not been reused; it may be a zombie.
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
    /// Act on a program that its parent has seized.
    Seized(SeizedAction),
    /// Have the kernel stop the process when gdb dies: gdb is about to resume the process and inserts breakpoints. From
    /// now on the process must not outlive gdb unnoticed.
    TieProcess,
    /// No longer have the kernel stop the process when gdb dies: the process is stopped, so gdb has no breakpoints in it,
    /// unless gdb runs another process too; and gdb is about to detach from it.
    UntieProcess,
    /// Remove gdb's internal breakpoints from the running processes that gdb is attached to, of this task or of others.
    /// gdb may have inserted some, and the processes are read-only for SDM.
    ClearCode,
    /// The program has opened its standard streams. This process can close its copies of the program's ends.
    ProgramOpened,
    /// The program has ended: it reads no more input, and its output will end.
    ProgramEnded,
    /// Close gdb's input: it is no longer needed.
    CloseGdb,
}

/// An action on a program that its parent has seized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeizedAction {
    /// Have the parent detach from the program's threads, because gdb attaches to them next.
    LetGo,
    /// Read where the program stands, which its parent keeps stopped.
    LookAtStop,
    /// Have the parent resume the program, because no gdb comes.
    GoOnAlone,
    /// Have the parent detach from the program for good.
    Leave,
}
