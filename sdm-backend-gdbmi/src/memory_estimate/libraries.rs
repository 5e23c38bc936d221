//! The libraries of a program whose debug information gdb would read.
//!
//! For a process these are all libraries that it has mapped. For a program they are the libraries that it needs,
//! directly or indirectly, found by an `RPATH` or `RUNPATH`, or in `LD_LIBRARY_PATH`. System libraries contain no
//! debug information, and libraries opened at run time are unknown.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH};
use object::read::elf::{Dyn, ElfFile, FileHeader};
use object::{Endianness, ReadCache, ReadRef};
use sdm_system::files;
use sdm_system::proc::{self, Mapping};

/// Maximum number of libraries examined.
const LIBRARIES_MAX: usize = 256;

/// The libraries of a program, or of the running process if `program` is a `/proc/PID/exe`. `search` is the
/// `LD_LIBRARY_PATH` of the program to start.
pub(super) fn of(program: &Path, search: Option<&OsStr>) -> Vec<PathBuf> {
    let process = program.parent().filter(|_| program.ends_with("exe"));
    let mapped = process.filter(|folder| folder.starts_with("/proc"));
    match mapped.and_then(|folder| proc::at(folder).maps().ok()) {
        Some(maps) => mapped_by(&maps, fs::read_link(program).ok().as_deref()),
        None => needed_by(program, search),
    }
}

/// The files that a process has mapped as executable, except for the program itself.
fn mapped_by(maps: &[Mapping], program: Option<&Path>) -> Vec<PathBuf> {
    let executable = maps.iter().filter(|mapping| mapping.is_executable());
    let paths = executable.filter_map(Mapping::file);
    let distinct: BTreeSet<&Path> = paths.filter(|path| Some(*path) != program).collect();
    distinct
        .into_iter()
        .take(LIBRARIES_MAX)
        .map(Path::to_owned)
        .collect()
}

/// The libraries that the program needs, directly or indirectly, as far as they are found.
fn needed_by(program: &Path, search: Option<&OsStr>) -> Vec<PathBuf> {
    let searched: Vec<PathBuf> = search
        .map(std::env::split_paths)
        .into_iter()
        .flatten()
        .collect();
    let mut found: Vec<PathBuf> = Vec::new();
    let mut inherited: Vec<PathBuf> = Vec::new();
    let mut at = 0;
    let mut file = Some(program.to_owned());
    while let Some(path) = file {
        let dynamic = Dynamic::read(&path);
        inherited.extend(dynamic.folders);
        for name in dynamic.needed {
            let mut folders = inherited.iter().chain(&searched);
            let library = folders.find_map(|folder| folder.join(&name).canonicalize().ok());
            if let Some(library) = library.filter(|library| !found.contains(library))
                && found.len() < LIBRARIES_MAX
            {
                found.push(library);
            }
        }
        file = found.get(at).cloned();
        at += 1;
    }
    found
}

/// The dependencies that an ELF file names: libraries, and directories in which they are searched.
#[derive(Default)]
struct Dynamic {
    needed: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Dynamic {
    /// Reads the dependencies of a file; empty if the file cannot be read or is no ELF file.
    fn read(path: &Path) -> Self {
        let Ok(file) = files::open(path) else {
            return Self::default();
        };
        let origin = path.parent().unwrap_or(Path::new("/"));
        let cache = ReadCache::new(file);
        match object::File::parse(&cache) {
            Ok(object::File::Elf64(elf)) => Self::of_elf(&elf, origin),
            Ok(object::File::Elf32(elf)) => Self::of_elf(&elf, origin),
            _ => None,
        }
        .unwrap_or_default()
    }

    fn of_elf<'data, Elf, R>(elf: &ElfFile<'data, Elf, R>, origin: &Path) -> Option<Self>
    where
        Elf: FileHeader<Endian = Endianness>,
        R: ReadRef<'data>,
    {
        let (endian, data) = (elf.endian(), elf.data());
        let sections = elf.elf_section_table();
        let (entries, index) = sections.dynamic(endian, data).ok()??;
        let strings = sections.strings(endian, data, index).ok()?;
        let mut dynamic = Self::default();
        for entry in entries {
            let text = || Some(OsStr::from_bytes(strings.get(entry.val32(endian)?).ok()?));
            match entry.tag(endian) {
                DT_NEEDED => dynamic.needed.extend(text().map(PathBuf::from)),
                DT_RUNPATH | DT_RPATH => {
                    let folders = text().map(std::env::split_paths).into_iter().flatten();
                    dynamic
                        .folders
                        .extend(folders.map(|folder| from_origin(&folder, origin)));
                }
                _ => {}
            }
        }
        Some(dynamic)
    }
}

/// Replaces `$ORIGIN` by the directory of the file that names it.
fn from_origin(folder: &Path, origin: &Path) -> PathBuf {
    let mut parts = folder.components();
    match parts
        .next()
        .map(|part| part.as_os_str().as_bytes().to_vec())
        .as_deref()
    {
        Some(b"$ORIGIN" | b"${ORIGIN}") => origin.join(parts.as_path()),
        _ => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn mapped_executables_are_listed_as_libraries() {
        let maps = "5555-6666 r-xp 00000000 fe:00 1   /tmp/a.out\n\
                    7000-8000 r--p 00000000 fe:00 2   /tmp/data\n\
                    8000-9000 r-xp 00000000 fe:00 3   /tmp/with blank.so\n\
                    9000-a000 r-xp 00001000 fe:00 3   /tmp/with blank.so\n\
                    a000-b000 r-xp 00000000 00:00 0   [vdso]\n\
                    nonsense\n";
        let maps = proc::mappings(maps.as_bytes());
        let found = mapped_by(&maps, Some(Path::new("/tmp/a.out")));
        assert_eq!(found, [Path::new("/tmp/with blank.so")]);
        let own = format!("/proc/{}/exe", std::process::id());
        let libraries = of(Path::new(&own), None);
        let is_libc = |path: &PathBuf| path.to_string_lossy().contains("libc.so");
        assert!(libraries.iter().any(is_libc), "{libraries:?}");
    }

    #[test]
    fn needed_libraries_are_found_by_runpath() {
        let folder = std::env::temp_dir().join(format!("sdm-libraries-{}", std::process::id()));
        let cc = |arguments: &[&str]| {
            let status = Command::new("cc")
                .current_dir(&folder)
                .args(arguments)
                .status();
            assert!(status.unwrap().success(), "{arguments:?}");
        };
        fs::create_dir_all(folder.join("lib")).unwrap();
        fs::write(folder.join("deep.c"), "int deep;\n").unwrap();
        fs::write(
            folder.join("own.c"),
            "extern int deep; int own(void) { return deep; }\n",
        )
        .unwrap();
        fs::write(
            folder.join("a.c"),
            "int own(void); int main(void) { return own(); }\n",
        )
        .unwrap();
        cc(&["-shared", "-fPIC", "-g", "deep.c", "-o", "lib/libdeep.so"]);
        cc(&[
            "-shared",
            "-fPIC",
            "-g",
            "own.c",
            "-o",
            "lib/libown.so",
            "-Llib",
            "-ldeep",
        ]);
        cc(&[
            "a.c",
            "-o",
            "a",
            "-Llib",
            "-lown",
            "-Wl,-rpath-link,lib",
            "-Wl,-rpath,$ORIGIN/lib",
        ]);
        cc(&["a.c", "-o", "b", "-Llib", "-lown", "-Wl,-rpath-link,lib"]);
        let folder = folder.canonicalize().unwrap();
        let both = ["libown.so", "libdeep.so"].map(|name| folder.join("lib").join(name));
        assert_eq!(of(&folder.join("a"), None), both);
        assert_eq!(of(&folder.join("b"), None), Vec::<PathBuf>::new());
        assert_eq!(
            of(&folder.join("b"), Some(folder.join("lib").as_os_str())),
            both
        );
        assert_eq!(of(&folder.join("a.c"), None), Vec::<PathBuf>::new());
        fs::remove_dir_all(&folder).unwrap();
    }
}
