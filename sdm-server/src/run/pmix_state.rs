//! A server with a PMIx server for its programs. The backend is set up once the PMIx server is ready; commands wait
//! until then.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_child::Variables;
use sdm_core::CommandId;
use sdm_core::ids::SessionId;
use sdm_core::message::{Lane, Status};
use sdm_debug::event::Stream;
use sdm_debug::{BackendSettings, Event, Failure, FailureCode, PmixJob, wire};
use sdm_foreign::{HostJob, HostNode, is_outer};
use sdm_idset::{IdSet, TaskId};

use super::Server;
use super::pmix_relay::Abort;
use crate::backend;
use crate::local_tasks::WaitingCommand;
use crate::pmix::{PmixError, PmixEvent, PmixServer};
use crate::pmix_state::SettingUp;

/// Time limit for programs to end after SIGTERM before they are killed.
const END_WAIT: Duration = Duration::from_secs(5);
/// The message of an abort for which the program gives none, as Open MPI prints it.
const SAYS_NOTHING: &str = "N/A";

impl Server {
    /// Sets up the backend, either at once or when the PMIx server for the programs is ready.
    pub(super) fn configure(&mut self, settings: &[u8]) {
        let settings = match wire::decode::<BackendSettings>(settings) {
            Ok(settings) => settings,
            Err(error) => {
                self.stopped = Some(Failure::new(FailureCode::BadCommand, error.to_string()));
                return;
            }
        };
        let BackendSettings::GdbHosted { pmix, options } = &settings else {
            return self.set_up(settings, Variables::default());
        };
        self.hosted.no_holds = options.no_holds;
        let local = self.driver.member().node().local();
        let own = pmix
            .nodes
            .iter()
            .position(|(_, tasks)| tasks.intersection_len(local) > 0);
        let pmix = pmix.clone();
        let setting_up = SettingUp {
            settings,
            pmix,
            waiting: Vec::new(),
        };
        let job = job(self.link.session, &setting_up.pmix, own);
        let others = (0..).zip(&setting_up.pmix.nodes);
        let others = others.filter(|(at, _)| Some(*at) != own);
        self.hosted.others = IdSet::union_all(others.map(|(_, (_, tasks))| tasks));
        let local = self.driver.member().node().local();
        self.hosted.spawning.spare = setting_up.pmix.spare.intersection(local);
        self.hosted.setting_up = Some(setting_up);
        if let Err(error) = job.and_then(|job| self.begin_pmix(&job)) {
            self.go_on_without(&error.to_string());
        }
    }

    fn begin_pmix(&mut self, job: &HostJob) -> Result<(), PmixError> {
        let spare = &self.hosted.spawning.spare;
        let server = PmixServer::begin(&self.link, job, &self.own_tasks(), spare)?;
        let sockets = self.driver.transport().inner().sockets();
        for fd in server.fds() {
            let watched = sockets.watch(fd, true, false);
            watched.map_err(|source| PmixError::System {
                what: "cannot watch the PMIx server",
                source,
            })?;
        }
        self.hosted.server = Some(server);
        Ok(())
    }

    /// Handles the events of the PMIx server.
    pub(super) fn hear_pmix(&mut self) {
        let Some(server) = &mut self.hosted.server else {
            return;
        };
        for heard in server.receive() {
            self.handle_pmix(heard);
        }
        self.watch_pmix();
    }

    fn handle_pmix(&mut self, heard: PmixEvent) {
        match heard {
            PmixEvent::Ready(environment) => self.begin_hosted(environment),
            PmixEvent::Failed(text) => {
                self.forget_pmix();
                self.go_on_without(&text);
            }
            PmixEvent::Gone(how) => {
                self.forget_pmix();
                if self.hosted.setting_up.is_some() {
                    return self.go_on_without(&format!("sdm-pmix: {how}"));
                }
                let text = format!(
                    "the PMIx server of these programs (sdm-pmix) has ended: {how}; their MPI calls may fail or wait forever"
                );
                let tasks = self.own_tasks();
                self.send_event(&tasks, &Event::Notice { text });
            }
            PmixEvent::Aborted(by, status, said) => {
                let text = match said.trim() {
                    SAYS_NOTHING => String::new(),
                    text => text.to_owned(),
                };
                let abort = Abort { by, status, text };
                self.pass_on_abort(abort.clone());
                self.end_aborted(abort);
            }
            PmixEvent::FenceData(..) | PmixEvent::Fence(_) | PmixEvent::Datagram(_) => {
                self.meet_pmix(heard)
            }
            PmixEvent::WantProcesses => self.tell_processes(),
            PmixEvent::Spawn(request) => self.spawn(request),
            PmixEvent::WantOutput => self.hosted.spawning.shows_output = true,
            PmixEvent::Signal(tasks, signal) => {
                let tasks = tasks.intersection(&self.own_tasks());
                if let Some(backend) = &mut self.backend {
                    backend.signal_programs(&tasks, signal, true);
                }
            }
            PmixEvent::Input(tasks, bytes) => {
                let tasks = tasks.intersection(&self.own_tasks());
                if let Some(backend) = &mut self.backend {
                    self.hosted.spawning.feed(&mut **backend, &tasks, &bytes);
                }
            }
            PmixEvent::Notice(text) => self.send_event(&self.own_tasks(), &Event::Notice { text }),
            PmixEvent::Log {
                rank: Some(rank),
                is_error,
                bytes,
            } => {
                let stream = match is_error {
                    true => Stream::Stderr,
                    false => Stream::Stdout,
                };
                let task = IdSet::single(TaskId(rank));
                self.send_event(&task, &Event::Output { stream, bytes });
            }
            PmixEvent::Log { bytes, .. } => {
                let said = String::from_utf8_lossy(&bytes);
                let said = said.trim_end();
                let text = format!("message of a PMIx tool: {said}");
                self.send_event(&self.own_tasks(), &Event::Notice { text });
            }
        }
    }

    /// Handles the abort of the job by a process of this or another node.
    pub(super) fn end_aborted(&mut self, abort: Abort) {
        let all = self.own_tasks();
        let Abort { by, status, text } = abort;
        // Each server reports the abort for its own tasks, so that no end of a task is reported before the
        // abort.
        self.send_event(&all, &Event::Aborted { by, status, text });
        self.end_job(&IdSet::single(TaskId(by)));
    }

    /// Ends the processes of this server, as a launcher does after an abort. All except those of `by` get SIGTERM now.
    /// After [`END_WAIT`] all that still run get SIGKILL, those of `by` too. A stopped process ends when it continues.
    pub(super) fn end_job(&mut self, by: &IdSet) {
        let all = self.own_tasks();
        self.hosted.is_given_up = true;
        if let Some(backend) = &mut self.backend
            && self.hosted.ending.is_none()
        {
            backend.signal_programs(&all.difference(by), Signal::SIGTERM as i32, true);
            self.hosted.ending = Some((Instant::now() + END_WAIT, all));
        }
    }

    /// Sends an event of those of `tasks` that belong to this server.
    pub(super) fn send_event(&mut self, tasks: &IdSet, event: &Event) {
        let own = tasks.intersection(self.driver.member().node().local());
        if own.is_empty() || self.alone {
            return;
        }
        let lane = match event.is_bulk() {
            true => Lane::Bulk,
            false => Lane::Control,
        };
        let payload = wire::encode(event).into();
        self.driver.with_member(|member, now| {
            member.handle_local_event(now, lane, &own, payload);
        });
    }

    /// Sets up the backend once the PMIx server is ready. The programs get the variables of this PMIx server, and none
    /// of an outer one.
    fn begin_hosted(&mut self, environment: Vec<(OsString, OsString)>) {
        let Some(setting_up) = self.hosted.setting_up.take() else {
            return;
        };
        let all = IdSet::union_all(setting_up.pmix.nodes.iter().map(|(_, tasks)| tasks));
        let local = self.driver.member().node().local();
        let outer = std::env::vars_os().map(|(name, _)| name);
        let outer = outer.filter(|name| is_outer(name)).map(|name| (name, None));
        let given = environment.into_iter();
        let given = given.map(|(name, value)| (name, Some(value)));
        let is_here = |tasks: &&IdSet| tasks.intersection_len(local) > 0;
        let nodes = setting_up.pmix.nodes.iter().map(|(_, tasks)| tasks);
        let here = nodes.clone().find(is_here).cloned().unwrap_or_default();
        let (sizes, numbers) = sizes_and_numbers(&all, &here);
        let sizes = sizes.map(|(name, size)| (name, Some(size)));
        let variables = Variables {
            same: outer.chain(given).chain(sizes).collect(),
            numbers: numbers.into(),
        };
        self.set_up(setting_up.settings, variables);
        self.begin_waiting(setting_up.waiting);
    }

    /// Continues without a PMIx server. If the session requires one, no program can be started.
    fn go_on_without(&mut self, why: &str) {
        let Some(setting_up) = self.hosted.setting_up.take() else {
            return;
        };
        if setting_up.pmix.needed {
            let failure = Failure::new(
                FailureCode::System,
                format!("the PMIx server of SDM cannot be started: {why}"),
            );
            let hint = "--pmix off starts programs without a PMIx server: each MPI process is then a job of its own";
            self.stopped = Some(failure.with_hint(hint));
        } else {
            self.set_up(setting_up.settings, Variables::default());
            let text = format!(
                "the PMIx server of SDM cannot be started: {why}; each MPI process is a job of its own"
            );
            let tasks = self.own_tasks();
            self.send_event(&tasks, &Event::Notice { text });
        }
        self.begin_waiting(setting_up.waiting);
    }

    /// Handles the time limits of a PMIx server that is not ready, and of programs that have to end.
    pub(super) fn handle_pmix_timeout(&mut self, now: Instant) {
        if let Some((_, tasks)) = self.hosted.ending.take_if(|(at, _)| *at <= now)
            && let Some(backend) = &mut self.backend
        {
            backend.signal_programs(&tasks, Signal::SIGKILL as i32, false);
        }
        let ready = self.hosted.server.as_ref().and_then(|it| it.deadline);
        if ready.is_some_and(|at| at <= now) {
            self.forget_pmix().into_iter().for_each(PmixServer::give_up);
            self.go_on_without("sdm-pmix did not start within its time limit");
        }
    }

    fn forget_pmix(&mut self) -> Option<PmixServer> {
        let server = self.hosted.server.take()?;
        let sockets = self.driver.transport().inner().sockets();
        for fd in server.fds() {
            sockets.forget(fd);
        }
        Some(server)
    }

    fn begin_waiting(&mut self, waiting: Vec<WaitingCommand>) {
        let now = Instant::now();
        for it in waiting {
            self.execute(now, it.id, &it.tasks, &it.payload);
        }
    }

    /// Cancels a queued command.
    pub(super) fn cancel_waiting(&mut self, id: CommandId) {
        let Some(waiting) = self.hosted.waiting() else {
            return;
        };
        let given_up: Vec<_> = waiting.extract_if(.., |it| it.id == id).collect();
        for it in given_up {
            let failure = Failure::new(FailureCode::Cancelled, "cancelled").encode();
            self.driver.with_member(|member, now| {
                member.handle_local(now, id, &it.tasks, Status::Failed, failure);
            });
        }
    }

    /// Sets up the backend.
    fn set_up(&mut self, settings: BackendSettings, variables: Variables) {
        let tasks = self.own_tasks();
        let shims = self.take_shims(&tasks);
        match backend::make(settings, &tasks, &self.inherited, shims, variables) {
            Ok(mut backend) => {
                tracing::info!(%tasks, "set up");
                if self.paused {
                    backend.set_output_paused(Instant::now(), true);
                }
                self.backend = Some(backend);
            }
            Err(failure) => {
                tracing::warn!(%tasks, "the debugger backend could not be set up: {failure}");
                self.stopped = Some(failure);
            }
        }
    }
}

/// The description of a session's job for the PMIx server.
fn job(session: SessionId, pmix: &PmixJob, own: Option<usize>) -> Result<HostJob, PmixError> {
    let node = |(name, ranks): &(String, IdSet)| HostNode {
        name: name.clone(),
        ranks: ranks.clone(),
    };
    let own = own.and_then(|own| u32::try_from(own).ok());
    let job = HostJob {
        namespace: format!("sdm-{}", session),
        nodes: pmix.nodes.iter().map(node).collect(),
        own: own.ok_or(PmixError::NoNode)?,
        is_system: pmix.is_system,
    };
    job.check()?;
    Ok(job)
}

/// Name and value of an environment variable.
type Sized = (OsString, OsString);
/// An environment variable whose value is the number of a task within this set.
type Numbered = (OsString, IdSet);

/// Environment variables by which programs and scripts choose their GPU: counts and numbers of `all` tasks of the job,
/// and of those that are `here`.
fn sizes_and_numbers(all: &IdSet, here: &IdSet) -> ([Sized; 2], [Numbered; 4]) {
    let sizes = [
        ("OMPI_COMM_WORLD_SIZE", all),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", here),
    ];
    let numbers = [
        ("PMIX_RANK", all),
        ("OMPI_COMM_WORLD_RANK", all),
        ("OMPI_COMM_WORLD_LOCAL_RANK", here),
        ("OMPI_COMM_WORLD_NODE_RANK", here),
    ];
    (
        sizes.map(|(name, set)| (name.into(), set.len().to_string().into())),
        numbers.map(|(name, set)| (name.into(), set.clone())),
    )
}
