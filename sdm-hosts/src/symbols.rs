//! MPI symbols of a program or library, which show the implementation.

use object::{Object, ObjectSymbol, ReadRef};
use sdm_mpi::symbols::{FORTRAN_INIT, INIT, Mpi, OPEN_MPI_PREFIXES, PROFILED_INIT};

/// The MPI implementations that the symbols of a file show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MpiSymbols {
    /// The implementation that the file contains; `None` if there is none.
    pub(crate) defines: Option<Mpi>,
    /// The implementation whose symbols the file needs; `None` if it needs none.
    pub(crate) wants: Option<Mpi>,
}

/// True for the name of an MPI symbol that shows the implementation. True also for a name that ends with one, because
/// names in string tables share their ends.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let mut ends = INIT.iter().chain(&FORTRAN_INIT);
    ends.any(|end| name.ends_with(end.as_bytes()))
        || OPEN_MPI_PREFIXES
            .iter()
            .any(|part| name.starts_with(part.as_bytes()))
}

/// The MPI symbols among a file's dynamic symbols.
pub(crate) fn symbols<'a>(file: impl ReadRef<'a>) -> MpiSymbols {
    let file = object::File::parse(file);
    file.map_or_else(
        |_| MpiSymbols::default(),
        |file| told(file.dynamic_symbols()),
    )
}

/// The MPI symbols of a statically linked program.
pub(crate) fn symbols_of_static<'a>(file: impl ReadRef<'a>) -> MpiSymbols {
    let file = object::File::parse(file);
    file.map_or_else(|_| MpiSymbols::default(), |file| told(file.symbols()))
}

/// Finds the implementation that symbols show. A tool between a program and MPI defines only `MPI_Init`; an
/// implementation also defines `PMPI_Init`.
fn told<'a>(symbols: impl Iterator<Item = impl ObjectSymbol<'a>>) -> MpiSymbols {
    let mut found = MpiSymbols::default();
    let mut is_implementation = false;
    let mut is_open_mpis = false;
    for symbol in symbols {
        let name = symbol.name().unwrap_or_default();
        let is_open = OPEN_MPI_PREFIXES.iter().any(|part| name.starts_with(part));
        let is_init = INIT.contains(&name) || name == FORTRAN_INIT[0];
        match symbol.is_definition() {
            true => {
                is_implementation |= name == PROFILED_INIT;
                is_open_mpis |= is_open;
            }
            false if symbol.is_weak() => {}
            false if is_open => found.wants = Some(Mpi::OpenMpi),
            false if is_init => found.wants = found.wants.or(Some(Mpi::Mpich)),
            false => {}
        }
    }
    let whose = if is_open_mpis {
        Mpi::OpenMpi
    } else {
        Mpi::Mpich
    };
    found.defines = is_implementation.then_some(whose);
    found
}
