//! This host as a resource manager: a machine of one node and one queue, whose jobs start at once.
//!
//! The managers `openmpi` and `hydra` have a launcher of MPI jobs start the processes.

mod launcher;
mod output;
mod ranks;
pub mod record;
pub mod runner;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gethostname};
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, NodeUse};
use sdm_system::files;
use sdm_system::own_program;
use sdm_system::proc;

use crate::error::{ManagerError, SubmissionError};
use crate::manager::{JobChange, Manager, Submission, machine};
use crate::snapshot::{Attributes, Job, Process, Snapshot, set, set_items, set_state};
pub use launcher::{HYDRA, Launcher, OPEN_MPI};
use ranks::Ranks;
use record::{Order, Records, Started, State};

/// Maximum size of a job's reported output, in bytes. Of a longer output the end is reported.
const OUTPUT_BYTES_MAX: u64 = 4096;
/// Time after a job's end for which its output is reported.
const OUTPUT_SECONDS: i64 = 3600;
/// The command of `sdm` that keeps a session until a user resumes it.
const KEEPER: &str = "keeper";
/// Time for which the record of an ended job is stored, in seconds: 30 days.
const KEPT_S: i64 = 30 * 86_400;
/// Name of the single queue that this manager reports.
const QUEUE: &str = "default";
/// Time limit for a new runner to write its state.
const RUNNER_WAIT: Duration = Duration::from_secs(20);
/// Interval between checks for the state of a new runner.
const RUNNER_LOOK: Duration = Duration::from_millis(5);

/// The jobs that this user has started on this host, and those on hosts that share the folder of records.
pub struct Local {
    records: Records,
    /// The launcher, which is put before the program with `-n` and the number of processes; `None` if processes
    /// are started directly.
    launcher: Option<PathBuf>,
    /// Path of this program, which also serves as a job's runner.
    program: PathBuf,
    host: String,
    ranks: Ranks,
}

impl Local {
    /// A manager with job records under `kind`, and the program of `launcher` on `PATH`.
    ///
    /// # Errors
    /// There is no launcher, no folder to keep jobs in, no path of this program, or this host has no name.
    pub fn new(kind: &str, launcher: Option<&Launcher>) -> Result<Self, ManagerError> {
        let launcher = launcher.map(Launcher::find).transpose()?;
        let records = Records::of(kind).map_err(ManagerError::system(
            "cannot use the folder for job records",
        ))?;
        let program = std::env::current_exe().map_err(ManagerError::system(
            "cannot determine the path of sdm-agent",
        ))?;
        Self::with(records, launcher, program)
    }

    /// A manager with job records in `records`, whose runner is `program`.
    ///
    /// # Errors
    /// This host has no name.
    pub fn with(
        records: Records,
        launcher: Option<PathBuf>,
        program: PathBuf,
    ) -> Result<Self, ManagerError> {
        let host = gethostname().map_err(|why| {
            ManagerError::System("cannot get the name of this host".to_owned(), why.into())
        })?;
        Ok(Self {
            records,
            launcher,
            program,
            host: host.to_string_lossy().into_owned(),
            ranks: Ranks::default(),
        })
    }

    /// The command line of a job. For a job that SDM is to debug, it starts a kept session in which the program waits.
    fn words(&self, job: &Submission) -> Result<Vec<String>, ManagerError> {
        if job.debug && job.debugger.is_empty() {
            let found = own_program("sdm", None);
            let sdm = found.ok_or_else(|| ManagerError::NoProgram("sdm".to_owned()))?;
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let session = format!("agent-{:x}", since.map_or(0, |since| since.as_nanos()));
            let launcher = self.launcher.as_ref();
            let launcher = launcher.map_or("local".into(), |path| path.to_string_lossy());
            let count = job.processes.to_string();
            let words = [&*sdm.to_string_lossy(), KEEPER, &session, "--", "run"];
            let options = ["-n", &count, "--launcher", &launcher, "--", &job.program];
            let words = words.iter().chain(&options).map(|word| (*word).to_owned());
            return Ok(words.chain(job.arguments.iter().cloned()).collect());
        }
        let mut words = Vec::new();
        if let Some(launcher) = &self.launcher {
            words.push(launcher.display().to_string());
            words.extend(job.options.iter().cloned());
            words.extend(["-n".to_owned(), job.processes.to_string()]);
        }
        words.extend(job.debugger.iter().cloned());
        words.push(job.program.clone());
        words.extend(job.arguments.iter().cloned());
        Ok(words)
    }

    /// Folder of the record of the job with this number.
    fn folder(&self, job: &str) -> Result<PathBuf, ManagerError> {
        let number = job
            .parse()
            .map_err(|_| ManagerError::job(job, format!("is not a job of {}", self.host)))?;
        Ok(self.records.place(number))
    }
}

impl Manager for Local {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        let mut node = Attributes::new();
        set(&mut node, id::NAME, &*self.host);
        set_state(&mut node, states::Node::Up);
        set(&mut node, id::NODE_NUMBER, "0");
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        set(&mut node, id::NODE_CPUS, cpus.to_string());
        let mut queue = Attributes::new();
        set(&mut queue, id::NAME, QUEUE);
        set_state(&mut queue, states::Queue::Normal);
        set(&mut queue, id::QUEUE_IS_DEFAULT, "true");
        let mut snapshot = Snapshot {
            machine: machine(&self.host, states::Machine::Up),
            queues: [(QUEUE.to_owned(), queue)].into(),
            ..Snapshot::default()
        };
        set(&mut snapshot.machine, id::NUM_NODES, "1");
        let numbers = self.records.numbers().map_err(ManagerError::system(
            "cannot use the folder for job records",
        ))?;
        let since = runner::now() - KEPT_S;
        for number in numbers {
            let folder = self.records.place(number);
            // A folder that is just being written, or is somebody's own, is no job.
            if let Ok(order) = record::order(&folder)
                && !self.records.prune(number, &order, &self.host, since)
            {
                let job = read_job(number, &folder, &order, &self.host, &mut self.ranks);
                snapshot.jobs.insert(number.to_string(), job);
            }
        }
        self.ranks.forget();
        let is_running = |job: &Job| job.state() == Some(states::Job::Running);
        let is_busy = snapshot.jobs.values().any(is_running);
        let used = match is_busy {
            true => NodeUse::UserShared,
            false => NodeUse::None,
        };
        set_state(&mut node, used);
        snapshot.nodes.insert(self.host.clone(), node);
        Ok(snapshot)
    }

    fn submit(&mut self, job: &Submission) -> Result<String, ManagerError> {
        let here = std::env::current_dir()
            .map_err(ManagerError::system("cannot get the working directory"))?;
        let directory = here.join(&job.directory);
        if !runner::is_folder(&directory) {
            return Err(SubmissionError::NoFolder(job.directory.clone()).into());
        }
        if let Some(other) = job.queue.as_deref().filter(|queue| *queue != QUEUE) {
            return Err(SubmissionError::NoQueue(other.to_owned(), QUEUE).into());
        }
        let program = job.program.rsplit('/').next().unwrap_or_default();
        let order = Order {
            host: self.host.clone(),
            submitted: runner::now(),
            name: if job.name.is_empty() {
                program.to_owned()
            } else {
                job.name.clone()
            },
            program: job.program.clone(),
            arguments: job.arguments.clone(),
            words: self.words(job)?,
            copies: if self.launcher.is_some() || job.debug && job.debugger.is_empty() {
                1
            } else {
                job.processes
            },
            processes: job.processes,
            is_launched: self.launcher.is_some(),
            needs: needs(job),
            environment: job.environment.clone(),
            directory,
        };
        let number = self.records.add(&order).map_err(ManagerError::system(
            "cannot write the record file of the job",
        ))?;
        let folder = self.records.place(number);
        runner::start(&self.program, &folder).map_err(ManagerError::system(
            "cannot start the process that runs the job",
        ))?;
        Ok(number.to_string())
    }

    fn terminate(&mut self, job: &str) -> Result<(), ManagerError> {
        let folder = self.folder(job)?;
        let order = record::order(&folder).map_err(ManagerError::system(format!("job {job}")))?;
        if order.host != self.host {
            return Err(ManagerError::job(job, format!("runs on {}", order.host)));
        }
        // The job's runner, which must end the job, may not have recorded its pid yet. While it starts the processes, it
        // would die of a signal, and what they have started would stay.
        let starts =
            |state: &State| state.started.is_empty() && state.error.is_none() && runs(state);
        let mut state = record::state(&folder).unwrap_or_default();
        while is_new(&order, &state) || starts(&state) {
            std::thread::sleep(RUNNER_LOOK);
            state = record::state(&folder).unwrap_or_default();
        }
        match runs(&state) {
            true => kill(Pid::from_raw(state.runner), Signal::SIGTERM)
                .map_err(|why| ManagerError::System(format!("job {job}"), why.into())),
            false => Err(ManagerError::job(job, "has ended")),
        }
    }

    fn look_at(&mut self, jobs: &[String]) -> Result<BTreeMap<String, Job>, ManagerError> {
        let mut found = BTreeMap::new();
        for name in jobs {
            let folder = self.folder(name)?;
            if let (Ok(order), Ok(number)) = (record::order(&folder), name.parse()) {
                let job = read_job(number, &folder, &order, &self.host, &mut self.ranks);
                found.insert(name.clone(), job);
            }
        }
        Ok(found)
    }

    fn forget(&mut self, job: &str) -> Result<(), ManagerError> {
        let folder = self.folder(job)?;
        fs::remove_dir_all(folder).map_err(ManagerError::system(format!("job {job}")))
    }

    fn change(&mut self, job: &str, _: &JobChange) -> Result<(), ManagerError> {
        let why = format!("is not pending: jobs on {} start at once", self.host);
        Err(ManagerError::job(job, why))
    }
}

/// The programs that must exist on this host besides the first word. None with options of the launcher, which may name
/// other hosts, folders or programs.
fn needs(job: &Submission) -> Vec<String> {
    match job.options.is_empty() {
        true => vec![job.program.clone()],
        false => Vec::new(),
    }
}

/// The state of a job, and true if its runner lives. A runner writes the final state before it ends. So if the runner
/// has ended, a state that may have been read before is read again.
fn last_state(folder: &Path) -> (State, bool) {
    let state = record::state(folder).unwrap_or_default();
    if state.runner == 0 || state.ended.is_some() {
        return (state, false);
    }
    match runs(&state) {
        true => (state, true),
        false => (record::state(folder).unwrap_or(state), false),
    }
}

/// True for a job that was submitted so recently that its runner may not have written a state yet.
fn is_new(order: &Order, state: &State) -> bool {
    state.runner == 0 && runner::now() - order.submitted < RUNNER_WAIT.as_secs() as i64
}

/// True if the runner of a job lives on this host.
fn runs(state: &State) -> bool {
    state.ended.is_none() && record::began(state.runner) == Some(state.runner_began)
}

/// The name of the kept session that holds the job for a debugger; `None` for another job.
fn session(order: &Order) -> Option<&str> {
    let mut words = order.words.iter().map(String::as_str).skip(1);
    (words.next() == Some(KEEPER)).then(|| words.next())?
}

fn set_program(attributes: &mut Attributes, order: &Order) {
    // Records of older versions have the words alone.
    let program = Some(&order.program).filter(|it| !it.is_empty());
    if let Some(program) = program.or(order.words.first()) {
        let (path, name) = program.rsplit_once('/').unwrap_or(("", program));
        set(attributes, id::EXEC_PATH, path);
        set(attributes, id::EXEC_NAME, name);
    }
    set_items(attributes, id::PROG_ARGS, &order.arguments);
    set_items(attributes, id::ENV, &order.environment);
}

fn read_job(number: u32, folder: &Path, order: &Order, host: &str, ranks: &mut Ranks) -> Job {
    let mut attributes = Attributes::new();
    set(&mut attributes, id::NAME, &*order.name);
    set(&mut attributes, id::SYSTEM_JOB_ID, number.to_string());
    set(
        &mut attributes,
        id::JOB_NUM_PROCS,
        order.processes.to_string(),
    );
    set(
        &mut attributes,
        id::SUBMIT_TIME,
        order.submitted.to_string(),
    );
    set(
        &mut attributes,
        id::USER_ID,
        files::user(nix::unistd::geteuid().as_raw()),
    );
    set(&mut attributes, id::JOB_NODES, &*order.host);
    set(
        &mut attributes,
        id::WORKING_DIR,
        order.directory.to_string_lossy(),
    );
    for (id, name) in [(id::OUTPUT_PATH, "out"), (id::ERROR_PATH, "err")] {
        set(&mut attributes, id, folder.join(name).to_string_lossy());
    }
    set_program(&mut attributes, order);
    let (state, is_there) = last_state(folder);
    let (now, why) = state_of(order, &state, is_there, host);
    set_state(&mut attributes, now);
    let starter = state.started.first();
    if let Some(starter) = starter.filter(|_| now == states::Job::Running && order.is_launched) {
        set(&mut attributes, id::STARTER_PID, starter.pid.to_string());
    }
    if let Some(session) = session(order).filter(|_| now == states::Job::Running) {
        let status = format!("debugged: sdm resume {session}");
        set(&mut attributes, id::JOB_STATUS, status);
        set(&mut attributes, id::DEBUG_SESSION, session);
    }
    set(&mut attributes, id::JOB_STATUS_MESSAGE, why);
    let ended = state.ended.map(|seconds| seconds.to_string());
    set(&mut attributes, id::END_TIME, ended.unwrap_or_default());
    if let Some(first) = state
        .started
        .iter()
        .find(|it| it.code != Some(0) && (it.code.is_some() || it.signal.is_some()))
    {
        set(
            &mut attributes,
            id::EXIT_CODE,
            first.code.unwrap_or(0).to_string(),
        );
        let signal = first.signal.as_deref().and_then(|name| name.parse().ok());
        let signal = signal.map(|signal: Signal| (signal as i32).to_string());
        set(&mut attributes, id::EXIT_SIGNAL, signal.unwrap_or_default());
    }
    let mut processes = processes(order, folder, &state, ranks);
    if session(order).is_none() {
        add_output(&mut processes, folder, order, &state);
    }
    // A runner that has ended, or is on another host, reports no ends.
    if matches!(now, states::Job::Unknown | states::Job::Error) {
        processes.iter_mut().for_each(Process::set_unknown);
    }
    Job {
        queue: QUEUE.to_owned(),
        attributes,
        processes,
    }
}

/// The state of a job, and the reason of that state.
fn state_of(order: &Order, state: &State, is_there: bool, host: &str) -> (states::Job, String) {
    use states::Job::{Error, Running, Started, Terminated, Unknown};
    match state {
        State {
            error: Some(error), ..
        } => (Error, error.clone()),
        State { ended: Some(_), .. } => (Terminated, String::new()),
        _ if order.host != host => {
            let why = "where this agent cannot see its processes";
            (Unknown, format!("the job runs on {}, {why}", order.host))
        }
        _ if is_new(order, state) => (Started, String::new()),
        _ if is_there && state.started.is_empty() => (Started, String::new()),
        _ if is_there => (Running, String::new()),
        _ => (Error, "the process that ran the job has ended".to_owned()),
    }
}

/// Adds the output to the attributes of the processes, until an hour after the job's end. Processes that a launcher has
/// started write to the same files: only a single one is known to have written them.
fn add_output(processes: &mut [Process], folder: &Path, order: &Order, state: &State) {
    let is_recent = |end| runner::now() - end < OUTPUT_SECONDS;
    let is_shared = order.copies == 1 && processes.len() > 1;
    if is_shared || !state.ended.is_none_or(is_recent) {
        return;
    }
    for (process, index) in processes.iter_mut().zip(0..) {
        let ids = [id::PROCESS_STDOUT, id::PROCESS_STDERR];
        for (id, path) in ids
            .into_iter()
            .zip(output::paths(folder, index, order.copies))
        {
            // A file that does not exist yet counts as empty.
            let said = last_of(&path).unwrap_or_default();
            set(&mut process.attributes, id, said);
        }
    }
}

/// The last [`OUTPUT_BYTES_MAX`] bytes of a file, as text.
fn last_of(path: &Path) -> io::Result<String> {
    let mut file = files::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The processes of a job. Those that a launcher or a kept session has to start are listed once their pids are known.
/// Such a process has its own state while the launcher runs, and then the launcher's end.
fn processes(order: &Order, folder: &Path, state: &State, ranks: &mut Ranks) -> Vec<Process> {
    let of = |started| process(started, &order.host);
    let is_launched =
        order.copies != order.processes || order.is_launched || session(order).is_some();
    let Some(launcher) = state.started.first().filter(|_| is_launched) else {
        return state.started.iter().map(of).collect();
    };
    let runs = launcher.code.is_none() && launcher.signal.is_none();
    let pids = ranks.of(folder, launcher.pid, runs, order.processes);
    let rank = |pid: &i32| {
        let mut process = of(launcher);
        process.attributes.remove(id::PROCESS_PID);
        if runs {
            set(&mut process.attributes, id::PROCESS_PID, pid.to_string());
            set_state(&mut process.attributes, living(*pid));
        }
        process
    };
    pids.unwrap_or_default().iter().map(rank).collect()
}

/// State of a process that has not ended: SUSPENDED while a debugger or a signal has stopped it.
fn living(pid: i32) -> states::Process {
    let state = proc::of(pid).state();
    match state.is_some_and(|it| it.is_stopped() || it.is_held()) {
        true => states::Process::Suspended,
        false => states::Process::Running,
    }
}

fn process(started: &Started, host: &str) -> Process {
    let mut attributes = Attributes::new();
    let state = match (&started.code, &started.signal) {
        (_, Some(_)) => states::Process::Signalled,
        (Some(_), None) => states::Process::Exited,
        (None, None) => living(started.pid),
    };
    set_state(&mut attributes, state);
    set(&mut attributes, id::PROCESS_PID, started.pid.to_string());
    let code = started.code.map(|code| code.to_string());
    set(
        &mut attributes,
        id::PROCESS_EXIT_CODE,
        code.unwrap_or_default(),
    );
    set(
        &mut attributes,
        id::PROCESS_SIGNAL_NAME,
        started.signal.clone().unwrap_or_default(),
    );
    Process {
        node: Some(host.to_owned()),
        attributes,
    }
}
