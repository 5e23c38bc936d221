//! The debugger's main operations with real gdb, compared with plain gdb processes in turns: alone, and in a job of
//! Open MPI's that runs to the end of `MPI_Init`.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sdm_benches::launched::{BEHIND_INIT, By, Job};
use sdm_benches::plain::PlainGdbs;
use sdm_benches::processes::{cpu, cpu_with_threads, descendants, memory, named, server_pids};
use sdm_benches::program;
use sdm_benches::spread::{Spread, millis};
use sdm_benches::table::Table;
use sdm_benches::tree::Tree;
use sdm_debug::command::{StartSpec, StepKind};
use sdm_debug::event::Phase;
use sdm_debug::{Command, Event};

/// Start to `main`, evaluate, and `next` with real gdb, and the same with plain gdb processes.
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of tasks
    #[arg(long, value_delimiter = ',', default_value = "16,32,64")]
    sizes: Vec<u32>,
    /// Number of tasks of each server
    #[arg(long, value_delimiter = ',', default_value = "1,32", value_parser = clap::value_parser!(u32).range(1..))]
    tasks_per_server: Vec<u32>,
    /// Number of starts of each
    #[arg(long, default_value_t = 3)]
    starts: usize,
    /// Number of evaluations and steps of each
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Only the program without MPI
    #[arg(long)]
    no_mpi: bool,
}

/// The program that is linked with Open MPI.
const MPI: &str = "C with Open MPI";
/// With more ranks than this, the start of a job is measured only once: ranks that wait in `MPI_Init` spin.
const SPINNING_MANY: u32 = 16;
/// With more ranks than this, the start of a job is not measured at all: with a plain gdb for each rank it takes
/// minutes.
const SPINNING_MAX: u32 = 32;
/// Number of rounds of the tree, and then of the plain gdbs, before the tree has its next turn.
const TURN: usize = 5;

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let programs = programs(&arguments)?;
    let title = "Real gdb, one per task, ms, beside plain gdb processes in turns";
    let head = [
        "program",
        "tasks",
        "per server",
        "what",
        "count",
        "min",
        "median",
        "floor min",
        "floor median",
        "ratio of medians",
        "cpu/task",
        "floor cpu/task",
    ];
    let mut table = Table::new("gdb", title, &head);
    let title = "Where the start goes: ms until the last task was there";
    let head = [
        "program",
        "tasks",
        "per server",
        "servers",
        "gdb",
        "symbols",
        "running",
        "at main",
        "PSS of sdm, kB",
        "PSS of gdb, kB",
    ];
    let mut phases = Table::new("gdb-start", title, &head);
    let title = "Where a command goes: processor time of each task's part, us";
    let head = [
        "program",
        "tasks",
        "per server",
        "what",
        "gdb",
        "server and master",
        "floor's gdb",
    ];
    let mut shares = Table::new("gdb-shares", title, &head);
    for (name, path) in &programs {
        let numbers = arguments.sizes.iter().flat_map(|tasks| {
            let per_server = arguments.tasks_per_server.iter();
            per_server.map(move |per_server| (*tasks, *per_server))
        });
        for (tasks, per_server) in numbers {
            let mut bench = Bench {
                arguments: &arguments,
                name,
                path,
                tasks,
                per_server,
            };
            bench
                .run([&mut table, &mut phases, &mut shares])
                .with_context(|| format!("{tasks} tasks of {name}, {per_server} per server"))?;
        }
    }
    table.finish()?;
    phases.finish()?;
    shares.finish()
}

/// The programs that are debugged, by their names in the tables.
fn programs(arguments: &Arguments) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut programs = vec![("C", program::build("rounds", "rounds.c", "cc", &[])?)];
    if !arguments.no_mpi {
        let built = program::build("rounds-mpi", "rounds.c", "mpicc.openmpi", &["-DWITH_MPI"]);
        match built {
            Ok(path) => programs.push((MPI, path)),
            Err(error) => println!("without the MPI program: {error:#}\n"),
        }
    }
    Ok(programs)
}

/// Pids of the processes whose processor time is measured: the tree's gdbs, its servers and master, and the plain gdbs.
struct Parties {
    gdbs: Vec<u32>,
    servers: Vec<u32>,
    plain: Vec<u32>,
}

impl Parties {
    /// The pids of the tree's processes; to be called before the plain gdbs are started.
    fn of_tree() -> Self {
        let all = descendants();
        let mut servers = server_pids();
        servers.extend(named(&all, "sdm-master"));
        Self {
            gdbs: named(&all, "gdb"),
            servers,
            plain: Vec::new(),
        }
    }

    /// Adds the plain gdbs: all gdbs that have been started since [`Self::of_tree`].
    fn with_plain(self) -> Self {
        let mut plain = named(&descendants(), "gdb");
        plain.retain(|pid| !self.gdbs.contains(pid));
        Self { plain, ..self }
    }

    fn spent(&self) -> [Duration; 3] {
        [&self.gdbs, &self.servers, &self.plain].map(|pids| cpu(pids))
    }
}

/// The benchmark of one program at one size.
struct Bench<'a> {
    arguments: &'a Arguments,
    name: &'a str,
    path: &'a Path,
    tasks: u32,
    /// Number of tasks of each server.
    per_server: u32,
}

/// Times from the beginning of one start to the end of each phase.
#[derive(Clone, Default)]
struct Start {
    servers: Duration,
    phases: BTreeMap<&'static str, Duration>,
    main: Duration,
    /// Memory at `main` in kB: of the servers and the master, and of the gdbs. Shared pages are divided by the number
    /// of their users.
    pss: [u64; 2],
}

impl Bench<'_> {
    fn run(&mut self, [table, phases, shares]: [&mut Table; 3]) -> Result<()> {
        let mut starts: Vec<Start> = Vec::new();
        let mut plain = Vec::new();
        let mut cpu = [Duration::ZERO; 2];
        for _ in 0..self.arguments.starts {
            let (start, tree) = self.start()?;
            starts.push(start);
            cpu[0] += cpu_with_threads(&descendants());
            tree.close()?;
            let began = Instant::now();
            let gdbs = PlainGdbs::start(self.tasks, self.path)?;
            plain.push(began.elapsed());
            cpu[1] += cpu_with_threads(&descendants());
            drop(gdbs);
        }
        let ours = starts.iter().map(|start| start.main).collect();
        let each = f64::from(self.tasks) * self.arguments.starts as f64;
        let cpu = cpu.map(|sum| millis(sum.div_f64(each)));
        self.row(table, "start to main", ours, plain, cpu);
        // Servers of a job are of one task each.
        if self.name == MPI && self.tasks <= SPINNING_MAX && self.per_server == 1 {
            self.behind_init(table)?;
        }
        starts.sort_by_key(|start| start.main);
        phases.row(self.phase_row(&starts[starts.len() / 2]));
        self.rounds(table, shares)
    }

    /// Measures the time from the launcher's start to a breakpoint after `MPI_Init` on every rank.
    fn behind_init(&self, table: &mut Table) -> Result<()> {
        let job = Job {
            program: self.path,
            argument: "init",
            place: BEHIND_INIT,
            ranks: self.tasks,
        };
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        // Spinning ranks share cores: with twice as many ranks a start takes more than three times as long.
        let starts = if self.tasks > SPINNING_MANY {
            1
        } else {
            self.arguments.starts
        };
        for _ in 0..starts {
            ours.push(job.reach(By::Sdm)?);
            plain.push(job.reach(By::PlainGdbs)?);
        }
        self.row(
            table,
            "mpirun to behind MPI_Init",
            ours,
            plain,
            Default::default(),
        );
        Ok(())
    }

    fn start(&self) -> Result<(Start, Tree)> {
        let began = Instant::now();
        let mut tree = Tree::with_gdb(self.tasks, self.per_server)?;
        let mut start = Start {
            servers: began.elapsed(),
            ..Start::default()
        };
        let spec = StartSpec {
            program: self.path.as_os_str().as_bytes().to_vec(),
            ..StartSpec::default()
        };
        tree.run_watching(&Command::Start(spec), |events| {
            for (_, event) in events {
                if let Event::Progress(phase) = event {
                    let name = match phase {
                        Phase::Gdb => "gdb",
                        Phase::Symbols => "symbols",
                        Phase::Running => "running",
                    };
                    start.phases.insert(name, began.elapsed());
                }
            }
        })?;
        start.main = began.elapsed();
        let parties = Parties::of_tree();
        start.pss = [&parties.servers, &parties.gdbs].map(|pids| memory(pids).pss);
        Ok((start, tree))
    }

    /// Evaluates, then steps. The tree and the plain gdbs take turns.
    fn rounds(&self, table: &mut Table, shares: &mut Table) -> Result<()> {
        let (_, mut tree) = self.start()?;
        let parties = Parties::of_tree();
        let mut gdbs = PlainGdbs::start(self.tasks, self.path)?;
        let parties = parties.with_plain();
        let evaluate = Command::Evaluate {
            expression: "sum".to_owned(),
        };
        let next = Command::Step {
            kind: StepKind::Over,
            count: 1,
        };
        let rows = [("evaluate on all", &evaluate), ("next on all", &next)];
        for (what, command) in rows {
            let mut took: [Vec<Duration>; 2] = Default::default();
            let mut spent = [Duration::ZERO; 3];
            while took[0].len() < self.arguments.rounds {
                let before = parties.spent();
                for _ in 0..TURN {
                    let began = Instant::now();
                    tree.run(command)?;
                    took[0].push(began.elapsed());
                }
                for _ in 0..TURN {
                    let began = Instant::now();
                    match command {
                        Command::Step { .. } => gdbs.run("-exec-next")?,
                        _ => gdbs.query("-data-evaluate-expression sum")?,
                    }
                    took[1].push(began.elapsed());
                }
                let after = parties.spent();
                for (sum, (after, before)) in spent.iter_mut().zip(after.into_iter().zip(before)) {
                    *sum += after.saturating_sub(before);
                }
            }
            let each = took[0].len() as f64 * f64::from(self.tasks);
            let mut row = self.head(Some(what));
            row.extend(spent.map(|sum| format!("{:.0}", sum.as_secs_f64() * 1e6 / each)));
            shares.row(row);
            let [ours, plain] = took;
            self.row(table, what, ours, plain, Default::default());
        }
        drop(gdbs);
        tree.close()
    }

    fn row(
        &self,
        table: &mut Table,
        what: &str,
        ours: Vec<Duration>,
        plain: Vec<Duration>,
        cpu: [String; 2],
    ) {
        let count = ours.len();
        let (ours, plain) = (Spread::of(ours), Spread::of(plain));
        let mut row = self.head(Some(what));
        row.push(count.to_string());
        row.extend([ours.min, ours.median, plain.min, plain.median].map(millis));
        row.push(format!("{:.2}", ours.ratio(&plain)));
        row.extend(cpu);
        table.row(row);
    }

    fn phase_row(&self, start: &Start) -> Vec<String> {
        let mut row = self.head(None);
        row.push(millis(start.servers));
        let phase = |name| {
            start
                .phases
                .get(name)
                .copied()
                .map_or_else(|| "-".to_owned(), millis)
        };
        row.extend(["gdb", "symbols", "running"].map(phase));
        row.push(millis(start.main));
        row.extend(start.pss.map(|kilobytes| kilobytes.to_string()));
        row
    }

    /// First cells of every row.
    fn head(&self, what: Option<&str>) -> Vec<String> {
        let mut head = vec![
            self.name.to_owned(),
            self.tasks.to_string(),
            self.per_server.to_string(),
        ];
        head.extend(what.map(ToOwned::to_owned));
        head
    }
}
