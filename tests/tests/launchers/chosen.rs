//! Cases of which the commit chooses some in the default run; a part of the long run takes all of them.

use std::fmt::Debug;

use sdm_tests::place::Compiler;
use sdm_tests::run::is_full;
use xxhash_rust::xxh3::xxh3_64;

/// The launcher of each MPI.
pub(super) const LAUNCHERS: [(&str, Compiler); 2] =
    [("mpirun", Compiler::OpenMpi), ("mpiexec", Compiler::Mpich)];

/// All cases in a part of the long run, otherwise one of them. `test` is the function of the test.
pub(super) fn chosen<T: Copy + Debug>(test: impl Fn(), all: &[T]) -> Vec<T> {
    // Not the same one for all tests.
    let name = std::any::type_name_of_val(&test);
    let mut cases = by_commit(test, all.to_vec(), |case| format!("{name} {case:?}"));
    cases.truncate(if is_full() { all.len() } else { 1 });
    cases
}

/// Cases in an order that the commit gives. `SDM_TEST_COMMIT` is the commit, or any other text; without it the order
/// is always the same one. `test` is the function of the test.
pub(super) fn by_commit<T>(
    test: impl Fn(),
    mut cases: Vec<T>,
    name: impl Fn(&T) -> String,
) -> Vec<T> {
    let commit = std::env::var("SDM_TEST_COMMIT").unwrap_or_else(|_| "none".to_owned());
    let test = std::any::type_name_of_val(&test);
    let test = test.split_once("::").map_or(test, |(_, name)| name);
    println!("chosen by SDM_TEST_COMMIT; the same ones again:");
    println!("    SDM_TEST_COMMIT={commit} scripts/test --ignore-default-filter -E 'test({test})'");
    cases.sort_by_cached_key(|case| xxh3_64(format!("{commit} {}", name(case)).as_bytes()));
    cases
}
