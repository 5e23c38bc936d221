//! Authentication of a session's members: the key, the preface of a connection, and the handshake.
//!
//! ```text
//!   initiator                                        responder
//!   preface, len, Noise message 1 (Hello)   -->
//!                                           <--      preface, len, Noise message 2 (Hello)
//!   record                                  -->      now the link counts
//!
//!   preface    'S' 'D' 'M' 0, wire version u8, flags u8 (0), session tag u16 LE
//!   len        u16 LE; 0: refused, and one byte says why
//!   record     u16 LE length (16..=65535), ciphertext and tag; the records' contents joined are frames
//! ```
//!
//! Noise is `NNpsk0`: a peer without the session's key can neither read nor prove anything. Its
//! prologue is the preface and the session id. The first message could be a repeated one, so the
//! responder trusts the initiator only from its first record on. The session tag (the id folded to
//! 16 bits) tells sessions on one machine apart before any cryptography; it is not secret.

mod cipher;
mod handshake;

use std::fmt;
use std::str::FromStr;

use zeroize::{Zeroize, Zeroizing};

use crate::codec::{DecodeError, Reader, Writer};
use crate::ids::{Epoch, ServerId, SessionId};

pub(crate) use cipher::{Ciphers, TAG_BYTES};
pub(crate) use handshake::{Handshake, OpenChannel};

/// The Noise pattern. Of the four combinations of ciphers and hashes, AES-GCM and SHA-256 make small records cheapest
/// on machines with AES instructions (figures in docs/adr/014-aes-gcm-for-noise.md).
pub(crate) const NOISE: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// The longest build name in a [`Hello`], in bytes; longer ones are cut.
pub const BUILD_BYTES_MAX: usize = 64;

/// The 32 bytes that authenticate a member of a session. They are zeroed when dropped, never printed, and stay at
/// one address when the value is moved.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey(Box<[u8; 32]>);

impl SessionKey {
    /// A new key, drawn at random.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut key = Self(Box::new([0; 32]));
        getrandom::fill(&mut *key.0)?;
        Ok(key)
    }

    /// The key that consists of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Box::new(bytes))
    }

    /// The text form, for the environment or the stdin of a member: 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Room for the whole text at once: growing would leave copies of the key in memory.
        let mut text = Zeroizing::new(String::with_capacity(64));
        for byte in *self.0 {
            text.push(DIGITS[usize::from(byte >> 4)].into());
            text.push(DIGITS[usize::from(byte & 15)].into());
        }
        text
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for SessionKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

impl FromStr for SessionKey {
    type Err = &'static str;

    /// Reads the text form; white space around it, as of a line read from stdin, is dropped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = "expected a session key of 64 hexadecimal digits";
        let digits = text.trim_ascii().as_bytes();
        if digits.len() != 64 {
            return Err(bad);
        }
        let mut key = Self(Box::new([0; 32]));
        for (byte, pair) in key.0.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex_digit(pair[0]).ok_or(bad)? << 4 | hex_digit(pair[1]).ok_or(bad)?;
        }
        Ok(key)
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// A new session's id, drawn at random.
///
/// # Errors
/// The system has no randomness to give.
pub fn draw_session_id() -> Result<SessionId, getrandom::Error> {
    let mut id = [0; 8];
    getrandom::fill(&mut id)?;
    Ok(SessionId(id))
}

/// Position in the tree of one end of a link, relative to the other. Either of them may be the one that connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The end that is nearer to the front-end.
    Parent,
    /// The end that is further from the front-end.
    Child,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parent => "parent",
            Self::Child => "child",
        })
    }
}

/// The description that each end sends of itself in the handshake, encrypted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Position of the sender relative to the receiver.
    pub role: Role,
    /// The sender's id.
    pub id: ServerId,
    /// The member that the sender expects; `None` if any member of the session will do.
    pub expect: Option<ServerId>,
    /// The epoch of the link's attachment: a link of a higher epoch replaces one of a lower.
    pub epoch: Epoch,
    /// Number of earlier starts of the sender, from 0.
    pub incarnation: u32,
    /// The version of the sender's program, as text for the user, at most [`BUILD_BYTES_MAX`] bytes.
    pub build: String,
    /// Features of the sender beyond the wire version, one bit each; a receiver ignores unknown bits.
    pub features: u32,
}

impl Hello {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.u8(match self.role {
            Role::Parent => 0,
            Role::Child => 1,
        });
        w.u32(self.id.0);
        w.u8(self.expect.is_some().into());
        if let Some(id) = self.expect {
            w.u32(id.0);
        }
        w.u32(self.epoch.0);
        w.u32(self.incarnation);
        w.truncated_text(&self.build, BUILD_BYTES_MAX);
        w.u32(self.features);
        w.finish().expect("the only text is cut to its bound");
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let mut r = Reader::new(&bytes);
        let is_child = r.bool("role")?;
        let id = ServerId(r.u32("id")?);
        let expect = if r.bool("expected id")? {
            Some(ServerId(r.u32("expected id")?))
        } else {
            None
        };
        let hello = Self {
            role: if is_child { Role::Child } else { Role::Parent },
            id,
            expect,
            epoch: Epoch(r.u32("epoch")?),
            incarnation: r.u32("incarnation")?,
            build: r.text("build", BUILD_BYTES_MAX)?.to_owned(),
            features: r.u32("features")?,
        };
        r.finish("hello")?;
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_key_has_text_form_and_is_not_printed() {
        let key = SessionKey::draw().unwrap();
        assert_eq!(
            format!(" {}\n", *key.to_hex()).parse::<SessionKey>(),
            Ok(key.clone())
        );
        assert_eq!(format!("{key:?}"), "SessionKey(..)");
        assert_ne!(key, SessionKey::draw().unwrap());
        let text = "0123456789abcdefABCDEF".repeat(3);
        assert!(text[..64].parse::<SessionKey>().is_ok());
        for bad in [
            "",
            &text[..63],
            &text[..65],
            &"é".repeat(32),
            &"g".repeat(64),
        ] {
            assert!(bad.parse::<SessionKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn hello_decodes_and_truncated_hello_fails() {
        let hello = Hello {
            role: Role::Child,
            id: ServerId(70_000),
            expect: Some(ServerId::MASTER),
            epoch: Epoch(3),
            incarnation: 1,
            build: "x".repeat(100),
            features: u32::MAX,
        };
        let mut bytes = Vec::new();
        hello.encode(&mut bytes);
        let got = Hello::decode(&bytes).unwrap();
        assert_eq!(got.build, "x".repeat(BUILD_BYTES_MAX));
        assert_eq!(
            Hello {
                build: hello.build.clone(),
                ..got
            },
            hello
        );
        for len in 0..bytes.len() {
            assert!(Hello::decode(&bytes[..len]).is_err());
        }
    }
}
