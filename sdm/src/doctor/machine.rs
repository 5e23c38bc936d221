//! Checks of the machine that `sdm` runs on.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sdm_core::transport::own_addresses;
use sdm_doctor::gdb::{self, Places};
use sdm_doctor::{Check, Finding, Machine, looks};
use sdm_system::run_bounded::{self, Bounds, Said};
use sdm_system::{files, own_program, programs};
use sdm_text::{printable, printable_name};

use crate::cli::DoctorArgs;

/// Limits for a program that is run for its output.
const BOUNDS: Bounds = Bounds {
    wait: Duration::from_secs(20),
    lines_max: 10_000,
};
/// Time limit for a connection to an address of this machine.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// SDM's programs with a version option. Without the first two there is no session.
const PROGRAMS: [&str; 3] = ["sdm-master", "sdm-server", "sdm-agent"];
/// SDM's programs without a version option. If one is missing, a feature of SDM is missing.
const OTHERS: [&str; 2] = ["sdm-rm", "sdm-pmix"];
/// Number of `PROGRAMS` that are required.
const NEEDED: usize = 2;

/// The findings of this machine.
pub(super) fn findings(args: &DoctorArgs) -> Vec<Finding> {
    let mut findings = vec![programs()];
    findings.extend(gdb::findings(args.gdb.as_deref(), &Places::here()));
    findings.push(looks());
    findings.extend(Machine::default().findings());
    findings.extend([ports(args), ssh(), mpi(), pmix(), slurm(), rust()]);
    findings.extend(super::job::left_behind());
    findings
}

/// The output of a program that exits with 0.
fn said(program: impl AsRef<Path>, words: &[&str]) -> io::Result<Said> {
    let mut command = programs::helper_at(program);
    command.args(words);
    said_by(command)
}

fn said_by(mut command: Command) -> io::Result<Said> {
    command.env("LC_ALL", "C");
    let said = run_bounded::run(&mut command, b"", BOUNDS)?;
    if said.status.success() {
        return Ok(said);
    }
    let last = said.complaints.iter().chain(&said.lines).next_back();
    let last = last.map_or_else(|| said.status.to_string(), Clone::clone);
    Err(io::Error::other(printable(last.trim().as_bytes())))
}

fn programs() -> Finding {
    let check = Check::Programs;
    let own = env!("CARGO_PKG_VERSION");
    let remedy = "install all programs of one version into one folder (docs/install.md)";
    let mut absent = Vec::new();
    for (index, name) in PROGRAMS.into_iter().enumerate() {
        let Some(path) = own_program(name, None) else {
            if index < NEEDED {
                let text = format!("{name} was found neither in the folder of sdm nor on PATH");
                return Finding::bad(check, text, remedy);
            }
            absent.push(name);
            continue;
        };
        let version = said(&path, &["--version"]);
        let line = version.map(|it| it.lines.first().cloned().unwrap_or_default());
        let shown = printable_name(&path);
        match line {
            Ok(line) if line.split(' ').nth(1) == Some(own) => {}
            Ok(line) => {
                let text = format!(
                    "sdm is {own}, but {shown} reports '{}'",
                    printable(line.as_bytes())
                );
                return Finding::bad(check, text, remedy);
            }
            Err(error) => return Finding::bad(check, format!("{shown}: {error}"), remedy),
        }
    }
    absent.extend(
        OTHERS
            .iter()
            .filter(|name| own_program(name, None).is_none()),
    );
    let without = match absent.is_empty() {
        true => String::new(),
        false => format!(", without {}", absent.join(" and ")),
    };
    Finding::good(
        check,
        format!("sdm {own}, with its programs of the same version{without}"),
    )
}

fn ports(args: &DoctorArgs) -> Finding {
    let check = Check::Ports;
    let ports = args.reach.port;
    let own = match own_addresses(args.reach.interface.as_ref()) {
        Ok(own) => own,
        Err(error) => return Finding::bad(check, error.to_string(), "select another --interface"),
    };
    let (first, count) = ports.search(0);
    let free = (0..count)
        .map_while(|index| first.checked_add(index))
        .find_map(|port| {
            let any = IpAddr::from([0, 0, 0, 0]);
            TcpListener::bind((any, port)).ok()
        });
    let bound = free.and_then(|it| Some((it.local_addr().ok()?.port(), it)));
    let Some((port, _listener)) = bound else {
        let text = format!("no free port among {count} from {first} on");
        return Finding::bad(check, text, "select other ports with --port FIRST-LAST");
    };
    let outer: Vec<IpAddr> = own
        .into_iter()
        .filter(|ip| ip.is_ipv4() && !ip.is_loopback())
        .collect();
    let fails = outer.iter().find_map(|ip| {
        let address = SocketAddr::new(*ip, port);
        let error = TcpStream::connect_timeout(&address, CONNECT_WAIT).err()?;
        Some((address, error))
    });
    if let Some((address, error)) = fails {
        return Finding::bad(
            check,
            format!("this machine cannot connect to its own address {address}: {error}"),
            "give a working interface (--interface), or open --port FIRST-LAST in the firewall; --tunnel connects \
             through ssh",
        );
    }
    let shown: Vec<String> = outer.iter().map(ToString::to_string).collect();
    Finding::good(
        check,
        match shown.is_empty() {
            true => "loopback ports are available; this machine has no other address".to_owned(),
            false => format!("TCP connections to {} work", shown.join(" and ")),
        },
    )
}

fn ssh() -> Finding {
    let check = Check::Ssh;
    let Some(path) = files::search("ssh") else {
        let remedy = "install an ssh client to debug jobs on other hosts without Slurm or MPI";
        return Finding::unknown(check, "ssh was not found on PATH", remedy);
    };
    match said(&path, &["-V"]) {
        Ok(said) => {
            let version = said.complaints.iter().chain(&said.lines).next();
            let version = printable(version.map_or("", |it| it.as_str()).as_bytes());
            Finding::good(
                check,
                format!(
                    "{version} is {path}; `sdm doctor --host HOST` tries a connection",
                    path = printable_name(&path)
                ),
            )
        }
        Err(error) => {
            let text = format!("{}: {error}", printable_name(&path));
            Finding::bad(
                check,
                text,
                "repair this ssh, or put another one first on PATH",
            )
        }
    }
}

fn mpi() -> Finding {
    let check = Check::Mpi;
    let found = ["mpirun", "mpiexec"].map(sdm_launch::find);
    let mut known: Vec<String> = found
        .iter()
        .filter_map(|it| it.as_ref().ok().map(|it| it.describe()))
        .collect();
    known.dedup();
    if !known.is_empty() {
        return Finding::good(check, known.join("; "));
    }
    let why: Vec<String> = found
        .into_iter()
        .filter_map(|it| it.err().map(|error| error.to_string()))
        .collect();
    let remedy = "load the module of your MPI to start programs by mpirun or mpiexec; srun and --pmix need none";
    Finding::unknown(check, why.join("; "), remedy)
}

fn pmix() -> Finding {
    let check = Check::Pmix;
    if own_program("sdm-pmix", None).is_none() {
        let text = "sdm-pmix is not installed: MPI programs need mpirun or srun, and jobs of prterun on several hosts \
                    are not found";
        let remedy = "install it in the folder of sdm: it is built separately where sdm is linked statically (docs/install.md)";
        return Finding::unknown(check, text, remedy);
    }
    let (servers, complaints) = sdm_hosts::pmix::servers();
    let mut text = format!(
        "sdm-pmix is installed; PMIx servers on this host that accept tools: {}",
        servers.len()
    );
    if let Some(complaint) = complaints.first() {
        text.push_str(&format!("; sdm ignored other PMIx servers: {complaint}"));
    }
    Finding::good(check, text)
}

fn slurm() -> Finding {
    let check = Check::Slurm;
    if files::search("srun").is_none() {
        return Finding::good(check, "this host has no Slurm (srun is not on PATH)");
    }
    let Some(scontrol) = files::search("scontrol") else {
        let remedy = "put Slurm's other commands on PATH too";
        return Finding::unknown(
            check,
            "srun was found on PATH, but scontrol was not",
            remedy,
        );
    };
    match said(&scontrol, &["ping"]) {
        Ok(said) => {
            let lines: Vec<String> = said
                .lines
                .iter()
                .map(|it| printable(it.as_bytes()))
                .collect();
            let text = lines.join("; ");
            if lines.iter().any(|line| line.contains("UP")) {
                return Finding::good(check, text);
            }
            Finding::bad(
                check,
                text,
                "Slurm's controller is down: ask your administrator",
            )
        }
        Err(error) => Finding::bad(
            check,
            format!("Slurm's controller does not answer: {error}"),
            "run sdm where squeue works; SLURM_CONF names the configuration file with the controller's host",
        ),
    }
}

/// Only building SDM needs a compiler, so that none, or an old one, is no fault.
fn rust() -> Finding {
    let check = Check::Rust;
    let needed = concat!(
        "building SDM from source needs Rust ",
        env!("CARGO_PKG_RUST_VERSION"),
        " or later"
    );
    let Some(path) = files::search("rustc") else {
        return Finding::good(check, format!("rustc was not found on PATH; only {needed}"));
    };
    let shown = printable_name(&path);
    let mut command = programs::helper_at(&path);
    // rustup would install what a file of the current directory names.
    command.arg("--version").current_dir("/");
    let text = match said_by(command) {
        Ok(said) => {
            let line = said.lines.first().map_or("", |it| it.as_str());
            format!("{shown} is {}; {needed}", printable(line.as_bytes()))
        }
        Err(error) => format!("{shown}: {error}; {needed}"),
    };
    Finding::good(check, text)
}
