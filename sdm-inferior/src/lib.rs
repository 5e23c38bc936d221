//! Keeps a process unharmed to which a gdb attaches, however gdb and its server end.
//!
//! A killed gdb leaves breakpoints in its processes, and leaves some of them stopped. So each such process is [`Held`].
//! At gdb's end the kernel stops it by a [`StopOnGdbDeath`], gdb's breakpoints are removed, and it is resumed. If the
//! server dies too, its [`Watchdog`] does that: a copy of the server that outlives it. If all are killed at once the
//! user can do it ([`rescue`]). Processes are identified by an [`Identity`], as pids are reused.

mod attached_process;
mod breakpoint_cleanup;
mod late_stop;
mod process;
mod rescue;
mod stop_on_gdb_death;
mod sys;
mod watchdog;

pub use attached_process::Held;
pub use breakpoint_cleanup::Breakpoint;
pub use process::{Identity, end_trials_of, go_on, identity};
pub use rescue::{Rescue, RescueError, Stay, is_left_stopped, rescue};
pub use stop_on_gdb_death::StopOnGdbDeath;
pub use watchdog::Watchdog;
