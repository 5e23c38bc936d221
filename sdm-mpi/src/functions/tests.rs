//! Tests of the tables of functions.

use super::*;

#[test]
fn mpi_function_name_determines_its_kind_of_wait() {
    assert!(FUNCTIONS.is_sorted_by_key(|function| function.0));
    let check = |function, expect| assert_eq!(waits_for(function), expect, "{function}");
    check("MPI_Allreduce", Some(W::All));
    check("MPI_Bcast", Some(W::Members));
    check("torch.distributed.broadcast", Some(W::Members));
    check("MPI_Neighbor_alltoallw", Some(W::Members));
    check("mpi_comm_spawn_", Some(W::All));
    check("PMPI_Recv", Some(W::Message));
    check("mpi_iprobe_", Some(W::Poll));
    check("MPI_Wtime", Some(W::Nobody));
    check("MPI_Win_lock", Some(W::Other));
    check("MPIX_Query_cuda_support", Some(W::Other));
    check("read", None);
}

#[test]
fn only_known_blocking_functions_count_as_waiting() {
    let waiting = [
        "MPI_Recv",
        "mpi_allreduce_",
        "MPI_Waitall",
        "MPI_Win_lock",
        "MPI_Neighbor_allgather",
    ];
    assert!(waiting.into_iter().all(is_waiting));
    let others = [
        "MPI_Isend",
        "MPI_Iprobe",
        "MPI_Wtime",
        "MPI_Type_commit",
        "read",
    ];
    assert!(!others.into_iter().any(is_waiting));
}

#[test]
fn nonblocking_collective_maps_to_its_blocking_name() {
    let check = |function, expect: Option<&str>| {
        assert_eq!(
            started_collective(function).as_deref(),
            expect,
            "{function}"
        );
    };
    check("MPI_Ibarrier", Some("barrier"));
    check("mpi_ibcast_", Some("bcast"));
    check("MPI_Ialltoallw_c", Some("alltoallw"));
    check("MPI_Ineighbor_allgather", Some("neighbor_allgather"));
    check("MPI_Reduce_init", Some("reduce"));
    check("MPI_Comm_idup", Some("comm_dup"));
    check("MPI_Comm_idup_with_info", Some("comm_dup_with_info"));
    check("torch.distributed.all_reduce", Some("allreduce"));
    for other in [
        "MPI_Isend",
        "MPI_Init",
        "MPI_Init_thread",
        "MPI_Send_init",
        "MPI_Barrier",
    ] {
        check(other, None);
    }
}

#[test]
fn argument_roles_are_known_in_any_binding() {
    use ArgumentRole as R;
    let places = |function| {
        let roles = roles(function).iter();
        roles
            .map(|(place, role)| (*role, *place))
            .collect::<Vec<_>>()
    };
    for function in [
        "MPI_Recv",
        "PMPI_Recv",
        "mpi_recv_",
        "MPI_Recv_c",
        "mpi_recv_f08_",
    ] {
        let expect = [
            (R::Count, 1),
            (R::Source, 3),
            (R::Tag, 4),
            (R::Communicator, 5),
        ];
        assert_eq!(places(function), expect, "{function}");
    }
    assert_eq!(places("MPI_Mprobe")[0], (R::Source, 0));
    assert_eq!(places("MPI_File_write_ordered"), [(R::Communicator, 0)]);
    assert_eq!(places("MPI_File_delete"), []);
    // `MPI_Mrecv` takes a message handle instead of a source and a tag.
    assert_eq!(places("MPI_Mrecv"), []);
    assert_eq!(places("usleep"), []);
    assert_eq!(roles("torch.distributed.recv"), []);
    let source = Some((R::Source, ["src", "group_src"]));
    assert_eq!(torch_peer("torch.distributed.recv"), source);
    assert_eq!(torch_peer("torch.distributed.barrier"), None);
    assert_eq!(torch_peer("MPI_Recv"), None);
}
