//! The resources of a machine: descriptors, processes, memory, and a directory for sessions.

use nix::libc::RLIM_INFINITY;
use nix::sys::resource::{Resource, getrlimit};
use sdm_system::files;
use sdm_system::resource_limits::{self, Bound};
use sdm_text::printable_name;

use crate::{Check, Finding};

/// Approximate number of descriptors that a server with a usual number of tasks opens.
const DESCRIPTORS_WANTED: u64 = 512;
/// Number of processes and threads of a small session: gdbs, programs and servers.
const PROCESSES_WANTED: u64 = 64;
/// Memory that a few gdbs need, in bytes. A gdb that has read a large program's symbols needs hundreds of MiB.
const MEMORY_WANTED: u64 = 512 << 20;

/// The findings about resources; `meminfo` is the text of `/proc/meminfo`.
pub(crate) fn findings(meminfo: &str) -> [Finding; 4] {
    [
        descriptors(getrlimit(Resource::RLIMIT_NOFILE).ok()),
        processes(&resource_limits::of_processes()),
        memory(meminfo, &resource_limits::of_memory()),
        runtime_folder(),
    ]
}

fn descriptors(limits: Option<(u64, u64)>) -> Finding {
    let check = Check::Descriptors;
    let Some((soft, hard)) = limits else {
        return Finding::unknown(
            check,
            "the limit of open files cannot be read",
            "see ulimit -n",
        );
    };
    let shown = match hard {
        RLIM_INFINITY => format!("open files: {soft}, no upper limit (ulimit -Hn)"),
        hard => format!("open files: {soft}, at most {hard} (ulimit -Hn)"),
    };
    // Servers raise the soft limit to the hard limit.
    if hard >= DESCRIPTORS_WANTED {
        return Finding::good(check, shown);
    }
    Finding::bad(
        check,
        format!("{shown}: an sdm-server with 32 ranks opens about {DESCRIPTORS_WANTED} files"),
        "ask root to raise the hard limit (nofile in /etc/security/limits.conf, LimitNOFILE of a service), or use a lower --tasks-per-server",
    )
}

fn processes(bounds: &[Bound]) -> Finding {
    let check = Check::Processes;
    let left = |bound: &Bound| bound.max.saturating_sub(bound.used);
    let Some(least) = bounds.iter().min_by_key(|it| left(it)) else {
        return Finding::unknown(
            check,
            "the limits on the number of processes cannot be read",
            "see ulimit -u",
        );
    };
    let (count, limit, maximum) = (left(least), &least.by, least.max);
    let shown = format!("{count} more processes can be started ({limit} is {maximum})");
    if count >= PROCESSES_WANTED {
        return Finding::good(check, shown);
    }
    let remedy = "end processes that are not needed, or ask root to raise the limit; the gdb of each rank has several threads";
    Finding::bad(check, shown, remedy)
}

fn memory(meminfo: &str, bounds: &[Bound]) -> Finding {
    let check = Check::Memory;
    let line = meminfo
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"));
    let kib: Option<u64> = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
    let machine = kib.map(|kib| (kib << 10, "this machine".to_owned()));
    let groups = bounds
        .iter()
        .map(|it| (it.max.saturating_sub(it.used), it.by.clone()));
    let Some((bytes, limited_by)) = groups.chain(machine).min() else {
        return Finding::unknown(check, "the available memory cannot be read", "see free -m");
    };
    let mib = bytes >> 20;
    let shown = format!("{mib} MiB of memory are available ({limited_by})");
    if bytes >= MEMORY_WANTED {
        return Finding::good(check, shown);
    }
    let remedy = "debug fewer ranks per host at once (--ranks), request more memory (Slurm: --mem), or use --force";
    Finding::bad(check, shown, remedy)
}

fn runtime_folder() -> Finding {
    let check = Check::RuntimeFolder;
    match files::runtime_folder() {
        Ok(folder) => {
            let folder = printable_name(folder);
            let passed_by = files::runtime_passed_by().map(|why| format!(" ({why})"));
            let passed_by = passed_by.unwrap_or_default();
            let text = format!("sessions create their sockets in {folder}{passed_by}");
            Finding::good(check, text)
        }
        Err(error) => Finding::bad(
            check,
            format!("sessions have no folder for their sockets: {error}"),
            "set XDG_RUNTIME_DIR to a folder that only you may enter (chmod 700)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn too_low_limit_is_reported_with_its_origin() {
        let check = |finding: &Finding, verdict, part: &str| {
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            assert!(
                finding.found.contains(part),
                "{finding:?} says nothing of {part}"
            );
        };
        check(&descriptors(Some((64, 64))), Verdict::Bad, "at most 64");
        check(
            &descriptors(Some((64, 4096))),
            Verdict::Good,
            "64, at most 4096",
        );
        check(&descriptors(None), Verdict::Unknown, "cannot be read");
        let bound = |by: &str, max, used| Bound {
            by: by.to_owned(),
            max,
            used,
        };
        let bounds = [
            bound("kernel.pid_max", 4_194_304, 900),
            bound("ulimit -u", 100, 90),
        ];
        check(
            &processes(&bounds),
            Verdict::Bad,
            "10 more processes can be started (ulimit -u",
        );
        check(&processes(&bounds[..1]), Verdict::Good, "kernel.pid_max");
        check(&processes(&[]), Verdict::Unknown, "cannot be read");
        let text = "MemTotal: 9999999 kB\nMemAvailable:    2097152 kB\n";
        check(&memory(text, &[]), Verdict::Good, "2048 MiB");
        let group = bound("/sys/fs/cgroup/a/memory.max", 1 << 30, (1 << 30) - 5);
        check(
            &memory(text, &[group]),
            Verdict::Bad,
            "0 MiB of memory are available (/sys/fs/cgroup/a",
        );
        check(&memory("", &[]), Verdict::Unknown, "cannot be read");
    }
}
