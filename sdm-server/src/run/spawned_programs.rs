//! Programs that processes spawn (`MPI_Comm_spawn`). They become tasks of this server and are debugged like
//! the others.

use std::str::FromStr;
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::command::{StartPoint, StartSpec, StopAt};
use sdm_debug::event::{Phase, Stream};
use sdm_debug::{BackendOutput, Command, Event, Failure, Joined, LauncherDuties, Reply};
use sdm_foreign::{HostProgram, ToHost};
use sdm_idset::{IdSet, TaskId};

use super::Server;
use crate::pmix::SpawnRequest;
use crate::spawned_programs::{ProgramEnd, Spawning, Starting, is_own};

/// The exit status by which a shell reports a program that cannot be started.
const NOT_STARTED: i32 = 127;

impl Server {
    /// The tasks of this server, without reserved task numbers.
    pub(super) fn own_tasks(&self) -> IdSet {
        let local = self.driver.member().node().local();
        local.difference(&self.hosted.spawning.spare)
    }

    /// Starts the programs of a spawn request.
    pub(super) fn spawn(&mut self, request: SpawnRequest) {
        let SpawnRequest {
            number,
            by,
            tasks,
            ranks,
            size,
            programs,
            environment,
        } = request;
        let now = Instant::now();
        let like = like(&self.own_tasks(), by);
        let points = points_of(self.backend.as_deref(), like, &tasks);
        let spawning = &mut self.hosted.spawning;
        let known = tasks.is_subset(&spawning.spare);
        let (Some(backend), true) = (&mut self.backend, known) else {
            return self.tell_spawned(number, false);
        };
        spawning.spare.subtract(&tasks);
        let base = &spawning.like;
        let base = StartSpec {
            stop: StopAt::Nowhere,
            // The caller learns at once whether the processes can be started.
            gdb_when_needed: false,
            points,
            settings: as_of(&base.settings, like, &tasks),
            // As with a launcher, the first task reads the tool's standard input.
            stdin_tasks: match by {
                Some(_) => IdSet::new(),
                None => tasks.first().into_iter().collect(),
            },
            ..base.clone()
        };
        let whole = programs.iter();
        let whole = whole.flat_map(|it| std::iter::repeat_n(it, it.count as usize));
        let starts: Vec<_> = tasks.iter().zip(whole).collect();
        let here = tasks.len();
        let ids: Vec<CommandId> = starts.iter().map(|_| spawning.next_command()).collect();
        let places = (0..).zip(ranks.iter()).map(|(number, rank)| Place {
            rank: rank.0,
            size,
            number,
            here,
        });
        for ((&(task, program), id), place) in starts.iter().zip(&ids).zip(places) {
            let spec = spec_of(&base, program, &environment, &place);
            let task = IdSet::single(task);
            backend.execute(now, *id, &task, Command::Start(spec));
        }
        let outputs: Vec<_> = std::iter::from_fn(|| backend.poll_output()).collect();
        let refused = outputs.iter().find_map(|output| match output {
            BackendOutput::Answer {
                id,
                result: Err(failure),
                ..
            } if ids.contains(id) => Some(failure.clone()),
            _ => None,
        });
        match refused {
            Some(failure) => {
                self.take_back(now, by, &tasks, &failure);
                self.tell_spawned(number, false);
            }
            None => {
                let left = tasks.clone();
                let spawning = &mut self.hosted.spawning;
                spawning.starting.push(Starting { number, left });
                for (tasks, event) in joined(by, like, &starts) {
                    self.send_event(&tasks, &event);
                }
            }
        }
        self.take_outputs(outputs);
    }

    /// Handles a spawn request of which one program could not be started. The other programs are ended, and none is
    /// announced.
    fn take_back(&mut self, now: Instant, by: Option<u32>, tasks: &IdSet, failure: &Failure) {
        let spawning = &mut self.hosted.spawning;
        spawning.silenced.extend(tasks);
        let id = spawning.next_command();
        if let Some(backend) = &mut self.backend {
            backend.execute(now, id, tasks, Command::Kill);
        }
        let own = self.own_tasks().difference(tasks);
        let by = by.map(TaskId);
        let who = by.map_or_else(|| "a PMIx tool".to_owned(), |by| format!("rank {}", by.0));
        let told = match by {
            Some(by) if own.contains(by) => IdSet::single(by),
            _ => own,
        };
        let text = format!("{who} requested programs that cannot be started: {failure}");
        self.send_event(&told, &Event::Notice { text });
    }

    fn tell_spawned(&mut self, number: u64, is_started: bool) {
        if let Some(server) = &mut self.hosted.server {
            server.send(&ToHost::Spawned { number, is_started });
            self.watch_pmix();
        }
    }

    /// Passes ends of programs, and output if a tool has requested it, to the PMIx server. Drops outputs of tasks whose
    /// spawn request has failed. Turns answers to this server's own commands into events.
    pub(super) fn sort_out(&mut self, outputs: Vec<BackendOutput>) -> Vec<BackendOutput> {
        if let Some(server) = &mut self.hosted.server {
            let is_ending = self.hosted.is_given_up || self.driver.member().node().is_ending();
            // A killed rank leaves the others to be looked at, unless nobody is to be held for that.
            let no_holds = self.hosted.no_holds;
            let ends_job = |end: ProgramEnd| !is_ending && (!end.by_signal || no_holds);
            let messages = of_ends_and_output(&outputs, &mut self.hosted.spawning, ends_job);
            if !messages.is_empty() {
                messages.iter().for_each(|message| server.send(message));
                self.watch_pmix();
            }
        }
        let mut told = Vec::with_capacity(outputs.len());
        let mut come = Vec::new();
        let spawning = &self.hosted.spawning;
        for output in outputs {
            let (BackendOutput::Answer { task, .. } | BackendOutput::Event { task, .. }) = &output;
            let task = *task;
            if spawning.silenced.contains(&task) {
                continue;
            }
            match output {
                BackendOutput::Answer { id, result, .. } if is_own(id) => {
                    come.push(task);
                    let events = events_of(result).into_iter();
                    told.extend(events.map(|event| BackendOutput::Event { task, event }));
                }
                output => {
                    if let BackendOutput::Event { event, .. } = &output
                        && *event == Event::Progress(Phase::Running)
                    {
                        come.push(task);
                    }
                    told.push(output);
                }
            }
        }
        for task in come {
            for number in self.hosted.spawning.has_come(task) {
                self.tell_spawned(number, true);
            }
        }
        told
    }
}

/// The task that new tasks are modelled after: the one that spawned them if it is a task of this server,
/// otherwise the first.
fn like(own: &IdSet, by: Option<u32>) -> TaskId {
    let by = by.map(TaskId).filter(|by| own.contains(*by));
    by.or(own.first()).unwrap_or(TaskId(0))
}

/// The breakpoints, watchpoints and catchpoints of a task, for other tasks.
fn points_of(backend: Option<&dyn LauncherDuties>, like: TaskId, tasks: &IdSet) -> Vec<StartPoint> {
    let points = backend.map(|it| it.points(like)).unwrap_or_default();
    let points = points.into_iter().map(|point| StartPoint {
        tasks: tasks.clone(),
        ..point
    });
    points.collect()
}

/// The events that announce new tasks.
fn joined(by: Option<u32>, like: TaskId, starts: &[(TaskId, &HostProgram)]) -> Vec<(IdSet, Event)> {
    let alike = starts.chunk_by(|(_, a), (_, b)| a == b);
    let told = alike.map(|alike| {
        let tasks = alike.iter().map(|(task, _)| *task).collect();
        let program = alike[0].1;
        let joined = Joined {
            by,
            like: like.0,
            program: program.program.clone(),
            args: program.arguments.clone(),
        };
        (tasks, Event::Joined(joined))
    });
    told.collect()
}

/// The position of a process in its job.
struct Place {
    rank: u32,
    /// Number of processes of the job.
    size: u32,
    /// The number of the process among those on this host, from 0.
    number: u32,
    /// Number of processes on this host.
    here: u64,
}

impl Place {
    /// Environment variables with the process's rank and counts in its job and on this host, under the names that the
    /// first job has.
    fn variables(&self) -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> {
        let variables = [
            ("OMPI_COMM_WORLD_SIZE", self.size.into()),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", self.here),
            ("PMIX_RANK", self.rank.into()),
            ("OMPI_COMM_WORLD_RANK", self.rank.into()),
            ("OMPI_COMM_WORLD_LOCAL_RANK", self.number.into()),
            ("OMPI_COMM_WORLD_NODE_RANK", self.number.into()),
        ];
        let variables = variables.into_iter();
        variables.map(|(name, value): (_, u64)| (name.into(), Some(value.to_string().into())))
    }
}

/// The start specification of a task that runs this program.
fn spec_of(
    base: &StartSpec,
    program: &HostProgram,
    environment: &[(String, String)],
    place: &Place,
) -> StartSpec {
    let own = place.variables();
    let given = environment.iter();
    let given = given.map(|(name, value)| (name.clone().into(), Some(value.clone().into())));
    let asked = program.environment.iter().filter_map(|pair| {
        let at = pair
            .iter()
            .position(|it| *it == b'=')
            .filter(|at| *at > 0)?;
        Some((pair[..at].to_vec(), Some(pair[at + 1..].to_vec())))
    });
    // Variables that the spawning process requests cannot replace those that make the new process part of
    // its job.
    let environment = base.environment.iter().cloned();
    let environment = environment.chain(asked).chain(given).chain(own).collect();
    StartSpec {
        program: program.program.clone(),
        args: program.arguments.clone(),
        directory: program.directory.clone().or(base.directory.clone()),
        environment,
        ..base.clone()
    }
}

/// The gdb settings of the task `like`, for `tasks`.
fn as_of(settings: &[(IdSet, String)], like: TaskId, tasks: &IdSet) -> Vec<(IdSet, String)> {
    let its = settings.iter().filter(|(whose, _)| whose.contains(like));
    its.map(|(_, line)| (tasks.clone(), line.clone())).collect()
}

/// Messages to the PMIx server: ends of processes with their status, and output if a tool reads it. `ends_job` returns
/// true if an end of a rank ends its job.
fn of_ends_and_output(
    outputs: &[BackendOutput],
    spawning: &mut Spawning,
    ends_job: impl Fn(ProgramEnd) -> bool,
) -> Vec<ToHost> {
    let mut messages = Vec::new();
    for output in outputs {
        let (task, end) = match output {
            BackendOutput::Answer { task, result, .. } => {
                (task, result.as_ref().ok().and_then(end_of))
            }
            BackendOutput::Event { task, event } => match event {
                Event::Exited { code } => (task, Some(exit(*code))),
                Event::Signalled { signal } => (task, Some(end_by(signal))),
                Event::Output { stream, bytes } if spawning.shows_output => {
                    messages.push(ToHost::Output {
                        task: task.0,
                        is_error: *stream == Stream::Stderr,
                        bytes: bytes.clone(),
                    });
                    continue;
                }
                Event::OutputEnd { stream } => {
                    spawning.ends.end_stream(*task, *stream);
                    continue;
                }
                _ => continue,
            },
        };
        if let Some(end) = end {
            spawning.ends.end(*task, end);
        }
    }
    let ended = spawning.ends.take(spawning.shows_output).into_iter();
    messages.extend(ended.map(|(end, tasks)| ToHost::Ended {
        tasks,
        status: end.status,
        ends_job: ends_job(end),
    }));
    messages
}

/// The end of a process, with its status as a launcher reports it; `None` if the reply is not the end of a process.
fn end_of(reply: &Reply) -> Option<ProgramEnd> {
    match reply {
        Reply::Exited { code, .. } => Some(exit(*code)),
        Reply::Signalled { signal } => Some(end_by(signal)),
        _ => None,
    }
}

fn exit(code: i32) -> ProgramEnd {
    ProgramEnd {
        status: code,
        by_signal: false,
    }
}

fn end_by(signal: &str) -> ProgramEnd {
    let number = Signal::from_str(signal).map_or(0, |signal| signal as i32);
    ProgramEnd {
        status: 128 + number,
        by_signal: true,
    }
}

/// The events for an answer to a command that this server has given itself.
fn events_of(result: Result<Reply, Failure>) -> Vec<Event> {
    match result {
        Ok(Reply::Stopped(stop)) => vec![Event::Stopped(stop)],
        Ok(Reply::Exited { code, .. }) => vec![Event::Exited { code }],
        Ok(Reply::Signalled { signal }) => vec![Event::Signalled { signal }],
        Ok(_) => Vec::new(),
        Err(failure) => vec![
            Event::Notice {
                text: failure.to_string(),
            },
            Event::Exited { code: NOT_STARTED },
        ],
    }
}
