//! Batch jobs that SDM stops before `main` and debugs in a kept session: the names of these sessions, and the batch
//! scripts.

use sdm_text::shell_word;

use crate::error::ManagerError;
use crate::manager::Submission;
use crate::script;

/// Names of the sessions for a batch system's held jobs.
pub(crate) struct HeldSessions {
    /// Prefix of the sessions' names; the job's number follows.
    pub(crate) prefix: &'static str,
}

impl HeldSessions {
    /// True for a submission whose job is to be held for a debugger in a kept session of SDM.
    pub(crate) fn wants(job: &Submission) -> bool {
        job.debug && job.debugger.is_empty()
    }

    /// The batch script for a held job: a kept session that starts the job's processes. `number` is the job's
    /// number, or a shell expression for it. `launcher` are the session's options that select its launcher.
    ///
    /// # Errors
    /// There is no `sdm` beside this program.
    pub(crate) fn script(
        &self,
        job: &Submission,
        number: &str,
        launcher: &str,
    ) -> Result<String, ManagerError> {
        let sdm = sdm_system::own_program("sdm", None);
        let sdm = sdm.ok_or_else(|| ManagerError::NoProgram("sdm".to_owned()))?;
        let sdm = shell_word(&sdm.to_string_lossy());
        let (prefix, count) = (self.prefix, job.processes);
        let starter = format!("exec {sdm} keeper {prefix}{number} -- run -n {count} {launcher} --");
        Ok(script::of(job, &starter))
    }
}
