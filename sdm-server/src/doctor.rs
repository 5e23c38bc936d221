//! Output of `sdm doctor --host` on this host: the requirements of SDM, each with the result of its check, one per
//! line. It needs no session and no key. It shows only what any user who can run programs here may see.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use sdm_core::frame::WIRE_VERSION;
use sdm_core::transport::{PortRange, own_addresses};
use sdm_doctor::gdb::{self, Places};
use sdm_doctor::{Machine, ReportLine, looks};

use crate::arguments::Arguments;

/// Prints all findings. Then it accepts connections at the announced port until its input ends, so that the caller can
/// test whether a connection is possible.
///
/// # Errors
/// [`io::Error`] if the output cannot be written.
pub fn tell(arguments: &Arguments, gdb: &Path) -> io::Result<()> {
    say(&ReportLine::Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        wire: WIRE_VERSION,
    })?;
    // The kernel completes connections to a listening socket, so no `accept` is needed.
    let listener = listen(arguments.port);
    if let Some(listener) = &listener {
        let port = listener.local_addr()?.port();
        let own = own_addresses(arguments.interface.as_ref()).unwrap_or_default();
        for ip in own.into_iter().filter(|ip| !ip.is_loopback()) {
            say(&ReportLine::Listens(SocketAddr::new(ip, port)))?;
        }
    }
    let mut findings = gdb::findings(Some(gdb), &Places::here());
    findings.push(looks());
    findings.extend(Machine::default().findings());
    for finding in findings {
        say(&ReportLine::Found(finding))?;
    }
    say(&ReportLine::End)?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(listener);
    Ok(())
}

fn say(told: &ReportLine) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", told.line())?;
    out.flush()
}

/// Listens on the first free port of the range; `None` if there is none.
fn listen(ports: PortRange) -> Option<TcpListener> {
    let (first, count) = ports.search(0);
    let mut tried = (0..count).map_while(|index| first.checked_add(index));
    tried.find_map(|port| TcpListener::bind((IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)).ok())
}
