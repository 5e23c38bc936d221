//! Programs that run without a gdb: their start, and their later states.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::command::{LookSpec, StartSpec};
use sdm_debug::{BackendOutput, Command, Event, Failure, FailureCode, TaskState};
use sdm_idset::{IdSet, TaskId};
use sdm_system::{has_capabilities, proc};
use sdm_text::printable_name;

use super::GdbBackend;
use super::shims::{refuse_held, will_not_come};
use super::slots::KnownSlot;
use crate::host::{GdbNumber, LocalHost};
use crate::task::{Parent, Task};
use sdm_child::{LocalShim, ProgramNews, ShimLink, StartConfig, Streams};
use sdm_gdb::Driver;

/// The mode bit of a program file that is executed with the owner's user id.
const SET_USER: u32 = 0o4000;
/// The mode bits of a program file that is executed with the file's group id.
const SET_GROUP: u32 = 0o2010;

/// True if the program is started by a shim of this process's own, without a gdb.
pub(super) fn seizes(config: &StartConfig, spec: &StartSpec) -> bool {
    spec.gdb_when_needed && config.streams.is_none() && config.binding.is_none()
}

/// The process of a task whose program runs without a gdb; `None` for other tasks.
fn free_process(
    current: &BTreeMap<TaskId, u64>,
    slots: &BTreeMap<u64, KnownSlot>,
    task: TaskId,
) -> Option<i32> {
    slots.get(current.get(&task)?)?.slot.free_process()
}

/// A notice if the program's file gives it a user, a group or capabilities that the process does not have; otherwise
/// `None`. The kernel withholds them if an ordinary user traces the program.
fn file_rights(program: &Path, pid: i32) -> Option<String> {
    let file = std::fs::metadata(program).ok()?;
    let status = proc::of(pid).status().ok()?;
    let effective = |field| status.ids(field).and_then(|ids| ids.get(1).copied());
    let user = effective("Uid").filter(|user| file.mode() & SET_USER != 0 && *user != file.uid());
    let group = effective("Gid")
        .filter(|group| file.mode() & SET_GROUP == SET_GROUP && *group != file.gid());
    let (owner, owner_group) = (file.uid(), file.gid());
    let what = match (user, group) {
        (Some(user), _) => format!("set-user-ID {owner}, but runs as user {user}"),
        (None, Some(group)) => format!("set-group-ID {owner_group}, but runs as group {group}"),
        (None, None) if has_capabilities(program) && status.bits("CapEff") == Some(0) => {
            "a file with capabilities, but runs without them".to_owned()
        }
        (None, None) => return None,
    };
    let name = printable_name(program);
    Some(format!(
        "{name} is {what}: a traced program does not get the privileges of its file"
    ))
}

/// Begins a command that inspects processes without a gdb. Returns the tasks for which another way is left.
pub(super) fn inspect(
    backend: &mut GdbBackend,
    now: Instant,
    id: CommandId,
    tasks: &IdSet,
    command: &Command,
) -> IdSet {
    if backend.ending.is_some() {
        return tasks.clone();
    }
    let (look, of_stopped) = match command {
        Command::Stacks { full } => {
            let (pids, full, probe) = (Vec::new(), *full, None);
            (Command::Look(LookSpec { pids, full, probe }), true)
        }
        Command::Look(_) | Command::Sample(_) => (command.clone(), false),
        _ => return tasks.clone(),
    };
    // The front-end may not know yet that they are stopped.
    let standing = tasks.iter().filter_map(|task| {
        let driver = backend.slot_of(task)?.driver(task)?;
        let program = driver.without_gdb().filter(|it| it.stopped.is_some())?;
        let is_known = driver.task_state() == TaskState::Stopped;
        (is_known || !of_stopped).then_some((task, program.pid))
    });
    let standing: BTreeMap<TaskId, i32> = standing.collect();
    if !standing.is_empty() {
        backend.looks.look_at_standing(now, id, &standing, &look);
    }
    let rest = tasks.difference(&standing.keys().copied().collect());
    let seized = |task| free_process(&backend.current, &backend.slots, task);
    if !rest.is_empty() && backend.looks.execute(now, id, &rest, command, seized) {
        return IdSet::new();
    }
    rest
}

impl GdbBackend {
    /// Starts a program by a shim of this process's own.
    pub(super) fn start_at_own(
        &mut self,
        id: CommandId,
        task: TaskId,
        spec: &StartSpec,
    ) -> Result<(), Failure> {
        self.breakpoints_of_ended(task)?;
        let starter = self.config.start.starter.clone();
        let starter = starter.unwrap_or_else(|| proc::own().path("exe"));
        let started = LocalShim::start(&starter, task.0).and_then(|(shim, mut channel)| {
            channel.welcome(0)?;
            Ok((shim, channel))
        });
        let (shim, channel) = started.map_err(|error| {
            let path = printable_name(&starter);
            let text = format!("cannot start sdm-shim ({path}), which starts programs: {error}");
            Failure::new(FailureCode::System, text)
        })?;
        self.shims.own.insert(task, shim);
        let link = self.shims.add(task, channel);
        self.start_at_shim(id, task, spec, &link)
    }

    pub(super) fn has_begun_seized(
        &mut self,
        now: Instant,
        task: TaskId,
        link: &Rc<ShimLink>,
        (pid, program): (i32, PathBuf),
        fds: Vec<OwnedFd>,
    ) {
        let Some(coming) = self.wanted(task) else {
            // The program ends with its shim.
            return self.shims.dismiss(task, 0);
        };
        let Some(streams) = Streams::at_shim(fds, coming.is_fed, link) else {
            let text = "sdm-shim did not pass the program's standard streams to sdm-server";
            self.shims.dismiss(task, 0);
            return will_not_come(
                &mut self.outputs,
                task,
                coming,
                Failure::new(FailureCode::System, text),
            );
        };
        let number = GdbNumber::default();
        let host = Box::new(LocalHost::of_number(&number, &self.sources));
        let config = self.driver_config.clone();
        if let Some(text) = file_rights(&program, pid) {
            let event = Event::Notice { text };
            self.outputs.push_back(BackendOutput::Event { task, event });
        }
        let check = super::start::check(&coming.spec);
        let driver = Driver::seized(now, config, host, coming.id, (pid, &program), check);
        let parent = Parent::new(link, program, coming.spec.gdb, number);
        let made = Task::seized(task, driver, parent, streams);
        self.stand_for(now, task, made, coming.held);
    }

    /// Starts a program under a gdb, because it needs a gdb from its beginning.
    pub(super) fn start_with_gdb(&mut self, now: Instant, task: TaskId, link: &Rc<ShimLink>) {
        let Some(coming) = self.wanted(task) else {
            return;
        };
        if self.shims.own.remove(&task).is_some() {
            self.shims.forget(link);
            self.shims.links.remove(&task);
        }
        let spec = StartSpec {
            gdb_when_needed: false,
            ..coming.spec
        };
        let number = match self.start(now, coming.id, task, &spec) {
            Ok(number) => number,
            Err(failure) => {
                self.answer(coming.id, task, Err(failure));
                return refuse_held(&mut self.outputs, task, coming.held);
            }
        };
        for (id, command) in coming.held {
            let begun = self.execute_one(now, id, task, &command);
            begun.into_iter().for_each(|it| self.settle(now, it));
        }
        number.into_iter().for_each(|it| self.settle(now, it));
    }

    /// Passes an event of a program on to the slot of its task.
    pub(super) fn handle_program(&mut self, now: Instant, task: TaskId, news: ProgramNews) {
        self.looks.handle_program(now, task, &news);
        let number = self.current.get(&task).copied();
        let known = number.and_then(|number| self.slots.get_mut(&number));
        if let (Some(number), Some(known)) = (number, known) {
            if let Some(task) = known.slot.seized() {
                task.take_news(now, news);
            }
            self.settle(now, number);
        }
        self.carry_out_orders(now);
    }

    /// Passes the orders of inspections on to the parents of programs without a gdb.
    pub(super) fn carry_out_orders(&mut self, now: Instant) {
        // A task whose end is known to its gdb no longer keeps others stopped.
        let is_over = |task: &TaskId| {
            let driver = self.slot_of(*task).and_then(|slot| slot.driver(*task));
            let runs = |it: &Driver| it.without_gdb().is_some_and(|it| it.stopped.is_none());
            driver.is_none_or(|it| it.why_not_live().is_some() || runs(it))
        };
        let over: IdSet = self.looks.crashed().iter().filter(is_over).collect();
        self.looks.remove_crashed(&over);
        if let Some(order) = self.looks.take_hold(now) {
            let slots = self.slots.values_mut().filter(|it| it.task_count > 0);
            for task in slots.filter_map(|known| known.slot.seized()) {
                task.ask_parent(order);
            }
        }
        let slots = self.slots.values_mut().filter(|it| it.task_count > 0);
        let unseen = slots.filter_map(|known| known.slot.seized()?.take_look());
        for thread in unseen.collect::<Vec<_>>() {
            self.looks.look_at_stop(now, thread);
        }
        while let Some((task, seen)) = self.looks.take_stop() {
            let number = self.current.get(&task).copied();
            let known = number.and_then(|number| self.slots.get_mut(&number));
            if let (Some(number), Some(known)) = (number, known) {
                if let Some(task) = known.slot.seized() {
                    task.take_stop(now, seen.map(|it| *it));
                }
                self.settle(now, number);
            }
        }
        while let Some((task, order)) = self.looks.poll_order() {
            let number = self.current.get(&task).copied();
            let known = number.and_then(|number| self.slots.get_mut(&number));
            if let (Some(number), Some(known)) = (number, known) {
                if let Some(task) = known.slot.seized() {
                    task.ask_parent(order);
                }
                // A gdb that was requested meanwhile can be started now.
                self.settle(now, number);
            }
        }
    }
}
