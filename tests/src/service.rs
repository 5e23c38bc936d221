//! Services that tests share: hosts in network namespaces, a Slurm and a Grid Engine, each started once in a run of
//! tests.
//!
//! The first test that needs a service starts its *keeper* (`supervise --keep`). The keeper is the ancestor of all
//! processes of the service, and ends the service when the run of tests is over. One test at a time uses a service.
//! After each test the service must be in its initial state: a test that leaves anything there fails.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

use crate::leftovers::{GONE_WITHIN, descendants_living, named};
use crate::{binaries, parts, processes};

/// The kernel's name of a keeper's process.
pub const KEEPER: &CStr = c"sdm-keeper";
/// Environment variable with the process whose end ends the services: `scripts/test`, or another runner of the tests.
pub const RUN_VARIABLE: &str = "SDM_TEST_RUN";
/// Environment variable in which the test runner passes the test's group.
const GROUP_VARIABLE: &str = "NEXTEST_TEST_GROUP";

/// A service: its name is that of the group of its tests in `.config/nextest.toml`.
#[derive(Debug, PartialEq, Eq)]
pub struct Service {
    name: &'static str,
    script: &'static str,
    tools: &'static [&'static str],
    /// Names of the service's own processes that start and end by themselves.
    daemons: &'static [&'static str],
}

/// All services.
const SERVICES: [Service; 3] = [
    Service {
        name: "hosts",
        script: "netns-hosts",
        tools: &["ip", "ssh", "/usr/sbin/sshd"],
        daemons: &[],
    },
    Service {
        name: "slurm",
        script: "slurm",
        tools: &[
            "srun",
            "/usr/sbin/slurmd",
            "/usr/sbin/slurmctld",
            "/usr/sbin/munged",
        ],
        daemons: &["slurmctld", "slurmscriptd", "slurmd"],
    },
    Service {
        name: "gridengine",
        script: "gridengine",
        tools: &["qstat", "/usr/sbin/sge_qmaster", "/usr/sbin/sge_execd"],
        daemons: &["sge_execd"],
    },
];

impl Service {
    /// The service of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        SERVICES.iter().find(|it| it.name == name)
    }

    /// A command that runs the service's script with a verb.
    #[must_use]
    pub fn script(&self, verb: &str) -> Command {
        let mut command = Command::new(parts::script(self.script));
        command.arg(verb);
        command
    }

    /// The file that the keeper of the service holds locked while it lives. It has the pids of the keeper, of its
    /// owner, and of the service's first processes.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        Path::new("/run").join(format!("sdm-{}.keeper", self.name))
    }

    /// The socket at which a test asks the keeper to reset the service.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.record().with_extension("socket")
    }

    /// Makes the keeper reset the service; returns whether that worked.
    fn renew(&self) -> bool {
        let mut said = String::new();
        let asked = UnixStream::connect(self.socket());
        let told = asked.and_then(|mut keeper| keeper.read_to_string(&mut said));
        told.is_ok() && said.is_empty()
    }

    /// True if the service can run here. If not, the reason is printed, and `scripts/test` counts it.
    fn is_possible(&self) -> bool {
        let name = self.script;
        if let Some(tool) = self.tools.iter().find(|tool| !is_there(tool)) {
            println!("SKIP: {name}: no {tool}: run scripts/install-deps");
            return false;
        }
        if !nix::unistd::geteuid().is_root() {
            println!("SKIP: {name}: this is not root");
            return false;
        }
        true
    }
}

/// True if this test may use a service: it is in the group of one, or the test runner gives no groups.
#[must_use]
pub fn may_be_used() -> bool {
    let group = std::env::var(GROUP_VARIABLE);
    group.map_or(true, |group| Service::of(&group).is_some())
}

/// True if this test is in the group `name`; `unknown` where the test runner gives no groups.
#[must_use]
pub fn is_in_group(name: &str, unknown: bool) -> bool {
    std::env::var(GROUP_VARIABLE).map_or(unknown, |group| group == name)
}

/// The processes below `root` that are neither keepers nor below one.
#[must_use]
pub fn descendants_but_services(root: u32) -> Vec<u32> {
    let mut all = descendants_living(root);
    let is_keeper = |pid: &u32| processes::name(*pid).as_bytes() == KEEPER.to_bytes();
    let keepers: Vec<u32> = all.iter().copied().filter(is_keeper).collect();
    let kept: Vec<u32> = keepers
        .iter()
        .flat_map(|it| descendants_living(*it))
        .collect();
    all.retain(|pid| !keepers.contains(pid) && !kept.contains(pid));
    all
}

/// A service for the exclusive use of one test, by a lock.
pub struct Part {
    service: &'static Service,
    /// True if the service ends after this test.
    ends: bool,
    _lock: Flock<File>,
}

impl Part {
    /// Four hosts, 10.77.0.1 to 10.77.0.4, called h1 to h4; see `scripts/netns-hosts`.
    #[must_use]
    pub fn hosts() -> Option<Self> {
        Self::take("hosts")
    }

    /// A Slurm with the nodes n1 to n4, whose next job is 1; see `scripts/slurm`.
    #[must_use]
    pub fn slurm() -> Option<Self> {
        Self::take("slurm")
    }

    /// A Grid Engine in namespaces of its own; see `scripts/gridengine`.
    #[must_use]
    pub fn gridengine() -> Option<Self> {
        Self::take("gridengine")
    }

    /// The same for a test that damages the service: it is ended after the test, and the next test starts another.
    #[must_use]
    pub fn to_be_harmed(mut self) -> Self {
        self.ends = true;
        self
    }

    /// Takes the service; `None` if this machine cannot run it: the reason is printed, and `scripts/test` counts it.
    ///
    /// # Panics
    /// If the service should start and does not; where the test is not in the service's group.
    fn take(name: &str) -> Option<Self> {
        let service = Service::of(name).expect("one of the services");
        assert!(
            is_in_group(name, true),
            "this test uses {name}: .config/nextest.toml must have it in the group `{name}`"
        );
        if !service.is_possible() {
            return None;
        }
        let part = Self {
            service,
            ends: false,
            _lock: lock(format!("/run/sdm-{name}.lock")),
        };
        let is_as_new = match Kept::of(service) {
            // It may have been ended from outside.
            Some(kept) => kept.owner == owner() && service.renew(),
            None => false,
        };
        if !is_as_new {
            end(service);
            start(service);
        }
        Some(part)
    }

    /// The pid of the service's keeper; `None` if it has ended. It is the same in all tests of a run.
    #[must_use]
    pub fn keeper(&self) -> Option<u32> {
        Kept::of(self.service).map(|kept| kept.keeper)
    }

    /// Differences from the state before the test: those that the service reports, and foreign processes.
    ///
    /// # Panics
    /// If its script cannot be run.
    #[must_use]
    pub fn left(&self) -> Vec<String> {
        let Some(kept) = Kept::of(self.service) else {
            return vec!["its keeper has ended".to_owned()];
        };
        let known = self
            .service
            .script("left")
            .output()
            .expect("a script of ours");
        // A failing script prints the reason.
        let known = [known.stdout, known.stderr].concat();
        let known = String::from_utf8_lossy(&known);
        let is_stray = |pid: &u32| {
            let daemons = self.service.daemons;
            !kept.first.contains(pid) && !daemons.contains(&&*processes::name(*pid))
        };
        let strays = descendants_living(kept.keeper).into_iter().filter(is_stray);
        let known = known.lines().map(str::to_owned);
        known.chain(strays.map(named)).collect()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // A test that failed may have left anything.
        if self.ends || std::thread::panicking() {
            return end(self.service);
        }
        // Processes that end with the test need some time.
        let deadline = Instant::now() + GONE_WITHIN;
        let mut left = self.left();
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
            left = self.left();
        }
        if left.is_empty() {
            return;
        }
        end(self.service);
        panic!(
            "the test has left behind in {}: {left:#?}",
            self.service.name
        );
    }
}

/// The pids of a running service: its keeper, its owner, and its first processes.
struct Kept {
    keeper: u32,
    owner: u32,
    first: Vec<u32>,
}

impl Kept {
    /// The record of a service's running keeper; `None` if none runs.
    fn of(service: &Service) -> Option<Self> {
        let file = File::open(service.record()).ok()?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Err((_, Errno::EWOULDBLOCK)) => {}
            // No keeper holds the lock.
            _ => return None,
        }
        let text = fs::read_to_string(service.record()).ok()?;
        let mut numbers = text.split_whitespace().map_while(|it| it.parse().ok());
        Some(Self {
            keeper: numbers.next()?,
            owner: numbers.next()?,
            first: numbers.collect(),
        })
    }
}

/// The process whose end ends the services.
fn owner() -> u32 {
    let told = std::env::var(RUN_VARIABLE).ok();
    let told = told.and_then(|pid| pid.parse().ok());
    told.unwrap_or_else(|| getppid().as_raw().cast_unsigned())
}

/// Starts a service's keeper, and waits until the service is up.
#[expect(clippy::zombie_processes, reason = "the keeper outlives this process")]
fn start(service: &Service) {
    let log = Path::new("/run").join(format!("sdm-{}.log", service.name));
    let mut keeper = Command::new(binaries::folder().join("supervise"));
    keeper.args(["--keep", service.name, &owner().to_string()]);
    keeper.current_dir("/").stdin(Stdio::null());
    keeper.stdout(Stdio::piped());
    keeper.stderr(File::create(&log).expect("a log"));
    let mut keeper = keeper.spawn().expect("supervise runs");
    let said = keeper.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).expect("text");
    let why = || fs::read_to_string(&log).unwrap_or_default();
    assert_eq!(line, "up\n", "{} does not start: {}", service.name, why());
}

/// Ends a service if it runs, and waits until its keeper has ended.
fn end(service: &Service) {
    if let Some(kept) = Kept::of(service) {
        let _ = kill(Pid::from_raw(kept.keeper.cast_signed()), Signal::SIGTERM);
        // The keeper releases the lock last.
        drop(lock(service.record()));
    }
}

fn lock(path: impl AsRef<Path>) -> Flock<File> {
    let path = path.as_ref();
    let file = File::options().append(true).create(true).open(path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match Flock::lock(file, FlockArg::LockExclusive) {
        Ok(lock) => lock,
        Err((_, error)) => panic!("lock {}: {error}", path.display()),
    }
}

fn is_there(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    Path::new(tool).is_absolute() && Path::new(tool).exists()
        || folders.any(|folder| folder.join(tool).is_file())
}
