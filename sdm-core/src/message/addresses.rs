//! The addresses of one member of a plan, in one piece of memory.

use std::fmt;

/// Addresses at which a member listens, best first. A plan can have a million of these lists.
///
/// Each text has its length in front, as one character.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Addresses(Box<str>);

impl Addresses {
    /// The addresses in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let mut chars = rest.chars();
            let length = chars.next()?;
            let (address, behind) = chars.as_str().split_at(length as usize);
            rest = behind;
            Some(address)
        })
    }
}

/// # Panics
/// If the length of an address is not the number of a character: 55,296 to 57,343 bytes, or more than 1,114,111. No
/// plan can carry so long an address.
impl<T: AsRef<str>> FromIterator<T> for Addresses {
    fn from_iter<I: IntoIterator<Item = T>>(addresses: I) -> Self {
        let mut all = String::new();
        for address in addresses {
            let address = address.as_ref();
            let length = u32::try_from(address.len()).ok().and_then(char::from_u32);
            all.push(length.expect("an address is far shorter"));
            all.push_str(address);
        }
        Self(all.into())
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_every_length_are_read_back_unchanged() {
        for texts in [vec![], vec![""], vec!["a", "", "ä"], vec!["x"; 16]] {
            let long = "ö".repeat(300);
            let texts: Vec<&str> = texts.into_iter().chain([&*long]).collect();
            let addresses: Addresses = texts.iter().collect();
            assert_eq!(addresses.iter().collect::<Vec<_>>(), texts);
            assert_eq!(format!("{addresses:?}"), format!("{texts:?}"));
        }
        assert_eq!(Addresses::default().iter().next(), None);
    }
}
