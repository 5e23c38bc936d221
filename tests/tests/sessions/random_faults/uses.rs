//! Uses of `sdm`, each with its command line and input.

use std::path::Path;

use sdm_dap::frame::framed;
use serde_json::json;

/// A use of `sdm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Look,
    LookByGdb,
    Diagnose,
    DiagnoseByGdb,
    Profile,
    Watch,
    Attach,
    RunControl,
    Detach,
    Batch,
    Prompt,
    Editor,
    Screen,
    Keep,
    OpenMpi,
    Hydra,
    Pmix,
    OpenMpi5,
    Cluster,
}

pub(super) const USES: [Use; 19] = [
    Use::Look,
    Use::LookByGdb,
    Use::Diagnose,
    Use::DiagnoseByGdb,
    Use::Profile,
    Use::Watch,
    Use::Attach,
    Use::RunControl,
    Use::Detach,
    Use::Batch,
    Use::Prompt,
    Use::Editor,
    Use::Screen,
    Use::Keep,
    Use::OpenMpi,
    Use::Hydra,
    Use::Pmix,
    Use::OpenMpi5,
    Use::Cluster,
];

/// Options for a `prterun` with a daemon (`prted`) for a second host. Its ssh is a script that starts the daemon here.
fn two_hosts(ssh: &str) -> Vec<String> {
    let options = ["--prtemca", "plm_ssh_agent", ssh, "--map-by", "node"];
    let hosts = ["--host", "localhost:1,10.255.255.1:1"];
    let all = options.into_iter().chain(hosts);
    all.flat_map(|it| ["--launcher-option".to_owned(), it.to_owned()])
        .collect()
}

impl Use {
    /// True if the use concerns a process that ran before.
    pub(super) fn attaches(self) -> bool {
        use Use as U;
        matches!(
            self,
            U::Look
                | U::LookByGdb
                | U::Diagnose
                | U::DiagnoseByGdb
                | U::Profile
                | U::Watch
                | U::Attach
                | U::RunControl
                | U::Detach
                | U::Editor
                | U::Screen
        )
    }

    /// The arguments of `sdm`. `mpi` is the folder of Open MPI 5.
    pub(super) fn words(self, pid: u32, program: &str, go: &str, mpi: &Path) -> Vec<String> {
        let pid = &pid.to_string();
        let launched = |launcher: &str| {
            let words = ["run", "--batch", "--no-report", "-n", "2", "--launcher"];
            let words = words.map(str::to_owned).into_iter();
            let rest = [launcher, "--", program, go].map(str::to_owned);
            words.chain(rest).collect()
        };
        let words: &[&str] = match self {
            Self::Look => &["stacks", pid],
            Self::LookByGdb => &["stacks", "--by", "gdb", pid],
            Self::Diagnose => &["diagnose", pid],
            Self::DiagnoseByGdb => &["diagnose", "--by", "gdb", pid],
            Self::Profile => &["profile", "--for", "2", pid],
            Self::Watch => &["stacks", "--watch=1", pid],
            Self::Attach | Self::RunControl | Self::Detach => &["attach", "--by", "gdb", pid],
            Self::Batch => &[
                "run",
                "--batch",
                "--no-report",
                "-n",
                "2",
                "--launcher",
                "local",
                "--",
                program,
                "spin",
            ],
            Self::Prompt => &[
                "run",
                "-n",
                "2",
                "--launcher",
                "local",
                "--",
                program,
                "spin",
            ],
            Self::Editor => &["dap"],
            Self::Screen => &["attach", "--tui", "--by", "gdb", pid],
            Self::Keep => &[
                "run",
                "--keep=faults",
                "-n",
                "2",
                "--launcher",
                "local",
                "--",
                program,
                "spin",
            ],
            Self::OpenMpi => return launched("mpirun"),
            Self::Hydra => return launched("mpiexec"),
            Self::Pmix => return launched("local"),
            Self::OpenMpi5 => {
                let mpirun = mpi.join("bin/mpirun");
                let mut words: Vec<String> = launched(&mpirun.to_string_lossy());
                // MPI does not connect these ranks, which are on one host in truth.
                words.splice(words.len() - 1.., ["spin".to_owned()]);
                let end = words.iter().position(|word| word == "--").expect("there");
                words.splice(end..end, two_hosts(&format!("{go}.ssh")));
                return words;
            }
            Self::Cluster => &["submit", "-M", "faults", "-n", "2", "--", program],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Standard input of the use, from the beginning.
    pub(super) fn input(self, pid: u32) -> Vec<u8> {
        let lines: &[&str] = match self {
            Self::Attach => &["bt", "info locals"],
            Self::RunControl => &["break twice", "continue &", "interrupt", "bt", "continue &"],
            Self::Detach => &["bt", "detach"],
            Self::Prompt | Self::Keep => &["continue &", "interrupt", "bt", "continue &"],
            Self::Editor => {
                let request = |(seq, command, arguments): (u32, &str, serde_json::Value)| {
                    let request = json!({
                        "seq": seq, "type": "request", "command": command, "arguments": arguments,
                    });
                    framed(request.to_string().as_bytes())
                };
                let requests = [
                    (1, "initialize", json!({"adapterID": "sdm"})),
                    (2, "attach", json!({"target": pid})),
                ];
                return requests.map(request).concat();
            }
            _ => &[],
        };
        let ends = if lines.is_empty() { "" } else { "\n" };
        (lines.join("\n") + ends).into_bytes()
    }

    /// Input that ends the use in order; empty if it ends by itself, or at the end of its input.
    pub(super) fn farewell(self) -> &'static [u8] {
        match self {
            Self::Screen => b":quit\r",
            Self::Keep | Self::Prompt => b"quit\n",
            _ => b"",
        }
    }
}
