//! Calls in source code: the functions that wait, the arguments that identify a call's partners, and the places of
//! these in a source line.

mod fortran;
mod source;
mod started;
mod wait_functions;

use sdm_mpi::{ArgumentRole, mpi_name, outer_name};

pub use fortran::{
    COMPUTED, Form, INQUIRIES, array_names, fortran_argument, fortran_arguments, is_array_type,
    is_gdb_function, statement,
};
pub use source::{call_arguments, is_harmless};
pub use started::{
    loop_of_c, loop_of_fortran, polling_function, polling_function_of_callee, started_collectives,
};
pub use wait_functions::{
    is_file, is_join, is_lock, is_mutex, is_once, is_openmp_lock, is_sleep, plain,
};

/// The name that the user's source has for a function on the stack. A public MPI function of Open MPI can end in a jump
/// to an internal function. Then only the internal function is on the stack.
#[must_use]
pub fn spoken(function: &str) -> String {
    let function = plain(function);
    outer_name(function).unwrap_or_else(|| function.to_owned())
}

/// The relevant arguments of a call, each with its index from 0: the file of a function that waits for a file,
/// otherwise those of [`sdm_mpi::roles`].
#[must_use]
pub fn roles(function: &str) -> &'static [(usize, ArgumentRole)] {
    match mpi_name(function) {
        None if is_file(function) => &[(0, ArgumentRole::File)],
        _ => sdm_mpi::roles(function),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_and_mpi_calls_have_source_names_and_argument_roles() {
        assert_eq!(roles("__GI___libc_read"), [(0, ArgumentRole::File)]);
        assert_eq!(roles("usleep"), []);
        assert_eq!(roles("MPI_Mprobe")[0], (0, ArgumentRole::Source));
        assert_eq!(spoken("__GI___libc_read"), "read");
        let waits = "std::condition_variable::wait";
        assert_eq!(
            spoken(&format!("{waits}<main()::{{lambda()#1}}>(int)")),
            waits
        );
        assert!(is_lock(&format!("{waits}<f>")));
        assert_eq!(spoken("ompi_mpi_finalize"), "MPI_Finalize");
        assert_eq!(spoken("ompi_mpi_"), "ompi_mpi_");
    }
}
