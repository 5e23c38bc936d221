//! Names of abstract sockets for processes of one session on one host.

use ring::hmac;

use crate::link::LinkConfig;

/// Name of an abstract socket for processes that have the same `detail`: 40 hexadecimal digits after `sdm-`. A process
/// without the session's key cannot predict the name, and learns nothing of the key from it.
#[must_use]
pub fn shared_name(config: &LinkConfig, detail: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, config.key.bytes());
    let mut context = hmac::Context::with_key(&key);
    // Nothing else that is signed by this key begins so.
    context.update(b"SDM meeting\0");
    context.update(&config.session.0);
    context.update(detail);
    let tag = context.sign();
    let digits = tag.as_ref()[..20].iter().map(|byte| format!("{byte:02x}"));
    format!("sdm-{}", digits.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SessionId;
    use crate::secure::SessionKey;

    #[test]
    fn abstract_socket_name_depends_on_key_session_and_detail() {
        let config = |key, session| {
            let key = SessionKey::from_bytes([key; 32]);
            LinkConfig::new(key, SessionId([session; 8]))
        };
        let name = shared_name(&config(1, 1), b"0");
        assert_eq!(name.len(), 44);
        assert_eq!(name, shared_name(&config(1, 1), b"0"));
        let others = [(2, 1, b"0"), (1, 2, b"0"), (1, 1, b"1")];
        for (key, session, detail) in others {
            assert_ne!(name, shared_name(&config(key, session), detail));
        }
    }
}
