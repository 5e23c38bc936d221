//! Errors in the use of MPI, as a rank reports them.

/// An error in the use of MPI. A rank reports it as a line, such as `M301 MPI_Finalize: the communicator of
/// MPI_Comm_dup at {0x401234} was never freed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The number of the error: 301.
    pub number: u32,
    text: String,
}

impl Error {
    /// Parses a reported line. None if the line does not have this form.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let (number, rest) = line.strip_prefix('M')?.split_once(' ')?;
        let is_number = number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| number.parse().ok())??;
        let text = rest.to_owned();
        Some(Self { number, text })
    }

    /// The addresses of code in the error's text.
    #[must_use]
    pub fn addresses(&self) -> Vec<u64> {
        self.parts().filter_map(|(_, address)| address).collect()
    }

    /// The error as text for a person. `place` gives the source location of each address, such as `halo.c:12`. An
    /// address without a location is left out.
    pub fn with_places(&self, mut place: impl FnMut(u64) -> Option<String>) -> String {
        let mut shown = format!("M{} ", self.number);
        for (text, address) in self.parts() {
            match address.and_then(&mut place) {
                Some(place) => {
                    shown.push_str(text);
                    shown.push_str(&place);
                }
                None if address.is_some() => {
                    shown.push_str(text.strip_suffix(" at ").unwrap_or(text))
                }
                None => shown.push_str(text),
            }
        }
        shown
    }

    /// The pieces of the text, each with the address that follows it. None after the last piece.
    fn parts(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        let mut rest = Some(self.text.as_str());
        std::iter::from_fn(move || {
            let text = rest?;
            let found = text.split_once("{0x").and_then(|(before, behind)| {
                let (digits, behind) = behind.split_once('}')?;
                let address = u64::from_str_radix(digits, 16).ok()?;
                Some((before, address, behind))
            });
            let (part, address) = match found {
                Some((before, address, behind)) => {
                    rest = Some(behind);
                    (before, Some(address))
                }
                None => {
                    rest = None;
                    (text, None)
                }
            };
            Some((part, address))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_line_is_parsed() {
        let line = "M301 MPI_Finalize: the group of MPI_Comm_group at {0x40} was never freed";
        let error = Error::read(line).expect("it is one");
        assert_eq!((error.number, error.addresses()), (301, vec![0x40]));
        let known = error.with_places(|address| Some(format!("a.c:{address}")));
        let expect = "M301 MPI_Finalize: the group of MPI_Comm_group at a.c:64 was never freed";
        assert_eq!(known, expect);
        let unknown = error.with_places(|_| None);
        assert_eq!(
            unknown,
            "M301 MPI_Finalize: the group of MPI_Comm_group was never freed"
        );
        for other in ["", "M3 x", "M30a x", "x", "M301"] {
            assert_eq!(Error::read(other), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn error_parser_never_panics(line in "(M[0-9]{3} )?.{0,99}|M[0-9]{3} ([a-z ]|\\{0x|[0-9a-f]|\\}){0,60}") {
            if let Some(error) = Error::read(&line) {
                let _ = (error.addresses(), error.with_places(|_| None));
            }
        }
    }
}
