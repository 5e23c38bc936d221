//! Arranges the elements of an unordered container, such as a `std::unordered_map`, in the order that they have in the
//! reference.

use std::collections::HashMap;

use super::Element;

/// The elements in the order that those of the reference have; an element that it lacks stays behind the one before it.
/// True if the order was another one.
pub(super) fn as_in(reference: &[Element], own: Vec<Element>) -> (Vec<Element>, bool) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, element) in reference.iter().enumerate() {
        places.entry(&element.path).or_insert(at);
    }
    let mut last = 0;
    let place = |element: Element| {
        last = places.get(element.path.as_str()).copied().unwrap_or(last);
        (last, element)
    };
    let mut placed: Vec<_> = own.into_iter().map(place).collect();
    let is_moved = !placed.is_sorted_by_key(|(place, _)| *place);
    placed.sort_by_key(|(place, _)| *place);
    let elements = placed.into_iter().map(|(_, element)| element);
    (elements.collect(), is_moved)
}
