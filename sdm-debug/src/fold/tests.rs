//! Tests of folding, with stacks of running programs as gdb 13.1 showed them, typed in by hand.

mod templates;

use super::*;

const OMPI: &str = "libmpi.so.40";
const LIBC: &str = "libc.so.6";

/// Parses a frame: `function@file:line`, `function` or `??`. `module` is its shared object.
fn frame(text: &str, module: &str) -> RawFrame {
    let (function, place) = text.split_once('@').unwrap_or((text, ""));
    let (file, line) = place.split_once(':').unwrap_or(("", "0"));
    RawFrame {
        function: (function != "??").then(|| function.to_owned()),
        file: (!file.is_empty()).then(|| file.to_owned()),
        line: line.parse().unwrap(),
        module: module.to_owned(),
        place: format!(
            "{}+0x1724",
            if module.is_empty() { "a.out" } else { module }
        ),
    }
}

fn frames(list: &[(&str, &str)]) -> Vec<RawFrame> {
    list.iter()
        .map(|(text, module)| frame(text, module))
        .collect()
}

fn thread(main: bool, list: &[(&str, &str)]) -> RawThread {
    RawThread {
        main,
        name: String::new(),
        frames: frames(list),
        stopped: None,
    }
}

/// Formats frames as `main halo.c:13 > depth halo.c:10 x6 > MPI_Recv halo.c:7`.
fn show(frames: &[StackFrame]) -> String {
    let one = |f: &StackFrame| {
        let mut text = f.function.clone();
        if !f.file.is_empty() {
            text += &format!(" {}:{}", f.file, f.line);
        }
        if f.repeat > 1 {
            text += &format!(" x{}", f.repeat);
        }
        text
    };
    frames.iter().map(one).collect::<Vec<_>>().join(" > ")
}

#[track_caller]
fn check(list: &[(&str, &str)], folded: &str, user: Option<(usize, Option<&str>)>) {
    let rules = FoldRules::default();
    let stacks = fold_task(&[thread(true, list)], &rules, false);
    assert_eq!(stacks.threads.len(), 1);
    assert_eq!(show(&stacks.threads[0].frames), folded);
    let expect = user.map(|(index, inside)| UserFrame {
        index,
        inside: inside.map(str::to_owned),
    });
    assert_eq!(innermost_user_frame(&frames(list), &rules), expect);
}

/// The threads of rank 0 of the halo exchange under Open MPI 4.1.4.
fn ompi_rank_0() -> Vec<RawThread> {
    vec![
        thread(
            false,
            &[
                ("epoll_wait@epoll_wait.c:30", LIBC),
                ("??", "libevent_core-2.1.so.7"),
                ("event_base_loop", "libevent_core-2.1.so.7"),
                ("??", "libpmix.so.2"),
                ("start_thread@pthread_create.c:442", LIBC),
                ("clone3@clone3.S:81", LIBC),
            ],
        ),
        thread(
            false,
            &[
                ("__GI___poll@poll.c:29", LIBC),
                ("??", "libevent_core-2.1.so.7"),
                ("event_base_loop", "libevent_core-2.1.so.7"),
                ("??", "libopen-pal.so.40"),
                ("start_thread@pthread_create.c:442", LIBC),
                ("clone3@clone3.S:81", LIBC),
            ],
        ),
        thread(
            true,
            &[
                ("__GI_sched_yield@syscall-template.S:120", LIBC),
                ("ompi_request_default_wait", OMPI),
                ("PMPI_Sendrecv", OMPI),
                ("exchange@halo.c:8", ""),
                ("depth@halo.c:10", ""),
                ("depth@halo.c:10", ""),
                ("depth@halo.c:10", ""),
                ("depth@halo.c:10", ""),
                ("depth@halo.c:10", ""),
                ("depth@halo.c:10", ""),
                ("main@halo.c:13", ""),
                ("__libc_start_call_main@libc_start_call_main.h:58", LIBC),
                ("__libc_start_main_impl@libc-start.c:381", LIBC),
                ("_start", ""),
            ],
        ),
    ]
}

#[test]
fn open_mpi_task_folds_to_one_stack_and_two_helpers() {
    let stacks = fold_task(&ompi_rank_0(), &FoldRules::default(), false);
    assert_eq!(stacks.helpers, 2);
    assert_eq!(stacks.threads.len(), 1);
    assert!(stacks.threads[0].main);
    assert_eq!(
        show(&stacks.threads[0].frames),
        "main halo.c:13 > depth halo.c:10 x6 > exchange halo.c:8 > MPI_Sendrecv halo.c:8"
    );
    assert_eq!(stacks.threads[0].frames[3].module, OMPI);
}

#[test]
fn full_option_shows_every_thread() {
    let stacks = fold_task(&ompi_rank_0(), &FoldRules::default(), true);
    assert_eq!((stacks.threads.len(), stacks.helpers), (3, 0));
    assert_eq!(stacks.threads[0].frames.len(), 14);
    assert_eq!(
        show(&stacks.threads[1].frames),
        "clone3 clone3.S:81 > start_thread pthread_create.c:442 > libopen-pal.so.40+0x1724 > \
         event_base_loop > libevent_core-2.1.so.7+0x1724 > __GI___poll poll.c:29"
    );
}

#[test]
fn open_mpi_component_is_not_a_user_frame() {
    check(
        &[
            ("__GI_sched_yield@syscall-template.S:120", LIBC),
            ("mca_pml_ob1_recv", "mca_pml_ob1.so"),
            ("PMPI_Recv", OMPI),
            ("exchange@halo.c:7", ""),
            ("main@halo.c:13", ""),
        ],
        "main halo.c:13 > exchange halo.c:7 > MPI_Recv halo.c:7",
        Some((3, Some("MPI_Recv"))),
    );
}

#[test]
fn mpich_frames_over_ucx_are_folded() {
    check(
        &[
            ("??", "libuct.so.0"),
            ("ucp_worker_progress", "libucp.so.0"),
            ("??", "libmpich.so.12"),
            ("??", "libmpich.so.12"),
            ("PMPI_Recv", "libmpich.so.12"),
            ("exchange@halo.c:7", ""),
            ("main@halo.c:13", ""),
        ],
        "main halo.c:13 > exchange halo.c:7 > MPI_Recv halo.c:7",
        Some((5, Some("MPI_Recv"))),
    );
    let helper = thread(
        false,
        &[
            ("epoll_wait@epoll_wait.c:30", LIBC),
            ("ucs_event_set_wait", "libucs.so.0"),
            ("??", "libucs.so.0"),
            ("start_thread@pthread_create.c:442", LIBC),
            ("clone3@clone3.S:81", LIBC),
        ],
    );
    let stacks = fold_task(&[helper], &FoldRules::default(), false);
    assert_eq!((stacks.threads.len(), stacks.helpers), (0, 1));
}

#[test]
fn fortran_mpi_names_are_folded() {
    check(
        &[
            ("__GI___poll@poll.c:29", LIBC),
            ("PMPI_Barrier", OMPI),
            ("pmpi_barrier_", "libmpi_mpifh.so.40"),
            ("solve@solve.f90:31", ""),
            ("MAIN__@solve.f90:9", ""),
            ("main@solve.f90:12", ""),
        ],
        "main solve.f90:12 > MAIN__ solve.f90:9 > solve solve.f90:31 > MPI_Barrier solve.f90:31",
        Some((3, Some("MPI_Barrier"))),
    );
}

#[test]
fn user_subroutine_named_mpi_is_not_folded() {
    check(
        &[("mpi_setup_@a.f90:4", ""), ("main@a.f90:9", "")],
        "main a.f90:9 > mpi_setup_ a.f90:4",
        Some((0, None)),
    );
}

#[test]
fn libc_calls_are_shown_by_the_name_the_user_wrote() {
    check(
        &[
            ("__GI___clock_nanosleep@clock_nanosleep.c:48", LIBC),
            ("__GI___nanosleep@nanosleep.c:25", LIBC),
            ("__sleep@sleep.c:55", LIBC),
            ("work@w.c:5", ""),
            ("main@w.c:9", ""),
        ],
        "main w.c:9 > work w.c:5 > sleep w.c:5",
        Some((3, Some("sleep"))),
    );
    check(
        &[
            ("__pthread_kill_implementation@pthread_kill.c:44", LIBC),
            ("__GI_raise@raise.c:26", LIBC),
            ("__GI_abort@abort.c:79", LIBC),
            ("check@c.c:3", "libuser.so"),
            ("main@w.c:9", ""),
        ],
        "main w.c:9 > check c.c:3 > abort c.c:3",
        Some((3, Some("abort"))),
    );
}

#[test]
fn callbacks_from_a_runtime_are_user_frames() {
    check(
        &[
            ("my_op@op.c:7", ""),
            ("??", OMPI),
            ("PMPI_Allreduce", OMPI),
            ("main@op.c:20", ""),
        ],
        "main op.c:20 > MPI_Allreduce op.c:20 > my_op op.c:7",
        Some((0, None)),
    );
    check(
        &[
            ("by_key@q.c:3", ""),
            ("msort_with_tmp@msort.c:82", LIBC),
            ("__GI___qsort_r@msort.c:297", LIBC),
            ("main@q.c:9", ""),
        ],
        "main q.c:9 > qsort_r q.c:9 > by_key q.c:3",
        Some((0, None)),
    );
}

#[test]
fn statically_linked_runtime_is_folded() {
    check(
        &[
            ("MPIDI_progress@ch4.c:12", ""),
            ("PMPI_Recv", ""),
            ("main@s.c:9", ""),
        ],
        "main s.c:9 > MPI_Recv s.c:9",
        Some((2, Some("MPI_Recv"))),
    );
}

#[test]
fn profiling_wrapper_counts_as_the_mpi_call() {
    check(
        &[
            ("??", OMPI),
            ("PMPI_Recv", OMPI),
            ("MPI_Recv@trace.c:40", ""),
            ("main@s.c:9", ""),
        ],
        "main s.c:9 > MPI_Recv s.c:9",
        Some((3, Some("MPI_Recv"))),
    );
}

#[test]
fn vdso_is_not_a_user_frame() {
    // gdb has no module for the vDSO. An inspection without gdb has its name from the process's mappings.
    for (libc, vdso) in [(true, ""), (true, "[vdso]"), (false, "[vdso]")] {
        let mut frames = vec![("clock_gettime", vdso)];
        frames.extend(libc.then_some(("__GI___clock_gettime@clock_gettime.c:38", LIBC)));
        frames.extend([
            ("opal_progress", "libopen-pal.so.40"),
            ("PMPI_Wait", OMPI),
            ("main@s.c:9", ""),
        ]);
        let user = frames.len() - 1;
        check(
            &frames,
            "main s.c:9 > MPI_Wait s.c:9",
            Some((user, Some("MPI_Wait"))),
        );
    }
}

#[test]
fn signal_handler_frame_separates_the_interrupted_code() {
    check(
        &[
            ("on_usr1@s.c:3", ""),
            ("<signal handler called>", ""),
            ("??", OMPI),
            ("PMPI_Wait", OMPI),
            ("main@s.c:9", ""),
        ],
        "main s.c:9 > MPI_Wait s.c:9 > <signal handler called> > on_usr1 s.c:3",
        Some((0, None)),
    );
    check(
        &[
            ("__GI_raise@raise.c:26", LIBC),
            ("ucs_handle_error", "libucs.so.0"),
            ("<signal handler called>", ""),
            ("__strlen_avx2@strlen-avx2.S:76", LIBC),
            ("main@s.c:9", ""),
        ],
        "main s.c:9 > strlen s.c:9 > <signal handler called> > ucs_handle_error",
        Some((4, Some("strlen"))),
    );
}

#[test]
fn stack_without_user_frames_shows_one_runtime_frame() {
    check(&[("_start", "ld-linux-x86-64.so.2")], "_start", None);
    check(
        &[
            ("_dl_map_object@dl-load.c:1", "ld-linux-x86-64.so.2"),
            ("dl_main@rtld.c:1900", "ld-linux-x86-64.so.2"),
            ("_start", "ld-linux-x86-64.so.2"),
        ],
        "dl_main",
        None,
    );
    check(&[], "", None);
}

#[test]
fn frames_without_names_are_shown_by_module_offset() {
    check(
        &[("??", ""), ("??", "libuser.so"), ("main@s.c:9", "")],
        "main s.c:9 > libuser.so+0x1724 > a.out+0x1724",
        Some((0, None)),
    );
    check(
        &[("??", "libmpich.so.12"), ("main@s.c:9", "")],
        "main s.c:9 > libmpich.so.12 s.c:9",
        Some((1, Some("libmpich.so.12"))),
    );
}

#[test]
fn start_code_of_a_stripped_program_is_hidden() {
    let start = [("??", LIBC), ("__libc_start_main_impl", LIBC), ("??", "")];
    let main = [("MPI_Recv", OMPI), ("??", "")];
    let of = |inner: &[(&'static str, &'static str)]| [inner, &start].concat();
    check(
        &of(&main),
        "a.out+0x1724 > MPI_Recv",
        Some((1, Some("MPI_Recv"))),
    );
    // A function that libc calls at the end is still the user's.
    let end = [
        ("??", "libuser.so"),
        ("__cxa_finalize", LIBC),
        ("exit", LIBC),
    ];
    check(&of(&end), "libuser.so+0x1724", Some((0, None)));
}

#[test]
fn equal_threads_merge_in_any_order() {
    let omp = thread(
        false,
        &[
            ("main._omp_fn.0@o.c:5", ""),
            ("gomp_thread_start@team.c:129", "libgomp.so.1"),
            ("start_thread@pthread_create.c:442", LIBC),
            ("clone3@clone3.S:81", LIBC),
        ],
    );
    let main = thread(
        true,
        &[
            ("main._omp_fn.0@o.c:5", ""),
            ("GOMP_parallel@parallel.c:178", "libgomp.so.1"),
            ("main@o.c:3", ""),
        ],
    );
    let io = thread(false, &[("writer@io.c:9", ""), ("start_thread", LIBC)]);
    let rules = FoldRules::default();
    let one = fold_task(
        &[main.clone(), omp.clone(), io.clone(), omp.clone()],
        &rules,
        false,
    );
    let other = fold_task(&[io, omp.clone(), omp, main], &rules, false);
    assert_eq!(one, other);
    let shown: Vec<_> = one
        .threads
        .iter()
        .map(|t| (t.count, t.main, show(&t.frames)))
        .collect();
    let expect = [
        (
            1,
            true,
            "main o.c:3 > GOMP_parallel o.c:3 > main._omp_fn.0 o.c:5",
        ),
        (2, false, "main._omp_fn.0 o.c:5"),
        (1, false, "writer io.c:9"),
    ];
    assert_eq!(
        shown,
        expect.map(|(n, main, text)| (n, main, text.to_owned()))
    );
}

#[test]
fn recursion_is_counted_only_at_the_same_line() {
    check(
        &[
            ("rec@r.c:2", ""),
            ("rec@r.c:3", ""),
            ("rec@r.c:3", ""),
            ("rec@r.c:4", ""),
            ("main@r.c:9", ""),
        ],
        "main r.c:9 > rec r.c:4 > rec r.c:3 x2 > rec r.c:2",
        Some((0, None)),
    );
}

#[test]
fn deep_stacks_and_long_names_are_bounded() {
    let mut list = [("a@r.c:1", ""), ("b@r.c:2", "")].repeat(5000);
    list.push(("main@r.c:9", ""));
    let mut deep = thread(true, &list);
    deep.stopped = Some(STOPPED.to_owned());
    for full in [false, true] {
        let mut stacks = fold_task(std::slice::from_ref(&deep), &FoldRules::default(), full);
        mark_halted(&mut stacks);
        let frames = &stacks.threads[0].frames;
        assert_eq!(frames.len(), STACK_FRAMES_MAX);
        let names = [0, 1, 2, 129, 255].map(|at| &*frames[at].function);
        assert_eq!(names, [HALTED, STOPPED, "main", "... 9748 frames", "a"]);
    }

    let long = |end: &str| "é".repeat(4000) + end;
    let name = |end| StackFrame::from(&frame(&long(end), "")).function;
    assert!(name("x").len() <= NAME_BYTES_MAX);
    assert_ne!(name("x"), name("y"));
}

#[test]
fn statically_linked_clang_sanitizers_are_folded() {
    check(
        &[
            ("__sanitizer_report_error_summary", ""),
            ("__sanitizer::ReportErrorSummary", ""),
            ("__asan::ReportDoubleFree", ""),
            ("free", ""),
            ("main@heap.c:8", ""),
        ],
        "main heap.c:8 > free heap.c:8",
        Some((4, Some("free"))),
    );
    check(
        &[
            ("__asan::ReportGenericError", ""),
            ("__asan_report_load4", ""),
            ("sum", ""),
            ("main", ""),
        ],
        "main > sum > __asan_report_load4",
        Some((2, Some("__asan_report_load4"))),
    );
    // The sanitizer's runtime starts the threads too.
    check(
        &[
            ("__tsan::ReportRace", ""),
            ("work@race.c:4", ""),
            ("__tsan_thread_start_func", ""),
            ("start_thread", LIBC),
            ("clone3", LIBC),
        ],
        "work race.c:4 > tsan::ReportRace race.c:4",
        Some((1, Some("tsan::ReportRace"))),
    );
}
