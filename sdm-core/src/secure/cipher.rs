//! The ciphers of an open link: Noise's transport mode, in place in the caller's buffer.
//!
//! `snow` has a transport mode of its own, which copies each record once on either side. Instead, its keys are
//! extracted once the handshake is over, and the handshake is dropped. The bytes on the wire are the same:
//! AES-256-GCM without associated data under a 96-bit nonce of four zero bytes and an 8-byte big-endian counter.
//! The counter begins at 0 in each direction and rises by one with each record. No other code has these keys, and
//! only the methods here count.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use snow::HandshakeState;
use zeroize::Zeroizing;

/// Size of the authentication tag that sealing adds to a record, in bytes.
pub(crate) const TAG_BYTES: usize = 16;
/// The last nonce, which Noise reserves for new keys: a counter that has reached it is used up.
const NONCE_END: u64 = u64::MAX;

/// A record that was not sealed by the other end, or not as the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Forged;

/// Both directions of an open link.
pub(crate) struct Ciphers {
    seals: Direction,
    opens: Direction,
}

struct Direction {
    key: LessSafeKey,
    /// Counter of the next record; <= `NONCE_END`.
    counter: u64,
}

impl Ciphers {
    /// The ciphers of a finished handshake.
    pub(crate) fn of(mut handshake: HandshakeState) -> Self {
        assert!(
            handshake.is_handshake_finished(),
            "both messages of NN were exchanged"
        );
        let initiator = handshake.is_initiator();
        let keys = Zeroizing::new(<[[u8; 32]; 2]>::from(handshake.dangerously_get_raw_split()));
        let [from_initiator, from_responder] = [0, 1].map(|at| Direction::new(&keys[at]));
        let (seals, opens) = if initiator {
            (from_initiator, from_responder)
        } else {
            (from_responder, from_initiator)
        };
        Self { seals, opens }
    }

    /// Seals `contents` in place and returns the tag, which is to be appended to them.
    ///
    /// # Panics
    /// After 2^64 - 1 records, which are never sent.
    pub(crate) fn seal(&mut self, contents: &mut [u8]) -> [u8; TAG_BYTES] {
        let nonce = self.seals.nonce().expect("2^64 records are never sent");
        let key = &self.seals.key;
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::empty(), contents)
            .expect("a record is far below what one nonce may seal");
        // The counter advances before anything else can be sealed: no nonce is used twice.
        self.seals.counter += 1;
        tag.as_ref().try_into().expect("a tag of AES-GCM")
    }

    /// Decrypts a record in place, and checks its tag, which is included. Returns the contents.
    pub(crate) fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<&'a [u8], Forged> {
        let nonce = self.opens.nonce().ok_or(Forged)?;
        let key = &self.opens.key;
        let contents = key
            .open_in_place(nonce, Aad::empty(), record)
            .map_err(|_| Forged)?;
        self.opens.counter += 1;
        Ok(contents)
    }
}

impl Direction {
    fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("a key of 256 bits");
        Self {
            key: LessSafeKey::new(key),
            counter: 0,
        }
    }

    /// The next nonce; `None` once all are used.
    fn nonce(&self) -> Option<Nonce> {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&self.counter.to_be_bytes());
        (self.counter < NONCE_END).then(|| Nonce::assume_unique_for_key(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::NOISE;
    use super::*;

    /// Both ends of a finished handshake, the initiator first.
    fn handshake() -> [HandshakeState; 2] {
        let builder = || {
            let builder = snow::Builder::new(NOISE.parse().unwrap());
            builder.psk(0, &[7; 32]).unwrap()
        };
        let mut ends = [
            builder().build_initiator().unwrap(),
            builder().build_responder().unwrap(),
        ];
        let (mut sent, mut got) = ([0; 256], [0; 256]);
        for (from, to) in [(0, 1), (1, 0)] {
            let len = ends[from].write_message(b"hello", &mut sent).unwrap();
            ends[to].read_message(&sent[..len], &mut got).unwrap();
        }
        ends
    }

    fn sealed(ciphers: &mut Ciphers, contents: &[u8]) -> Vec<u8> {
        let mut record = contents.to_vec();
        let tag = ciphers.seal(&mut record);
        record.extend_from_slice(&tag);
        record
    }

    #[test]
    fn encrypted_records_equal_noise_protocol_records() {
        for ours in [0, 1] {
            let mut ends: Vec<_> = handshake().into_iter().collect();
            let own = ends.remove(ours);
            let mut ciphers = Ciphers::of(own);
            let mut other = ends.remove(0).into_transport_mode().unwrap();
            for number in 0..300_usize {
                let contents = vec![u8::try_from(number % 251).unwrap(); number * 7];
                let mut record = sealed(&mut ciphers, &contents);
                let mut plain = vec![0; record.len()];
                let len = other.read_message(&record, &mut plain).unwrap();
                assert_eq!(plain[..len], contents, "ours, opened by snow");
                let len = other.write_message(&contents, &mut record).unwrap();
                assert_eq!(ciphers.open(&mut record[..len]), Ok(&contents[..]));
            }
        }
    }

    #[test]
    fn record_is_opened_once_and_in_order() {
        let [from, to] = handshake().map(Ciphers::of);
        let (mut from, mut to) = (from, to);
        let [first, second] = [b"first", b"other"].map(|text| sealed(&mut from, text));
        assert_eq!(to.open(&mut second.clone()), Err(Forged), "not its turn");
        assert_eq!(to.open(&mut first.clone()), Ok(&b"first"[..]));
        assert_eq!(to.open(&mut first.clone()), Err(Forged), "a repeated one");
        let mut changed = second.clone();
        changed[0] ^= 1;
        assert_eq!(to.open(&mut changed), Err(Forged));
        assert_eq!(to.open(&mut []), Err(Forged));
        assert_eq!(to.open(&mut second.clone()), Ok(&b"other"[..]));
    }

    #[test]
    fn cipher_fails_before_the_reserved_nonce() {
        let [mut from, mut to] = handshake().map(Ciphers::of);
        from.seals.counter = NONCE_END - 1;
        to.opens.counter = NONCE_END - 1;
        let mut last = sealed(&mut from, b"last");
        assert_eq!(to.open(&mut last), Ok(&b"last"[..]));
        assert!(from.seals.nonce().is_none());
        assert_eq!(to.open(&mut last), Err(Forged));
    }
}
