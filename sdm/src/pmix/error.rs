//! Errors of the commands of `sdm pmix`.

use std::io;
use std::time::Duration;

use sdm_foreign::names;
use sdm_foreign::wire::WireError;
use sdm_hosts::pmix::{ChoiceError, PmixError};

/// An error of a PMIx command: a sentence for a person.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    #[error(transparent)]
    Helper(#[from] PmixError),
    #[error("cannot start sdm-pmix: {0}")]
    Start(io::Error),
    #[error("sdm-pmix sent an invalid message: {0}")]
    Wire(#[from] WireError),
    #[error("no answer within {}: the PMIx server or its library hangs{said}", humantime::format_duration(*wait))]
    NoAnswer { wait: Duration, said: String },
    #[error("sdm-pmix has ended{0}")]
    Ended(String),
    #[error("{0}")]
    Failed(String),
    #[error("{what}: {}", names::status(*status))]
    Status { what: String, status: i32 },
    #[error("{0}: expected NAMESPACE or NAMESPACE:RANK")]
    NoJob(String),
    #[error("{0} is not the name or number of a signal")]
    NoSignal(String),
    #[error("{0}: the PMIx server has no such job")]
    UnknownJob(String),
    #[error("job {0} has no rank {1}")]
    NoRank(String, u32),
    #[error("{0} has ended")]
    HasEnded(String),
    #[error(
        "{0} is on another host, and its PMIx server can signal whole jobs only: run `sdm pmix` on that host"
    )]
    OneElsewhere(String),
    #[error("process {0} belongs to another user: no signal was sent")]
    NotOurs(i32),
    #[error("cannot send the signal to process {0}: {1}")]
    Signal(i32, io::Error),
    #[error("{0}: no such program")]
    NoProgram(String),
    #[error(
        "the job of PMIx server {0} would abort if the started program fails: --into-job starts it anyway"
    )]
    IntoJob(String),
    #[error("PMIx server {0} sends the output of its job only to its own terminal")]
    NoOutput(String),
    #[error("expected NAMESPACE or NAMESPACE:RANK")]
    NoWhose,
    #[error("{0}")]
    Shown(io::Error),
}
