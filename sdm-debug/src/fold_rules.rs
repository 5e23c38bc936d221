//! Rules for the frames that belong to a runtime, as patterns of functions and of shared objects. Also the documented
//! names of a runtime's functions.

use sdm_mpi::{PROFILING_PREFIXES, symbols};
use serde::{Deserialize, Serialize};

/// Functions through which programs enter a runtime. Unambiguous names count in any module. Lower-case ones count
/// only in a shared object or without source, as a program may have an `mpi_setup_` or an `ncclish` of its own.
const ENTRIES: &[&str] = &[
    "MPI_*",
    "PMPI_*",
    "MPIX_*",
    "PMPIX_*",
    "mpi_*_",
    "pmpi_*_",
    "mpi_*_f08",
    "shmem_*",
    "pshmem_*",
    "shmemx_*",
    "nccl*",
    "rccl*",
    "GASNET_*",
    "gasnet_*",
    "upcxx::*",
    "_gfortran_caf_*",
    // Operations of PyTorch's, also below the functions of its modules.
    "torch.distributed.*",
    // Sanitizers, whose runtimes clang links into the program.
    "__asan_*",
    "__lsan_*",
    "__msan_*",
    "__hwasan_*",
    "__tsan_*",
    "__ubsan_*",
    "__sanitizer_*",
    "__interceptor_*",
    "___interceptor_*",
    "__asan::*",
    "__lsan::*",
    "__msan::*",
    "__hwasan::*",
    "__tsan::*",
    "__ubsan::*",
    "__sanitizer::*",
];

/// Shared objects that are not part of the user's program.
const MODULES: &[&str] = &[
    // libc and other libraries below every program
    "libc.so*",
    "libc-*.so",
    "libc.musl*",
    "ld-*.so*",
    "ld64.so*",
    "libpthread.so*",
    "libpthread-*.so",
    "libm.so*",
    "libm-*.so",
    "libmvec.so*",
    "libdl.so*",
    "libdl-*.so",
    "librt.so*",
    "librt-*.so",
    "libresolv*",
    "libnss_*",
    "libutil.so*",
    "[vdso]",
    "linux-vdso*",
    "linux-gate*",
    "system-supplied DSO*",
    "libgcc_s*",
    "libstdc++*",
    "libc++.so*",
    "libc++abi*",
    "libgfortran*",
    "libquadmath*",
    "libflang*",
    "libFortranRuntime*",
    "libasan*",
    // Valgrind's replacements of some functions
    "vgpreload_*",
    "libtsan*",
    "libubsan*",
    "liblsan*",
    "libhwasan*",
    "libclang_rt.*",
    // the check of the use of MPI, which runs before MPI's own functions
    "sdm-check*.so",
    // OpenMP
    "libgomp*",
    "libiomp5*",
    "libomp.so*",
];

/// More of these, behind [`sdm_mpi::symbols::MODULES`].
const MORE_MODULES: &[&str] = &[
    // Python: its library with its modules, and packages between a program and the operations for which it waits
    "python3",
    "libpython3*",
    "libffi.so*",
    "_ctypes.*.so",
    "_multiprocessing.*.so",
    "_queue.*.so",
    "_socket.*.so",
    "select.*.so",
    "mpi4py",
    "MPI.*.so",
    "numpy",
    "torch",
    "libtorch*",
    "libgloo*",
    "libc10*",
    // accelerators
    "libnccl*",
    "librccl*",
    "libnvshmem*",
    "libcuda.so*",
    "libcudart*",
    "libnvidia-*",
    "libamdhip64*",
    "libhsa-runtime64*",
    "libze_*",
];

/// Functions that only lead to other functions, in any module.
const PLUMBING: &[&str] = &[
    "_start",
    "__libc_start_main*",
    "__libc_start_call_main*",
    "generic_start_main*",
    "_dl_start_user",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__clone_internal",
    "thread_start",
    "asan_thread_start*",
    "ThreadStartFunc*",
    "__tsan_thread_start_func*",
    "__asan::AsanThread::ThreadStart*",
    "__lsan_thread_start_func*",
    "std::thread::_*",
    "std::__invoke*",
    "std::_Function_handler<*",
    "std::__detail::*",
    "core::ops::function::*",
    "std::sys::backtrace::__rust_begin_short_backtrace*",
    "std::sys_common::backtrace::__rust_begin_short_backtrace*",
    "std::rt::lang_start*",
    "std::panicking::try*",
    "std::panicking::catch_unwind*",
    "std::panic::catch_unwind*",
    "__rust_try",
];

/// Suffixes of the variants of libc's functions for certain processors.
const VARIANTS: &[&str] = &[
    "_avx",
    "_evex",
    "_sse",
    "_ssse3",
    "_erms",
    "_unaligned",
    "_asimd",
    "_sve",
    "_generic",
    "_power",
];

/// The frames that belong to a runtime and not to the program, as patterns: `*` matches any text and `?` one
/// character. [`Default`] knows the usual runtimes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldRules {
    /// Functions through which a program enters a runtime: `MPI_*`. A name with a lower-case first letter counts only
    /// in a shared object or if its source is unknown.
    pub entries: Vec<String>,
    /// Base names of shared objects that belong to a runtime: `libmpi.so*`.
    pub modules: Vec<String>,
    /// Functions that are never shown, in any module: `start_thread`.
    pub plumbing: Vec<String>,
}

impl Default for FoldRules {
    fn default() -> Self {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Self {
            entries: owned(ENTRIES),
            modules: owned(&[MODULES, &symbols::MODULES, MORE_MODULES].concat()),
            plumbing: owned(PLUMBING),
        }
    }
}

impl FoldRules {
    /// True if `function` is an entry into a runtime; `common` if the frame is in the program itself and has source.
    pub(crate) fn is_entry(&self, function: &str, common: bool) -> bool {
        self.entries.iter().any(|pattern| {
            let shy = common && pattern.starts_with(|first: char| first.is_ascii_lowercase());
            !shy && matches(pattern, function)
        })
    }

    /// True if the shared object belongs to a runtime.
    #[must_use]
    pub fn is_runtime_module(&self, module: &str) -> bool {
        !module.is_empty() && self.modules.iter().any(|pattern| matches(pattern, module))
    }

    /// True if the function is never shown.
    pub(crate) fn is_plumbing(&self, function: &str) -> bool {
        self.plumbing
            .iter()
            .any(|pattern| matches(pattern, function))
    }
}

/// True if `text` matches `pattern`, in which `*` matches any text and `?` one character. Takes at most
/// `pattern.len() * text.len()` steps.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// The documented name of a runtime's function: `PMPI_Recv` is `MPI_Recv`, `__GI___libc_read` is `read`,
/// `__memcpy_avx_unaligned_erms` is `memcpy`.
pub(crate) fn plain_name(function: &str) -> &str {
    let mut prefixes = PROFILING_PREFIXES.iter().chain(&["pshmem_"]);
    if prefixes.any(|prefix| function.starts_with(prefix)) {
        return &function[1..];
    }
    // The functions of gcc's sanitizers have debug information, and therefore a namespace.
    let function = match function.split_once("::") {
        Some(("__asan" | "__hwasan" | "__lsan" | "__msan" | "__tsan" | "__ubsan", rest))
            if rest.starts_with("__") =>
        {
            rest
        }
        _ => function,
    };
    let name = function.strip_prefix("__GI_").unwrap_or(function);
    let Some(rest) = name.strip_prefix("__") else {
        return name;
    };
    // These are documented with their underscores.
    if [
        "cxa_", "asan_", "hwasan_", "lsan_", "msan_", "tsan_", "ubsan_",
    ]
    .iter()
    .any(|it| rest.starts_with(it))
    {
        return name;
    }
    let rest = rest.trim_start_matches('_');
    let rest = rest.strip_prefix("libc_").unwrap_or(rest);
    let rest = rest.strip_prefix("interceptor_").unwrap_or(rest);
    let end = VARIANTS
        .iter()
        .filter_map(|variant| rest.find(variant))
        .min()
        .unwrap_or(rest.len());
    match &rest[..end] {
        "" => function,
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_patterns_match_whole_names() {
        let check = |pattern, text, expect| assert_eq!(matches(pattern, text), expect, "{pattern}");
        check("MPI_*", "MPI_Recv", true);
        check("MPI_*", "PMPI_Recv", false);
        check("mpi_*_", "mpi_recv_", true);
        check("mpi_*_", "mpi_recv", false);
        check("*a*b", "xxaxxbxb", true);
        check("*a*b", "xxaxxbxc", false);
        check("a?c", "abc", true);
        check("a?c", "ac", false);
        check("", "", true);
        check("**", "", true);
        check("a", "", false);
    }

    #[test]
    fn libc_and_pmpi_symbols_map_to_documented_names() {
        let check = |name, expect| assert_eq!(plain_name(name), expect);
        check("PMPI_Recv", "MPI_Recv");
        check("pmpi_recv_", "mpi_recv_");
        check("MPI_Recv", "MPI_Recv");
        check("__GI_sched_yield", "sched_yield");
        check("__GI___poll", "poll");
        check("__GI___libc_read", "read");
        check("___pthread_mutex_lock", "pthread_mutex_lock");
        check("__GI__exit", "_exit");
        check("_exit", "_exit");
        check("__memcpy_avx_unaligned_erms", "memcpy");
        check("__strlen_evex", "strlen");
        check("__interceptor_memcpy", "memcpy");
        check("___interceptor_free", "free");
        check("__asan::__asan_report_load4", "__asan_report_load4");
        check("__", "__");
        check("é", "é");
        check("ñññññ", "ñññññ");
    }
}
