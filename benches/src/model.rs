//! Model of the round trip time in a tree of any size, from the costs of one member.
//!
//! A member that is reached at time 0 serves its children one after the other, largest subtree
//! first, does its own part, then takes its children's answers as they come, one at a time, and
//! answers. Members with a core of their own do this at the same time.

use std::collections::HashMap;

/// Costs of one member for a command to all and its answer, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelCost {
    /// Time that a member spends on itself: to take the command, execute it and answer.
    pub own_us: f64,
    /// Time that a member spends on each child: to pass the command on and take the answer.
    pub child_us: f64,
    /// Time that a message needs over a link, in each direction.
    pub hop_us: f64,
}

/// Arrangement of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The child number k of a member has 2^k members.
    Binomial,
    /// Each member has this number of children, with subtrees as equal as possible.
    Kary(u64),
    /// Every member is a child of the root.
    Flat,
}

/// A model with its answers so far.
pub struct Model {
    cost: ModelCost,
    shape: Shape,
    known: HashMap<u64, f64>,
}

impl Model {
    /// A model of trees of one shape.
    #[must_use]
    pub fn new(cost: ModelCost, shape: Shape) -> Self {
        let known = HashMap::new();
        Self { cost, shape, known }
    }

    /// Time from a command's arrival at a subtree of `members` members until its answer is sent up, in microseconds.
    pub fn round_trip_us(&mut self, members: u64) -> f64 {
        if let Some(known) = self.known.get(&members) {
            return *known;
        }
        let ModelCost {
            own_us,
            child_us,
            hop_us,
        } = self.cost;
        let half = child_us / 2.0;
        let mut now = 0.0;
        let mut arrivals = Vec::new();
        for (subtree, count) in self.children(members) {
            let below = self.round_trip_us(subtree);
            for _ in 0..count {
                now += half;
                arrivals.push(now + hop_us + below + hop_us);
            }
        }
        now += own_us;
        arrivals.sort_by(f64::total_cmp);
        for arrival in arrivals {
            now = arrival.max(now) + half;
        }
        self.known.insert(members, now);
        now
    }

    /// Sizes of the subtrees below the root of a tree of `members`, largest first, each with the number of such
    /// subtrees.
    fn children(&self, members: u64) -> Vec<(u64, u64)> {
        let below = members - 1;
        match self.shape {
            Shape::Flat => vec![(1, below)],
            Shape::Binomial => {
                let powers = (0..u64::BITS).map(|k| 1u64 << k);
                let sizes = powers.take_while(|power| *power < members);
                let sizes = sizes.map(|power| (power.min(members - power), 1));
                let mut sizes: Vec<_> = sizes.collect();
                sizes.reverse();
                sizes
            }
            Shape::Kary(arity) => {
                let larger = below % arity;
                vec![(below / arity + 1, larger), (below / arity, arity - larger)]
            }
        }
        .into_iter()
        .filter(|(subtree, count)| *subtree > 0 && *count > 0)
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: Shape, members: u64, cost: ModelCost, expect: f64) {
        let got = Model::new(cost, shape).round_trip_us(members);
        assert!((got - expect).abs() < 1e-6, "{shape:?} {members}: {got}");
    }

    #[test]
    fn model_cost_matches_hand_computed_trees() {
        let only_hops = ModelCost {
            own_us: 0.0,
            child_us: 0.0,
            hop_us: 1.0,
        };
        check(Shape::Flat, 1000, only_hops, 2.0);
        check(Shape::Binomial, 1024, only_hops, 20.0);
        check(Shape::Kary(2), 1023, only_hops, 18.0);
        let only_work = ModelCost {
            own_us: 1.0,
            child_us: 2.0,
            hop_us: 0.0,
        };
        // Three sends, the root's own part, and three answers that have all arrived by then.
        check(Shape::Flat, 4, only_work, 7.0);
        check(Shape::Kary(1), 1, only_work, 1.0);
    }

    #[test]
    fn subtrees_below_the_root_have_all_other_members() {
        let cost = ModelCost {
            own_us: 1.0,
            child_us: 1.0,
            hop_us: 1.0,
        };
        for shape in [Shape::Binomial, Shape::Flat, Shape::Kary(2), Shape::Kary(7)] {
            let model = Model::new(cost, shape);
            for members in 1..300 {
                let below = model
                    .children(members)
                    .iter()
                    .map(|(size, count)| size * count)
                    .sum::<u64>();
                assert_eq!(below, members - 1, "{shape:?}");
            }
        }
    }
}
