//! Calls of a runtime in the source: which functions wait for locks, which arguments say whom a call waits
//! for, and where these stand in a line of source.

mod fortran;
mod waiting;

use crate::probe::ArgumentRole;
use crate::quoted::outside_quotes;
pub use fortran::{
    Form, array_names, fortran_argument, fortran_arguments, is_array_type, statement,
};
pub use waiting::{is_file, is_join, is_lock, is_mutex, is_sleep, plain};

/// What the names of MPI's functions begin with.
const PREFIXES: [&str; 4] = ["mpi_", "pmpi_", "mpix_", "pmpix_"];
/// What those of Open MPI's own functions begin with that stand in the place of those that end by calling them.
const INNER_PREFIXES: [&str; 2] = ["ompi_mpi_", "mca_common_ompio_"];

/// What is in front of the functions of PyTorch's package of that name.
pub const TORCH_PREFIX: &str = "torch.distributed.";
/// What they are called in MPI.
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

/// True for calls that wait for requests, all of them.
#[must_use]
pub fn waits_for_requests(function: &str) -> bool {
    matches!(mpi_name(function).as_deref(), Some("wait" | "waitall"))
}

/// The name of an MPI function without `MPI_` and what a language binding adds, in lower case:
/// `recv` of `MPI_Recv`, `PMPI_Recv`, `mpi_recv_`; of `torch.distributed.all_reduce`, which waits in the same way, `allreduce`. `None`
/// for what is no such function.
#[must_use]
pub fn mpi_name(function: &str) -> Option<String> {
    if let Some(name) = function.strip_prefix(TORCH_PREFIX) {
        let mut known = OF_TORCH.iter();
        let (_, known) = known.find(|(torch, _)| *torch == name)?;
        return Some((*known).to_owned());
    }
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

/// The name of one of MPI's functions as the standard has it, of a name that a Fortran compiler has made: `MPI_Allreduce`
/// of `mpi_allreduce__`, `pmpi_allreduce_f08_` and `MPI_ALLREDUCE`. `None` for every other one.
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

/// The function that a user has called, by the name that stands in the source: Open MPI's own functions stand in the
/// place of those that end by calling them.
#[must_use]
pub fn spoken(function: &str) -> String {
    let function = plain(function);
    let rest = INNER_PREFIXES
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix));
    match rest.and_then(|rest| rest.split_at_checked(1)) {
        Some((first, rest)) => format!("MPI_{}{rest}", first.to_ascii_uppercase()),
        None => function.to_owned(),
    }
}

/// The arguments of a call that say whom it waits for, each with its place from 0; none for a call that
/// is not known here. C, Fortran and `mpi_f08` have them in the same places.
#[must_use]
pub fn roles(function: &str) -> &'static [(usize, ArgumentRole)] {
    use ArgumentRole as R;
    // PyTorch's are called with other arguments, which are Python's.
    if function.starts_with(TORCH_PREFIX) {
        return &[];
    }
    let Some(name) = mpi_name(function) else {
        return if is_file(function) {
            &[(0, R::File)]
        } else {
            &[]
        };
    };
    match name.as_str() {
        "recv" => &[
            (1, R::Count),
            (3, R::Source),
            (4, R::Tag),
            (5, R::Communicator),
        ],
        "send" | "ssend" | "bsend" | "rsend" => &[
            (1, R::Count),
            (3, R::Destination),
            (4, R::Tag),
            (5, R::Communicator),
        ],
        "probe" | "mprobe" | "iprobe" => &[(0, R::Source), (1, R::Tag), (2, R::Communicator)],
        "sendrecv" => &[
            (1, R::Count),
            (3, R::Destination),
            (4, R::Tag),
            (8, R::Source),
            (9, R::ReceiveTag),
            (10, R::Communicator),
        ],
        "sendrecv_replace" => &[
            (1, R::Count),
            (3, R::Destination),
            (4, R::Tag),
            (5, R::Source),
            (6, R::ReceiveTag),
            (7, R::Communicator),
        ],
        _ => collective_roles(&name),
    }
}

/// The same of collective operations, of requests and of windows.
fn collective_roles(name: &str) -> &'static [(usize, ArgumentRole)] {
    use ArgumentRole as R;
    match name {
        "barrier" | "comm_dup" | "comm_split" | "comm_create" => &[(0, R::Communicator)],
        "comm_dup_with_info" | "comm_split_type" => &[(0, R::Communicator)],
        "cart_create" | "cart_sub" | "graph_create" => &[(0, R::Communicator)],
        "dist_graph_create" | "dist_graph_create_adjacent" => &[(0, R::Communicator)],
        "bcast" => &[(1, R::Count), (3, R::Root), (4, R::Communicator)],
        "reduce" => &[(2, R::Count), (5, R::Root), (6, R::Communicator)],
        "allreduce" | "scan" | "exscan" | "reduce_scatter_block" => {
            &[(2, R::Count), (5, R::Communicator)]
        }
        "reduce_scatter" => &[(5, R::Communicator)],
        "gather" | "scatter" => &[(6, R::Root), (7, R::Communicator)],
        "gatherv" => &[(7, R::Root), (8, R::Communicator)],
        "scatterv" => &[(7, R::Root), (8, R::Communicator)],
        "allgather" | "alltoall" => &[(6, R::Communicator)],
        "neighbor_allgather" | "neighbor_alltoall" => &[(6, R::Communicator)],
        "allgatherv" | "neighbor_allgatherv" => &[(7, R::Communicator)],
        "alltoallv" | "alltoallw" => &[(8, R::Communicator)],
        "neighbor_alltoallv" | "neighbor_alltoallw" => &[(8, R::Communicator)],
        "win_allocate" | "win_allocate_shared" => &[(3, R::Communicator)],
        "win_create" => &[(4, R::Communicator)],
        "win_create_dynamic" => &[(1, R::Communicator)],
        "waitall" | "waitany" | "waitsome" | "testall" | "testany" | "testsome" => {
            &[(0, R::Requests)]
        }
        "win_lock" => &[(1, R::Target)],
        "win_unlock" | "win_flush" => &[(0, R::Target)],
        "file_open" => &[(0, R::Communicator)],
        _ => &[],
    }
}

/// The longest expression that is evaluated, in bytes.
const EXPRESSION_BYTES_MAX: usize = 512;
/// The longest text that is read, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The arguments of the first call of `function` in some lines of source; absent where there is
/// no whole call, and where another call of it with other arguments begins on the same line, as which of them is
/// meant is not known. Fortran's names are found in any case.
#[must_use]
pub fn call_arguments(text: &str, function: &str) -> Option<Vec<String>> {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    in_plain(&without_comments(&text[..end]), function)
}

/// The same in text without comments.
fn in_plain(text: &str, function: &str) -> Option<Vec<String>> {
    let lower = text.to_ascii_lowercase();
    let name = function.to_ascii_lowercase();
    let name = name.trim_start_matches("pmpi_").trim_end_matches('_');
    let name = name.trim_end_matches("_f08ts").trim_end_matches("_f08");
    let mut from = 0;
    let mut first: Option<(usize, Vec<String>)> = None;
    while let Some(found) = lower[from..].find(name) {
        let start = from + found;
        if let Some((first, _)) = &first
            && text[*first..start].contains('\n')
        {
            break;
        }
        let after = start + name.len();
        let rest = text[after..].trim_start();
        let whole_word = !text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            || lower[..start].ends_with("pmpi_");
        if whole_word && rest.starts_with('(') {
            let these = arguments(&rest[1..])?;
            match &first {
                Some((_, known)) if *known != these => return None,
                Some(_) => {}
                None => first = Some((start, these)),
            }
        }
        from = after;
    }
    first.map(|(_, arguments)| arguments)
}

/// True for an expression whose evaluation changes nothing in the program and runs none of it: no call, no
/// assignment, no `++` or `--`. What looks like a call is taken for one, an element of a Fortran array too.
#[must_use]
pub fn is_harmless(expression: &str) -> bool {
    let plain: String = outside_quotes(expression).map(|(_, c)| c).collect();
    let mut before = ' ';
    for (at, c) in plain.char_indices() {
        let next = plain[at + c.len_utf8()..].chars().next();
        let harmful = match c {
            '(' => before.is_alphanumeric() || matches!(before, '_' | ')' | ']' | '$' | '>'),
            '+' | '-' => next == Some(c),
            '=' => next != Some('=') && !matches!(before, '=' | '!' | '<' | '>'),
            _ => false,
        };
        // `<<=` and `>>=` assign; `<=` and `>=` compare.
        let shifts = c == '=' && (plain[..at].ends_with("<<") || plain[..at].ends_with(">>"));
        if harmful || shifts || plain.len() > EXPRESSION_BYTES_MAX {
            return false;
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    true
}

fn arguments(text: &str) -> Option<Vec<String>> {
    let (mut depth, mut from) = (0_i32, 0);
    let mut found = Vec::new();
    for (at, c) in outside_quotes(text) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                found.push(tidy(&text[from..at]));
                return Some(found);
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(tidy(&text[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// One line, without continuation marks.
fn tidy(text: &str) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| line.trim().trim_end_matches(['&', '\\']));
    let words = lines.flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

fn without_comments(text: &str) -> String {
    let mut plain = text.to_owned();
    while let Some(start) = plain.find("/*") {
        let end = plain[start..].find("*/");
        let end = end.map_or(plain.len(), |at| start + at + 2);
        plain.replace_range(start..end, " ");
    }
    let lines = plain.lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_over_lines_and_comments() {
        let text = "    rc = MPI_Recv(&cells[f(1, 2)], 1, MPI_DOUBLE, left, /* not, this */\n\
                    \t\ttag + 1, // nor, this\n\t\tcomm, &status);\n";
        let expect = [
            "&cells[f(1, 2)]",
            "1",
            "MPI_DOUBLE",
            "left",
            "tag + 1",
            "comm",
            "&status",
        ];
        assert_eq!(call_arguments(text, "MPI_Recv").unwrap(), expect);
        let text = "      call mpi_recv(buf, n, MPI_REAL, src, &\n     tag, comm, st, ierr)";
        assert_eq!(
            call_arguments(text, "mpi_recv_").unwrap()[3..5],
            ["src", "tag"]
        );
        assert_eq!(
            call_arguments("flock(fd, LOCK_EX)", "flock").unwrap()[0],
            "fd"
        );
    }

    #[test]
    fn roles_are_those_of_the_function_in_any_binding() {
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
        assert_eq!(places("__GI___libc_read"), [(R::File, 0)]);
        // It has a message instead of a source and a tag.
        assert_eq!(places("MPI_Mrecv"), []);
        assert_eq!(places("usleep"), []);
        assert_eq!(mpi_name("ompi_mpi_finalize").as_deref(), Some("finalize"));
        let torch = "torch.distributed.all_reduce";
        assert_eq!(mpi_name(torch).as_deref(), Some("allreduce"));
        assert_eq!(mpi_name("torch.distributed.get_rank"), None);
        assert_eq!(mpi_name("all_reduce"), None);
        assert_eq!(roles("torch.distributed.recv"), []);
        assert_eq!(spoken("ompi_mpi_finalize"), "MPI_Finalize");
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
        assert_eq!(spoken(all), "MPI_File_write_at_all");
        assert_eq!(spoken("__GI___libc_read"), "read");
        assert_eq!(spoken("ompi_mpi_"), "ompi_mpi_");
    }

    #[test]
    fn what_could_change_the_program_is_not_evaluated() {
        for harmless in [
            "left",
            "(rank + 1) % size",
            "&cells[3 * (row + 1)]",
            "a == b",
            "a <= b",
            "-1",
            "p->tag",
            "*(int *) p",
            "\"f(x)\"",
        ] {
            assert!(is_harmless(harmless), "{harmless}");
        }
        for harmful in [
            "next()",
            "f (x)",
            "tag++",
            "--n",
            "n = 3",
            "n += 1",
            "n <<= 1",
            "ops[i](x)",
            "(*f)(x)",
        ] {
            assert!(!is_harmless(harmful), "{harmful}");
        }
        assert!(!is_harmless(&"a+".repeat(EXPRESSION_BYTES_MAX)));
    }

    #[test]
    fn of_two_calls_on_one_line_neither_is_taken_for_the_one() {
        let two = "if (rank % 2) MPI_Recv(a, 1, t, left, 1, c, s); else MPI_Recv(a, 1, t, right, 1, c, s);";
        assert_eq!(call_arguments(two, "MPI_Recv"), None);
        let alike = two.replace("right", "left");
        let found = call_arguments(&alike, "MPI_Recv").unwrap();
        assert_eq!(found[3], "left");
        let below = two.replace("else", "else\n");
        assert_eq!(call_arguments(&below, "MPI_Recv").unwrap()[3], "left");
        let other = two.replace("else MPI_Recv", "else MPI_Send");
        assert_eq!(call_arguments(&other, "MPI_Recv").unwrap()[3], "left");
    }

    #[test]
    fn what_is_no_whole_call_is_none() {
        for text in [
            "",
            "MPI_Recv",
            "MPI_Recv(a, b",
            "xMPI_Recv(a)",
            "MPI_Recvx(a)",
        ] {
            assert_eq!(call_arguments(text, "MPI_Recv"), None, "{text}");
        }
    }
}
