//! The command `sdm logs`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sdm_rm::{Definition, Kind, Look, Question};
use sdm_runtime::attribute as id;
use sdm_runtime::states::Job;

use super::choose::{ANSWER_WAIT, Chosen, ask, defined, job};
use super::element::Element;
use super::error::ClusterError;
use super::remote_files;
use crate::cli::LogsArgs;
use crate::sink::Sink;

/// Polling interval for a file that is followed.
const FOLLOW_PERIOD: Duration = Duration::from_millis(250);
/// Number of bytes copied at a time.
const PIECE: usize = 64 << 10;

/// Prints a job's output.
pub(super) fn logs(args: &LogsArgs) -> Result<u8, ClusterError> {
    let chosen = job(&args.job, args.of.manager.as_deref())?;
    let path = path(&chosen, args.err)?.ok_or(ClusterError::NoOutput(args.job.clone()))?;
    let cluster = defined(Some(&chosen.cluster))?;
    match cluster.first() {
        Some(Definition {
            host: Some(host),
            ssh_options,
            ..
        }) => there(&chosen, (host, ssh_options), &path, args.follow),
        _ => here(&chosen, Path::new(&path), args.follow),
    }
}

/// The path of the job's standard output or, with `errors`, of its standard error. None if it is not known.
fn path(chosen: &Chosen, errors: bool) -> Result<Option<String>, ClusterError> {
    let answers = [state(chosen)?];
    let job = Element::all(&answers, Kind::Job).find(|job| job.group.ids == chosen.id);
    let id = if errors {
        id::ERROR_PATH
    } else {
        id::OUTPUT_PATH
    };
    Ok(job.and_then(|job| job.get(id)).map(str::to_owned))
}

fn state(chosen: &Chosen) -> Result<sdm_rm::Answer, ClusterError> {
    let one = Look {
        ids: Some(vec![chosen.id.clone()]),
        ..Look::at(&[Kind::Job])
    };
    let question = Question::Elements {
        looks: vec![one],
        is_fresh: false,
    };
    ask(&chosen.cluster, &question, ANSWER_WAIT)
}

fn has_ended(chosen: &Chosen) -> Result<bool, ClusterError> {
    let answers = [state(chosen)?];
    let job = Element::all(&answers, Kind::Job).find(|job| job.group.ids == chosen.id);
    let ended = |job: Element<'_>| job.state().is_some_and(Job::has_ended);
    Ok(job.is_none_or(ended))
}

fn here(chosen: &Chosen, path: &Path, follow: bool) -> Result<u8, ClusterError> {
    let error = |source| ClusterError::File {
        path: path.to_path_buf(),
        source,
    };
    let mut file = loop {
        match sdm_system::files::open(path) {
            Ok(file) => break file,
            // A job that waits has written nothing yet.
            Err(why) if follow && why.kind() == io::ErrorKind::NotFound && !has_ended(chosen)? => {
                std::thread::sleep(FOLLOW_PERIOD);
            }
            Err(why) => return Err(error(why)),
        }
    };
    loop {
        // The end is checked before reading, so that all output of an ended process is read.
        let ended = !follow || has_ended(chosen)?;
        pass(&mut file, error)?;
        if ended {
            return Ok(0);
        }
        std::thread::sleep(FOLLOW_PERIOD);
    }
}

/// Copies a file from the current offset to its end.
fn pass(file: &mut File, error: impl Fn(io::Error) -> ClusterError) -> Result<(), ClusterError> {
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).map_err(&error)? {
            0 => return Ok(()),
            count => Sink::Output
                .pass(&piece[..count])
                .map_err(ClusterError::Output)?,
        }
    }
}

fn there(
    chosen: &Chosen,
    (host, options): (&str, &[String]),
    path: &str,
    follow: bool,
) -> Result<u8, ClusterError> {
    let error = |source| ClusterError::Program {
        program: "ssh".to_owned(),
        source,
    };
    let mut ssh = remote_files::tail(host, options, path, remote_files::From::Beginning, follow)
        .map_err(error)?;
    let mut ssh = ssh.stdin(Stdio::piped()).spawn().map_err(error)?;
    while follow && ssh.try_wait().map_err(error)?.is_none() && !has_ended(chosen)? {
        std::thread::sleep(FOLLOW_PERIOD);
    }
    // `wait` closes the input of ssh, which ends the remote `tail`.
    let status = ssh.wait().map_err(error)?;
    Ok(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}
