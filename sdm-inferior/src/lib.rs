//! Keeps a process unharmed that a gdb attaches to, however gdb and its server end.
//!
//! A killed gdb leaves breakpoints in what it has traced, and stops that nobody takes back. So each such process is [`Held`]: the
//! kernel stops it at gdb's end by a [`Leash`], what gdb has left in its code is taken out, and it goes on as it did before. Where the
//! server dies too its [`Warden`] does that, a copy of it that outlives it, and where all are killed at once a person does ([`rescue`]). Processes are named by an [`Identity`], as pids are used
//! again.

mod held;
mod leash;
mod process;
mod rescue;
mod restore;
mod sys;
mod warden;

pub use held::Held;
pub use leash::Leash;
pub use process::{Identity, end_trials_of, go_on, identity};
pub use rescue::{Rescue, RescueError, Stay, is_left_stopped, rescue};
pub use restore::Breakpoint;
pub use warden::Warden;
