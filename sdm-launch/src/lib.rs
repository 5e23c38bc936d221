//! Starts the servers of a session and reports their events.
//!
//! A [`Launcher`] starts servers from a [`LaunchSpec`]. [`Local`] does so itself; [`OpenMpi`],
//! [`Hydra`] and [`Srun`] let `mpirun`, `mpiexec` and `srun` do it, so that the program finds the
//! environment and the descriptors of its runtime. [`Ssh`] reaches hosts by `ssh`, [`External`] is a
//! site's own program, and [`Manual`] leaves the start to the user. [`find`] returns the launcher of a name. The
//! result is a [`Launch`]: descriptors to watch, and a [`LaunchEvent`] for each announcement,
//! line of text and end.
//!
//! A [`Launch`] never waits: the owner watches [`Launch::fds`] in a loop of its own. Only [`find`] and the hold of a
//! launcher for a debugger wait, with time limits. The crate starts no thread, but before Linux 5.3 one for each
//! process to see its end.
//!
//! **The launching thread must live as long as the session**: everything started here is sent
//! SIGTERM by the kernel when the *thread* that called [`Launcher::launch`] ends.
//!
//! ```no_run
//! use sdm_launch::{LaunchEvent, LaunchSpec, find};
//!
//! let spec = LaunchSpec::new(4, "/usr/bin/sdm-server");
//! let mut launch = find("local")?.launch(&spec)?;
//! for fd in launch.fds() {
//!     while launch.handle_ready(fd) {} // more to read; drain the events in between
//! }
//! while let Some(event) = launch.poll_event() {
//!     if let LaunchEvent::Announced(it) = event {
//!         println!("server {} is at {}:{}", it.server, it.host, it.port);
//!     }
//! }
//! # Ok::<(), sdm_launch::LaunchError>(())
//! ```

mod choose;
mod control;
mod detect;
mod error;
mod external;
mod hosts;
mod hydra;
mod launch;
mod launch_tag;
mod launched_process;
mod launcher;
mod lingering_launcher;
mod local;
mod loopback;
mod machine_limits;
mod manual;
mod named_programs;
mod openmpi;
mod slurm;
mod spec;
mod ssh;
mod ssh_advice;
mod sys;

pub use choose::{Choice, build_id, choose, find_program, linked, misfit};
pub use control::{Control, HeldLauncher, Hold, HoldError, HoldFailure};
pub use detect::{Kind, common_name, find, programs_of};
pub use error::LaunchError;
pub use external::External;
pub use hosts::SharedServers;
pub use hydra::Hydra;
pub use launch::{Launch, LaunchEvent};
pub use launcher::Launcher;
pub use local::Local;
pub use loopback::Loopback;
pub use machine_limits::{check_descriptors_of, reserve_descriptors};
pub use manual::{MANUAL_HOST, MANUAL_PORT, Manual};
pub use openmpi::OpenMpi;
pub use sdm_bootstrap::announce::Announcement;
pub use slurm::Srun;
pub use spec::{
    FANOUT, LOCAL_INDEX_VARIABLE, LaunchSpec, Part, SERVER_COUNT_VARIABLE, SERVER_VARIABLE, Streams,
};
pub use ssh::Ssh;

use sdm_hosts::HostShare;

// Each process of a job that is attached to can have a server of its own.
const _: () = assert!(sdm_hosts::job::PROCESSES_MAX == sdm_core::limits::SERVERS_MAX);
