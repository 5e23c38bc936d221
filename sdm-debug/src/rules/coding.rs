//! The bytes of merged payloads: LEB128 numbers, texts with their length, sets in their wire form.

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;

/// The first byte of a merged payload; as the first byte of a reply it would be a number beyond
/// all kinds of reply.
pub(super) const MERGED: u8 = 0xfe;

/// The largest set of sources of a payload, in a set or as "all of them".
const SET_NONE: u8 = 0;
const SET_GIVEN: u8 = 1;
const SET_ALL: u8 = 2;

/// True where the payload is a merged one.
pub(super) fn is_merged(payload: &[u8]) -> bool {
    payload.first() == Some(&MERGED)
}

/// The number of the rule that has made a merged payload.
pub(super) fn rule_of(payload: &[u8]) -> Result<u16, Rejected> {
    let mut reader = Reader {
        rest: payload,
        sources: &IdSet::new(),
    };
    let is_merged = reader.byte()? == MERGED;
    let number = u16::try_from(reader.number()?).ok();
    number
        .filter(|_| is_merged)
        .ok_or(Rejected("no merged payload"))
}

pub(super) struct Writer {
    pub(super) out: Vec<u8>,
}

impl Writer {
    /// Begins a merged payload of a rule.
    pub(super) fn new(rule: u16) -> Self {
        let mut writer = Self { out: vec![MERGED] };
        writer.number(rule.into());
        writer
    }

    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.out.push((number & 0x7f) as u8);
    }

    pub(super) fn size(&mut self, size: usize) {
        self.number(size as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.size(text.len());
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn fixed(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn set(&mut self, set: &IdSet) {
        if set.is_empty() {
            return self.out.push(SET_NONE);
        }
        self.out.push(SET_GIVEN);
        set.encode(0, &mut self.out);
    }

    /// In place of a set that there is no room for: all the sources of the payload.
    pub(super) fn all_sources(&mut self) {
        self.out.push(SET_ALL);
    }
}

/// Reads a merged payload; every error says that it is none.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    sources: &'a IdSet,
}

const CUT: Rejected = Rejected("a merged payload that ends early");

impl<'a> Reader<'a> {
    /// Begins to read a merged payload of a rule.
    pub(super) fn new(rule: u16, payload: &'a [u8], sources: &'a IdSet) -> Result<Self, Rejected> {
        let mut reader = Self {
            rest: payload,
            sources,
        };
        if reader.byte()? != MERGED || reader.number()? != u64::from(rule) {
            return Err(Rejected("no merged payload of this rule"));
        }
        Ok(reader)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Rejected> {
        let (byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, Rejected> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Rejected("a number beyond 64 bits"))
    }

    /// A count of things that take at least a byte each: no more than there are bytes.
    pub(super) fn count(&mut self) -> Result<usize, Rejected> {
        let count = usize::try_from(self.number()?).map_err(|_| CUT)?;
        if count > self.rest.len() {
            return Err(CUT);
        }
        Ok(count)
    }

    /// Bytes with their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Rejected> {
        let len = self.count()?;
        let (bytes, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Rejected> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Rejected("a text that is no text"))
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Rejected> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// A set, within the sources of the payload.
    pub(super) fn set(&mut self) -> Result<IdSet, Rejected> {
        match self.byte()? {
            SET_NONE => Ok(IdSet::new()),
            SET_ALL => Ok(self.sources.clone()),
            SET_GIVEN => {
                let (set, used) =
                    IdSet::decode(0, self.rest).map_err(|_| Rejected("a set that is none"))?;
                self.rest = &self.rest[used..];
                if !set.is_subset(self.sources) {
                    return Err(Rejected("a set beyond the sources"));
                }
                Ok(set)
            }
            _ => Err(Rejected("a set of an unknown kind")),
        }
    }

    /// All of it was read.
    pub(super) fn end(self) -> Result<(), Rejected> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Rejected("bytes behind a merged payload"))
    }
}
