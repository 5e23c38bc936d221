//! Building the checking library for an MPI, and keeping it in the user's cache.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{NativeEndian, Object, ReadCache};
use sdm_mpi::symbols::Mpi;
use sdm_system::files::{self, Writing};
use xxhash_rust::xxh3::Xxh3;

use crate::compiler::{Compiler, write};
use crate::library_error::LibraryError;
use crate::prototypes::prototypes;
use crate::wrappers::source;

/// The sources of the library, besides the header of the MPI. The name of the library's file depends on them, so that
/// changed sources give a new file.
const MADE_OF: [&str; 24] = [
    include_str!("c/core.h"),
    include_str!("c/python.h"),
    include_str!("c/objects.h"),
    include_str!("c/types.h"),
    include_str!("c/requests.h"),
    include_str!("c/arguments.h"),
    include_str!("c/collectives.h"),
    include_str!("c/orders.h"),
    include_str!("c/messages.h"),
    include_str!("c/comparison.h"),
    include_str!("c/neighbours.h"),
    include_str!("c/shapes.h"),
    include_str!("c/epochs.h"),
    include_str!("c/layouts.h"),
    include_str!("c/accesses.h"),
    include_str!("c/fatal.h"),
    include_str!("c/hooks.h"),
    include_str!("life.rs"),
    include_str!("wrappers.rs"),
    include_str!("buffers.rs"),
    include_str!("prototypes.rs"),
    include_str!("matching.rs"),
    include_str!("windows.rs"),
    include_str!("../../sdm-mpi/src/usage.rs"),
];
/// Minimum number of functions of an MPI. If fewer are found, the header was not understood.
const FUNCTIONS_MIN: usize = 200;

/// Prefix of the names of the directories in which libraries are built.
const UNFINISHED: &str = "new-";

/// The MPI that a library is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The family of the MPI.
    pub family: Mpi,
    /// The path of the MPI's own library. None if unknown.
    pub library: Option<PathBuf>,
}

/// The path of the library that checks programs of an MPI. The library is in the user's cache, and is built if it is
/// missing. `before_compiling` is called where the compiler is to run, which may take long on a busy machine.
///
/// # Errors
/// There is no compiler, the compiler fails, other users can change the cache, or the loader cannot load from its path:
/// the path contains blanks, colons or dollars.
pub fn library(mpi: &Source, before_compiling: impl FnOnce()) -> Result<PathBuf, LibraryError> {
    let folder = cache()?;
    let bytes = folder.as_os_str().as_encoded_bytes();
    if bytes.iter().any(|byte| b" :\t\n$".contains(byte)) {
        let text = "the loader cannot load a library from a folder whose name contains blanks, colons or dollars: set XDG_CACHE_HOME";
        return Err(refused(&folder, io::Error::other(text)));
    }
    // Another process that builds a library waits for the lock.
    let lock = files::open_to_write(&folder.join("lock"), Writing::Behind);
    let lock = lock.and_then(|file| file.lock().map(|()| file));
    let _lock = lock.map_err(|source| refused(&folder, source))?;
    let known = mpi.library.as_deref().and_then(identity);
    if let Some(known) = &known {
        let kept = folder.join(name_of(known));
        if is_usable(&kept)? {
            return Ok(kept);
        }
    }
    before_compiling();
    remove_unfinished(&folder);
    let own = folder.join(format!("{UNFINISHED}{}", std::process::id()));
    let made = files::private_folder(&own).map_err(|source| refused(&own, source));
    let made = made.and_then(|()| make(mpi, known.as_deref(), &folder, &own));
    let _ = fs::remove_dir_all(&own);
    made
}

/// Removes the directories of builds that were killed. The caller holds the lock, so that no other process builds.
fn remove_unfinished(folder: &Path) {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    let left = all.filter(|it| it.file_name().as_bytes().starts_with(UNFINISHED.as_bytes()));
    for entry in left {
        let _ = fs::remove_dir_all(entry.path());
    }
}

fn make(
    mpi: &Source,
    known: Option<&str>,
    folder: &Path,
    own: &Path,
) -> Result<PathBuf, LibraryError> {
    let compiler = Compiler::find(mpi.family, mpi.library.as_deref(), own)?;
    let name = match known {
        Some(known) => name_of(known),
        // No library is known: the compiler stands for it.
        None => name_of(&stamp(compiler.program()).unwrap_or_default()),
    };
    let kept = folder.join(name);
    if known.is_none() && is_usable(&kept)? {
        return Ok(kept);
    }
    let functions = prototypes(&compiler.header);
    if functions.len() < FUNCTIONS_MIN {
        return Err(LibraryError::Compiler {
            compiler: compiler.program().to_owned(),
            what: format!(
                "the mpi.h of this compiler declares only {} MPI functions: at least {FUNCTIONS_MIN} are expected",
                functions.len()
            ),
        });
    }
    let text = own.join("check.c");
    write(&text, &source(&functions))?;
    let library = own.join("check.so");
    compiler.compile(&text, &library)?;
    fs::rename(&library, &kept).map_err(|source| refused(&kept, source))?;
    Ok(kept)
}

/// The user's directory of built libraries, which is created if it is missing.
fn cache() -> Result<PathBuf, LibraryError> {
    let base = files::user_folder("XDG_CACHE_HOME", ".cache");
    let base = base.unwrap_or_else(files::temporary_folder);
    let _ = fs::create_dir_all(&base);
    let folder = base.join("sdm-check");
    files::private_folder(&folder).map_err(|source| refused(&folder, source))?;
    Ok(folder)
}

fn refused(folder: &Path, source: io::Error) -> LibraryError {
    LibraryError::Cache {
        folder: folder.to_owned(),
        source,
    }
}

/// True if the library's file exists, false if it does not. Fails if other users can change the file.
fn is_usable(kept: &Path) -> Result<bool, LibraryError> {
    match files::open_own(kept) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(refused(kept, source)),
    }
}

fn name_of(identity: &str) -> String {
    let mut hash = Xxh3::new();
    for part in MADE_OF.into_iter().chain([identity]) {
        hash.update(&part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    format!("sdm-check-{:032x}.so", hash.digest128())
}

/// A text that identifies an MPI's library: its build id or, without one, path, size, time and inode of the file. None
/// if the file cannot be read.
fn identity(library: &Path) -> Option<String> {
    let cache = ReadCache::new(files::open(library).ok()?);
    let elf: Option<ElfFile64<'_, NativeEndian, _>> = ElfFile64::parse(&cache).ok();
    let id = elf.and_then(|elf| elf.build_id().ok().flatten().map(<[u8]>::to_vec));
    match id {
        Some(id) => Some(id.iter().map(|byte| format!("{byte:02x}")).collect()),
        None => stamp(library),
    }
}

fn stamp(file: &Path) -> Option<String> {
    let found = fs::metadata(file).ok()?;
    let whole = file.canonicalize().ok()?;
    Some(format!(
        "{} {} {} {}",
        whole.display(),
        found.len(),
        found.mtime(),
        found.ino()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources that do not change the library: they find its folder, build it and restrict its use.
    const NO_SOURCES: [&str; 6] = [
        "lib.rs",
        "library.rs",
        "library_error.rs",
        "error.rs",
        "compiler.rs",
        "suppressions.rs",
    ];

    #[test]
    fn name_of_the_library_depends_on_each_source() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for folder in [own.clone(), own.join("c")] {
            for file in fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap();
                if path.is_file() && !NO_SOURCES.contains(&name) {
                    let text = fs::read_to_string(&path).unwrap();
                    assert!(MADE_OF.contains(&text.as_str()), "{name} is missing");
                }
            }
        }
    }
}
