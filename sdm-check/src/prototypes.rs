//! The functions that a preprocessed `mpi.h` declares.

/// Maximum number of parameters. No function of MPI has so many.
const PARAMETERS_MAX: usize = 32;
/// Prefix of the profiling interface: the names of the same functions for tools.
const PROFILING: &str = "PMPI_";

/// A function that returns an error code, and has a name with `MPI_` and one with `PMPI_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prototype {
    /// The name of the function without `MPI_`, and without the `_c` of functions for large counts: `Send`.
    pub(crate) name: String,
    /// True for a variant for large counts: `MPI_Send_c`.
    pub(crate) is_large: bool,
    pub(crate) parameters: Vec<Parameter>,
}

impl Prototype {
    /// The name of the function without `MPI_`, as in the header: `Send_c`.
    pub(crate) fn symbol(&self) -> String {
        format!("{}{}", self.name, if self.is_large { "_c" } else { "" })
    }

    /// The names of the function's parameters.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|it| it.name.as_str())
    }

    /// True for a function with a buffer, a number of elements and their datatype.
    pub(crate) fn has_elements(&self) -> bool {
        let all = ["buf", "count", "datatype"];
        let has = |wanted: &str| self.names().any(|it| it == wanted);
        all.into_iter().all(has)
    }
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// The declaration of the parameter with its name: `const int ranks[]`.
    pub(crate) declared: String,
    /// The type of the parameter without `const`, pointers and arrays: `MPI_Comm`.
    pub(crate) base: String,
    /// True if the type has a `const`.
    pub(crate) is_const: bool,
    pub(crate) pointers: usize,
    pub(crate) is_array: bool,
}

/// The functions of a header that have a name with `MPI_` and one with `PMPI_`, in the header's order. Variadic
/// functions, functions with a function as parameter, conversions of handles, and the tool interface are left out.
pub(crate) fn prototypes(header: &str) -> Vec<Prototype> {
    let all: Vec<_> = header.split(';').filter_map(prototype).collect();
    let profiling: std::collections::BTreeSet<_> = all
        .iter()
        .filter_map(|(name, _)| name.strip_prefix(PROFILING))
        .collect();
    let mut known = std::collections::BTreeSet::new();
    let both = all.iter().filter_map(|(name, parameters)| {
        let name = name.strip_prefix("MPI_")?;
        let parameters = parameters.clone()?;
        let is_new = profiling.contains(name) && known.insert(name);
        let base = name.strip_suffix("_c");
        let base = base.filter(|base| profiling.contains(base));
        is_new.then(|| Prototype {
            name: base.unwrap_or(name).to_owned(),
            is_large: base.is_some(),
            parameters,
        })
    });
    both.collect()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The name of a declared function, and its parameters. The parameters are None if some have no name, as in profiling
/// names of MPICH. None for other statements.
fn prototype(statement: &str) -> Option<(String, Option<Vec<Parameter>>)> {
    let start = ["int PMPI_", "int MPI_"]
        .iter()
        .filter_map(|start| statement.find(start))
        .min()?;
    let before = statement[..start].chars().next_back();
    // A type whose name ends so, or the body of a function.
    if before.is_some_and(is_word) || statement.contains(['{', '}']) {
        return None;
    }
    let rest = &statement[start + "int ".len()..];
    let (name, rest) = rest.split_once('(')?;
    let name = name.trim();
    let mut open = 1;
    let end = rest.find(|c| {
        open += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        open == 0
    })?;
    let list = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    // Conversions of handles take null handles, also from MPI's own libraries.
    let is_conversion = name.contains("_c2f") || name.contains("_f2c");
    let is_plain =
        name.chars().all(is_word) && !name.starts_with(sdm_mpi::usage::TOOLS) && !is_conversion;
    if !is_plain || list.contains("...") || list.contains('(') {
        return None;
    }
    if list == "void" || list.is_empty() {
        return Some((name.to_owned(), Some(Vec::new())));
    }
    let parameters: Option<Vec<_>> = list.split(',').map(parameter).collect();
    let parameters = parameters.filter(|all| all.len() <= PARAMETERS_MAX);
    Some((name.to_owned(), parameters))
}

fn parameter(text: &str) -> Option<Parameter> {
    let declared = text.trim();
    let (before, is_array) = match declared.split_once('[') {
        Some((before, _)) => (before.trim_end(), true),
        None => (declared, false),
    };
    let at = before.rfind(|c| !is_word(c))? + 1;
    let (types, name) = before.split_at(at);
    let pointers = types.matches('*').count();
    let mut words = types
        .split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty());
    let is_const = words.clone().any(|word| word == "const");
    let base = words.find(|word| *word != "const" && *word != "struct")?;
    (!name.is_empty()).then(|| Parameter {
        name: name.to_owned(),
        declared: declared.to_owned(),
        base: base.to_owned(),
        is_const,
        pointers,
        is_array,
    })
}

/// The operation of a function and of its nonblocking and persistent variants: `gather` for `Igather`.
pub(crate) fn plain(name: &str) -> String {
    let name = name.trim_end_matches("_init");
    let name = name.strip_prefix('I').unwrap_or(name);
    name.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_functions_with_mpi_and_pmpi_prototypes_are_found() {
        let header = "typedef int MPI_Datarep_function(void *, int); \
            __attribute__((visibility(\"default\"))) int MPI_Send(const void *buf, int count,\n MPI_Datatype datatype) __attribute__((x(1,3)));\
            extern int PMPI_Send(const void *buf, int count, MPI_Datatype datatype); int MPI_Finalize(void); int PMPI_Finalize(void);\
            int MPI_Only(int a); int MPI_Pcontrol(const int level, ...); int PMPI_Pcontrol(const int level, ...);\
            int MPI_T_init(int a); int MPI_Comm_c2f(MPI_Comm comm); int PMPI_Comm_c2f(MPI_Comm comm); int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3]); double MPI_Wtime(void);\
            int PMPI_Group_range_incl(MPI_Group, int, int[][3]); int MPI_Send_c(MPI_Count count); int PMPI_Send_c(MPI_Count count);\
            int MPI_Only_c(int a); int PMPI_Only_c(int a)";
        let found = prototypes(header);
        let names: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.symbol()))
            .collect();
        let named = |name, symbol: &str| (name, symbol.to_owned());
        let large = [named("Send", "Send_c"), named("Only_c", "Only_c")];
        let plain = ["Send", "Finalize", "Group_range_incl"].map(|it| named(it, it));
        assert_eq!(names, [&plain[..], &large].concat());
        let buffer = &found[0].parameters[0];
        assert_eq!(buffer.declared, "const void *buf");
        assert_eq!((buffer.base.as_str(), buffer.pointers), ("void", 1));
        assert!(buffer.is_const);
        assert!(found[1].parameters.is_empty());
        let ranges = &found[2].parameters[2];
        assert_eq!((ranges.name.as_str(), ranges.is_array), ("ranges", true));
    }

    proptest::proptest! {
        #[test]
        fn prototype_parser_never_panics(text in ".{0,400}") {
            let _ = prototypes(&text);
        }

        #[test]
        fn prototype_parser_never_panics_on_nearly_valid_headers(text in "(int |MPI_|PMPI_|[(),;*a-c \\[\\]]|const ){0,80}") {
            let _ = prototypes(&text);
        }
    }
}
