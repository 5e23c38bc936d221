//! Starting the processes of a session: the master and the launcher of the servers.

use sdm_text::printable_name;
use std::ffi::OsString;
use std::net::Ipv6Addr;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use sdm_bootstrap::handover::{KEY_VARIABLE, LOG_VARIABLE, SESSION_VARIABLE, XSTATE_VARIABLE};
use sdm_core::transport::HostTransport;
use sdm_debug::BackendSettings;
use sdm_idset::IdSet;
use sdm_launch::{Launch, LaunchSpec, Launcher, Streams};

use sdm_system::secret::SecretFile;

use super::error::SessionError;
use super::key::Offer;
use super::master::Master;
use super::reverse_listener::ReverseListener;
use super::start::Starting;
use super::task_assignment::uses_shims;

/// Environment variables of this process that every member gets, on any host.
fn set_here() -> impl Iterator<Item = (OsString, OsString)> {
    let names = [LOG_VARIABLE, XSTATE_VARIABLE];
    let set = names.into_iter();
    set.filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
}

impl Starting<'_> {
    /// The environment of processes that are started on this host.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let key = self.key.to_hex();
        let mut variables = vec![
            (SESSION_VARIABLE.into(), self.id.to_string().into()),
            (KEY_VARIABLE.into(), OsString::from(key.as_str())),
        ];
        variables.extend(set_here());
        variables
    }

    fn binary(&self, program: &'static str) -> Result<PathBuf, SessionError> {
        let folder = self.config.binaries.as_deref();
        sdm_system::own_program(program, folder).ok_or_else(|| {
            let own = std::env::current_exe().ok();
            let beside = own.as_deref().and_then(Path::parent);
            SessionError::NoBinary {
                program,
                beside: beside.map_or_else(String::new, printable_name),
            }
        })
    }

    pub(super) fn start_master(&mut self) -> Result<Master, SessionError> {
        let program = self.binary("sdm-master")?;
        let master = Master::start(
            &program,
            &self.address,
            self.config.network.shape,
            self.environment(),
            self.reverse_listener.take(),
        )?;
        let watched = self.driver.transport().watch(master.end_fd(), true, false);
        watched.map_err(|source| SessionError::Io {
            what: "cannot watch sdm-master".to_owned(),
            source,
        })?;
        Ok(master)
    }

    /// The launch specification for this server binary, from the session's configuration.
    fn chosen(&self, server: PathBuf) -> LaunchSpec {
        let config = self.config;
        let mut spec = LaunchSpec::new(config.servers, server);
        spec.launcher_options.clone_from(&config.launcher_options);
        spec.parts.clone_from(&config.parts);
        spec.hosts.clone_from(&config.hosts);
        spec.directory.clone_from(&config.directory);
        spec.front_end = self.address.to_string();
        spec.ports = config.network.ports;
        spec.fanout = config.fanout;
        spec.stage = config.stage;
        spec.forks = config.forks;
        spec.attaches = !config.by_host.is_empty();
        spec.streams = config.streams;
        if config.streams != Streams::Private {
            spec.server_args.push("--own-streams".into());
        }
        if uses_shims(config) {
            let each = config.tasks_per_server.to_string();
            spec.server_args.extend(["--share".into(), each.into()]);
        }
        spec
    }

    pub(super) fn launch(
        &mut self,
        launcher: &dyn Launcher,
        handover: Option<&SecretFile>,
    ) -> Result<Launch, SessionError> {
        let config = self.config;
        let server = match &config.server_path {
            Some(path) => path.clone(),
            None => self.binary("sdm-server")?,
        };
        let mut spec = self.chosen(server);
        if matches!(config.backend, BackendSettings::GdbHosted { .. }) {
            let beside = spec.server.parent();
            spec.pmix = sdm_system::own_program("sdm-pmix", beside);
        }
        spec.handover = handover.map(|file| file.path().to_owned());
        if config.stage && !launcher.stages() {
            return Err(SessionError::CannotStage(launcher.name().to_owned()));
        }
        spec.processes = self.processes();
        spec.memory = config.memory;
        let spans_hosts = launcher.may_span_hosts(&spec);
        if launcher.carries_environment() {
            let way = &config.key_handover;
            self.offer = Offer::open(way, spans_hosts, self.id, &self.key)?;
        }
        spec.environment = match &self.offer {
            Some(offer) => {
                spec.server_args
                    .extend(["--handover".into(), offer.place()]);
                set_here().collect()
            }
            None => self.environment(),
        };
        if config.network.reverse {
            if launcher.is_by_hand() {
                return Err(SessionError::CannotReverse);
            }
            let reverse_listener = ReverseListener::open(&config.network, spans_hosts)?;
            let places = reverse_listener.places.clone().into();
            spec.server_args.extend(["--call".into(), places]);
            self.reverse_listener = Some(reverse_listener);
            return Ok(launcher.launch(&spec)?);
        }
        let mut say = |option: &str, value: String| {
            spec.server_args.extend([option.into(), value.into()]);
        };
        if config.transport != HostTransport::default() {
            say("--transport", config.transport.to_string());
        }
        // Servers that may be on other hosts listen at all addresses; the others stay private.
        if spans_hosts && !config.network.tunnel {
            say("--bind", Ipv6Addr::UNSPECIFIED.to_string());
            if let Some(interface) = &config.network.interface {
                say("--interface", interface.to_string());
            }
        }
        if !config.network.ports.is_any() && !launcher.is_by_hand() {
            say("--port", config.network.ports.to_string());
        }
        if let Some(shape) = config.network.shape {
            say("--shape", shape.to_string());
        }
        Ok(launcher.launch(&spec)?)
    }

    /// Number of processes in the session, as far as SDM starts them.
    fn processes(&self) -> u64 {
        let config = self.config;
        let servers = u64::from(config.servers);
        let tasks = match &config.tasks[..] {
            [] => servers,
            tasks => tasks.iter().map(IdSet::len).sum(),
        };
        match config.backend {
            BackendSettings::Fake { .. } => servers,
            // Two processes for each task: its gdb and its program. Two for each server: the server, and
            // the process that ends its gdbs.
            _ => 2 * servers + 2 * tasks,
        }
    }

    /// Sends the key to connected servers. Returns false if `fd` is not the offer's socket.
    pub(super) fn hand_over(&mut self, fd: RawFd) -> bool {
        let offer = self.offer.as_ref().filter(|offer| offer.fd() == fd);
        offer.map(Offer::serve).is_some()
    }

    /// Withdraws the offer of the key, after all servers have it.
    pub(super) fn withdraw_offer(&mut self) {
        if let Some(offer) = self.offer.take().filter(|offer| offer.fd() >= 0) {
            self.driver.transport().forget(offer.fd());
        }
    }
}
