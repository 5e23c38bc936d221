//! Waiting times of a GridRPC client: for the reply to JOB_CREATE, the job's number, and the executable itself.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use sdm_benches::table::Table;

/// The file in which a job writes down when it runs.
const STAMP: &str = "stamp";

/// The invoke server beside its client
#[derive(clap::Parser)]
struct Arguments {
    /// The types of the server, each a resource manager
    #[arg(long, default_values_t = ["SDMlocal".to_owned()])]
    server: Vec<String>,
    /// Number of jobs, one after the other; the median counts
    #[arg(long, default_value_t = 51)]
    jobs: u32,
}

/// Waiting times of all jobs: for the reply and for the job's number in microseconds, for the executable's start and
/// for the report of its end in milliseconds.
type Columns = [Vec<f64>; 4];

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let place = std::env::temp_dir().join(format!("sdm-invoke-{}", std::process::id()));
    fs::create_dir(&place)?;
    let head = [
        "server",
        "reply, us",
        "number, us",
        "executable runs, ms",
        "its end is told, ms",
    ];
    let title = "from the last line of JOB_CREATE on: medians";
    let mut table = Table::new("invoke", title, &head);
    for server in &arguments.server {
        let columns = serve(server, arguments.jobs, &place)?;
        let medians = columns.map(|mut column| {
            column.sort_by(f64::total_cmp);
            column[column.len() / 2]
        });
        table.row(vec![
            server.clone(),
            format!("{:.0}", medians[0]),
            format!("{:.0}", medians[1]),
            format!("{:.1}", medians[2]),
            format!("{:.1}", medians[3]),
        ]);
    }
    fs::remove_dir_all(&place)?;
    table.finish()
}

/// Jobs of one server, one after the other.
fn serve(server: &str, jobs: u32, place: &Path) -> Result<Columns> {
    let path = place.join(format!("ng_invoke_server.{server}"));
    symlink(std::env::current_exe()?.with_file_name("sdm-agent"), &path)?;
    let mut command = Command::new(&path);
    command.env("XDG_STATE_HOME", place).current_dir(place);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().context("piped")?;
    let mut replies = BufReader::new(child.stdout.take().context("piped")?);
    let mut notifies = BufReader::new(child.stderr.take().context("piped")?);
    let mut columns = Columns::default();
    let mut line = String::new();
    for job in 1..=jobs {
        input.write_all(request(job, place).as_bytes())?;
        let (began, clock) = (
            Instant::now(),
            SystemTime::now().duration_since(UNIX_EPOCH)?,
        );
        line.clear();
        replies.read_line(&mut line)?;
        ensure!(line == "S\r\n", "{line}");
        columns[0].push(began.elapsed().as_secs_f64() * 1e6);
        line.clear();
        notifies.read_line(&mut line)?;
        let id = line
            .split(' ')
            .nth(3)
            .context("a number")?
            .trim()
            .to_owned();
        columns[1].push(began.elapsed().as_secs_f64() * 1e6);
        while !line.contains("DONE") {
            ensure!(!line.contains("FAILED"), "{line}");
            line.clear();
            notifies.read_line(&mut line)?;
        }
        columns[3].push(began.elapsed().as_secs_f64() * 1e3);
        let text = fs::read_to_string(place.join(STAMP))?;
        let at = Duration::from_nanos(text.trim().parse()?);
        columns[2].push(at.saturating_sub(clock).as_secs_f64() * 1e3);
        input.write_all(format!("JOB_DESTROY {id}\r\n").as_bytes())?;
        line.clear();
        replies.read_line(&mut line)?;
    }
    input.write_all(b"EXIT\r\n")?;
    child.wait()?;
    Ok(columns)
}

/// The JOB_CREATE request of a job that writes the time of its start into the file [`STAMP`].
fn request(job: u32, place: &Path) -> String {
    let place = place.display();
    [
        &format!("JOB_CREATE {job}"),
        "hostname localhost",
        "port 0",
        "client_name c",
        "executable_path /bin/sh",
        "backend NORMAL",
        "count 1",
        "staging false",
        "argument -c",
        &format!("argument date +%s%N >{STAMP}"),
        &format!("work_directory {place}"),
        "redirect_enable false",
        "status_polling 0",
        "refresh_credential 0",
        "JOB_CREATE_END",
        "",
    ]
    .join("\r\n")
}
