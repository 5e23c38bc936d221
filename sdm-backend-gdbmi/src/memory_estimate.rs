//! Estimates the memory that a gdb needs for a program, and finds the free memory.
//!
//! The estimate is made from the program's file, so that nothing has to be started first. Measured with gdb 13.1 and
//! 18.1 under the settings of this crate, eight at once, stopped at main with a stack and its locals read (private
//! memory of each gdb, in MB, 13.1 and 18.1):
//!
//! | program | debug information and symbols | own memory | estimate |
//! | --- | --- | --- | --- |
//! | C, 30 lines | 0.0 | 10, 13 | 20 |
//! | C++ with containers | 0.3 | 20, 21 | 21 |
//! | Open MPI 4.1, MPICH 4.0 | 0.0 | 15, 17 and 16, 20 | 20 |
//! | a server of SDM, unoptimised | 26 | 46, 84 | 86 |
//! | `sdm`, unoptimised | 41 | 66, 120 | 123 |
//!
//! Debug information of a program's own libraries counts like its own.

mod libraries;

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ReadCache};
use sdm_debug::reply::{MemoryLimit, Room};
use sdm_system::files;

/// Memory that a gdb needs for itself and for the libraries of most programs, in bytes.
const GDB_BYTES: u64 = 20 << 20;
/// Further memory of a gdb that reads the debug information of the system's C library, in bytes.
const SYSTEM_DEBUG_BYTES: u64 = 26 << 20;
/// Bytes of memory that gdb needs for 2 bytes of a program's debug information and symbols.
const HALVES: u64 = 5;

/// Estimates the memory that a gdb needs for this program, and reads the free memory and what limits it.
pub(crate) fn estimate(program: &Path, system_debug: bool) -> Room {
    let system = if system_debug { SYSTEM_DEBUG_BYTES } else { 0 };
    let (free_bytes, limit) = free(Path::new("/"));
    Room {
        gdb_bytes: coarse(GDB_BYTES + system + all_symbol_bytes(program) * HALVES / 2),
        free_bytes: coarse(free_bytes),
        limit,
    }
}

/// A number rounded down to four significant binary digits, so that similar hosts give the same answer.
fn coarse(bytes: u64) -> u64 {
    let digits = u64::BITS - bytes.leading_zeros();
    let dropped = digits.saturating_sub(4);
    bytes >> dropped << dropped
}

/// Total size of the sections that gdb reads of a program and its libraries, in bytes. The exports of a stripped
/// library are left out: they are small, and part of the base size of every gdb.
fn all_symbol_bytes(program: &Path) -> u64 {
    let search = std::env::var_os("LD_LIBRARY_PATH");
    let libraries = libraries::of(program, search.as_deref());
    let libraries = libraries
        .iter()
        .map(|path| symbol_bytes(path, &[".symtab", ".strtab"]));
    let own = symbol_bytes(program, &[".symtab", ".strtab", ".dynsym", ".dynstr"]);
    libraries.fold(own, u64::saturating_add)
}

/// Total size of a file's debug information and of its symbol sections named `symbols`, in bytes; 0 if the file cannot
/// be read.
fn symbol_bytes(file: &Path, symbols: &[&str]) -> u64 {
    let Ok(file) = files::open(file) else {
        return 0;
    };
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else {
        return 0;
    };
    let is_read = |name: &str| name.starts_with(".debug") || symbols.contains(&name);
    let sections = object.sections();
    let sizes = sections.filter(|section| section.name().is_ok_and(is_read));
    sizes.fold(0, |sum, section| sum.saturating_add(section.size()))
}

/// Memory that this process can still use, in bytes, and the limit of it: the host's memory or a control group. `root`
/// is the root of the file system.
fn free(root: &Path) -> (u64, MemoryLimit) {
    let host = free_of_host(root);
    match free_of_groups(root) {
        Some(group) if group < host => (group, MemoryLimit::Group),
        _ => (host, MemoryLimit::Host),
    }
}

/// Free memory of the host by `/proc/meminfo`, in bytes; `u64::MAX` if unknown.
fn free_of_host(root: &Path) -> u64 {
    let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.map_or(u64::MAX, |kilobytes| kilobytes << 10)
}

/// The least memory that is left to this process's control group and to the groups above it, in bytes; `None` if none
/// has a limit.
fn free_of_groups(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mount = root.join("sys/fs/cgroup");
    let mut least = None;
    for line in groups.lines() {
        // A line is NUMBER:CONTROLLERS:PATH. The unified hierarchy has no controllers here.
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let path = Path::new(path.trim_start_matches('/'));
        let files = match controllers {
            "" => &UNIFIED,
            names if names.split(',').any(|name| name == "memory") => &FORMER,
            _ => continue,
        };
        for group in path.ancestors() {
            let left = files.left(&mount.join(files.folder).join(group));
            least = least.into_iter().chain(left).min();
        }
    }
    least
}

/// File names of one version of the control group interface.
struct GroupFiles {
    folder: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Name of the count of reclaimable memory in `memory.stat`: file pages that were not used recently.
    inactive: &'static str,
}

const UNIFIED: GroupFiles = GroupFiles {
    folder: "",
    limit: "memory.max",
    used: "memory.current",
    inactive: "inactive_file ",
};

const FORMER: GroupFiles = GroupFiles {
    folder: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file ",
};

impl GroupFiles {
    /// Memory that a group has left, in bytes; `None` if it has no limit.
    fn left(&self, group: &Path) -> Option<u64> {
        let read = |name: &str| fs::read_to_string::<PathBuf>(group.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        // An unlimited group has a word in place of a number, or an enormous number.
        let limit = number(self.limit).filter(|limit| *limit < 1 << 60)?;
        let stat = read("memory.stat").unwrap_or_default();
        let inactive = stat
            .lines()
            .find_map(|line| line.strip_prefix(self.inactive));
        let inactive = inactive.and_then(|text| text.trim().parse::<u64>().ok());
        let used = number(self.used)?.saturating_sub(inactive.unwrap_or(0));
        Some(limit.saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with given files, used as the root of a file system.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("sdm-room-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const HOST: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       24670032 kB\nMemAvailable:   20000000 kB\n",
    );

    fn check(name: &str, files: &[(&str, &str)], expect: (u64, MemoryLimit)) {
        let root = Root::new(name, files);
        assert_eq!(free(&root.0), expect, "{name}");
    }

    #[test]
    fn free_memory_is_minimum_of_host_and_cgroups() {
        let host = (20_000_000 << 10, MemoryLimit::Host);
        check("host", &[HOST], host);
        check("nothing", &[], (u64::MAX, MemoryLimit::Host));
        let unified = ("proc/self/cgroup", "0::/job/step\n");
        let of_step = |file: &'static str| format!("sys/fs/cgroup/job/step/{file}");
        let (limit, used, stat) = (
            of_step("memory.max"),
            of_step("memory.current"),
            of_step("memory.stat"),
        );
        let above = ("sys/fs/cgroup/job/memory.max", "900\n");
        let above_used = ("sys/fs/cgroup/job/memory.current", "100\n");
        let within = [
            HOST,
            unified,
            (&limit, "700\n"),
            (&used, "400\n"),
            (&stat, "anon 3\ninactive_file 50\n"),
        ];
        check("unified", &within, (350, MemoryLimit::Group));
        check(
            "above",
            &[HOST, unified, above, above_used],
            (800, MemoryLimit::Group),
        );
        check(
            "unbounded",
            &[HOST, unified, (&limit, "max\n"), (&used, "400\n")],
            host,
        );
        let former = (
            "proc/self/cgroup",
            "5:cpu,memory:/job\n4:pids:/x\nnonsense\n",
        );
        let of_job = |file: &'static str| format!("sys/fs/cgroup/memory/job/{file}");
        let (limit, used) = (
            of_job("memory.limit_in_bytes"),
            of_job("memory.usage_in_bytes"),
        );
        check(
            "former",
            &[HOST, former, (&limit, "700"), (&used, "900")],
            (0, MemoryLimit::Group),
        );
        let endless = "9223372036854771712";
        check(
            "endless",
            &[HOST, former, (&limit, endless), (&used, "900")],
            host,
        );
    }

    #[test]
    fn estimate_grows_with_program_size() {
        let own = std::env::current_exe().unwrap();
        let (small, large) = (estimate(Path::new("/nosuch"), false), estimate(&own, true));
        assert_eq!(small.gdb_bytes, GDB_BYTES);
        assert!(
            large.gdb_bytes > GDB_BYTES + SYSTEM_DEBUG_BYTES,
            "{large:?}"
        );
        assert!(large.free_bytes > 0);
        assert_eq!((coarse(0), coarse(15), coarse(0x1ff)), (0, 15, 0x1e0));
    }
}
