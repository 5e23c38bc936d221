//! The names of the checks.

/// A check. The names are for scripts and the manual, and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The version of SDM, and whether its programs are present and of the same version.
    Programs,
    /// Whether there is a gdb that is not too old.
    Gdb,
    /// Whether gdb has Python.
    GdbPython,
    /// Whether gdb can write the registers of this processor.
    GdbRegisters,
    /// Whether gdb can attach to a process of this user.
    Attach,
    /// The kernel's version, and the system calls used by SDM that it lacks.
    Kernel,
    /// Whether the stacks of this user's processes can be read without gdb.
    Looks,
    /// Whether `kernel.yama.ptrace_scope` allows attaching.
    PtraceScope,
    /// Whether `kernel.perf_event_paranoid` allows counting the returns of calls.
    PerfEvents,
    /// Whether `/proc` shows all processes.
    Hidepid,
    /// The namespaces that this process is in.
    Namespaces,
    /// The limit on open files.
    Descriptors,
    /// The limit on processes.
    Processes,
    /// The free memory.
    Memory,
    /// The folder for sockets and session records.
    RuntimeFolder,
    /// Whether a port for servers is free, and is reached at this host's addresses.
    Ports,
    /// Whether ssh is installed and reaches a host.
    Ssh,
    /// sdm-server on another host, and its version.
    Server,
    /// Whether a connection to another host succeeds.
    Firewall,
    /// The MPI launchers.
    Mpi,
    /// The PMIx library, and the programs that use it.
    Pmix,
    /// Whether Slurm answers.
    Slurm,
    /// The Rust compiler, which only building SDM needs.
    Rust,
    /// A cluster's process and its agent.
    Cluster,
    /// Whether the named job is found.
    Job,
    /// Whether nothing prevents attaching to the target's processes.
    Target,
}

impl Check {
    /// All checks, in the order of output.
    pub const ALL: [Self; 26] = [
        Self::Programs,
        Self::Gdb,
        Self::GdbPython,
        Self::GdbRegisters,
        Self::Attach,
        Self::Kernel,
        Self::Looks,
        Self::PtraceScope,
        Self::PerfEvents,
        Self::Hidepid,
        Self::Namespaces,
        Self::Descriptors,
        Self::Processes,
        Self::Memory,
        Self::RuntimeFolder,
        Self::Ports,
        Self::Ssh,
        Self::Server,
        Self::Firewall,
        Self::Mpi,
        Self::Pmix,
        Self::Slurm,
        Self::Rust,
        Self::Cluster,
        Self::Job,
        Self::Target,
    ];

    /// The check's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Programs => "programs",
            Self::Gdb => "gdb",
            Self::GdbPython => "gdb-python",
            Self::GdbRegisters => "gdb-registers",
            Self::Attach => "attach",
            Self::Kernel => "kernel",
            Self::Looks => "looks",
            Self::PtraceScope => "ptrace-scope",
            Self::PerfEvents => "perf-events",
            Self::Hidepid => "hidepid",
            Self::Namespaces => "namespaces",
            Self::Descriptors => "descriptors",
            Self::Processes => "processes",
            Self::Memory => "memory",
            Self::RuntimeFolder => "runtime-folder",
            Self::Ports => "ports",
            Self::Ssh => "ssh",
            Self::Server => "server",
            Self::Firewall => "firewall",
            Self::Mpi => "mpi",
            Self::Pmix => "pmix",
            Self::Slurm => "slurm",
            Self::Rust => "rust",
            Self::Cluster => "cluster",
            Self::Job => "job",
            Self::Target => "target",
        }
    }

    /// The check with this name; `None` if there is none.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }
}
