//! Findings of `sdm doctor --host` on hosts that are reached by ssh: on a healthy one, and with each fault planted.

use std::path::Path;

use sdm_doctor::Check;
use sdm_tests::doctor::{assert_found, bad, good};
use sdm_tests::place::{Place, script};
use sdm_tests::sdm::{Done, Sdm};

use super::network::hosts_script;
use super::{CONFIG, server};

const HOST: &str = "10.77.0.1";

fn look(place: &Place, server: &Path, options: &[&str]) -> Done {
    let options = options
        .iter()
        .flat_map(|option| ["--launcher-option", option]);
    Sdm::new(place, "doctor")
        .args(["--json", "--host", HOST, "--launcher-option", "-F"])
        .args(["--launcher-option", CONFIG])
        .args(options)
        .args(["--server-path".as_ref(), server.as_os_str()])
        .finish()
}

pub(super) fn a_host_is_looked_at(place: &Place) {
    let server = server(place);
    let done = look(place, &server, &[]);
    for (check, found) in [
        (Check::Ssh, "the host is reachable"),
        (Check::Server, "the host has sdm-server"),
        (Check::Firewall, "connections to "),
        (Check::Attach, "gdb can attach"),
    ] {
        assert_found(&done, &good(check, found));
    }
    what_ssh_refuses(place, &server);
    // The host's server is of another version, or is no server.
    let said = r"printf 'sdm-doctor-version\t9.0.0\t250\nsdm-doctor-end\n'; cat >/dev/null";
    let other = script(place.path(), "server-other", said);
    let said = "the host has sdm-server 9.0.0";
    assert_found(
        &look(place, &other, &[]),
        &bad(Check::Server, said, "--stage"),
    );
    let nowhere = look(place, Path::new("/nosuch/sdm-server"), &[]);
    assert_found(
        &nowhere,
        &bad(Check::Server, "does not run on the host", "--server-path"),
    );
    // Only connections to sshd are allowed.
    hosts_script(&["only-ssh", "1"]);
    let done = look(place, &server, &[]);
    hosts_script(&["mend", "1"]);
    let said = "no TCP connection to the host works: ";
    assert_found(&done, &bad(Check::Firewall, said, "--tunnel"));
    assert_found(&done, &good(Check::Ssh, "the host is reachable"));
}

fn what_ssh_refuses(place: &Place, server: &Path) {
    let strange = [
        "-oStrictHostKeyChecking=yes",
        "-oUserKnownHostsFile=/dev/null",
        "-oGlobalKnownHostsFile=/dev/null",
    ];
    let refused = "ssh cannot connect to the host: ";
    for (options, remedy) in [
        (&strange[..], "accept the host key"),
        (&["-oPubkeyAuthentication=no"][..], "ssh-add"),
        (&["-p1"][..], "check the host, the network"),
    ] {
        let done = look(place, server, options);
        assert_found(&done, &bad(Check::Ssh, refused, remedy));
    }
}
