//! Texts by number, each stored once, and the numbers that represent elements' string ids.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::{ModelError, NAMES_MAX, TEXTS_BYTES_MAX};

/// First of the numbers that represent string ids.
pub(super) const NAMES_FROM: u32 = u32::MAX - NAMES_MAX + 1;
/// A search for unused texts is not due up to this number of texts, unless they are large.
const SWEEP_MIN: usize = 4096;

/// Texts of values. An unused one stays until [`sweep`](Self::sweep).
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    texts: Vec<Option<Arc<str>>>,
    numbers: HashMap<Arc<str>, u32>,
    free: Vec<u32>,
    bytes: usize,
    swept: usize,
}

impl Texts {
    pub(super) fn number(&mut self, text: &str) -> Result<i64, ModelError> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(i64::from(*number));
        }
        let next = u32::try_from(self.texts.len()).map_err(|_| ModelError::TooManyTexts)?;
        if self.bytes + text.len() > TEXTS_BYTES_MAX {
            return Err(ModelError::TooManyTexts);
        }
        let text: Arc<str> = text.into();
        self.bytes += text.len();
        let number = self.free.pop().unwrap_or(next);
        self.numbers.insert(Arc::clone(&text), number);
        match self.texts.get_mut(number as usize) {
            Some(place) => *place = Some(text),
            None => self.texts.push(Some(text)),
        }
        Ok(i64::from(number))
    }

    pub(super) fn text(&self, number: i64) -> &str {
        let place = usize::try_from(number)
            .ok()
            .and_then(|at| self.texts.get(at));
        place.and_then(Option::as_deref).unwrap_or_default()
    }

    /// True if a search for unused texts is due. There are more than [`SWEEP_MIN`] texts, and more than twice as many
    /// as were in use after the last one. Or more than half of the allowed bytes are used, and the number of texts has
    /// grown by over an eighth.
    pub(super) fn is_to_sweep(&self) -> bool {
        let is_large =
            self.bytes > TEXTS_BYTES_MAX / 2 && self.numbers.len() > self.swept + self.swept / 8;
        is_large || self.numbers.len() > (2 * self.swept).max(SWEEP_MIN)
    }

    /// Removes all texts except those with the numbers `used`.
    pub(super) fn sweep(&mut self, used: impl Iterator<Item = i64>) {
        let mut is_used = vec![false; self.texts.len()];
        for number in used {
            let place = usize::try_from(number)
                .ok()
                .and_then(|at| is_used.get_mut(at));
            if let Some(place) = place {
                *place = true;
            }
        }
        for ((place, is_used), number) in self.texts.iter_mut().zip(is_used).zip(0..) {
            if !is_used && let Some(text) = place.take() {
                self.bytes -= text.len();
                self.numbers.remove(&text);
                self.free.push(number);
            }
        }
        self.swept = self.numbers.len();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

/// String ids of elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    names: Vec<Option<Arc<str>>>,
    numbers: HashMap<Arc<str>, u32>,
    free: Vec<u32>,
}

impl Names {
    /// The number that represents a string id, which is added if it is new.
    pub(super) fn number(&mut self, name: &str) -> Result<u32, ModelError> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let next = u32::try_from(self.names.len()).ok();
        let next = self.free.pop().or(next.filter(|next| *next < NAMES_MAX));
        let at = next.ok_or(ModelError::TooManyNames)?;
        let name: Arc<str> = name.into();
        match self.names.get_mut(at as usize) {
            Some(place) => *place = Some(Arc::clone(&name)),
            None => self.names.push(Some(Arc::clone(&name))),
        }
        let number = u32::MAX - at;
        self.numbers.insert(name, number);
        Ok(number)
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(super) fn name(&self, number: u32) -> Option<&str> {
        let at = (u32::MAX - number) as usize;
        self.names.get(at).and_then(Option::as_deref)
    }

    pub(super) fn forget(&mut self, number: u32) {
        let at = u32::MAX - number;
        if let Some(name) = self.names.get_mut(at as usize).and_then(Option::take) {
            self.numbers.remove(&name);
            self.free.push(at);
        }
    }
}
