//! The MPIR process table of a launcher, read by a gdb. gdb is used if the launcher's memory may not be copied (for
//! example because of a container's filter). It is also used if the launcher's symbols are in a separate file, which
//! gdb finds. The launcher is stopped while gdb reads, for a fraction of a second.

use std::io;
use std::time::Duration;

use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};

use super::JobProcess;
use super::PROCESSES_MAX;
use super::mpir::{self, Mpir};

/// Time limit for gdb to read the table of a large job.
const READ_WAIT: Duration = Duration::from_secs(60);

/// Commands for gdb. The last lines fail if the launcher is not Slurm's `srun`.
const SCRIPT: &str = r#"
set $count = *(int *)&MPIR_proctable_size
set $entry = *(char **)&MPIR_proctable
set $rank = 0
while $rank < $count
  printf "process\t%d\t%d\t%s\t%s\n", $rank, *(int *)($entry + 2 * sizeof(char *)), *(char **)$entry, *(char **)($entry + sizeof(char *))
  set $entry = $entry + 3 * sizeof(char *)
  set $rank = $rank + 1
end
printf "the end of %d\n", $count
printf "job\t%s\n", *(char **)&totalview_jobid
printf "step\t%s\n", *(char **)&totalview_stepid
"#;

/// gdb's output after the last entry of the table; it is missing if there is no table.
const END: &str = "the end of ";

/// Reads the table of process `pid`.
///
/// # Errors
/// No gdb is installed, gdb may not attach to the process, or the process has no table.
pub(super) fn read(pid: i32) -> io::Result<Mpir> {
    let mut gdb = programs::helper("gdb")?;
    files::shut_python(&mut gdb);
    gdb.args(["-nx", "-q", "-iex", "set debuginfod enabled off"]);
    gdb.args(["-iex", "set auto-load off", "-iex", "set width 0"]);
    gdb.args(["-iex", "set confirm off", "-iex", "set prompt"]);
    // gdb reads its input to the end, and detaches there.
    gdb.args(["-p", &pid.to_string()]);
    gdb.env("LC_ALL", "C");
    let bounds = Bounds {
        wait: READ_WAIT,
        lines_max: 2 * PROCESSES_MAX as usize,
    };
    let said = run_bounded::run(&mut gdb, SCRIPT.as_bytes(), bounds)?;
    let ends = |line: &String| {
        let (_, count) = line.split_once(END)?;
        count.parse::<u32>().ok()
    };
    if !said.lines.iter().any(|line| ends(line).is_some()) {
        let why = said
            .complaints
            .iter()
            .rev()
            .find(|line| !line.trim().is_empty());
        let why = why.map_or("no table", String::as_str);
        return Err(io::Error::other(format!("gdb: {why}")));
    }
    Ok(table(&said.lines))
}

fn table(lines: &[String]) -> Mpir {
    let mut mpir = Mpir::default();
    let (mut job, mut step) = (None, None);
    for line in lines {
        // The line may begin with gdb's prompts.
        let line = line.trim_start_matches(['>', ' ']);
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["process", rank, pid, host, program] => {
                if let (Ok(rank), Ok(pid)) = (rank.parse(), pid.parse()) {
                    mpir.table.push(JobProcess {
                        rank,
                        host: mpir::named(host.to_owned()),
                        program: program.to_owned(),
                        pid,
                    });
                }
            }
            ["job", id] if !id.is_empty() => job = Some(id),
            ["step", id] if !id.is_empty() => step = Some(id),
            _ => {}
        }
    }
    mpir.slurm = job.map(|job| match step {
        Some(step) => format!("{job}.{step}"),
        None => job.to_owned(),
    });
    mpir
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    const STARTER: &str = r#"
#include <stdio.h>
#include <unistd.h>
struct entry { char *host, *program; int pid; };
static struct entry entries[] = { { "n1", "/x/a b", 41 }, { "n2", "/x/c", 42 } };
struct entry *MPIR_proctable = entries;
int MPIR_proctable_size = 2;
char *totalview_jobid = "12", *totalview_stepid = "0";
int main(void) { puts("ready"); fflush(stdout); return getchar(); }
"#;

    #[test]
    fn gdb_and_memory_read_the_same_proctable() {
        let name = format!("sdm-starter-{}", std::process::id());
        let program = std::env::temp_dir().join(name);
        let source = program.with_extension("c");
        std::fs::write(&source, STARTER).unwrap();
        let compiled = Command::new("cc")
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status();
        assert!(compiled.unwrap().success());
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let pid = child.id().cast_signed();
        let own = mpir::read(pid).unwrap().unwrap();
        let by_gdb = read(pid).unwrap();
        assert_eq!((&own.table, &own.slurm), (&by_gdb.table, &by_gdb.slurm));
        assert_eq!(by_gdb.slurm.as_deref(), Some("12.0"));
        assert_eq!(by_gdb.table[0].program, "/x/a b");
        drop(child.stdin.take());
        child.wait().unwrap();
        let error = read(pid).unwrap_err().to_string();
        assert!(error.starts_with("gdb: "), "{error}");
        for file in [program, source] {
            let _ = std::fs::remove_file(file);
        }
    }
}
