//! The ways to hang of `fixtures/hangs.c`, each with the diagnosis that is expected of a running job (test program
//! `launchers`) and of its recorded observations (`house`).

use serde_json::Value;

use crate::place::Compiler;

/// Number of ranks of a job.
pub const RANKS: usize = 8;
/// Number of ranks of a larger job.
pub const MANY: usize = 32;

/// Expected diagnosis: the way to hang, the verdict's step, the ranks that it blames or that hold others up, and a part
/// of its text.
pub type Case = (&'static str, &'static str, &'static str, &'static str);

/// Ways that hang, each with the culprits.
pub const HANGS: &[Case] = &[
    ("receive", "deadlock", "3-4", "from 4 (who)"),
    ("probe", "deadlock", "3-4", "MPI_Probe"),
    ("any_source", "deadlock", "", "(0 -> 3 -> 0)"),
    (
        "wanted",
        "deadlock",
        "3",
        "wait for a message from this rank",
    ),
    ("own_message", "deadlock", "3", "a message from itself"),
    ("waits_any", "deadlock", "", "MPI_Barrier"),
    ("request", "deadlock", "0,3", "MPI_Wait"),
    ("requests", "deadlock", "", "MPI_Waitall"),
    ("ring", "deadlock", "", "0 -> 7 -> 6 -> 5"),
    ("send_ring", "deadlock", "", "0 -> 1 -> 2 -> 3"),
    ("exchange", "deadlock", "", "in a cycle"),
    ("pair", "deadlock", "2-3", "(2 -> 3 -> 2)"),
    ("pair_beside", "deadlock", "", "(2 -> 3 -> 2)"),
    ("hub", "deadlock", "", "0 -> 3 -> 0"),
    (
        "tags",
        "cannot_go_on",
        "",
        "rank 2 sends tag 1 to rank 3, which waits for tag 99",
    ),
    ("broadcast", "deadlock", "0,3", "MPI_Bcast"),
    (
        "collective",
        "cannot_go_on",
        "3",
        "different collective operations",
    ),
    (
        "operations_of_duplicate",
        "cannot_go_on",
        "3",
        "different collective operations",
    ),
    ("wrong_source", "deadlock", "", "0 -> 7 -> 6 -> 5 -> 3 -> 2"),
    ("gathers", "cannot_go_on", "3", "MPI_Alltoall"),
    ("duplicate", "deadlock", "0,3", "MPI_Comm_dup"),
    ("root", "cannot_go_on", "3", "MPI_Reduce"),
    ("halves", "deadlock", "0,3", "in half"),
    ("stopped", "cannot_go_on", "3", "a signal has stopped"),
    ("locks", "deadlock", "3", "each other's locks"),
    ("joined_locks", "deadlock", "3", "to end"),
    ("own_lock", "deadlock", "3", "which it holds itself"),
    ("orphaned", "cannot_go_on", "3", "whose holder has ended"),
    ("condition", "cannot_go_on", "3", "pthread_cond_wait"),
    ("join", "held_up", "3", "called from join ()"),
    ("loop", "held_up", "3", "running within spin ()"),
    ("loop_of_calls", "held_up", "3", "running within iterate ()"),
    ("recursion", "held_up", "3", "recursion ()"),
    ("polls", "held_up", "3", "MPI_Iprobe"),
    ("tests", "held_up", "3", "MPI_Test"),
    ("sleeps", "held_up", "3", "pause"),
    ("naps", "held_up", "3", "while it sleeps, "),
    ("consensus", "held_up", "0-7", "all ranks poll"),
    ("chain", "held_up", "0", "running within spin ()"),
    ("file_lock", "held_up", "3", "for the lock on "),
    ("file_lock_of_a_rank", "deadlock", "2", "for the lock on "),
    ("record_lock", "deadlock", "2", "for the lock on "),
    ("pipe", "cannot_go_on", "3", "data written to pipe:"),
    ("child", "held_up", "3", "a child to end"),
    ("fence", "held_up", "3", "running within spin ()"),
    ("file_part", "cannot_go_on", "3", "MPI_File_write_at_all"),
    ("parallel_file", "held_up", "3", "running within spin ()"),
    (
        "finalize",
        "cannot_go_on",
        "0,3",
        "rank 0, which is in MPI_Finalize",
    ),
    ("two_orders", "deadlock", "2-3", "MPI_Recv"),
    (
        "a_thread_will_send",
        "held_up",
        "3",
        "another of its threads runs",
    ),
    (
        "a_thread_wakes",
        "held_up",
        "3",
        "another of its threads runs",
    ),
    ("threads_in_mpi", "deadlock", "2-3", "for thread"),
    ("window_lock", "held_up", "3", "running within spin ()"),
    ("unread", "cannot_go_on", "3", "pipe:"),
    ("ring_of_some", "deadlock", "", "have not reached"),
    ("requests_of_some", "deadlock", "", "in a cycle"),
    ("ring_beside", "deadlock", "", "in a cycle"),
    ("grid", "deadlock", "", "have not reached"),
    ("some_compute", "held_up", "5", "while it computes"),
];

/// Waits of a rank outside of MPI, with a part of the kernel's information about them.
pub const OUTSIDE: &[Case] = &[
    ("fifo", "held_up", "3", "to open the other end of "),
    ("connection", "deadlock", "3", "for data from 127.0.0.1:"),
    (
        "loader",
        "cannot_go_on",
        "3",
        "whose other end no other process has open since a child ended",
    ),
    ("critical", "held_up", "3", "called from enter_critical ()"),
    ("in_kernel", "cannot_tell", "", "state D"),
];

/// Cases that differ in the larger job: there the four ranks in the cycle are fewer than those in the barrier.
const OF_MANY: &[Case] = &[
    ("ring", "deadlock", "", "0 -> 31 -> 30 -> 29"),
    ("grid", "deadlock", "0,3-4,7", "(0 -> 3 -> 7 -> 4 -> 0)"),
    ("consensus", "held_up", "0-31", "all ranks poll"),
    ("wrong_source", "deadlock", "", "0 -> 31 -> 30 -> 29"),
];

/// Cases that differ under MPICH: in its MPI_Reduce of much data the other ranks have all that they need of rank 3, and go on.
const OF_MPICH: &[Case] = &[(
    "root",
    "cannot_go_on",
    "",
    "at fault: rank 3, or a rank that skipped that call",
)];

/// Ways that do not hang.
pub const HEALTHY: &[&str] = &[
    "balanced",
    "uneven",
    "long_step",
    "farm",
    "pipeline",
    "overlap",
    "writes",
    "no_variable",
    "one_core",
    "throttled",
    "served",
    "past_reduction",
    "two_on_a_line",
    "long_messages",
    "long_messages_beside",
];

/// Cases without a hang whose visible state is the same each time.
pub const ALIKE: &[&str] = &["iterates", "token", "served_alike"];

/// The case as it is expected under this MPI, in a job of `ranks` ranks.
fn in_job_of(compiler: Compiler, ranks: usize, case: Case) -> Case {
    let of_many = OF_MANY.iter().filter(|_| ranks == MANY);
    let mut others = of_many.chain(OF_MPICH.iter().filter(|_| compiler == Compiler::Mpich));
    *others.find(|other| other.0 == case.0).unwrap_or(&case)
}

/// The expected diagnosis of a job that runs one way of `hangs.c`.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// This diagnosis is expected.
    Case(Case),
    /// The job does not hang: a verdict that claims a proven hang or accuses a rank is a fault.
    Innocent(&'static str),
    /// The job repeats one state: the verdict is "no hang" where the kernel allows performance events, otherwise as for
    /// `Innocent`.
    Alike(&'static str),
}

impl Expect {
    /// The name of the way.
    #[must_use]
    pub fn way(self) -> &'static str {
        match self {
            Self::Case(case) => case.0,
            Self::Innocent(way) | Self::Alike(way) => way,
        }
    }

    /// The difference between a found diagnosis (the record `diagnosis`) and this expectation; `None` if they agree.
    /// `counted` is true if the kernel allows performance events, which count returned calls.
    #[must_use]
    pub fn fault(self, found: &Value, counted: bool) -> Option<String> {
        let step = found["step"].as_str().unwrap_or_default();
        let faults = match self {
            Self::Case((_, expect, named, part)) => {
                let list = match expect {
                    "held_up" => "held_up_by",
                    _ => "suspects",
                };
                vec![
                    (step != expect).then(|| format!("it is {step}, not {expect}")),
                    (found[list] != named)
                        .then(|| format!("{list} is {}, not {named:?}", found[list])),
                    (!found.to_string().contains(part)).then(|| format!("nothing says {part:?}")),
                ]
            }
            Self::Alike(_) if counted => {
                vec![(step != "no_hang_seen").then(|| format!("it is {step}, not no_hang_seen"))]
            }
            Self::Innocent(_) | Self::Alike(_) => {
                let is_proved = ["deadlock", "cannot_go_on"].contains(&step);
                let is_accused = found["suspects"] != "";
                vec![(is_proved || is_accused).then(|| "innocent ranks are accused".to_owned())]
            }
        };
        let faults: Vec<String> = faults.into_iter().flatten().collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// All cases under this MPI, for a job of `ranks` ranks.
pub fn all(compiler: Compiler, ranks: usize) -> impl Iterator<Item = Expect> {
    let cases = HANGS.iter().chain(OUTSIDE);
    let cases = cases.map(move |case| Expect::Case(in_job_of(compiler, ranks, *case)));
    let healthy = HEALTHY.iter().map(|way| Expect::Innocent(way));
    cases
        .chain(healthy)
        .chain(ALIKE.iter().map(|way| Expect::Alike(way)))
}
