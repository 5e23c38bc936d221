//! Generation of the library's C source for the functions of one MPI.
//!
//! Each function gets the same kind of wrapper. The wrapper checks the arguments by their types and by their names,
//! which are those of the standard. It records the handles that the call creates and frees. Checks that only certain
//! functions need are in `hooks.h`, under the names of these functions.

use std::fmt::Write;

use sdm_mpi::usage::{
    ANYTIME, ANYTIME_BEGINNINGS, COLLECTIVES, COMM, COUNTS, FREES, MAKES_COMMUNICATOR,
    MAKES_ON_COMMUNICATOR, NEIGHBORS, NULL_IS_FINE, ROOTED, SESSION, SHAPES, STRICT,
};

use crate::buffers;
use crate::life::{kind_of, life};
use crate::matching;
use crate::prototypes::{Parameter, Prototype, plain};
use crate::windows;

const CORE: &str = include_str!("c/core.h");
/// The C sources that call MPI, in this order. They follow the definitions of MPI's own functions.
const PARTS: [&str; 16] = [
    include_str!("c/python.h"),
    include_str!("c/objects.h"),
    include_str!("c/types.h"),
    include_str!("c/layouts.h"),
    include_str!("c/requests.h"),
    include_str!("c/arguments.h"),
    include_str!("c/collectives.h"),
    include_str!("c/orders.h"),
    include_str!("c/messages.h"),
    include_str!("c/comparison.h"),
    include_str!("c/neighbours.h"),
    include_str!("c/shapes.h"),
    include_str!("c/epochs.h"),
    include_str!("c/accesses.h"),
    include_str!("c/fatal.h"),
    include_str!("c/hooks.h"),
];

/// The C source of the library for an MPI with these functions.
pub(crate) fn source(functions: &[Prototype]) -> String {
    let mut text = CORE.to_owned();
    let mut line = |part: std::fmt::Arguments<'_>| {
        text.write_fmt(part).expect("a string takes any text");
        text.push('\n');
    };
    for name in functions.iter().map(Prototype::symbol) {
        line(format_args!(
            "static __typeof__(&MPI_{name}) real_MPI_{name}, real_PMPI_{name};"
        ));
        // Calls of MPI by this library do not pass its wrappers.
        line(format_args!("#define PMPI_{name} (*real_PMPI_{name})"));
    }
    let all: String = functions
        .iter()
        .map(|it| format!("\"MPI_{}\", ", it.symbol()))
        .collect();
    line(format_args!(
        "static const char *const FUNCTIONS[] = {{{all}}};"
    ));
    for part in PARTS {
        line(format_args!("{part}"));
    }
    // A library of MPI's for C++ calls MPI while it is loaded, which is before this library's own beginning.
    line(format_args!(
        "static int is_looked_up;\n__attribute__((constructor)) static void look_up_all(void) {{ is_looked_up = 1;"
    ));
    for name in functions.iter().map(Prototype::symbol) {
        line(format_args!(
            "real_MPI_{name} = dlsym(RTLD_NEXT, \"MPI_{name}\"); real_PMPI_{name} = dlsym(RTLD_NEXT, \"PMPI_{name}\");"
        ));
    }
    line(format_args!("}}"));
    for function in functions {
        // A rank may call the variant for large counts where another one does not.
        let is_first = |it: &Prototype| it.name == function.name;
        let number = functions.iter().position(is_first).unwrap_or_default();
        line(format_args!("{}", wrapper(number, function)));
    }
    for function in functions {
        line(format_args!("{}", exported(function)));
    }
    text
}

/// The functions with the names `MPI_...` and `PMPI_...`, which the program calls.
fn exported(function: &Prototype) -> String {
    let name = function.symbol();
    let declared = declared(function);
    let from = "__builtin_return_address(0)";
    let given: String = function.names().map(|it| format!(", {it}")).collect();
    format!(
        "#undef PMPI_{name}\n\
         __attribute__((visibility(\"default\"))) int MPI_{name}({declared}) {{ return own_{name}(0, {from}{given}); }}\n\
         __attribute__((visibility(\"default\"))) int PMPI_{name}({declared}) {{ return own_{name}(1, {from}{given}); }}"
    )
}

fn declared(function: &Prototype) -> String {
    if function.parameters.is_empty() {
        return "void".to_owned();
    }
    let all = function.parameters.iter().map(|it| it.declared.as_str());
    all.collect::<Vec<_>>().join(", ")
}

/// The wrapper, which the functions of both names call.
fn wrapper(number: usize, function: &Prototype) -> String {
    let name = function.name.as_str();
    let parameters: String = function
        .parameters
        .iter()
        .map(|it| format!(", {}", it.declared))
        .collect();
    let given = function.names().collect::<Vec<_>>().join(", ");
    let more: String = function.names().map(|it| format!(", {it}")).collect();
    let anytime = i32::from(is_anytime(name));
    let symbol = function.symbol();
    let hook = |when: &str, rest: &str| {
        let is_there = |own: &String| PARTS.iter().any(|part| has_word(part, own));
        let own = [&symbol, name].map(|it| format!("{when}_{it}"));
        let own = own.into_iter().find(is_there);
        own.map_or_else(String::new, |own| format!("{own}(&call{rest}{more});"))
    };
    let (pre, post) = (hook("pre", ""), hook("post", ", rc"));
    let (before, behind) = life(function);
    let (first, last) = matching::message(number, function);
    let looks = match name {
        "Init" | "Init_thread" => format!("begin(&call, 1); {pre}"),
        _ => format!(
            "if (begin(&call, {anytime})) {{ {}{pre} }}",
            checks(number, function)
        ),
    };
    let strict = strict(function, &given);
    let order = windows::order(function);
    format!(
        "static __attribute__((noinline)) int own_{symbol}(int is_profiling, void *from{parameters}) {{\n\
         if (!is_looked_up) look_up_all();\n\
         __typeof__(real_MPI_{symbol}) real = is_profiling ? real_PMPI_{symbol} : real_MPI_{symbol};\n\
         struct call call;\n\
         if (!enter(&call, \"MPI_{symbol}\", is_profiling, from)) return real({given});\n\
         {looks}\n{before}{first}int rc = {strict}real({given});\n{behind}{last}{post}{order}if (rc != MPI_SUCCESS) tell_returned(&call, rc);\nend({anytime}); return rc; }}"
    )
}

fn is_anytime(name: &str) -> bool {
    ANYTIME.contains(&name)
        || ANYTIME_BEGINNINGS
            .iter()
            .any(|start| name.starts_with(start))
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let behind = text[at + word.len()..].chars().next();
        !behind.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The C text in front of the call of a function for strict mode: a synchronous send in place of the call, or a barrier
/// before it. Empty for other functions.
fn strict(function: &Prototype, given: &str) -> String {
    let name = function.name.as_str();
    let large = if function.is_large { "_c" } else { "" };
    if let Some((_, other)) = STRICT.iter().find(|(known, _)| *known == name) {
        return format!("is_strict && depth == 1 ? real_PMPI_{other}{large}({given}) : ");
    }
    if name == "Sendrecv" {
        return format!("is_strict && depth == 1 ? strict_sendrecv{large}({given}) : ");
    }
    if ROOTED.contains(&name) {
        return "is_strict && depth == 1 && real_PMPI_Barrier(comm) ? MPI_ERR_OTHER : ".to_owned();
    }
    String::new()
}

/// The statements that check a call's arguments.
fn checks(number: usize, function: &Prototype) -> String {
    let name = function.name.as_str();
    let own = &function.parameters;
    let mut text = String::new();
    let mut add = |line: String| text.push_str(&line);
    if FREES.contains(&name) {
        let parameter = &own[0];
        let kind = kind_of(parameter).unwrap_or("COMMUNICATOR");
        return format!(
            "check_free(&call, {kind}, HANDLE(*{0}), \"{0}\");\n{1}",
            parameter.name,
            matching::collective_of_object(number, function)
        );
    }
    let value = |it: &&Parameter| it.pointers == 0 && !it.is_array;
    // Without these nothing else can be asked of MPI.
    let mut base = Vec::new();
    for parameter in own.iter().filter(value) {
        let Some(kind) = kind_of(parameter).filter(|kind| *kind != "DATATYPE") else {
            continue;
        };
        let is_meant = parameter.name != "peer_comm" && !NULL_IS_FINE.contains(&name);
        if is_meant && !["REQUEST", "INFO"].contains(&kind) {
            let own = &parameter.name;
            base.push(format!(
                "check_handle(&call, {kind}, HANDLE({own}), \"{own}\")"
            ));
        }
    }
    add(format!(
        "if ({}) {{\n",
        if base.is_empty() {
            "1".to_owned()
        } else {
            base.join(" & ")
        }
    ));
    infos(function, &mut add);
    if let Some(it) = own.iter().find(|it| it.base == SESSION) {
        let given = format!("{}{}", "*".repeat(it.pointers), it.name);
        if name != "Session_init" {
            add(format!(
                "if ({given} == MPI_SESSION_NULL) report(&call, NULL_HANDLE, NULL, \"{} is a null session\");\n",
                it.name
            ));
        }
    }
    for count in own
        .iter()
        .filter(value)
        .filter(|it| COUNTS.contains(&it.name.as_str()))
    {
        let (own, guard) = (&count.name, buffers::significant(function, &count.name));
        add(format!("{guard}check_count(&call, {own}, \"{own}\");\n"));
    }
    ranks_and_tags(function, &mut add);
    add(shape(function));
    buffers::buffers(function, &mut add);
    add(operator(function));
    add(buffers::file(function));
    add(buffers::types(function));
    add(windows::access(number, function));
    add(collective(number, function));
    add(matching::collective_of_object(number, function));
    add("}\n".to_owned());
    text
}

/// The statement that checks the topology and the groups of a call's communicator. Empty if the call allows all.
fn shape(function: &Prototype) -> String {
    let name = function.name.as_str();
    let shape = match SHAPES.iter().find(|(_, names)| names.contains(&name)) {
        Some((shape, _)) => *shape,
        None if plain(name).starts_with(NEIGHBORS) => "TOPOLOGY",
        None => return String::new(),
    };
    let comm = function.parameters.iter().find(|it| it.base == COMM);
    let comm = comm.map_or("comm", |it| it.name.as_str());
    format!("check_shape(&call, {comm}, {shape});\n")
}

/// Adds the statements that check the info objects of a call.
fn infos(function: &Prototype, add: &mut impl FnMut(String)) {
    let (name, own) = (function.name.as_str(), &function.parameters);
    // The null info is right everywhere but in the functions of infos.
    for info in own
        .iter()
        .filter(|it| kind_of(it) == Some("INFO") && it.pointers == 0 && !it.is_array)
    {
        let own = &info.name;
        if name.starts_with("Info_") {
            add(format!("check_info(&call, {own}, \"{own}\");\n"));
        }
        add(format!(
            "if ({own} != MPI_INFO_NULL) check_handle(&call, INFO, HANDLE({own}), \"{own}\");\n"
        ));
    }
}

/// The statement that records a collective call, with the arguments that must be equal on all ranks. Empty for other
/// functions.
fn collective(number: usize, function: &Prototype) -> String {
    let name = function.name.as_str();
    let is_one = COLLECTIVES.contains(&plain(name).as_str());
    let makes = MAKES_COMMUNICATOR.contains(&name)
        || MAKES_ON_COMMUNICATOR.contains(&name)
        || name == "Intercomm_create";
    let comm = function.parameters.iter().find(|it| it.base == COMM);
    let (true, Some(comm)) = (is_one || makes, comm) else {
        return String::new();
    };
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    let root = if has("root") { "root" } else { "-1" };
    let op = if has("op") { "op" } else { "MPI_OP_NULL" };
    let amount = match plain(name).as_str() {
        "bcast" | "reduce" | "allreduce" | "scan" | "exscan" => "count, datatype",
        "reduce_scatter_block" => "recvcount, datatype",
        "allgatherv" => "all_of(LIST(recvcounts), group_size(comm)), recvtype",
        "reduce_scatter" => "all_of(LIST(recvcounts), group_size(comm)), datatype",
        "allgather" | "alltoall" => "recvcount, recvtype",
        "gather" => {
            "is_root(comm, root) ? recvcount : sendcount, is_root(comm, root) ? recvtype : sendtype"
        }
        "scatter" => {
            "is_root(comm, root) ? sendcount : recvcount, is_root(comm, root) ? sendtype : recvtype"
        }
        _ => "0, MPI_DATATYPE_NULL",
    };
    let comm = &comm.name;
    let begin = format!("collective(&call, {number}, sequence_of(COMMUNICATOR, HANDLE({comm})), ");
    let alike = matching::alike(function);
    let whole = format!("{begin}{root}, {op}, {amount}, {alike});\n");
    if !is_one {
        return whole;
    }
    let side = |is_sent: &str| {
        format!("({is_sent}) ? sendcount : recvcount, ({is_sent}) ? sendtype : recvtype")
    };
    let given = match plain(name).as_str() {
        "bcast" | "reduce" | "allreduce" => "count, datatype".to_owned(),
        "gather" => side("root != MPI_ROOT"),
        "scatter" => side("root == MPI_ROOT"),
        "allgather" | "alltoall" => side("is_first_group(comm)"),
        _ => "0, MPI_DATATYPE_NULL".to_owned(),
    };
    let between_op = if has("root") { "MPI_OP_NULL" } else { op };
    // In an intercommunicator each group sends what the other one receives.
    format!(
        "if (is_inter({comm})) {{ {begin}-1, {between_op}, 0, MPI_DATATYPE_NULL, (struct parts){{0}}); between(&call, {number}, {comm}, {root}, {given}); }}\nelse {whole}"
    )
}

/// The statement that checks the operator of a reduction and the type of its elements. Empty for other functions.
fn operator(function: &Prototype) -> String {
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    if !has("op") || !has("datatype") || has("target_rank") {
        return String::new();
    }
    let guard = match has("comm") && has("root") {
        true => "if (!is_inter(comm)) ",
        false => "",
    };
    format!("{guard}check_operator(&call, op, datatype);\n")
}

fn ranks_and_tags(function: &Prototype, add: &mut impl FnMut(String)) {
    let own = &function.parameters;
    let is_int = |it: &&Parameter| it.base == "int" && it.pointers == 0 && !it.is_array;
    let has = |wanted: &str| own.iter().any(|it| it.name == wanted);
    let has_comm = own
        .iter()
        .any(|it| it.name == "comm" && it.base == COMM && it.pointers == 0);
    for parameter in own.iter().filter(is_int) {
        let name = parameter.name.as_str();
        let side = match name {
            "dest" => "DESTINATION",
            "source" => "SOURCE",
            "root" => "ROOT",
            _ => "",
        };
        if has_comm && !side.is_empty() {
            add(format!(
                "check_rank(&call, comm, {name}, {side}, \"{name}\");\n"
            ));
        }
        if ["target_rank", "rank"].contains(&name) && has("win") {
            add(format!("check_target(&call, win, {name}, \"{name}\");\n"));
        }
        let receives = (name == "tag" && has("source") && !has("dest")) || name == "recvtag";
        if has_comm && (name == "tag" || name == "sendtag" || name == "recvtag") {
            let any = i32::from(receives);
            add(format!("check_tag(&call, {name}, {any}, \"{name}\");\n"));
        }
    }
}
