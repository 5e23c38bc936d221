//! Response time at a shell for a cluster with 10,000 jobs, and the bytes that the agent sends, compared with Slurm's
//! JSON.
//!
//! The agent is this program itself, under the name of a site's own manager; everything between it and the table on standard
//! output is real.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use sdm_benches::table::Table;
use sdm_runtime::ids::Ids;
use sdm_runtime::wire::agent::{Agent, Phase};
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::groups::Group;

/// Name of this program as an agent.
const AGENT: &str = "sdm-rm-many";
/// Environment variable with the number of jobs that the agent reports.
const JOBS: &str = "SDM_BENCH_JOBS";
/// Environment variable with the number of processes of the first job.
const PROCESSES: &str = "SDM_BENCH_PROCESSES";
/// Environment variable with the file to which the agent writes the number of bytes that it has sent.
const SENT: &str = "SDM_BENCH_SENT";
/// Output of `squeue --json` of Slurm 22.05.8 per job, in bytes: the mean of 60 jobs with 4 processes on 2 nodes.
const SLURM_JSON_BYTES: usize = 4_174;

/// A cluster of 10,000 jobs at a shell
#[derive(clap::Parser)]
struct Arguments {
    /// Number of jobs
    #[arg(long, default_value_t = 10_000)]
    jobs: u32,
    /// Number of processes of job 17, each with a pid of its own
    #[arg(long, default_value_t = 1_000_000)]
    processes: u32,
    /// Number of repetitions; the median counts
    #[arg(long, default_value_t = 21)]
    turns: usize,
}

fn main() -> Result<()> {
    let own = std::env::args_os().next().unwrap_or_default();
    if Path::new(&own)
        .file_name()
        .is_some_and(|name| name == AGENT)
    {
        return serve();
    }
    let arguments: Arguments = clap::Parser::parse();
    let sdm = Sdm::new(&arguments)?;
    let began = Instant::now();
    sdm.run("cluster add big many")?;
    let start = began.elapsed();
    let mut table = Table::new(
        "clusters",
        format!(
            "a cluster of {} jobs, one of them of {} processes, at a shell",
            arguments.jobs, arguments.processes
        ),
        &["command", "median, ms", "bytes printed"],
    );
    for line in [
        "--version",
        "jobs",
        "jobs --all --json",
        "queues",
        "ps 17",
        "show 17",
    ] {
        let mut times = Vec::new();
        let mut printed = 0;
        for _ in 0..arguments.turns {
            let began = Instant::now();
            printed = sdm.run(line)?.stdout.len();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).context("at least one turn")?;
        table.row(vec![
            format!("sdm {line}"),
            format!("{median:.1}"),
            printed.to_string(),
        ]);
    }
    sdm.run("cluster remove big")?;
    table.finish()?;
    let sent: usize = fs::read_to_string(sdm.sent())?.trim().parse()?;
    let each = sent as f64 / f64::from(arguments.jobs);
    println!(
        "the start, until all is known: {:.0} ms; the agent sends {each:.0} bytes a job, Slurm's JSON has {SLURM_JSON_BYTES} ({:.0} times)",
        start.as_secs_f64() * 1e3,
        SLURM_JSON_BYTES as f64 / each,
    );
    Ok(())
}

/// `sdm` with folders of its own.
struct Sdm {
    place: PathBuf,
    jobs: u32,
    processes: u32,
}

impl Sdm {
    fn new(arguments: &Arguments) -> Result<Self> {
        let place = std::env::temp_dir().join(format!("sdm-clusters-{}", std::process::id()));
        fs::create_dir(&place)?;
        symlink(std::env::current_exe()?, place.join(AGENT))?;
        fs::create_dir(place.join("run"))?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(place.join("run"), private)?;
        Ok(Self {
            place,
            jobs: arguments.jobs,
            processes: arguments.processes,
        })
    }

    fn sent(&self) -> PathBuf {
        self.place.join("sent")
    }

    fn run(&self, line: &str) -> Result<Output> {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new(std::env::current_exe()?.with_file_name("sdm"))
            .args(line.split(' '))
            .env("PATH", format!("{}:{path}", self.place.display()))
            .env("HOME", &self.place)
            .env("XDG_CONFIG_HOME", self.place.join("config"))
            .env("XDG_RUNTIME_DIR", self.place.join("run"))
            .env(JOBS, self.jobs.to_string())
            .env(PROCESSES, self.processes.to_string())
            .env(SENT, self.sent())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "sdm {line}: {said}");
        Ok(output)
    }
}

impl Drop for Sdm {
    fn drop(&mut self) {
        // Where it stays, a figure is not the worse for it.
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// An agent with one machine, a queue, and jobs. The environment gives the numbers of jobs and of the first job's
/// processes.
fn serve() -> Result<()> {
    let jobs: u32 = std::env::var(JOBS)?.parse()?;
    let processes: u32 = std::env::var(PROCESSES)?.parse()?;
    let mut agent = Agent::new(Vec::new());
    let mut told = false;
    let mut sent = 0;
    let mut buffer = [0; 4096];
    loop {
        while let Some((tid, _)) = agent.poll()? {
            agent.complete(tid, Ok(()));
        }
        if agent.phase() == Phase::Normal && !told {
            told = true;
            for event in elements(jobs) {
                agent.send(event)?;
                sent += flush(&mut agent)?;
            }
            fs::write(std::env::var(SENT)?, sent.to_string())?;
            for part in ranks(processes).chunks(100_000) {
                agent.send(Event::New(Kind::Process, "1000".to_owned(), part.to_vec()))?;
                flush(&mut agent)?;
            }
        }
        flush(&mut agent)?;
        if agent.phase() == Phase::Ended {
            break;
        }
        let count = std::io::stdin().lock().read(&mut buffer)?;
        if count == 0 {
            break;
        }
        agent.receive(&buffer[..count]);
    }
    Ok(())
}

fn flush(agent: &mut Agent) -> Result<usize> {
    let output = agent.take_output();
    let mut out = std::io::stdout().lock();
    out.write_all(&output)?;
    out.flush()?;
    Ok(output.len())
}

fn elements(jobs: u32) -> Vec<Event> {
    let group = |id: u32, attributes: &[(&str, &str)]| Group {
        ids: Ids::one(&id.to_string()),
        attributes: attributes
            .iter()
            .map(|(id, value)| ((*id).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let job = |index: u32| {
        let number = (700_000 + index).to_string();
        let submitted = (1_790_000_000 + index * 7).to_string();
        let attributes = [
            ("systemJobId", if index == 0 { "17" } else { &*number }),
            ("name", ["cfd", "train", "halo", "post"][index as usize % 4]),
            ("userId", ["ann", "bob", "eve"][index as usize % 3]),
            (
                "jobState",
                ["PENDING", "RUNNING", "TERMINATED"][index as usize % 3],
            ),
            (
                "jobStatus",
                ["PENDING", "RUNNING", "COMPLETED"][index as usize % 3],
            ),
            ("jobNumProcs", "128"),
            ("queueId", "3"),
            ("jobNodes", "n[17-24]"),
            ("workingDir", "/home/ann/work"),
            ("submitTime", &*submitted),
        ];
        group(1000 + index, &attributes)
    };
    let machine = group(2, &[("name", "big"), ("machineState", "UP")]);
    let queue = group(3, &[("name", "normal"), ("queueState", "NORMAL")]);
    let all: Vec<Group> = (0..jobs).map(job).collect();
    let mut events = vec![
        Event::New(Kind::Machine, "1".to_owned(), vec![machine]),
        Event::New(Kind::Queue, "1".to_owned(), vec![queue]),
    ];
    for part in all.chunks(1000) {
        events.push(Event::New(Kind::Job, "3".to_owned(), part.to_vec()));
    }
    events
}

/// The processes of the first job, with pids that look random.
fn ranks(count: u32) -> Vec<Group> {
    let rank = |index: u32| {
        let pid = index.wrapping_mul(2_654_435_761) >> 10;
        let attributes = [
            ("processState", "RUNNING".to_owned()),
            ("processIndex", index.to_string()),
            ("processPID", pid.to_string()),
        ];
        Group {
            ids: Ids::one(&(10_000_000 + index).to_string()),
            attributes: attributes.map(|(id, value)| (id.to_owned(), value)).into(),
        }
    };
    (0..count).map(rank).collect()
}
