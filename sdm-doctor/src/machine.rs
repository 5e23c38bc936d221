//! The rights that a machine's kernel grants.

use std::fs;
use std::path::PathBuf;

use sdm_system::proc;
use sdm_text::printable;

use crate::{Check, Finding, Verdict};

/// The capability to trace other processes, as a bit number of `CapEff` in `/proc/PID/status`.
const CAP_SYS_PTRACE: u32 = 19;
/// The oldest kernel that has all system calls which sessions need. Sessions were tested with the later system calls
/// refused.
const OLDEST_KERNEL: (u32, u32) = (4, 12);
/// The first kernel with all system calls that SDM uses. The latest is `pidfd_getfd`, by which SDM reads how many bytes
/// a connection of another process has moved.
const WHOLE_KERNEL: (u32, u32) = (5, 6);
/// The contents of `uid_map` without another user namespace: each user id maps to itself.
const WHOLE_MAP: [&str; 3] = ["0", "0", "4294967295"];

/// The machine that is checked, seen through the files below a root directory.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Machine {
    /// The machine whose file system has this root.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The findings about the machine's kernel and its resources.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.kernel(), self.ptrace_scope(), self.perf_events()];
        findings.extend([self.hidepid(), self.namespaces()]);
        findings.extend(crate::resource_limits::findings(&self.file("meminfo")));
        findings
    }

    fn file(&self, name: &str) -> String {
        proc::of_machine_in(&self.root.join("proc"), name).unwrap_or_default()
    }

    fn may_trace_all(&self) -> bool {
        let status = proc::at(self.root.join("proc/self")).status().ok();
        let bits = status.and_then(|status| status.bits("CapEff"));
        bits.unwrap_or(0) >> CAP_SYS_PTRACE & 1 == 1
    }

    fn kernel(&self) -> Finding {
        let check = Check::Kernel;
        let release = self.file("sys/kernel/osrelease");
        let linux = format!("Linux {}", printable(release.trim().as_bytes()));
        let mut numbers = release.split(|it: char| !it.is_ascii_digit());
        let mut next = || numbers.next().and_then(|it| it.parse::<u32>().ok());
        let Some(version) = next().zip(next()) else {
            let text = format!("{linux}: the version of this kernel is not known");
            return Finding::unknown(check, text, "SDM runs on Linux 4.12 and later");
        };
        if version < OLDEST_KERNEL {
            let text =
                format!("{linux} is older than 4.12, the oldest version that SDM was tested on");
            return Finding::unknown(
                check,
                text,
                "try `sdm emulate`, then `sdm run` with a program of yours",
            );
        }
        if version < WHOLE_KERNEL {
            let lacks = "the kernel does not report the bytes of TCP connections, so `diagnose` answers `Cannot tell` more often";
            return Finding::good(check, format!("{linux} is older than 5.6: {lacks}"));
        }
        Finding::good(check, format!("{linux} has all system calls that SDM uses"))
    }

    fn ptrace_scope(&self) -> Finding {
        let check = Check::PtraceScope;
        let text = self.file("sys/kernel/yama/ptrace_scope");
        let scope: u8 = match text.trim() {
            "" => {
                return Finding::good(
                    check,
                    "kernel.yama.ptrace_scope does not exist: tracing is not restricted",
                );
            }
            text => text.parse().unwrap_or(u8::MAX),
        };
        let setting = format!("kernel.yama.ptrace_scope is {value}", value = text.trim());
        let by_root = "ask root to set it to 0 (sysctl kernel.yama.ptrace_scope=0, and in /etc/sysctl.d), or run sdm as root";
        match scope {
            0 => Finding::good(check, setting),
            1 | 2 if self.may_trace_all() => Finding::good(
                check,
                format!("{setting}, but this process may trace all processes"),
            ),
            1 => Finding::bad(
                check,
                format!(
                    "{setting}: `sdm attach`, `stacks` and `diagnose` are refused, `sdm run` works"
                ),
                by_root,
            ),
            2 => Finding::bad(
                check,
                format!("{setting}: only root may debug processes"),
                by_root,
            ),
            _ => Finding::bad(
                check,
                format!("{setting}: no process can be debugged until the machine is rebooted"),
                "ask root to remove that setting from /etc/sysctl.d and to reboot",
            ),
        }
    }

    /// The finding about the counting of returns. It is never bad, because most verdicts of a diagnosis need no
    /// counting.
    fn perf_events(&self) -> Finding {
        let text = self.file("sys/kernel/perf_event_paranoid");
        let level = text.trim();
        let is_open = level.parse::<i64>().is_ok_and(|level| level <= 2);
        let told = match level {
            "" => "the kernel has no perf events: `diagnose` cannot distinguish one long call from a loop of equal calls if no variable changes".to_owned(),
            _ if is_open || self.may_trace_all() => {
                format!("kernel.perf_event_paranoid is {level}: `diagnose` can count the returns of calls")
            }
            _ => format!(
                "kernel.perf_event_paranoid is {level}: `diagnose` cannot distinguish one long call from a loop of equal calls if no variable changes; set it to 2 or less (sysctl kernel.perf_event_paranoid=2)"
            ),
        };
        Finding::good(Check::PerfEvents, told)
    }

    /// True if the machine's `/proc` may hide processes that exist.
    #[must_use]
    pub fn hides_processes(&self) -> bool {
        self.hidepid().verdict != Verdict::Good
    }

    fn hidepid(&self) -> Finding {
        let check = Check::Hidepid;
        let mounts = self.file("mounts");
        let mut mounts = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        // The last mount hides those before it.
        let of_proc = mounts.rfind(|it| it.get(1) == Some(&"/proc"));
        let Some(mount) = of_proc else {
            return Finding::bad(
                check,
                "/proc is not mounted",
                "mount /proc: sdm reads processes, their programs and their states there",
            );
        };
        let mut options = mount.get(3).unwrap_or(&"").split(',');
        match options.find_map(|it| it.strip_prefix("hidepid=")) {
            None | Some("0" | "off") => Finding::good(check, "/proc shows all processes"),
            Some(value) => Finding::unknown(
                check,
                format!(
                    "/proc is mounted with hidepid={value}: processes of other users, and your protected ones, are \
                     invisible"
                ),
                "sdm finds your own jobs as usual; if it reports a process as missing, its owner or root must run sdm",
            ),
        }
    }

    fn namespaces(&self) -> Finding {
        let check = Check::Namespaces;
        let mut inside = Vec::new();
        let map = self.file("self/uid_map");
        if !map.is_empty() && map.split_whitespace().ne(WHOLE_MAP) {
            inside.push("a user namespace");
        }
        let status = proc::at(self.root.join("proc/self")).status().ok();
        let levels = status.and_then(|it| Some(it.field("NSpid")?.split_whitespace().count()));
        if levels.is_some_and(|levels| levels > 1) {
            inside.push("a pid namespace");
        }
        let signs = [
            ("run/.containerenv", "a Podman container"),
            (".dockerenv", "a Docker container"),
            (".singularity.d", "an Apptainer container"),
        ];
        let found = signs
            .iter()
            .filter(|(path, _)| fs::metadata(self.root.join(path)).is_ok());
        inside.extend(found.map(|(_, what)| *what));
        if inside.is_empty() {
            return Finding::good(check, "sdm does not run in a container");
        }
        let container = inside.join(", ");
        Finding::good(
            check,
            format!(
                "sdm runs in {container}: processes outside of it are invisible, processes inside are debugged as usual"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::gdb::tests::Root;

    /// A check, the files for it, its expected rating, and a part of its text.
    type Case<'a> = (Check, &'a [(&'a str, &'a str)], Verdict, &'a str);

    #[test]
    #[expect(clippy::too_many_lines, reason = "it is one table")]
    fn each_machine_fault_is_found() {
        let ordinary = "Name:\tsdm\nCapEff:\t0000000000000000\n";
        let able = "Name:\tsdm\nCapEff:\t0000000000080000\n";
        let scope = "proc/sys/kernel/yama/ptrace_scope";
        let release = "proc/sys/kernel/osrelease";
        let paranoid = "proc/sys/kernel/perf_event_paranoid";
        let cases: &[Case<'_>] = &[
            (Check::Kernel, &[], Verdict::Unknown, "not known"),
            (
                Check::Kernel,
                &[(release, "6.18.5-1-amd64\n")],
                Verdict::Good,
                "Linux 6.18.5-1-amd64 has all",
            ),
            (
                Check::Kernel,
                &[(release, "4.18.0-553.el8_10.x86_64\n")],
                Verdict::Good,
                "older than 5.6",
            ),
            (
                Check::Kernel,
                &[(release, "3.10.0-1160.el7.x86_64\n")],
                Verdict::Unknown,
                "older than 4.12",
            ),
            (Check::PtraceScope, &[], Verdict::Good, "does not exist"),
            (Check::PtraceScope, &[(scope, "0\n")], Verdict::Good, "is 0"),
            (
                Check::PtraceScope,
                &[(scope, "1\n")],
                Verdict::Bad,
                "`sdm run` works",
            ),
            (
                Check::PtraceScope,
                &[(scope, "2\n")],
                Verdict::Bad,
                "only root",
            ),
            (
                Check::PtraceScope,
                &[(scope, "3\n"), ("proc/self/status", able)],
                Verdict::Bad,
                "no process",
            ),
            (
                Check::PtraceScope,
                &[(scope, "1\n"), ("proc/self/status", able)],
                Verdict::Good,
                "may trace",
            ),
            (
                Check::PtraceScope,
                &[(scope, "x\n"), ("proc/self/status", ordinary)],
                Verdict::Bad,
                "is x",
            ),
            (
                Check::PerfEvents,
                &[(paranoid, "2\n")],
                Verdict::Good,
                "is 2: `diagnose` can count",
            ),
            (
                Check::PerfEvents,
                &[(paranoid, "3\n")],
                Verdict::Good,
                "set it to 2 or less",
            ),
            (
                Check::PerfEvents,
                &[],
                Verdict::Good,
                "the kernel has no perf events",
            ),
            (Check::Hidepid, &[], Verdict::Bad, "not mounted"),
            (
                Check::Hidepid,
                &[("proc/mounts", "proc /proc proc rw,nosuid 0 0\n")],
                Verdict::Good,
                "all",
            ),
            (
                Check::Hidepid,
                &[(
                    "proc/mounts",
                    "proc /proc proc rw 0 0\nproc /proc proc rw,hidepid=2 0 0\n",
                )],
                Verdict::Unknown,
                "hidepid=2",
            ),
            (
                Check::Hidepid,
                &[("proc/mounts", "proc /proc proc hidepid=ptraceable 0 0\n")],
                Verdict::Unknown,
                "ptraceable",
            ),
            (
                Check::Namespaces,
                &[("proc/self/uid_map", "  0  0  4294967295\n")],
                Verdict::Good,
                "does not run in a container",
            ),
            (
                Check::Namespaces,
                &[("proc/self/uid_map", "  0  1000  1\n")],
                Verdict::Good,
                "a user namespace",
            ),
            (
                Check::Namespaces,
                &[("proc/self/status", "NSpid:\t70\t3\n")],
                Verdict::Good,
                "a pid namespace",
            ),
            (
                Check::Namespaces,
                &[(".singularity.d/x", "")],
                Verdict::Good,
                "Apptainer",
            ),
        ];
        for (index, (check, files, verdict, part)) in cases.iter().enumerate() {
            let root = Root::new(&format!("machine-{index}"));
            for (path, text) in *files {
                root.plant(path, text);
            }
            let findings = Machine::at(&root.0).findings();
            let finding = findings.iter().find(|it| it.check == *check).unwrap();
            assert_eq!(finding.verdict, *verdict, "{finding:?}");
            assert!(
                finding.found.contains(part),
                "{finding:?} says nothing of {part}"
            );
            assert_eq!(
                finding.remedy.is_empty(),
                *verdict == Verdict::Good,
                "{finding:?}"
            );
        }
    }
}
