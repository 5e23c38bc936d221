//! `sdm pmix`: a tool for PMIx servers, those of others (`prte`, `prterun`) and SDM's own, as described in RFC0010.
//!
//! The PMIx library is in a process of its own, `sdm-pmix tool`. This module has the commands and their
//! output.

mod control;
mod error;
mod list;
mod live;
mod query;
mod session;
mod show;
mod words;

use sdm_foreign::tool_protocol::ToolRequest;
use sdm_hosts::pmix::{ServerChoice, choose};
use sdm_shell::exit_codes::NOT_STARTED;

use crate::cli::{PmixArgs, PmixChannel, PmixServerArgs, PmixVerb};
use crate::sink::complain;
use error::ToolError;
use session::Session;

/// Carries out `sdm pmix`. Returns the exit code.
pub(crate) fn carry_out(args: &PmixArgs) -> u8 {
    match verb(args) {
        Ok(code) => code,
        Err(error) => {
            complain(format_args!("sdm: {error}"));
            NOT_STARTED
        }
    }
}

fn verb(args: &PmixArgs) -> Result<u8, ToolError> {
    let wanted = wanted(&args.server);
    if matches!(args.verb, PmixVerb::List) && wanted == ServerChoice::Any {
        return list::list(&sdm_hosts::pmix::servers().0, args.json);
    }
    let server = choose(&wanted)?;
    if matches!(args.verb, PmixVerb::List) {
        return list::list(&[server], args.json);
    }
    if let PmixVerb::Spawn(spawn) = &args.verb {
        return live::spawn(&server, spawn, args.json);
    }
    let session = &mut Session::open(&server)?;
    match &args.verb {
        PmixVerb::Query(query) => query::query(session, query, args.json)?,
        PmixVerb::Log(log) => {
            let channel = match log.channel {
                PmixChannel::Stdout => "pmix.log.stdout",
                PmixChannel::Stderr => "pmix.log.stderr",
                PmixChannel::Syslog => "pmix.log.syslog",
            };
            let ask = ToolRequest::Log {
                channel: channel.to_owned(),
                // Servers write whole lines only.
                text: format!("{}\n", log.text.trim_end_matches('\n')),
                is_required: log.required,
            };
            session.must("log", ask)?;
        }
        PmixVerb::Events => live::events(session, &server, args.json)?,
        PmixVerb::Io(io) => live::io(session, &server, io, args.json)?,
        PmixVerb::Signal(signal) => {
            let number = number_of(&signal.signal)?;
            control::signal(session, &server, &signal.job, number)?;
        }
        PmixVerb::Kill(job) => control::kill(session, &server, &job.job)?,
        PmixVerb::List | PmixVerb::Spawn(_) => {}
    }
    Ok(0)
}

fn wanted(args: &PmixServerArgs) -> ServerChoice {
    match args {
        PmixServerArgs { pid: Some(pid), .. } => ServerChoice::Pid(*pid),
        PmixServerArgs {
            server: Some(name), ..
        } => ServerChoice::Namespace(name.clone()),
        PmixServerArgs {
            file: Some(file), ..
        } => ServerChoice::File(file.clone()),
        PmixServerArgs { uri: Some(uri), .. } => ServerChoice::Uri(uri.clone()),
        PmixServerArgs { system: true, .. } => ServerChoice::System,
        _ => ServerChoice::Any,
    }
}

fn number_of(signal: &str) -> Result<i32, ToolError> {
    use nix::sys::signal::Signal;
    let number = signal.parse::<i32>().ok();
    let upper = signal.to_uppercase();
    let name = match upper.starts_with("SIG") {
        true => upper,
        false => format!("SIG{upper}"),
    };
    let known = match number {
        Some(number) => Signal::try_from(number).ok(),
        None => name.parse().ok(),
    };
    let known = known.map(|signal| signal as i32);
    known.ok_or_else(|| ToolError::NoSignal(signal.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::words::among;
    use super::*;
    use sdm_foreign::names::RANK_ALL;

    #[test]
    fn jobs_ranks_and_signals_are_parsed() {
        let of = |text| among(text).map(|it| (it.namespace, it.rank)).ok();
        assert_eq!(of("a@1"), Some(("a@1".to_owned(), RANK_ALL)));
        assert_eq!(of("a@1:3"), Some(("a@1".to_owned(), 3)));
        assert_eq!(of("a@1:all"), Some(("a@1".to_owned(), RANK_ALL)));
        assert_eq!(of("a@1:x"), None);
        assert_eq!(of(":1"), None);
        assert_eq!(number_of("usr1").ok(), number_of("SIGUSR1").ok());
        assert_eq!(number_of("9").ok(), Some(9));
        assert!(number_of("nosuch").is_err());
    }
}
