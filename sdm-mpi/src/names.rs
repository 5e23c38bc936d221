//! Maps the name of a function to that of the MPI function. Known are the names of C, of Fortran, of
//! `torch.distributed`, and of the internal functions of Open MPI.

/// The prefixes of the names of MPI functions.
const PREFIXES: [&str; 4] = ["mpi_", "pmpi_", "mpix_", "pmpix_"];
/// The prefixes of profiling names, which replace a name's own: `PMPI_Recv` is `MPI_Recv`.
pub const PROFILING_PREFIXES: [&str; 3] = ["PMPI_", "PMPIX_", "pmpi_"];
/// Prefixes of Open MPI's internal functions to which an MPI function ends with a tail call. Such a function stands on
/// the stack in place of the MPI function.
const INNER_PREFIXES: [&str; 2] = ["ompi_mpi_", "mca_common_ompio_"];

/// The suffix that gdb adds to the name of a function for its PLT stub.
const STUB_SUFFIX: &str = "@plt";

/// The prefix of the functions of PyTorch's package `torch.distributed`.
pub const TORCH_PREFIX: &str = "torch.distributed.";
/// The functions of `torch.distributed` with the names of their MPI counterparts.
const OF_TORCH: &[(&str, &str)] = &[
    ("RecvWork.wait", "wait"),
    ("Reducer.finalize_backward", "reduce_gradients"),
    ("SendWork.wait", "wait"),
    ("Work.wait", "wait"),
    ("all_gather", "allgather"),
    ("all_gather_into_tensor", "allgather"),
    ("all_gather_object", "allgather"),
    ("all_gather_single", "allgather"),
    ("all_reduce", "allreduce"),
    ("all_reduce_coalesced", "allreduce"),
    ("all_to_all", "alltoall"),
    ("all_to_all_single", "alltoall"),
    ("barrier", "barrier"),
    ("broadcast", "bcast"),
    ("broadcast_object_list", "bcast"),
    ("gather", "gather"),
    ("gather_into_tensor", "gather"),
    ("gather_object", "gather"),
    ("gather_single", "gather"),
    ("init_process_group", "init"),
    ("monitored_barrier", "barrier"),
    ("new_group", "comm_create_group"),
    ("recv", "recv"),
    ("recv_object_list", "recv"),
    ("reduce", "reduce"),
    ("reduce_scatter", "reduce_scatter"),
    ("reduce_scatter_single", "reduce_scatter"),
    ("reduce_scatter_tensor", "reduce_scatter"),
    ("scatter", "scatter"),
    ("scatter_object_list", "scatter"),
    ("send", "send"),
    ("send_object_list", "send"),
];

/// The operations of `torch.distributed`, by the prefixes of the gloo classes that carry them out: `Barrier` for
/// `AsyncBarrierWork`.
const WORKS_OF_TORCH: &[(&str, &str)] = &[
    ("Allgather", "torch.distributed.all_gather"),
    ("Allreduce", "torch.distributed.all_reduce"),
    ("Alltoall", "torch.distributed.all_to_all"),
    ("Barrier", "torch.distributed.barrier"),
    ("Broadcast", "torch.distributed.broadcast"),
    ("Gather", "torch.distributed.gather"),
    ("Reduce", "torch.distributed.reduce"),
    ("ReduceScatter", "torch.distributed.reduce_scatter"),
    ("Scatter", "torch.distributed.scatter"),
];

/// The Python name of a C++ function of PyTorch in which a thread waits for an operation:
/// `torch.distributed.Work.wait`. None for other functions.
#[must_use]
pub fn torch_wait(function: &str) -> Option<&'static str> {
    let name = function.strip_prefix("c10d::")?;
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    Some(match name.rsplit_once("::")? {
        ("Reducer", "finalize_backward") => "torch.distributed.Reducer.finalize_backward",
        (class, "wait") if class.ends_with("RecvWork") => "torch.distributed.RecvWork.wait",
        (class, "wait") if class.ends_with("SendWork") => "torch.distributed.SendWork.wait",
        (class, "wait") if class.ends_with("Work") => "torch.distributed.Work.wait",
        _ => return None,
    })
}

/// The operation that a thread of PyTorch carries out in this function. None for other functions.
#[must_use]
pub fn torch_work(function: &str) -> Option<&'static str> {
    let (_, class) = function.strip_prefix("c10d::")?.split_once("Async")?;
    let (class, _) = class.split_once("Work::")?;
    let mut known = WORKS_OF_TORCH.iter();
    known
        .find(|(name, _)| *name == class)
        .map(|(_, name)| *name)
}

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
    Some(without_binding(name).trim_end_matches("_c").to_owned())
}

/// A name in lower case without the suffixes of Fortran's bindings: `mpi_recv` for `mpi_recv_` and `mpi_recv_f08_`.
#[must_use]
pub fn without_binding(name: &str) -> &str {
    let name = name.trim_end_matches('_').trim_end_matches("_f08ts");
    name.trim_end_matches("_f08")
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
/// `ompi_mpi_finalize`. None for other functions.
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
    fn torch_functions_of_c_plus_plus_are_named() {
        let wait =
            "c10d::Work::wait(std::chrono::duration<long, std::ratio<(long)1, (long)1000> >)";
        assert_eq!(torch_wait(wait), Some("torch.distributed.Work.wait"));
        let check = |name, expect| assert_eq!(torch_wait(name), expect, "{name}");
        let gradients = "torch.distributed.Reducer.finalize_backward";
        check("c10d::Reducer::finalize_backward()", Some(gradients));
        let receive = "c10d::ProcessGroupGloo::RecvWork::wait(std::chrono::duration<long>)";
        check(receive, Some("torch.distributed.RecvWork.wait"));
        check("c10d::Store::wait(std::vector<int>)", None);
        check("gloo::barrier(gloo::BarrierOptions&)", None);
        let check = |name, expect| assert_eq!(torch_work(name), expect, "{name}");
        let barrier = "c10d::(anonymous namespace)::AsyncBarrierWork::run()";
        check(barrier, Some("torch.distributed.barrier"));
        let reduction = "c10d::AsyncAllreduceWork::allreduce(std::vector<at::Tensor>&)";
        check(reduction, Some("torch.distributed.all_reduce"));
        check("c10d::ProcessGroupGloo::AsyncWork::execute(int)", None);
    }

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
