//! Maps the name of a function to that of the MPI function. Known are the names of C, of Fortran, of
//! `torch.distributed`, and of the internal functions of Open MPI.

/// The prefixes of the names of MPI functions.
const PREFIXES: [&str; 4] = ["mpi_", "pmpi_", "mpix_", "pmpix_"];
/// The prefixes of Open MPI's internal functions that replace an MPI function on the stack, because that
/// one ends with a tail call.
const INNER_PREFIXES: [&str; 2] = ["ompi_mpi_", "mca_common_ompio_"];

/// The suffix by which gdb names the code that calls a library's function.
const STUB_SUFFIX: &str = "@plt";

/// The prefix of the functions of PyTorch's package `torch.distributed`.
pub const TORCH_PREFIX: &str = "torch.distributed.";
/// The functions of `torch.distributed` with the names of their MPI counterparts.
const OF_TORCH: &[(&str, &str)] = &[
    ("all_gather", "allgather"),
    ("all_gather_into_tensor", "allgather"),
    ("all_gather_object", "allgather"),
    ("all_reduce", "allreduce"),
    ("all_to_all", "alltoall"),
    ("all_to_all_single", "alltoall"),
    ("barrier", "barrier"),
    ("broadcast", "bcast"),
    ("broadcast_object_list", "bcast"),
    ("gather", "gather"),
    ("gather_object", "gather"),
    ("monitored_barrier", "barrier"),
    ("recv", "recv"),
    ("reduce", "reduce"),
    ("reduce_scatter", "reduce_scatter"),
    ("reduce_scatter_tensor", "reduce_scatter"),
    ("scatter", "scatter"),
    ("scatter_object_list", "scatter"),
    ("send", "send"),
];

/// The name of an MPI function in lower case, without `MPI_` and without the additions of a language
/// binding. `recv` stands for `MPI_Recv`, `PMPI_Recv` and `mpi_recv_`; `allreduce` also for
/// `torch.distributed.all_reduce`. None for other functions.
#[must_use]
pub fn mpi_name(function: &str) -> Option<String> {
    if let Some(name) = function.strip_prefix(TORCH_PREFIX) {
        let mut known = OF_TORCH.iter();
        let (_, known) = known.find(|(torch, _)| *torch == name)?;
        return Some((*known).to_owned());
    }
    let function = function.strip_suffix(STUB_SUFFIX).unwrap_or(function);
    let lower = function.to_ascii_lowercase();
    let mut prefixes = PREFIXES.iter().chain(&INNER_PREFIXES);
    let name = prefixes.find_map(|p| lower.strip_prefix(p))?;
    let name = name
        .trim_end_matches('_')
        .trim_end_matches("_f08ts")
        .trim_end_matches("_f08")
        .trim_end_matches("_c");
    Some(name.to_owned())
}

/// The standard name of an MPI function for a name from a Fortran compiler: `MPI_Allreduce` for
/// `mpi_allreduce__`, `pmpi_allreduce_f08_` and `MPI_ALLREDUCE`. None for other names.
#[must_use]
pub fn fortran_name(function: &str) -> Option<String> {
    let is_made = |name: &str| {
        let has = |is: fn(&u8) -> bool| name.as_bytes().iter().any(is);
        has(u8::is_ascii_alphabetic)
            && !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
    };
    let rest = ["mpi_", "pmpi_", "MPI_", "PMPI_"];
    let rest = rest
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))?;
    let is_plain = rest
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let name = mpi_name(function).filter(|_| is_plain && is_made(rest))?;
    let (first, rest) = name.split_at_checked(1)?;
    Some(format!("MPI_{}{rest}", first.to_ascii_uppercase()))
}

/// The MPI function that an internal function of Open MPI replaces on the stack: `MPI_Finalize` for
/// `ompi_mpi_finalize`. None for others.
#[must_use]
pub fn outer_name(function: &str) -> Option<String> {
    let rest = INNER_PREFIXES
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))?;
    let (first, rest) = rest.split_at_checked(1)?;
    Some(format!("MPI_{}{rest}", first.to_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_has_one_name_in_all_bindings() {
        assert_eq!(mpi_name("ompi_mpi_finalize").as_deref(), Some("finalize"));
        assert_eq!(mpi_name("MPI_Iprobe@plt").as_deref(), Some("iprobe"));
        let torch = "torch.distributed.all_reduce";
        assert_eq!(mpi_name(torch).as_deref(), Some("allreduce"));
        assert_eq!(mpi_name("torch.distributed.get_rank"), None);
        assert_eq!(mpi_name("all_reduce"), None);
        assert_eq!(
            outer_name("ompi_mpi_finalize").as_deref(),
            Some("MPI_Finalize")
        );
        for made in [
            "mpi_allreduce_",
            "mpi_allreduce__",
            "mpi_allreduce",
            "MPI_ALLREDUCE",
            "pmpi_allreduce_",
            "mpi_allreduce_f08_",
        ] {
            assert_eq!(
                fortran_name(made).as_deref(),
                Some("MPI_Allreduce"),
                "{made}"
            );
        }
        assert_eq!(
            fortran_name("mpi_comm_rank_").as_deref(),
            Some("MPI_Comm_rank")
        );
        for other in [
            "MPI_Allreduce",
            "PMPI_Allreduce",
            "mpi_",
            "mpi::send",
            "recv_",
            "MPI_T_x",
        ] {
            assert_eq!(fortran_name(other), None, "{other}");
        }
        let all = "mca_common_ompio_file_write_at_all";
        assert_eq!(outer_name(all).as_deref(), Some("MPI_File_write_at_all"));
        assert_eq!(outer_name("ompi_mpi_"), None);
        assert_eq!(outer_name("MPI_Recv"), None);
    }
}
