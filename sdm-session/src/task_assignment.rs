//! Assignment of tasks to servers, where the servers start the programs and have several tasks each.

use std::borrow::Cow;

use sdm_debug::BackendSettings;
use sdm_idset::IdSet;
use sdm_launch::{LaunchSpec, Launcher, Part};

use super::config::SessionConfig;
use super::error::SessionError;

/// Reduces the number of servers to that needed for the tasks.
pub(super) fn shared<'a>(
    config: &'a SessionConfig,
    launcher: &dyn Launcher,
) -> Result<Cow<'a, SessionConfig>, SessionError> {
    let is_said = !config.tasks.is_empty() || !config.by_host.is_empty();
    if config.tasks_per_server <= 1 || is_said {
        return Ok(Cow::Borrowed(config));
    }
    let (count, each) = (config.servers, config.tasks_per_server);
    let mut spec = LaunchSpec::new(count, "");
    spec.hosts.clone_from(&config.hosts);
    let Some(shared) = launcher.share(&spec, count, each)? else {
        return Ok(Cow::Borrowed(config));
    };
    let servers = u32::try_from(shared.processes.len()).unwrap_or(u32::MAX);
    let tasks = shared.processes.into_iter();
    let tasks = tasks.map(|ids| IdSet::from_range(ids.start..=ids.end - 1));
    Ok(Cow::Owned(SessionConfig {
        servers,
        hosts: shared.hosts,
        tasks: tasks.collect(),
        parts: as_one_part(&config.parts, servers),
        ..config.clone()
    }))
}

/// True if the launcher starts a shim per task, which connects to a server with several tasks. Takes the
/// result of [`shared`].
pub(super) fn uses_shims(config: &SessionConfig) -> bool {
    let is_said = !config.tasks.is_empty() || !config.by_host.is_empty();
    let has_programs = !matches!(config.backend, BackendSettings::Fake { .. });
    config.tasks_per_server > 1 && !is_said && has_programs
}

/// Combines the programs into one part, because a server may have tasks of several. Options for single
/// programs are kept, so that the launcher can reject them.
fn as_one_part(parts: &[Part], servers: u32) -> Vec<Part> {
    let options: Vec<_> = parts
        .iter()
        .flat_map(|part| &part.options)
        .cloned()
        .collect();
    match options.is_empty() {
        true => Vec::new(),
        false => vec![Part {
            count: servers,
            options,
            words: Vec::new(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_the_requested_number_of_tasks() {
        let local = sdm_launch::find("local").unwrap();
        let of = |config: &SessionConfig| {
            let shared = shared(config, &*local).unwrap();
            let tasks: Vec<_> = shared.tasks.iter().map(ToString::to_string).collect();
            (shared.servers, tasks.join(" "))
        };
        let mut config = SessionConfig::local(5);
        assert_eq!(of(&config), (5, String::new()));
        config.tasks_per_server = 2;
        assert_eq!(of(&config), (3, "0-1 2-3 4".to_owned()));
        config.tasks = vec![IdSet::all_below(5)];
        assert_eq!(of(&config), (5, "0-4".to_owned()));
    }

    #[test]
    fn launch_with_shared_servers_keeps_options_of_programs() {
        let part = |option: &str| Part {
            count: 2,
            options: vec![option.into()],
            words: Vec::new(),
        };
        let parts = as_one_part(&[part("--a"), part("--b")], 1);
        assert_eq!((parts[0].count, parts[0].options.len()), (1, 2));
        assert!(as_one_part(&[Part::default()], 1).is_empty());
    }
}
