//! The errors in the use of MPI that a session has reported, each of them once.

use sdm_idset::{IdSet, set_text};

/// Maximum number of errors that are kept.
const KEPT_MAX: usize = 1000;
/// Maximum length of the text of ranks that made the same call.
const RANKS_WIDTH: usize = 60;
/// The end of the text of ranks that are not all named.
const MORE: &str = ",...";
const DIFFER: &str = ": ranks differ: ";
const CALL: &str = ": collective call ";

/// An error in the use of MPI, at one place of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiError {
    /// The tasks that made the error.
    pub tasks: IdSet,
    /// The error and its source location, as reported.
    pub what: String,
    /// The source line, if known.
    pub below: Vec<String>,
}

/// The errors, of which the first [`KEPT_MAX`] are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct MpiErrors {
    pub(super) all: Vec<MpiError>,
    pub(super) left_out: usize,
}

impl MpiErrors {
    /// Adds an error, or its tasks to the same error of other tasks.
    pub(super) fn add(&mut self, error: MpiError) {
        let known = &mut self.all;
        if let Some(same) = known.iter_mut().find(|known| known.what == error.what) {
            same.tasks.union_with(&error.tasks);
        } else if let Some((at, what)) = merged(known, &error) {
            known[at].what = what;
            known[at].tasks.union_with(&error.tasks);
        } else if known.len() < KEPT_MAX {
            known.push(error);
        } else {
            self.left_out += 1;
        }
    }
}

/// The error that other tasks have reported as a difference in the same collective call, and the text of both. A task
/// reports a difference once, and so two reports of one task are two errors.
fn merged(known: &[MpiError], reported: &MpiError) -> Option<(usize, String)> {
    let later = Mismatch::parse(&reported.what)?;
    let same = known.iter().enumerate().filter_map(|(at, error)| {
        let first = Mismatch::parse(&error.what)?;
        let is_same = error.tasks.is_disjoint(&reported.tasks) && first.agrees(&later);
        is_same.then_some((at, first))
    });
    let same: Vec<_> = same.collect();
    let is_near = |first: &Mismatch<'_>| later.places().all(|place| first.has(place));
    let near = same.iter().position(|(_, first)| is_near(first));
    let (at, mut first) = same.into_iter().nth(near.unwrap_or_default())?;
    first.extend(&later);
    Some((at, first.text()))
}

/// The report of a rank that ranks differ in a collective call. A rank that comes second reports it at its call, others
/// in `MPI_Finalize`, with the place of their call.
struct Mismatch<'a> {
    /// `MPI check: M403`.
    number: &'a str,
    /// The function in which it is reported: `MPI_Allreduce`.
    function: &'a str,
    /// `2 of a communicator`.
    call: &'a str,
    /// Places of calls, besides that of the stop.
    others: Vec<&'a str>,
    parties: Vec<CallRanks<'a>>,
    /// The place of the stop: `, main () at halo.c:9`.
    stop: &'a str,
}

/// Ranks that made the same call: `MPI_Allreduce with MPI_SUM at 0-2`.
struct CallRanks<'a> {
    what: &'a str,
    ranks: IdSet,
    has_more: bool,
}

impl<'a> Mismatch<'a> {
    /// Parses the text of an error. None for another error, and for a text that was cut.
    fn parse(text: &'a str) -> Option<Self> {
        let (head, mut rest) = text.split_once(DIFFER)?;
        let (head, call) = head.split_once(CALL)?;
        let (number, function) = head.rsplit_once(' ')?;
        let (call, others) = match call.split_once(" at ") {
            Some((call, others)) => (call, others.split(", ").collect()),
            None => (call, Vec::new()),
        };
        let mut parties = Vec::new();
        loop {
            let (party, behind) = CallRanks::parse(rest)?;
            parties.push(party);
            match behind.strip_prefix("; ") {
                Some(next) => rest = next,
                None => {
                    rest = behind;
                    break;
                }
            }
        }
        Some(Self {
            number,
            function,
            call,
            others,
            parties,
            stop: rest,
        })
    }

    /// The places of the calls that the report is about.
    fn places(&self) -> impl Iterator<Item = &'a str> {
        let is_call = self.function != "MPI_Finalize";
        let own = self.stop.rsplit_once(" at ").filter(|_| is_call);
        let own = own.map(|(_, place)| place);
        self.others.clone().into_iter().chain(own)
    }

    /// True if the place is among those of the calls.
    fn has(&self, place: &str) -> bool {
        self.places().any(|own| own == place)
    }

    /// True if both are of the same call: some rank did the same in both, and none did something else.
    fn agrees(&self, other: &Self) -> bool {
        let pairs = || {
            let own = self.parties.iter();
            own.flat_map(|one| other.parties.iter().map(move |two| (one, two)))
        };
        let common = || pairs().filter(|(one, two)| !one.ranks.is_disjoint(&two.ranks));
        (self.number, self.call) == (other.number, other.call)
            && common().next().is_some()
            && common().all(|(one, two)| one.what == two.what)
    }

    /// Adds the places and the ranks of another report of the same call.
    fn extend(&mut self, other: &Mismatch<'a>) {
        let places: Vec<_> = other.places().filter(|place| !self.has(place)).collect();
        self.others.extend(places);
        for party in &other.parties {
            let same = self.parties.iter_mut().find(|own| own.what == party.what);
            if let Some(own) = same {
                own.ranks.union_with(&party.ranks);
                own.has_more |= party.has_more;
            } else {
                self.parties.push(CallRanks {
                    ranks: party.ranks.clone(),
                    ..*party
                });
            }
        }
    }

    fn text(&self) -> String {
        let Self {
            number,
            function,
            call,
            stop,
            ..
        } = self;
        let others = match self.others.is_empty() {
            true => String::new(),
            false => format!(" at {}", self.others.join(", ")),
        };
        let parties: Vec<_> = self.parties.iter().map(CallRanks::text).collect();
        let parties = parties.join("; ");
        format!("{number} {function}{CALL}{call}{others}{DIFFER}{parties}{stop}")
    }
}

impl<'a> CallRanks<'a> {
    /// Parses the party at the beginning of a text. Returns the text behind it, too.
    fn parse(text: &'a str) -> Option<(Self, &'a str)> {
        text.match_indices(" at ").find_map(|(at, word)| {
            let ranks = &text[at + word.len()..];
            let is_part = |c: char| c.is_ascii_digit() || "-,/.".contains(c);
            let ranks = &ranks[..ranks.find(|c| !is_part(c)).unwrap_or(ranks.len())];
            // The last comma belongs to the place of the stop.
            let ranks = ranks.trim_end_matches(',');
            let behind = &text[at + word.len() + ranks.len()..];
            let is_whole =
                behind.is_empty() || behind.starts_with("; ") || behind.starts_with(", ");
            let named = ranks.strip_suffix(MORE).unwrap_or(ranks);
            let set: IdSet = named.parse().ok().filter(|set: &IdSet| !set.is_empty())?;
            let party = Self {
                what: &text[..at],
                ranks: set,
                has_more: named != ranks,
            };
            is_whole.then_some((party, behind))
        })
    }

    fn text(&self) -> String {
        let ranks = set_text(&self.ranks, RANKS_WIDTH);
        let more = match self.has_more && !ranks.ends_with(MORE) {
            true => MORE,
            false => "",
        };
        format!("{} at {ranks}{more}", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors that remain of these reports: their tasks and texts.
    fn kept(reports: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut errors = MpiErrors::default();
        for (tasks, what) in reports {
            errors.add(MpiError {
                tasks: tasks.parse().expect("a set"),
                what: format!("MPI check: {what}"),
                below: Vec::new(),
            });
        }
        let all = errors.all.into_iter();
        let start = "MPI check: ";
        all.map(|it| {
            (
                it.tasks.to_string(),
                it.what.trim_start_matches(start).to_owned(),
            )
        })
        .collect()
    }

    fn check(reports: &[(&str, &str)], expect: &[(&str, &str)]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|(tasks, what)| ((*tasks).to_owned(), (*what).to_owned()))
            .collect();
        assert_eq!(kept(reports), expect);
    }

    #[test]
    fn difference_is_one_error_of_all_its_ranks() {
        let first = "M403 MPI_Allreduce: collective call 2 of a communicator: ranks differ: MPI_Allreduce with MPI_SUM at 0; MPI_Allreduce with MPI_MAX at 1, add () at a.c:9";
        let last = "M403 MPI_Finalize: collective call 2 of a communicator at a.c:9: ranks differ: MPI_Allreduce with MPI_SUM at 0,2; MPI_Allreduce with MPI_MAX at 1,3, main () at a.c:99";
        let third = first.replace("MAX at 1", "MAX at 3");
        let whole = "M403 MPI_Allreduce: collective call 2 of a communicator: ranks differ: MPI_Allreduce with MPI_SUM at 0,2; MPI_Allreduce with MPI_MAX at 1,3, add () at a.c:9";
        check(
            &[("1", first), ("3", &third), ("0,2", last)],
            &[("0-3", whole)],
        );
    }

    #[test]
    fn merged_difference_keeps_each_place() {
        check(
            &[
                (
                    "1",
                    "M401 MPI_Scatter: collective call 1 of MPI_COMM_WORLD: ranks differ: MPI_Bcast at 0; MPI_Scatter at 1, f () at a.c:12",
                ),
                (
                    "0",
                    "M401 MPI_Finalize: collective call 1 of MPI_COMM_WORLD at a.c:10: ranks differ: MPI_Bcast at 0; MPI_Scatter at 1, main () at a.c:99",
                ),
                (
                    "2",
                    "M405 MPI_Finalize: collective call 3 of a window: ranks differ: MPI_Win_fence at 0,...; no further call at 2, main () at a.c:99",
                ),
                (
                    "0",
                    "M405 MPI_Finalize: collective call 3 of a window at b.c:7: ranks differ: MPI_Win_fence at 0,...; no further call at 2, main () at a.c:99",
                ),
            ],
            &[
                (
                    "0-1",
                    "M401 MPI_Scatter: collective call 1 of MPI_COMM_WORLD at a.c:10: ranks differ: MPI_Bcast at 0; MPI_Scatter at 1, f () at a.c:12",
                ),
                (
                    "0,2",
                    "M405 MPI_Finalize: collective call 3 of a window at b.c:7: ranks differ: MPI_Win_fence at 0,...; no further call at 2, main () at a.c:99",
                ),
            ],
        );
    }

    #[test]
    fn errors_of_other_calls_remain_apart() {
        let one = "M404 MPI_Bcast: collective call 1 of a communicator: ranks differ: MPI_Bcast of 2 MPI_INT at 0; MPI_Bcast of 4 MPI_INT at 1, f () at a.c:9";
        // Another call, another communicator of the same rank, other ranks, and other elements of one of them.
        let call = one.replace("call 1", "call 2");
        let place = one.replace("a.c:9", "a.c:19");
        let ranks = one.replace("at 0;", "at 2;").replace("at 1,", "at 3,");
        let what = one.replace("2 MPI_INT", "3 MPI_INT");
        let all = [
            ("1", one),
            ("2", call.as_str()),
            ("1", &place),
            ("3", &ranks),
            ("4", &what),
        ];
        check(&all, &all);
        // Its other side is that of the same place.
        let last = "M404 MPI_Finalize: collective call 1 of a communicator at a.c:19: ranks differ: MPI_Bcast of 2 MPI_INT at 0; MPI_Bcast of 4 MPI_INT at 1, main () at a.c:99";
        check(
            &[("1", one), ("1", &place), ("0", last)],
            &[("1", one), ("0-1", &place)],
        );
        let leak = "M301 MPI_Finalize: the communicator of MPI_Comm_dup at a.c:5 was never freed, main () at a.c:99";
        let other = leak.replace("a.c:5", "a.c:6");
        check(&[("0", leak), ("1", &other)], &[("0", leak), ("1", &other)]);
    }
}
