//! `sdm attach`, and the search for the processes of its target, which other commands
//! with a TARGET use.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use sdm_debug::EndPolicy;
use sdm_debug::command::AttachSpec;
use sdm_hosts::HostShare;
use sdm_hosts::job::{self, Access, Job, JobProcess, Obstacle};
use sdm_idset::{IdSet, TaskId, set_text};
use sdm_session::{DebugSession, SessionConfig};
use sdm_shell::{LookBy, Options, Shell, Widen, Widened, Widening};
use sdm_view::render::Names;

use super::command_source::{Lines, carry_out, end, queue, script};
use super::error::AppError;
use super::local::application;
use super::opener::{Opener, Refused, refused, tell_passed_over};
use super::signals::Signals;
use super::view::give_up;
use super::wake::CurrentWake;
use super::web::{Web, shown_on_pages};
use crate::cli::{AttachArgs, By, Commands, TargetArgs, TreeArgs};
use crate::sink::Sink;

/// Maximum length of a set in a message, in bytes.
const SET_WIDTH: usize = 60;

/// The processes to attach to, and the session for them.
#[derive(Debug)]
pub(super) struct Attachment {
    /// The processes that each server attaches to.
    pub(super) spec: AttachSpec,
    /// The servers to start, with their hosts.
    pub(super) session: SessionConfig,
    /// The tasks to attach to at first. The other tasks have a server, and `attach SET` attaches to them.
    wanted: IdSet,
    /// Ranks of the job that are on hosts without a server.
    elsewhere: IdSet,
    /// The tasks of each host.
    hosts: Vec<(String, IdSet)>,
    /// The names of tasks.
    pub(super) names: Names,
    /// The processes that are left out, each with the reason: a sentence each.
    pub(super) left_out: Vec<String>,
    /// Notes for the user on the search for processes: a sentence each.
    pub(super) notes: Vec<String>,
    /// True if the tasks are the ranks of a job.
    pub(super) ranked: bool,
    /// All known ranks of the job, whether they are tasks or not.
    pub(super) known: IdSet,
    /// Known ranks on this host whose processes have ended.
    pub(super) ended: IdSet,
}

impl Attachment {
    /// Ranks and pids of the tasks on this host. A pid of another host would be that of an unrelated
    /// process in this `/proc`.
    pub(super) fn pids_here(&self) -> Vec<(u32, i32)> {
        let here = self
            .hosts
            .iter()
            .filter(|(host, _)| job::is_this_host(host));
        let here: IdSet = here.flat_map(|(_, tasks)| tasks.iter()).collect();
        let pids = self.spec.pids.iter().copied();
        pids.filter(|(rank, _)| here.contains(TaskId(*rank)))
            .collect()
    }

    /// Ranks of the job that are not tasks and have not ended.
    fn outside(&self) -> IdSet {
        let tasks = self.spec.pids.iter().map(|(rank, _)| TaskId(*rank));
        self.known
            .difference(&tasks.collect())
            .difference(&self.ended)
    }

    /// Removes the tasks outside of `tasks` from the attachment, because no server has started on their host. The
    /// removed tasks are noted in `left_out`.
    pub(super) fn keep_to(&mut self, tasks: &IdSet) {
        for (host, own) in &self.hosts {
            let absent = own.intersection(&self.wanted).difference(tasks);
            if !absent.is_empty() {
                let ranks = self.names.label(&absent, SET_WIDTH);
                self.left_out
                    .push(format!("{ranks}: no sdm-server started on {host}"));
            }
        }
        self.spec
            .pids
            .retain(|(rank, _)| tasks.contains(TaskId(*rank)));
        self.wanted = self.wanted.intersection(tasks);
    }
}

/// Resolves a target to its processes. Those that cannot be attached to are left out, with a note.
///
/// # Errors
/// [`AppError`] if no process matches the target, or none can be attached to.
pub(super) fn look_up(args: &TargetArgs, read_only: bool) -> Result<Attachment, AppError> {
    look_up_ranks(args, args.ranks.as_ref(), read_only)
}

fn look_up_ranks(
    args: &TargetArgs,
    ranks: Option<&IdSet>,
    read_only: bool,
) -> Result<Attachment, AppError> {
    let job = job::find(args.job())?;
    let names = names(&job);
    let slurm = job.slurm.clone();
    let incomplete = job.incomplete.clone();
    let notes = job.notes.clone();
    let ranked = job.ranked;
    let known = known(&job);
    let (wanted, others) = wanted(job, ranks)?;
    let here = |process: &&JobProcess| job::is_this_host(&process.host);
    let pids: Vec<i32> = wanted.iter().filter(here).map(|it| it.pid).collect();
    let access = match read_only {
        true => Access::Read,
        false => Access::Attach,
    };
    let obstacles: BTreeMap<i32, Obstacle> = job::obstacles(&pids, access).into_iter().collect();
    let is_free = |it: &JobProcess| !here(&it) || !obstacles.contains_key(&it.pid);
    let (free, obstructed): (Vec<_>, Vec<_>) = wanted.into_iter().partition(is_free);
    let is_gone = |it: &&JobProcess| obstacles.get(&it.pid) == Some(&Obstacle::Gone);
    let ended = obstructed.iter().filter(is_gone);
    let ended = ended.map(|it| TaskId(it.rank)).collect();
    let mut left_out = refuse(&names, &obstructed, &obstacles);
    // If ranks were requested by number, an incomplete list of the job's ranks does not matter.
    left_out.extend(incomplete.filter(|_| ranks.is_none()));
    if free.is_empty() {
        return Err(AppError::LeftOut(left_out));
    }
    let gdb = args.gdb.as_ref();
    tell_passed_over([gdb.map_or(OsStr::new("gdb"), |path| path.as_os_str())]);
    let wanted = free.iter().map(|it| TaskId(it.rank)).collect();
    let mut free = free;
    let mut elsewhere = IdSet::new();
    if !read_only {
        let is_beside = |it: &JobProcess| free.iter().any(|other| other.host == it.host);
        let (beside, far): (Vec<_>, Vec<_>) = others.into_iter().partition(is_beside);
        elsewhere.extend(far.iter().map(|it| TaskId(it.rank)));
        free.extend(beside);
        free.sort_by_key(|process| process.rank);
    }
    let hosts = by_host(&free);
    Ok(Attachment {
        spec: AttachSpec {
            pids: free.iter().map(|it| (it.rank, it.pid)).collect(),
            read_only,
            gdb: gdb.map(|path| path.as_os_str().as_bytes().to_vec()),
            ..AttachSpec::default()
        },
        session: session(args, hosts.clone(), slurm.as_deref()),
        wanted,
        elsewhere,
        hosts,
        names,
        left_out,
        notes,
        ranked,
        known,
        ended,
    })
}

/// All ranks of a job: those below its size, or up to the last one found if its size is not known. For a job without
/// ranks, the processes that were found.
fn known(job: &Job) -> IdSet {
    let found = job.processes.iter().map(|it| TaskId(it.rank));
    if !job.ranked {
        return found.collect();
    }
    let mut here = job.processes.iter();
    let here = here.find(|it| job::is_this_host(&it.host));
    let size = here.and_then(|it| job::size_of(it.pid)).unwrap_or_default();
    let last = job.processes.last().map_or(0, |it| it.rank + 1);
    IdSet::all_below(size.max(last).min(job::PROCESSES_MAX))
}

/// The hosts in the order of their first ranks, with their tasks.
fn by_host(processes: &[JobProcess]) -> Vec<(String, IdSet)> {
    let mut hosts: Vec<(String, IdSet)> = Vec::new();
    for process in processes {
        let task = TaskId(process.rank);
        match hosts.iter_mut().find(|(host, _)| *host == process.host) {
            Some((_, tasks)) => tasks.extend([task]),
            None => hosts.push((process.host.clone(), IdSet::single(task))),
        }
    }
    hosts
}

/// The session configuration: one server on each host debugs all processes there. If all processes are on this host,
/// the server is started without a launcher. Otherwise the servers are started through Slurm for a Slurm job, else
/// through ssh. An unreachable host costs its own tasks only.
fn session(args: &TargetArgs, hosts: Vec<(String, IdSet)>, slurm: Option<&str>) -> SessionConfig {
    let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
    let tree = TreeArgs {
        partial: true,
        ..TreeArgs::default()
    };
    let mut session = args.reach.reaching(tree.session(count));
    session.backend = args.printers.backend();
    if hosts.iter().all(|(host, _)| job::is_this_host(host)) {
        session.servers = 1;
        session.stage = false;
        session.tasks = vec![IdSet::union_all(hosts.iter().map(|(_, tasks)| tasks))];
        return session;
    }
    if let Some(id) = slurm {
        let names: Vec<&str> = hosts.iter().map(|(host, _)| host.as_str()).collect();
        let job = id.split('.').next().unwrap_or(id);
        let options = [
            "--overlap".to_owned(),
            "--mpi=none".to_owned(),
            format!("--jobid={job}"),
            format!("--nodes={count}"),
            "--ntasks-per-node=1".to_owned(),
            format!("--nodelist={}", names.join(",")),
        ];
        session.launcher = "srun".to_owned();
        session.launcher_options = options.into_iter().map(OsString::from).collect();
        // Slurm chooses the node of each task, so servers are identified by their host.
        session.by_host = hosts;
    } else {
        session.launcher = "ssh".to_owned();
        session.hosts = hosts
            .iter()
            .map(|(host, _)| HostShare {
                host: host.clone(),
                slots: Some(1),
            })
            .collect();
        session.tasks = hosts.into_iter().map(|(_, tasks)| tasks).collect();
    }
    session
        .launcher_options
        .extend(args.reach.launcher_options.iter().cloned());
    session
}

fn names(job: &Job) -> Names {
    if job.ranked {
        return Names::ranks();
    }
    let pid = |process: &JobProcess| (TaskId(process.rank), process.pid.unsigned_abs());
    Names::pids(job.processes.iter().map(pid).collect())
}

/// Splits a job's processes into those of the requested ranks, and the others.
fn wanted(job: Job, ranks: Option<&IdSet>) -> Result<(Vec<JobProcess>, Vec<JobProcess>), AppError> {
    let Some(ranks) = ranks else {
        return Ok((job.processes, Vec::new()));
    };
    if !job.ranked {
        return Err(AppError::Unranked(job.source));
    }
    let all: IdSet = job.processes.iter().map(|it| TaskId(it.rank)).collect();
    if !ranks.is_subset(&all) || ranks.is_empty() {
        return Err(AppError::NoSuchRanks {
            asked: set_text(ranks, SET_WIDTH),
            all: set_text(&all, SET_WIDTH),
            of: job.source,
        });
    }
    let is_wanted = |process: &JobProcess| ranks.contains(TaskId(process.rank));
    Ok(job.processes.into_iter().partition(is_wanted))
}

/// The obstacles to attaching as text, equal ones once with all their processes.
fn refuse(
    names: &Names,
    processes: &[JobProcess],
    obstacles: &BTreeMap<i32, Obstacle>,
) -> Vec<String> {
    let mut classes: BTreeMap<&Obstacle, Vec<&JobProcess>> = BTreeMap::new();
    for process in processes {
        if let Some(obstacle) = obstacles.get(&process.pid) {
            classes.entry(obstacle).or_default().push(process);
        }
    }
    let say = |(obstacle, processes): (&Obstacle, Vec<&JobProcess>)| {
        format!("{} {obstacle}", whom(names, &processes))
    };
    classes.into_iter().map(say).collect()
}

/// The text that names these processes: `rank 3 (pid 4711)` for one, `ranks 0-3 (4)` with their number for several.
fn whom(names: &Names, processes: &[&JobProcess]) -> String {
    let tasks: IdSet = processes.iter().map(|it| TaskId(it.rank)).collect();
    let label = names.label(&tasks, SET_WIDTH);
    match processes {
        [one] if *names == Names::ranks() => format!("{label} (pid {})", one.pid),
        _ => label,
    }
}

/// Opens a session that samples processes without a prompt. Returns also the processes to attach to, and
/// true if all requested ones are included. The others are reported.
pub(super) fn open_to_look<O: Opener>(
    args: &TargetArgs,
    mut attachment: Attachment,
    opener: &mut O,
) -> Result<(Shell<O::Session>, AttachSpec, bool), AppError> {
    let signals = Signals::listen(false, false, Arc::new(AtomicBool::new(false)))
        .map_err(AppError::Signals)?;
    let (session, wake) = super::opener::open(opener, &attachment.session)?;
    attachment.keep_to(session.tasks());
    let (controls, heard) = channel();
    signals.send_to(controls, wake);
    let options = Options {
        query_timeout: Duration::from_secs(args.timeout.into()),
        check_room: !args.force,
        attached: true,
        unranked: !attachment.ranked,
        outside: attachment.outside(),
        ..Options::default()
    };
    let view = super::view::view(args.json, attachment.names, None);
    let mut shell = Shell::new(session, application(view, heard, None), options);
    for text in attachment.notes.iter().chain(&attachment.left_out) {
        shell.say(text);
    }
    Ok((shell, attachment.spec, attachment.left_out.is_empty()))
}

/// Attaches, carries out commands, and detaches.
pub(super) fn attach<O: Opener>(args: &AttachArgs, commands: Vec<Commands>, opener: &mut O) -> u8 {
    match try_attach(args, commands, opener) {
        Ok(code) => code,
        Err((code, message)) => give_up(args.target.json, code, message),
    }
}

fn try_attach<O: Opener>(
    args: &AttachArgs,
    commands: Vec<Commands>,
    opener: &mut O,
) -> Result<u8, Refused> {
    let has_script = !commands.is_empty();
    let script = script(commands)?;
    let json = args.target.json;
    let mut attachment = look_up(&args.target, false).map_err(refused)?;
    let terminal = io::stdin().is_terminal() && Sink::Output.is_terminal() && !json;
    let prompts = terminal && (args.commands.wants_prompt() || !has_script);
    let reading = Arc::new(AtomicBool::new(false));
    let queue = queue(prompts, &reading, &args.commands)?;
    let web = Web::new(&args.commands)?;
    let signals = Signals::listen(prompts, false, Arc::clone(&reading))
        .map_err(|error| refused(AppError::Signals(error)))?;
    let (session, wake) = super::opener::open(opener, &attachment.session).map_err(refused)?;
    attachment.keep_to(session.tasks());
    let current = CurrentWake::new(wake);
    let wake = current.wake();
    let (controls, heard) = channel();
    signals.send_to(controls.clone(), Arc::clone(&wake));
    // A script's commands need gdb.
    let is_person = (prompts || web.is_some()) && !has_script;
    let options = Options {
        interactive: is_person,
        query_timeout: Duration::from_secs(args.target.timeout.into()),
        check_room: !args.target.force,
        attached: true,
        unranked: !attachment.ranked,
        outside: attachment.outside(),
        ..Options::default()
    };
    let names = attachment.names;
    let view = super::view::view(json, names.clone(), queue.clone());
    let to_pages = (&controls, &wake, queue.as_ref());
    let view = shown_on_pages(web.as_ref(), view, names.clone(), to_pages)?;
    let mut shell = Shell::new(session, application(view, heard, queue.clone()), options);
    shell.set_report(super::machine::of_machine(), names, None);
    for text in attachment.notes.iter().chain(&attachment.left_out) {
        shell.say(text);
    }
    shell.set_widening(Widening {
        elsewhere: attachment.elsewhere,
        open: widen(opener.clone(), args.target.clone(), current),
    });
    let lines = Lines {
        script: has_script.then_some(script),
        then_prompt: !has_script || args.commands.wants_prompt(),
        full_screen: args.commands.tui,
        queue,
        web,
        controls,
        wake,
    };
    let by = match args.by {
        By::Snapshot if is_person => LookBy::Snapshot,
        _ => LookBy::Gdb,
    };
    let ending = if shell.attach(attachment.spec, &attachment.wanted, by) {
        carry_out(&mut shell, lines)
    } else {
        shell.failed_attach()
    };
    Ok(end(shell, opener, ending))
}

/// Detaches from a job, and opens a session with servers for more of its ranks.
fn widen<O: Opener>(mut opener: O, target: TargetArgs, current: CurrentWake) -> Widen<O::Session> {
    Box::new(move |session, wanted| {
        let mut attachment = look_up_ranks(&target, Some(wanted), false)?;
        opener.close(session, EndPolicy::Detach)?;
        let (next, wake) = super::opener::open(&mut opener, &attachment.session)?;
        *session = next;
        current.set(wake);
        attachment.keep_to(session.tasks());
        Ok(Widened {
            spec: attachment.spec,
            wanted: attachment.wanted,
            elsewhere: attachment.elsewhere,
            left_out: attachment.left_out,
        })
    })
}
