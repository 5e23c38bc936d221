//! The debug protocol that the tree carries: commands, answers, events, task states, and the trait of the backends
//! that execute them.
//!
//! All of it is data and pure functions, without processes, sockets or clocks.

pub mod backend;
pub mod calls;
mod class;
pub mod command;
pub mod event;
pub mod fold;
mod fold_rules;
pub mod forwarding;
pub mod outcome;
pub mod probe;
pub mod queues;
pub mod quotes;
pub mod reply;
pub mod rules;
pub mod settings;
pub mod state;
pub mod truth;
pub mod wire;
pub mod written_files;

pub use backend::{Backend, BackendOutput, InterestChange, LauncherDuties, Program};
pub use class::{Class, ClassAnswer};
pub use command::Command;
pub use event::{Event, Joined};
pub use fold::{FoldRules, RawFrame, RawThread, UserFrame, fold_task, innermost_user_frame};
pub use outcome::{Failure, FailureCode};
pub use reply::Reply;
pub use sdm_core::message::EndPolicy;
pub use settings::{BackendSettings, GdbOptions, PmixJob};
pub use state::TaskState;
pub use truth::{NoTruth, truth};
