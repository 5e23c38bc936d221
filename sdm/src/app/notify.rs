//! `--notify`: a command of the user that runs at the end of a batch, with the path of its report.

use sdm_system::programs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::sink::complain;

/// Time limit for the command, because a job script ends after it.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Polling interval for the end of the command.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a shell command line with the path of the page as its last argument. Its output goes to standard
/// error, because standard output is for results. Its failure is reported, and does not change the exit
/// code.
pub(super) fn notify(line: &str, page: &Path, code: u8) {
    if let Err(why) = try_notify(line, page, code) {
        complain(format_args!("sdm: --notify: {why}"));
    }
}

/// The error of the command.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("cannot start /bin/sh: {0}")]
    Start(#[from] io::Error),
    #[error("the command ended with {0}")]
    Ended(std::process::ExitStatus),
    #[error("the command was still running after {} s and was killed", TIME_MAX.as_secs())]
    TooLong,
}

fn try_notify(line: &str, page: &Path, code: u8) -> Result<(), NotifyError> {
    let page = std::path::absolute(page)?;
    let mut child = programs::user_shell(&format!("exec >&2\n{line} \"$@\""))
        .arg("sdm-notify")
        .arg(&page)
        .env("SDM_REPORT", &page)
        .env("SDM_EXIT_CODE", code.to_string())
        .stdin(Stdio::null())
        .spawn()?;
    let until = Instant::now() + TIME_MAX;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(NotifyError::Ended(status)),
            None if Instant::now() >= until => {
                // The process may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(NotifyError::TooLong);
            }
            None => sleep(LOOK),
        }
    }
}
