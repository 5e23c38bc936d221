//! The claim of a caller to be a certain server, which only a holder of the session's key can make.
//!
//! ```text
//! bytes 0..4    "SDMC"
//! bytes 4..8    the server's number, little-endian
//! bytes 8..24   drawn anew for each claim
//! bytes 24..56  HMAC-SHA-256 by the session's key over the session's name and the bytes before
//! ```
//!
//! An eavesdropper can repeat a claim. It wastes one handshake, which the eavesdropper cannot complete.

use ring::hmac;

use crate::ids::ServerId;
use crate::link::LinkConfig;
use crate::secure::SessionKey;

/// The byte that the listener sends to a caller when it takes the connection.
pub(super) const TAKEN: u8 = b'!';

const MAGIC: [u8; 4] = *b"SDMC";
const SAID_BYTES: usize = 24;
/// Size of a claim, in bytes.
pub(super) const CLAIM_BYTES: usize = SAID_BYTES + 32;

/// Creates and checks claims of one session.
pub(super) struct Claim {
    key: hmac::Key,
    session: [u8; 8],
}

impl Claim {
    pub(super) fn of(config: &LinkConfig) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, config.key.bytes()),
            session: config.session.0,
        }
    }

    /// Creates a claim to be `server`.
    pub(super) fn make(&self, server: ServerId) -> Result<[u8; CLAIM_BYTES], getrandom::Error> {
        let mut claim = [0; CLAIM_BYTES];
        claim[..4].copy_from_slice(&MAGIC);
        claim[4..8].copy_from_slice(&server.0.to_le_bytes());
        getrandom::fill(&mut claim[8..SAID_BYTES])?;
        let tag = hmac::sign(&self.key, &self.signed(&claim[..SAID_BYTES]));
        claim[SAID_BYTES..].copy_from_slice(tag.as_ref());
        Ok(claim)
    }

    /// The server that made the claim; `None` if the claim is not authentic.
    pub(super) fn check(&self, claim: &[u8]) -> Option<ServerId> {
        let (said, tag) = claim.split_at_checked(SAID_BYTES)?;
        let number = said.strip_prefix(&MAGIC)?.first_chunk()?;
        hmac::verify(&self.key, &self.signed(said), tag).ok()?;
        Some(ServerId(u32::from_le_bytes(*number)))
    }

    fn signed(&self, said: &[u8]) -> Vec<u8> {
        [&self.session, said].concat()
    }
}

/// Fuzz entry: any bytes of an unauthenticated peer cause no panic, and are no valid claim.
pub fn fuzz_claim(bytes: &[u8]) {
    let key = SessionKey::from_bytes([7; 32]);
    let config = LinkConfig::new(key, crate::ids::SessionId([1; 8]));
    assert_eq!(Claim::of(&config).check(bytes), None, "nobody has the key");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secure::draw_session_id;

    #[test]
    fn claim_without_the_session_key_is_refused() {
        let config = |byte| {
            let key = SessionKey::from_bytes([byte; 32]);
            LinkConfig::new(key, draw_session_id().unwrap())
        };
        let (ours, theirs) = (config(1), config(2));
        let other_session = LinkConfig::new(ours.key.clone(), theirs.session);
        let claim = Claim::of(&ours).make(ServerId(3)).unwrap();
        assert_eq!(Claim::of(&ours).check(&claim), Some(ServerId(3)));
        assert_eq!(Claim::of(&theirs).check(&claim), None);
        assert_eq!(Claim::of(&other_session).check(&claim), None);
        for at in 0..CLAIM_BYTES {
            let mut changed = claim;
            changed[at] ^= 1;
            assert_eq!(Claim::of(&ours).check(&changed), None, "byte {at}");
            assert_eq!(Claim::of(&ours).check(&claim[..at]), None, "{at} bytes");
        }
    }

    proptest::proptest! {
        #[test]
        fn claim_parser_never_panics(bytes: Vec<u8>) {
            fuzz_claim(&bytes);
        }
    }
}
