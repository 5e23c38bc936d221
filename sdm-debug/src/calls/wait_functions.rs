//! Functions of the C and C++ libraries and of OpenMP that wait for a lock, a thread, a file or an interval of time.

/// Functions that wait for a lock or for another thread without a time limit.
const LOCKS: &[&str] = &[
    "pthread_mutex_lock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_cond_wait",
    "pthread_barrier_wait",
    "pthread_join",
    "pthread_once",
    "pthread_once_slow",
    "pthread_spin_lock",
    "sem_wait",
    "mtx_lock",
    "cnd_wait",
    "thrd_join",
    "std::mutex::lock",
    "std::thread::join",
    "std::condition_variable::wait",
    "omp_set_lock",
    "omp_set_nest_lock",
    "GOMP_critical_start",
    "GOMP_critical_name_start",
    "GOMP_barrier",
    "futex",
];

/// Functions that can wait for a file.
const FILES: &[&str] = &[
    "close",
    "creat",
    "creat64",
    "fclose",
    "fcntl",
    "fcntl64",
    "fdatasync",
    "fflush",
    "fgetc",
    "fgets",
    "flock",
    "fopen",
    "fopen64",
    "fread",
    "fscanf",
    "fsync",
    "fwrite",
    "getc",
    "getline",
    "io_getevents",
    "lockf",
    "lockf64",
    "msync",
    "open",
    "open64",
    "openat",
    "pread",
    "pread64",
    "pwrite",
    "pwrite64",
    "read",
    "readv",
    "rename",
    "sendfile",
    "sync",
    "syncfs",
    "write",
    "writev",
];

/// True for a function that waits for a lock or for another thread, under any of the C library's names for it.
#[must_use]
pub fn is_lock(function: &str) -> bool {
    LOCKS.contains(&plain(function))
}

/// Functions that only sleep for some time.
const SLEEPS: &[&str] = &[
    "clock_nanosleep",
    "nanosleep",
    "sleep",
    "thrd_sleep",
    "usleep",
];

/// True for a function that only sleeps, under any of the C library's names for it.
#[must_use]
pub fn is_sleep(function: &str) -> bool {
    SLEEPS.contains(&plain(function))
}

/// Functions that wait for the end of a thread.
const JOINS: &[&str] = &["pthread_join", "std::thread::join", "thrd_join"];

/// Functions that wait for a mutex.
const MUTEXES: &[&str] = &["mtx_lock", "pthread_mutex_lock", "std::mutex::lock"];

/// Functions that wait for a lock of OpenMP. Such a lock does not record its holder.
const OPENMP_LOCKS: &[&str] = &["omp_set_lock", "omp_set_nest_lock"];

/// Functions that run an initializer once, and wait while another thread runs it.
const ONCE: &[&str] = &[
    "__gthread_once",
    "call_once",
    "pthread_once",
    "pthread_once_slow",
];

/// True for a function that runs an initializer once and waits while another thread runs it.
#[must_use]
pub fn is_once(function: &str) -> bool {
    ONCE.contains(&plain(function))
}

/// True for a function that waits for the end of a thread.
#[must_use]
pub fn is_join(function: &str) -> bool {
    JOINS.contains(&plain(function))
}

/// True for a function that waits for a mutex.
#[must_use]
pub fn is_mutex(function: &str) -> bool {
    MUTEXES.contains(&plain(function))
}

/// True for a function that waits for a lock of OpenMP.
#[must_use]
pub fn is_openmp_lock(function: &str) -> bool {
    OPENMP_LOCKS.contains(&plain(function))
}

/// True for a function that can wait for a file, under any of the C library's names for it.
#[must_use]
pub fn is_file(function: &str) -> bool {
    FILES.contains(&plain(function))
}

/// The name without version suffixes, and in the C++ standard library without parameters. The C library's prefixes are
/// removed only from functions that wait for a lock, a thread, a file or a time.
#[must_use]
pub fn plain(function: &str) -> &str {
    let function = function.split('@').next().unwrap_or(function);
    let function = match function.starts_with("std::") {
        true => {
            let name = function.split('(').next().unwrap_or(function);
            // A template over the type of the lock: its name without the template arguments.
            let of_all = name.split('<').next().unwrap_or(name);
            if LOCKS.contains(&of_all) {
                of_all
            } else {
                name
            }
        }
        false => function,
    };
    let inner = ["__GI___libc_", "__GI___", "__GI_", "__libc_", "___", "__"];
    let stripped = inner
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix));
    stripped
        .filter(|name| {
            [LOCKS, FILES, SLEEPS]
                .iter()
                .any(|list| list.contains(name))
        })
        .unwrap_or(function)
}
