//! The program `sdm-agent`: it speaks the resource-manager proxy protocol for a resource manager. By its arguments or
//! its name it is a job's runner, the guard of an invoke server, a host's helper, or an invoke server instead.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use sdm_agent::external;
use sdm_agent::gridengine::GridEngine;
use sdm_agent::invoke::{self, guard};
use sdm_agent::local::{HYDRA, Local, OPEN_MPI, runner};
use sdm_agent::manager::Manager;
use sdm_agent::prrte::Prrte;
use sdm_agent::serve::{Client, serve};
use sdm_agent::slurm::Slurm;
use sdm_agent::ssh::{Ssh, host_request};
use sdm_agent::worker::Worker;
use sdm_hosts::HostShare;
use sdm_runtime::wire::IdForm;
use sdm_system::files;
use sdm_system::listener::{self, Refusals};
use sdm_text::{escape_panics, printable, printable_lines, printable_name};

/// Tells a client over the resource-manager proxy protocol what a resource manager has, and submits jobs to it.
#[derive(Parser)]
#[command(name = "sdm-agent", version)]
struct Arguments {
    /// The kind of resource manager: slurm, gridengine, local, ssh, openmpi, hydra, prrte, or NAME of an executable sdm-rm-NAME on PATH
    #[arg(long, value_name = "TYPE")]
    rm: String,
    /// Hosts of `ssh`, with commas in between
    #[arg(long, value_name = "HOSTS", conflicts_with = "hosts_file")]
    hosts: Option<String>,
    /// A file with a host of `ssh` on each line
    #[arg(long, value_name = "FILE")]
    hosts_file: Option<PathBuf>,
    /// An option of the program ssh, one word; again for each further one
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    ssh_option: Vec<String>,
    /// The path of sdm-agent on the hosts of `ssh`; its path on this host unless given
    #[arg(long, value_name = "PATH")]
    agent_path: Option<PathBuf>,
    /// The way to reach the client
    #[arg(long, value_enum, default_value_t = Proxy::Stdio)]
    proxy: Proxy,
    /// The host where the client listens; only this host (with ssh: a port forwarded to it)
    #[arg(long, default_value = "localhost")]
    host: String,
    /// The port at which it listens
    #[arg(long, required_if_eq("proxy", "tcp"))]
    port: Option<u16>,
    /// The Unix socket to wait at, in a folder of yours alone
    #[arg(long, required_if_eq("proxy", "unix"))]
    path: Option<PathBuf>,
    /// The ids of elements: numbers above the client's base id, or texts that begin with it
    #[arg(long, value_enum, default_value_t = Ids::Number)]
    ids: Ids,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Ids {
    /// Numbers, which many elements share a text of
    Number,
    /// Texts, for a client whose base id is a text
    Text,
}

#[derive(Clone, Copy, ValueEnum)]
enum ManagerType {
    /// The Slurm whose commands are on PATH
    Slurm,
    /// The Grid Engine whose commands are on PATH
    Gridengine,
    /// This host: programs run as they are
    Local,
    /// Hosts that are reached by ssh
    Ssh,
    /// This host: programs run under Open MPI's mpirun
    Openmpi,
    /// This host: programs run under MPICH's mpiexec
    Hydra,
    /// This host: jobs of the user's PRRTE servers
    Prrte,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Proxy {
    /// Standard input and output
    Stdio,
    /// A connection to the client's port
    Tcp,
    /// A Unix socket at which the first client of this user's is waited for
    Unix,
}

fn main() -> ExitCode {
    escape_panics();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = format!("{error:#}");
            eprintln!("sdm-agent: {}", printable_lines(&error));
            ExitCode::FAILURE
        }
    }
}

const NO_CLIENT: &str = "cannot set up the connection to the client";

fn run() -> Result<()> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let words: Vec<&OsStr> = words.iter().map(|word| word.as_os_str()).collect();
    match words[..] {
        [word, stay, folder] if word == runner::WORD && stay == runner::STAY => {
            return runner::run(&PathBuf::from(folder)).context("cannot write the job's record");
        }
        [word, folder] if word == runner::WORD => {
            let program =
                std::env::current_exe().context("cannot determine the path of sdm-agent")?;
            return runner::detach(&program, &PathBuf::from(folder))
                .context("cannot start the process that runs the job");
        }
        [word] if word == guard::WORD => {
            return guard::run(io::stdin().lock()).context("cannot read messages of sdm-agent");
        }
        [word] if word == host_request::WORD => {
            return host_request::answer(io::stdin().lock(), io::stdout().lock()).context(
                "cannot answer the request of the sdm-agent that manages jobs on this host",
            );
        }
        _ => {}
    }
    // This check comes after the words above: helpers that an invoke server starts have its name, too, where that
    // name is a file and no link.
    let own = std::env::args_os().next().unwrap_or_default();
    let own = Path::new(&own).file_name().and_then(OsStr::to_str);
    if let Some(server_type) = own.and_then(|name| name.strip_prefix(invoke::NAME)) {
        return invoke_server(server_type);
    }
    let arguments = Arguments::parse();
    let Ok(kind) = ManagerType::from_str(&arguments.rm, false) else {
        let program = external::find(&arguments.rm)?;
        let client = stream(&arguments)?
            .map(|stream| Ok::<_, io::Error>((stream.try_clone()?, stream)))
            .transpose()
            .context(NO_CLIENT)?;
        return Err(external::become_it(program, client).into());
    };
    let manager: Box<dyn Manager> = match kind {
        ManagerType::Slurm => Box::new(Slurm::new()?),
        ManagerType::Gridengine => Box::new(GridEngine::new()?),
        ManagerType::Local => Box::new(Local::new("local", None)?),
        ManagerType::Ssh => {
            let (options, program) = (&arguments.ssh_option, &arguments.agent_path);
            let hosts = hosts(&arguments)?;
            Box::new(Ssh::new(&hosts, options.clone(), program.clone())?)
        }
        ManagerType::Openmpi => Box::new(Local::new("openmpi", Some(&OPEN_MPI))?),
        ManagerType::Hydra => Box::new(Local::new("hydra", Some(&HYDRA))?),
        ManagerType::Prrte => Box::new(Prrte::new()?),
    };
    let client = client(&arguments)?;
    let worker =
        Worker::start(manager).context("cannot start the thread of the resource manager")?;
    let ids = match arguments.ids {
        Ids::Number => IdForm::Numbers,
        Ids::Text => IdForm::Texts,
    };
    serve(client, worker, ids).context("the connection to the client has failed")
}

/// The connection to the client: the socket that the arguments name, or the standard streams.
fn client(arguments: &Arguments) -> Result<Client> {
    let Some(stream) = stream(arguments)? else {
        return Ok(Client {
            input: Box::new(io::stdin().lock()),
            output: Box::new(io::stdout().lock()),
        });
    };
    // Of which kind a socket is makes no difference any more.
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(true).context(NO_CLIENT)?;
    let output = stream.try_clone().context(NO_CLIENT)?;
    Ok(Client {
        input: Box::new(stream),
        output: Box::new(output),
    })
}

/// Serves a GridRPC client as an invoke server. Of its options only `-l FILE`, the log, has an effect; unknown ones are
/// ignored.
fn invoke_server(server_type: &str) -> Result<()> {
    // Inherited descriptors of the client are closed: others would not see the client's end while they are open here.
    sdm_system::close_inherited();
    let mut words = std::env::args_os().skip(1);
    let mut log = None;
    while let Some(word) = words.next() {
        if word == "-l" {
            log = words.next().map(PathBuf::from);
        }
    }
    invoke::serve(server_type, log.as_deref()).context("cannot start the invoke server")
}

fn hosts(arguments: &Arguments) -> Result<Vec<HostShare>> {
    if let Some(list) = &arguments.hosts {
        return HostShare::list(list).context("--hosts");
    }
    let Some(path) = &arguments.hosts_file else {
        bail!("--hosts or --hosts-file is missing");
    };
    let shown = printable_name(path);
    let text = files::read_text(path).with_context(|| format!("--hosts-file {shown}"))?;
    HostShare::file(&text).with_context(|| format!("--hosts-file {shown}"))
}

/// The client's socket, once it is there; none where the client is at the standard streams.
fn stream(arguments: &Arguments) -> Result<Option<OwnedFd>> {
    match arguments.proxy {
        Proxy::Stdio => Ok(None),
        Proxy::Tcp => {
            let port = arguments.port.context("--port is missing")?;
            connect(&arguments.host, port).map(|stream| Some(stream.into()))
        }
        Proxy::Unix => {
            let path = arguments.path.as_ref().context("--path is missing")?;
            let shown = printable_name(path);
            let mut refusals = Refusals::default();
            let stream = listener::wait_at_path(path, &mut |why| {
                if let Some(why) = refusals.line(Instant::now(), &why) {
                    let why = printable(why.as_bytes());
                    eprintln!("sdm-agent: a client was disconnected: {why}");
                }
            })
            .with_context(|| format!("--path {shown}"))?;
            Ok(Some(stream.into()))
        }
    }
}

/// Connects to a client of this user's on this host: a client that can submit jobs can run programs as this user.
fn connect(host: &str, port: u16) -> Result<TcpStream> {
    let mut addresses = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("--host {host}"))?;
    let Some(address) = addresses.find(|address| is_loopback(address.ip())) else {
        bail!(
            "--host {host} is not a loopback address: forward the port of a remote client with ssh"
        );
    };
    let stream = TcpStream::connect(address)
        .with_context(|| format!("cannot connect to the client at {address}"))?;
    sdm_system::tcp_peer::check(&stream)
        .with_context(|| format!("cannot connect to the client at {address}"))?;
    Ok(stream)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
