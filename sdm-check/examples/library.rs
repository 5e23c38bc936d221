//! Prints the path of the library for an MPI: `library openmpi|mpich [LIBRARY]`.

use sdm_check::Source;
use sdm_mpi::symbols::Mpi;

fn main() {
    let mut words = std::env::args().skip(1);
    let family = match words.next().as_deref() {
        Some("openmpi") => Mpi::OpenMpi,
        _ => Mpi::Mpich,
    };
    let library = words.next().map(Into::into);
    match sdm_check::library(&Source { family, library }, || ()) {
        Ok(path) => println!("{}", path.display()),
        Err(error) => println!("{error}"),
    }
}
