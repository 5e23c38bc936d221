//! Throughput of programs' output at the front-end: through real gdb and the tree with its credit and
//! encryption, compared with the same programs on ptys that one loop reads.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_benches::program;
use sdm_benches::table::Table;
use sdm_benches::tree::Tree;
use sdm_debug::Command;
use sdm_debug::command::StartSpec;

/// Output throughput.
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of tasks
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    sizes: Vec<u32>,
    /// Megabytes that all tasks together print
    #[arg(long, default_value_t = 64)]
    megabytes: u32,
    /// Number of repetitions
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let program = program::build("lines", "lines.c", "cc", &["-O2"])?;
    let title = "Program output at the front-end, MB/s of all tasks together, median";
    let head = [
        "tasks",
        "MB each",
        "MB/s",
        "ptys read by one loop, MB/s",
        "ratio",
    ];
    let mut table = Table::new("output", title, &head);
    for &tasks in &arguments.sizes {
        let each = (arguments.megabytes / tasks).max(1);
        let wanted = u64::from(tasks) * u64::from(each) * 1_000_000;
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..arguments.rounds {
            rates[0].push(ours(&program, tasks, each, wanted)?);
            rates[1].push(plain(&program, tasks, each, wanted)?);
        }
        let [ours, plain] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        let mut row = vec![tasks.to_string(), each.to_string()];
        row.extend([ours, plain].map(|rate| format!("{rate:.0}")));
        row.push(format!("{:.2}", ours / plain));
        table.row(row);
    }
    table.finish()
}

/// Throughput in megabytes a second, from `continue` at `main` to the end of the last task's output.
fn ours(program: &Path, tasks: u32, megabytes: u32, wanted: u64) -> Result<f64> {
    let mut tree = Tree::with_gdb(tasks, 1)?;
    tree.run(&Command::Start(StartSpec {
        program: program.as_os_str().as_bytes().to_vec(),
        args: vec![megabytes.to_string().into_bytes()],
        ..StartSpec::default()
    }))?;
    let began = Instant::now();
    let bytes = tree.read_output()?;
    let took = began.elapsed().as_secs_f64();
    tree.close()?;
    ensure!(bytes == wanted, "{bytes} bytes came of {wanted}");
    Ok(bytes as f64 / 1e6 / took)
}

fn plain(program: &Path, tasks: u32, megabytes: u32, wanted: u64) -> Result<f64> {
    let began = Instant::now();
    let mut children = Vec::new();
    let mut ptys: Vec<File> = Vec::new();
    for _ in 0..tasks {
        let (child, pty) = on_a_pty(program, megabytes)?;
        children.push(child);
        ptys.push(pty);
    }
    let mut bytes = 0;
    let mut buffer = vec![0; 64 << 10];
    while !ptys.is_empty() {
        let mut fds: Vec<PollFd> = ptys
            .iter()
            .map(|pty| PollFd::new(pty.as_fd(), PollFlags::POLLIN))
            .collect();
        poll(&mut fds, PollTimeout::NONE).context("wait for output")?;
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        let mut at = 0;
        for ready in ready {
            // A pty whose program has ended gives an error.
            let ended = ready
                && match ptys[at].read(&mut buffer) {
                    Ok(count) if count > 0 => {
                        bytes += count as u64;
                        false
                    }
                    _ => true,
                };
            if ended {
                ptys.remove(at);
            } else {
                at += 1;
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    for mut child in children {
        child.wait()?;
    }
    ensure!(bytes == wanted, "{bytes} bytes came of {wanted}");
    Ok(bytes as f64 / 1e6 / took)
}

fn on_a_pty(program: &Path, megabytes: u32) -> Result<(Child, File)> {
    use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
    let pty = nix::pty::openpty(None, None).context("open a pty")?;
    let mut modes = tcgetattr(&pty.slave).context("ask the pty")?;
    cfmakeraw(&mut modes);
    tcsetattr(&pty.slave, SetArg::TCSANOW, &modes).context("set the pty")?;
    let slave: OwnedFd = pty.slave;
    let child = Process::new(program)
        .arg(megabytes.to_string())
        .stdout(Stdio::from(slave))
        .spawn()
        .with_context(|| format!("start {}", program.display()))?;
    Ok((child, File::from(pty.master)))
}
