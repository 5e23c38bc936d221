//! The MPI implementation with which a program is linked, also through other libraries.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use object::ReadCache;
pub use sdm_mpi::symbols::Mpi;
use sdm_mpi::symbols::{LIBRARIES, LIBRARY_PREFIX};
use sdm_system::files;
use sdm_text::printable_name;

use crate::libraries::{LibrarySearch, Tree};
use crate::symbols::{MpiSymbols, symbols_of_static};

/// The text of [`Linked::by`] for a program that contains an MPI implementation itself.
const IN_ITSELF: &str = "statically";
/// Name of the library by which a rank reaches a PMIx server.
const PMIX: &str = "libpmix.so";

/// True if the name of a mapped file is that of an MPI library. A mapped file that is no library can begin so too.
pub(crate) fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(LIBRARY_PREFIX) && name.contains(".so")
}

/// True for a program that is statically linked with an MPI implementation.
pub(crate) fn is_in(program: &Path) -> bool {
    of_itself(program).defines.is_some()
}

/// The MPI symbols in the whole symbol table of a program, if the program is not stripped.
fn of_itself(program: &Path) -> MpiSymbols {
    let file = files::open(program).map(ReadCache::new);
    file.map_or_else(|_| MpiSymbols::default(), |file| symbols_of_static(&file))
}

/// The MPI implementation with which a program is linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linked {
    /// The implementation; `None` if no file shows it.
    pub mpi: Option<Mpi>,
    /// Evidence for the implementation, to show to the user: a library's path, symbols, or a library that was not
    /// found. Empty if there is no evidence.
    pub by: String,
    /// True if the implementation can use a PMIx server.
    pub has_pmix: bool,
    /// Path of the implementation's library; `None` if the program is not linked with one that is on this machine.
    pub library: Option<PathBuf>,
}

impl Linked {
    /// Examines a program; `lookup` gives the values of the environment variables with which it will run.
    #[must_use]
    pub fn of(program: &Path, lookup: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let found = Self::of_tree(&LibrarySearch::here(lookup).tree(program));
        if found.mpi.is_some() {
            return found;
        }
        let mpi = of_itself(program).defines;
        let by = mpi.map_or(found.by, |_| IN_ITSELF.to_owned());
        Self { mpi, by, ..found }
    }

    /// True for a program that contains a statically linked MPI, and needs no MPI library.
    #[must_use]
    pub fn is_in_itself(&self) -> bool {
        self.by == IN_ITSELF
    }

    pub(crate) fn of_tree(tree: &Tree) -> Self {
        let has_pmix = tree.all.iter().any(|one| one.name.starts_with(PMIX));
        let tell = |mpi, by| Self {
            mpi: Some(mpi),
            by,
            has_pmix,
            library: None,
        };
        // The first in the loader's order is the one that is called.
        for (at, one) in tree.all.iter().enumerate() {
            let Some(mpi) = one.object.symbols.defines else {
                continue;
            };
            let path = printable_name(&one.path);
            let by = match tree.chain(at).split_last() {
                None => IN_ITSELF.to_owned(),
                Some((_, [])) => path,
                Some((_, before)) => {
                    let users: Vec<&str> = before.iter().rev().copied().collect();
                    let users = users.join(", which is needed by ");
                    format!("{path}, needed by {users}")
                }
            };
            let library = (by != IN_ITSELF).then(|| one.path.clone());
            return Self {
                library,
                ..tell(mpi, by)
            };
        }
        let known = tree.missing.iter().find_map(|name| {
            let (_, mpi) = LIBRARIES
                .iter()
                .find(|(known, _)| name.starts_with(known))?;
            let library = printable_name(name);
            let by = format!("judged by the name of the library {library}, which was not found");
            Some((*mpi, by))
        });
        if let Some((mpi, by)) = known {
            return tell(mpi, by);
        }
        let wants = tree.all.iter().find_map(|one| one.object.symbols.wants);
        if let Some(mpi) = wants {
            return tell(
                mpi,
                "judged by the functions that the program calls".to_owned(),
            );
        }
        let missing = tree.missing.iter().map(printable_name);
        let missing: Vec<String> = missing.collect();
        let by = match &missing[..] {
            [] => String::new(),
            [first, ..] => format!("the library {first} was not found"),
        };
        Self {
            mpi: None,
            by,
            has_pmix,
            library: None,
        }
    }
}
