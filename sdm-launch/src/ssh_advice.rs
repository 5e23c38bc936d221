//! Advice about an `ssh` that failed.

/// Prefix of the display name of an `ssh` process; the host's name follows.
pub(crate) const WHO: &str = "ssh ";

/// Advice for an `ssh` process that ended with these last lines of output; `None` if there is none.
pub(crate) fn advice(who: &str, last_words: &[String]) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 8] = [
        (
            "Permission denied",
            "ssh requires a password: set up a key (ssh-copy-id) or start an agent (ssh-add)",
        ),
        (
            "Host key verification failed",
            "connect once by hand with ssh to accept the host key",
        ),
        (
            "Could not resolve hostname",
            "check the spelling of the host name",
        ),
        (
            "Connection refused",
            "no sshd listens on that host and port: check both",
        ),
        ("No route to host", "check the host and the network"),
        (
            "timed out",
            "the host does not answer: check it, the network and the firewall",
        ),
        (
            "not found",
            "sdm-server is not installed on that host: install it at the same path, or use --server-path",
        ),
        ("can't cd", "the directory does not exist on that host"),
    ];
    if !who.starts_with(WHO) {
        return None;
    }
    let says = |part: &str| last_words.iter().any(|line| line.contains(part));
    KNOWN
        .iter()
        .find(|(part, _)| says(part))
        .map(|(_, advice)| *advice)
}
