//! Every decoder with inputs that are almost valid; `scripts/fuzz` does the same for longer.

use sdm_tests::hammer::{hammer, targets};

#[test]
fn mutated_inputs_violate_no_decoder_invariant() {
    for target in targets() {
        let began = std::time::Instant::now();
        if let Err(input) = hammer(&target, target.quick, 1) {
            panic!("{}: {input:?}", target.name);
        }
        println!("{}: {:?}", target.name, began.elapsed());
    }
}
