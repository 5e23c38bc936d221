//! Selection of the `sdm doctor` check that explains a failed start.

use sdm_doctor::{Check, Machine};
use sdm_hosts::job::JobError;
use sdm_launch::LaunchError;
use sdm_session::SessionError;

use super::error::AppError;

/// The error's text, with a line about the `sdm doctor` check that explains it, if there is one.
pub(super) fn named(error: &AppError) -> String {
    said(error, &Machine::default())
}

fn said(error: &AppError, machine: &Machine) -> String {
    let Some((check, what)) = check_of(error, machine) else {
        return error.to_string();
    };
    let what = match what.is_empty() {
        true => String::new(),
        false => format!(" {what}"),
    };
    format!(
        "{error}\n  `sdm doctor{what}` checks this ({})",
        check.name()
    )
}

/// The check, and the argument for `sdm doctor`. None if no check explains the error.
fn check_of(error: &AppError, machine: &Machine) -> Option<(Check, &'static str)> {
    match error {
        AppError::Session(error) => of_session(error),
        // If `/proc` hides no process, a process that is not found has ended.
        AppError::Job(JobError::NoProcess { .. }) if !machine.hides_processes() => None,
        AppError::Job(error) => Some(of_job(error)),
        AppError::LeftOut(_) => Some((Check::Target, "TARGET")),
        AppError::Hold(_) => Some((Check::Mpi, "")),
        _ => None,
    }
}

fn of_session(error: &SessionError) -> Option<(Check, &'static str)> {
    Some(match error {
        SessionError::NoBinary { .. } => (Check::Programs, ""),
        SessionError::Launch(error) => of_launch(error)?,
        SessionError::LauncherEnded { launcher, .. } => of_starter(launcher),
        SessionError::Refused { why, .. } => of_starter(why),
        SessionError::NoAddress(_) => (Check::Ports, ""),
        SessionError::TooSlow { .. } | SessionError::Unreachable(_) => {
            (Check::Firewall, "--host HOST")
        }
        SessionError::Twice { .. }
        | SessionError::RankTwice { .. }
        | SessionError::Unexpected { .. } => (Check::Mpi, ""),
        SessionError::Io { .. } => (Check::RuntimeFolder, ""),
        SessionError::MasterGone(_) => (Check::Memory, ""),
        // No check helps: these depend on the user's request, or the user gave up.
        SessionError::NoTasks
        | SessionError::CannotStage(_)
        | SessionError::CannotReverse
        | SessionError::Random(_)
        | SessionError::GivenUp => return None,
    })
}

fn of_launch(error: &LaunchError) -> Option<(Check, &'static str)> {
    Some(match error {
        LaunchError::NotFound { name, .. } | LaunchError::Unknown { name } => of_starter(name),
        LaunchError::Version { program, .. } => of_starter(&program.to_string_lossy()),
        LaunchError::Descriptors { .. } | LaunchError::Limits { .. } => (Check::Descriptors, ""),
        LaunchError::Processes { .. } => (Check::Processes, ""),
        LaunchError::Spawn { who, .. } | LaunchError::Watch { who, .. } => of_starter(who),
        _ => return None,
    })
}

/// The check for a launcher, by the launcher's name in messages; and the argument for `sdm doctor`.
fn of_starter(who: &str) -> (Check, &'static str) {
    match who {
        who if who.contains("srun") || who.contains("Slurm") => (Check::Slurm, ""),
        who if who.contains("ssh") => (Check::Ssh, "--host HOST"),
        who if who.contains("mpi") || who.contains("prte") => (Check::Mpi, ""),
        _ => (Check::Programs, ""),
    }
}

fn of_job(error: &JobError) -> (Check, &'static str) {
    match error {
        JobError::NoSrun { .. } => (Check::Slurm, ""),
        JobError::NoProcess { .. } => (Check::Hidepid, "TARGET"),
        JobError::Foreign { .. } | JobError::Memory { .. } => (Check::Target, "TARGET"),
        JobError::NoNamespace { .. } | JobError::Namespaces { .. } => (Check::Pmix, ""),
        _ => (Check::Job, "TARGET"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_start_name_their_doctor_check() {
        let check = |error: AppError, expect: &str| {
            let said = named(&error);
            assert!(said.ends_with(expect), "{said}");
        };
        let program = "sdm-master";
        let beside = "/x".to_owned();
        check(
            SessionError::NoBinary { program, beside }.into(),
            "`sdm doctor` checks this (programs)",
        );
        let (name, tried) = ("srun".into(), String::new());
        check(
            SessionError::Launch(LaunchError::NotFound { name, tried }).into(),
            "`sdm doctor` checks this (slurm)",
        );
        let why = "ssh node7: ended with 255".to_owned();
        let (last_words, advice) = (Vec::new(), None);
        check(
            SessionError::Refused {
                why,
                last_words,
                advice,
            }
            .into(),
            "`sdm doctor --host HOST` checks this (ssh)",
        );
        check(
            SessionError::Unreachable("x".to_owned()).into(),
            "(firewall)",
        );
        check(AppError::LeftOut(vec!["a".to_owned()]), "(target)");
        assert_eq!(
            named(&SessionError::GivenUp.into()),
            "the start of the session was cancelled"
        );
    }

    #[test]
    fn hidepid_is_named_only_where_processes_are_hidden() {
        let root = sdm_system::files::temporary_folder().join("sdm-explain-hidepid");
        let error = AppError::from(JobError::NoProcess { pid: 7 });
        let hint = "`sdm doctor TARGET` checks this (hidepid)";
        std::fs::create_dir_all(root.join("proc")).unwrap();
        for (options, hides) in [
            ("rw", false),
            ("rw,hidepid=0", false),
            ("rw,hidepid=2", true),
        ] {
            let mounts = format!("proc /proc proc {options} 0 0\n");
            std::fs::write(root.join("proc/mounts"), mounts).unwrap();
            let text = said(&error, &Machine::at(&root));
            assert_eq!(text.ends_with(hint), hides, "{options}: {text}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
