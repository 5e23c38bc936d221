//! Reasons why a library cannot be had, and the MPIs that there are.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sdm_text::printable_name;

/// The makers of an MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI's.
    OpenMpi,
    /// MPICH's, or one that is compatible with it.
    Mpich,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        })
    }
}

/// The library cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// There is no compiler of this MPI.
    #[error("--check: no compiler of {family} was found: {why}")]
    NoCompiler {
        /// The makers of the MPI.
        family: Family,
        /// Words about all that was found.
        why: String,
    },
    /// A compiler fails.
    #[error("--check: {}: {what}", printable_name(compiler))]
    Compiler {
        /// The compiler.
        compiler: PathBuf,
        /// Its own words.
        what: String,
    },
    /// The folder of libraries cannot be used.
    #[error("--check: {}: {source}", printable_name(folder))]
    Cache {
        /// The folder, or what is in it.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}
