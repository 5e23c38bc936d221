//! The reasons why the checking library cannot be built.

use std::io;
use std::path::PathBuf;

use sdm_mpi::symbols::Mpi;
use sdm_text::printable_name;

/// The reason why the checking library is not available.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// There is no compiler of this MPI.
    #[error("--check: no compiler of {family} was found: {why}", family = family.name())]
    NoCompiler {
        /// The family of the MPI.
        family: Mpi,
        /// The compilers that were found, each with the reason why it cannot be used.
        why: String,
    },
    /// A compiler fails.
    #[error("--check: {}: {what}", printable_name(compiler))]
    Compiler {
        /// The path of the compiler.
        compiler: PathBuf,
        /// The compiler's error message, or the fault of its header.
        what: String,
    },
    /// The cache of libraries cannot be used.
    #[error("--check: {}: {source}", printable_name(folder))]
    Cache {
        /// The path of the cache, or of a file in it.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}
