//! The table of all pages.

/// The parts of a command's help that its definition does not have.
pub(crate) struct Page {
    /// The words of the command after `sdm`; empty for `sdm` itself.
    pub(super) command: &'static str,
    /// Command lines, each with its purpose.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    /// The command's own exit codes, each with its meaning.
    pub(super) codes: &'static [(&'static str, &'static str)],
}

/// The exit codes of every command. One that a command gives its own meaning is not among them there.
pub(super) const COMMON: &[(&str, &str)] = &[
    ("2", "the command line or a setting is wrong"),
    ("125", "the output could not be written"),
    ("141", "the reader of the output has ended (`| head`)"),
];

const DONE: (&str, &str) = ("0", "done");
const ENDED: (&str, &str) = ("0", "the session has ended");
const NO_COMMAND: (&str, &str) = ("123", "a debugger command of -c or -x failed");
const NO_START: (&str, &str) = ("124", "the session could not be started");
const CTRL_C: (&str, &str) = ("130", "ended by Ctrl-C before the result");
const OF_RUN: (&str, &str) = (
    "other",
    "at the end of a script, by the state of the ranks as for `sdm run`",
);
const OF_JOB: (&str, &str) = ("124", "no PMIx server answered, or it refused");
const CLUSTER: &[(&str, &str)] = &[DONE, ("1", "the resource manager or the cluster refused")];
const PMIX: &[(&str, &str)] = &[DONE, OF_JOB];

/// All pages, in the order of the commands.
pub(super) const PAGES: &[Page] = &[
    Page {
        command: "",
        examples: &[
            ("sdm run -n 8 ./app", "start 8 ranks and debug them"),
            ("sdm attach 4711", "debug the job of mpirun 4711"),
            ("sdm diagnose 4711", "say why this job hangs"),
            ("sdm emulate -n 16", "try sdm without a program"),
        ],
        codes: &[DONE, ("other", "as the page of the command says")],
    },
    Page {
        command: "run",
        examples: &[
            ("sdm run -n 8 ./app", "start 8 ranks, stop each at main"),
            (
                "sdm run -n 8 --batch ./app",
                "no prompt: run, and write a report",
            ),
            ("sdm run -n 8 -c 'b solve' -c c -c bt ./app", "run commands"),
            (
                "sdm run -n 8 --host a,b ./app",
                "4 ranks on each of two hosts",
            ),
        ],
        codes: &[
            (
                "0",
                "all ranks ended with exit code 0, or the session has ended",
            ),
            ("117", "all ended with 0; --check found no supported MPI"),
            ("118", "all ended with 0; MPI did not find the whole job"),
            ("119", "all ended with 0; --check found errors"),
            ("120", "a time-out or a hang"),
            ("121", "an abort, an early exit, or an error of a sanitizer"),
            ("122", "ranks were lost"),
            NO_COMMAND,
            ("124", "the job could not be started"),
            ("126", "the program cannot be executed"),
            ("127", "the program does not exist"),
            ("128+N", "a rank crashed by signal N: 139 for SIGSEGV"),
            ("other", "the program's own; 1 if its ranks had several"),
        ],
    },
    Page {
        command: "emulate",
        examples: &[
            (
                "sdm emulate -n 1000",
                "open a prompt for 1000 emulated ranks",
            ),
            (
                "sdm emulate -n 1000 -c stacks",
                "print their stacks and end",
            ),
            ("sdm emulate -n 64 --roundtrips 100", "measure 100 commands"),
        ],
        codes: &[ENDED, NO_COMMAND, NO_START, OF_RUN],
    },
    Page {
        command: "attach",
        examples: &[
            ("sdm attach 4711", "the job of mpirun or srun 4711"),
            ("sdm attach slurm:1234", "a Slurm job"),
            (
                "sdm attach 4711 --ranks 0-3 -c bt",
                "print 4 backtraces and end",
            ),
            ("sdm attach 4711 --tui", "open the full screen"),
        ],
        codes: &[ENDED, NO_COMMAND, NO_START, CTRL_C, OF_RUN],
    },
    Page {
        command: "web",
        examples: &[
            ("sdm web 4711", "print the address of the page"),
            ("sdm web 4711 --browser", "open the page in a browser"),
        ],
        codes: &[ENDED, NO_COMMAND, NO_START, CTRL_C, OF_RUN],
    },
    Page {
        command: "diagnose",
        examples: &[
            ("sdm diagnose 4711", "the job of mpirun or srun 4711"),
            ("sdm diagnose slurm:1234 --for 30", "sample for 30 seconds"),
            (
                "sdm diagnose 4711 --observations hang.obs",
                "keep the evidence",
            ),
            ("sdm diagnose --replay hang.obs", "judge it again"),
        ],
        codes: &[
            ("0", "No hang seen"),
            ("1", "Deadlock"),
            ("2", "Cannot tell, or an error of sdm"),
            ("3", "Cannot go on: a rank crashed, ended or is stopped"),
            (
                "4",
                "Held up by: some compute, sleep or poll, the others wait",
            ),
            CTRL_C,
        ],
    },
    Page {
        command: "stacks",
        examples: &[
            ("sdm stacks 4711", "equal stacks of this job once"),
            ("sdm stacks 4711 --watch", "again every 2 s, until Ctrl-C"),
            ("sdm stacks app", "your processes of this name"),
        ],
        codes: &[
            ("0", "all processes have the same stack"),
            ("1", "some stacks differ"),
            ("2", "an error, or some stacks could not be read"),
            CTRL_C,
        ],
    },
    Page {
        command: "profile",
        examples: &[
            ("sdm profile 4711", "sample the job for 10 seconds"),
            ("sdm profile 4711 --for 60 --flame p.svg", "a flame graph"),
        ],
        codes: &[
            ("0", "samples were taken"),
            ("2", "an error"),
            ("130", "ended by Ctrl-C before the first sample"),
        ],
    },
    Page {
        command: "core",
        examples: &[
            ("sdm core ./app core.*", "equal stacks of core files once"),
            ("sdm core -i ./app core.*", "open the prompt on them"),
        ],
        codes: &[
            ("0", "all core files have the same stack"),
            ("1", "some stacks differ"),
            ("2", "an error, or some stacks could not be read"),
            NO_COMMAND,
            NO_START,
            OF_RUN,
        ],
    },
    Page {
        command: "dap",
        examples: &[
            ("sdm dap", "an editor starts it so"),
            ("sdm dap --listen 127.0.0.1:4711", "wait for an editor"),
            ("sdm dap --jobs", "the jobs to attach to, as JSON"),
        ],
        codes: &[
            ("0", "the editor has ended the session"),
            ("124", "the editor could not be served"),
        ],
    },
    Page {
        command: "doctor",
        examples: &[
            ("sdm doctor", "check this host"),
            ("sdm doctor --host a,b", "and ssh, gdb and TCP on two hosts"),
            ("sdm doctor 4711", "and a job, before you attach to it"),
        ],
        codes: &[
            ("0", "no check failed"),
            ("1", "a check failed"),
            ("2", "the checks could not be made"),
        ],
    },
    Page {
        command: "rescue",
        examples: &[("sdm rescue 4711 4712", "repair two processes")],
        codes: &[("0", "no process needs further repair"), ("2", "an error")],
    },
    Page {
        command: "settings",
        examples: &[
            ("sdm settings", "the changed settings, with their files"),
            ("sdm settings run", "all settings of `sdm run`"),
        ],
        codes: &[DONE],
    },
    Page {
        command: "completions",
        examples: &[("sdm completions bash > sdm.bash", "a script for bash")],
        codes: &[DONE],
    },
    Page {
        command: "man",
        examples: &[("sdm man ~/.local/share/man/man1", "pages that `man` finds")],
        codes: &[DONE, ("1", "a page could not be written")],
    },
    Page {
        command: "sessions",
        examples: &[("sdm sessions", "list them with their age")],
        codes: &[DONE, ("2", "the sessions could not be listed")],
    },
    Page {
        command: "resume",
        examples: &[
            ("sdm resume", "the only kept session"),
            ("sdm resume halo", "the session of this name"),
        ],
        codes: &[
            ("0", "the session was detached again"),
            ("2", "there is no such session"),
            ("other", "the exit code of the session, if it has ended"),
        ],
    },
    Page {
        command: "detach",
        examples: &[("sdm detach halo", "free it from its terminal")],
        codes: &[DONE, ("2", "there is no such session")],
    },
    Page {
        command: "cluster",
        examples: &[
            ("sdm cluster add here slurm", "this host's Slurm"),
            ("sdm cluster list", "the defined clusters"),
        ],
        codes: CLUSTER,
    },
    Page {
        command: "cluster add",
        examples: &[
            ("sdm cluster add here slurm", "this host's Slurm"),
            ("sdm cluster add phys slurm --host me@login", "by ssh"),
        ],
        codes: CLUSTER,
    },
    Page {
        command: "cluster remove",
        examples: &[("sdm cluster remove phys", "its jobs keep running")],
        codes: CLUSTER,
    },
    Page {
        command: "cluster edit",
        examples: &[(
            "sdm cluster edit phys --host me@login2",
            "another login node",
        )],
        codes: CLUSTER,
    },
    Page {
        command: "cluster start",
        examples: &[("sdm cluster start phys", "connect to it")],
        codes: CLUSTER,
    },
    Page {
        command: "cluster stop",
        examples: &[("sdm cluster stop phys", "disconnect from it")],
        codes: CLUSTER,
    },
    Page {
        command: "cluster list",
        examples: &[("sdm cluster list", "the clusters and their machines")],
        codes: CLUSTER,
    },
    Page {
        command: "nodes",
        examples: &[
            ("sdm nodes", "those of all connected clusters"),
            ("sdm nodes -M phys --watch", "of one, after each change"),
        ],
        codes: CLUSTER,
    },
    Page {
        command: "queues",
        examples: &[("sdm queues", "those of all connected clusters")],
        codes: CLUSTER,
    },
    Page {
        command: "jobs",
        examples: &[
            ("sdm jobs", "your jobs, the last day's ended ones too"),
            ("sdm jobs --all --json", "those of all users, as JSON"),
        ],
        codes: CLUSTER,
    },
    Page {
        command: "ps",
        examples: &[("sdm ps phys:17", "the processes of job 17")],
        codes: CLUSTER,
    },
    Page {
        command: "show",
        examples: &[
            ("sdm show 17", "all attributes of job 17"),
            ("sdm show phys:n01", "of a node of one cluster"),
        ],
        codes: CLUSTER,
    },
    Page {
        command: "top",
        examples: &[("sdm top", "q ends it, ? lists its keys")],
        codes: CLUSTER,
    },
    Page {
        command: "submit",
        examples: &[
            ("sdm submit -n 8 ./app args", "print the job's number"),
            ("sdm submit -n 8 --debug ./app", "hold it at main"),
        ],
        codes: CLUSTER,
    },
    Page {
        command: "logs",
        examples: &[
            ("sdm logs 17", "the standard output of job 17"),
            ("sdm logs -f 17", "follow it until the job ends"),
        ],
        codes: CLUSTER,
    },
    Page {
        command: "cancel",
        examples: &[("sdm cancel 17 18", "end two jobs")],
        codes: CLUSTER,
    },
    Page {
        command: "hold",
        examples: &[("sdm hold 17", "it does not start")],
        codes: CLUSTER,
    },
    Page {
        command: "release",
        examples: &[("sdm release 17", "it can start")],
        codes: CLUSTER,
    },
    Page {
        command: "move",
        examples: &[("sdm move long 17", "job 17 to the queue `long`")],
        codes: CLUSTER,
    },
    Page {
        command: "priority",
        examples: &[("sdm priority 100 17", "job 17 gets priority 100")],
        codes: CLUSTER,
    },
    Page {
        command: "pmix",
        examples: &[
            ("sdm pmix list", "your servers and their jobs"),
            ("sdm pmix --pid 4711 query keys", "what a server knows"),
        ],
        codes: PMIX,
    },
    Page {
        command: "pmix list",
        examples: &[("sdm pmix list", "servers, their jobs and processes")],
        codes: PMIX,
    },
    Page {
        command: "pmix query",
        examples: &[
            ("sdm pmix query status NAMESPACE", "the state of a job"),
            ("sdm pmix query keys", "the keys of the server"),
        ],
        codes: PMIX,
    },
    Page {
        command: "pmix log",
        examples: &[("sdm pmix log stderr 'half done'", "to the server's stderr")],
        codes: PMIX,
    },
    Page {
        command: "pmix events",
        examples: &[("sdm pmix events", "until all jobs have ended")],
        codes: PMIX,
    },
    Page {
        command: "pmix spawn",
        examples: &[
            ("sdm pmix spawn -n 4 -- ./app args", "wait for its end"),
            ("sdm pmix spawn --detach -- ./app", "print its namespace"),
        ],
        codes: &[OF_JOB, ("other", "the exit code of the program")],
    },
    Page {
        command: "pmix io",
        examples: &[("sdm pmix io NAMESPACE:3", "the output of rank 3")],
        codes: PMIX,
    },
    Page {
        command: "pmix signal",
        examples: &[("sdm pmix signal NAMESPACE:3 USR1", "to rank 3")],
        codes: PMIX,
    },
    Page {
        command: "pmix kill",
        examples: &[("sdm pmix kill NAMESPACE", "end this job")],
        codes: PMIX,
    },
];
