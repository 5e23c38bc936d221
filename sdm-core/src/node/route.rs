//! Position of a live member in the tree: its parent, and the child that leads to each task.

use sdm_idset::IdSet;

use super::Node;
use crate::ids::ServerId;

impl Node {
    /// The present parent of this member (`sdm_route_get_parent`). The master's is the front-end. `None` for the
    /// front-end, and for a member that waits for a parent.
    #[must_use]
    pub fn parent(&self) -> Option<ServerId> {
        self.parent.as_ref().map(|parent| parent.server)
    }

    /// The nearest neighbours through which `destination` is reached now, each with its part of it
    /// (`sdm_route_get_route`): children only, no part is empty, and no two share a task.
    ///
    /// The member's own tasks are in no part. Other tasks that are in no part are above this member, or cannot be
    /// reached.
    #[must_use]
    pub fn route(&self, destination: &IdSet) -> Vec<(ServerId, IdSet)> {
        let part = |child: &super::Child| {
            let part = child.reach().intersection(destination);
            (!part.is_empty()).then(|| (child.server(), part))
        };
        self.children.iter().filter_map(part).collect()
    }

    /// The tasks of `destination` at or below this member that can be reached now (`sdm_route_reachable`).
    #[must_use]
    pub fn reachable(&self, destination: &IdSet) -> IdSet {
        self.reach().intersection(destination)
    }
}

#[cfg(test)]
mod tests {
    use sdm_idset::TaskId;

    use super::super::tests::Net;
    use super::*;
    use crate::topology::Topology;

    /// A member's parent, and its routes to all, as text.
    fn place(net: &Net, server: ServerId) -> (Option<ServerId>, String) {
        let node = &net.nodes[&server];
        let parts = node.route(&IdSet::all_below(99));
        let parts: Vec<String> = parts
            .iter()
            .map(|(to, part)| format!("{to}: {part}"))
            .collect();
        (node.parent(), parts.join("; "))
    }

    #[test]
    fn a_live_member_knows_its_parent_and_its_routes() {
        let mut net = Net::new(8, Topology::Binomial, 3);
        net.init();
        assert_eq!(
            place(&net, ServerId::FRONT_END),
            (None, "master: 0-7".into())
        );
        let (parent, routes) = place(&net, ServerId::MASTER);
        assert_eq!(parent, Some(ServerId::FRONT_END));
        assert_eq!(
            routes,
            "server 3: 3-6; server 1: 1-2; server 0: 0; server 7: 7"
        );
        let (parent, routes) = place(&net, ServerId(3));
        assert_eq!(parent, Some(ServerId::MASTER));
        assert_eq!(routes, "server 5: 5-6; server 4: 4");
        assert_eq!(place(&net, ServerId(6)), (Some(ServerId(5)), String::new()));
        let node = &net.nodes[&ServerId(3)];
        let wanted: IdSet = "2-3,6".parse().unwrap();
        assert_eq!(
            node.route(&wanted),
            [(ServerId(5), IdSet::single(TaskId(6)))]
        );
        assert_eq!(node.reachable(&wanted).to_string(), "3,6");
    }

    #[test]
    fn adopted_server_has_a_new_parent_and_route() {
        let mut net = Net::new(8, Topology::Binomial, 4);
        net.init();
        net.kill(ServerId(3));
        let adopted =
            |net: &Net, server| net.nodes[&ServerId(server)].parent() == Some(ServerId::MASTER);
        let lost = IdSet::single(TaskId(3));
        let is_lost = |net: &Net| net.nodes[&ServerId::MASTER].reachable(&lost).is_empty();
        while !(adopted(&net, 4) && adopted(&net, 5) && is_lost(&net)) {
            assert!(net.step(), "nobody adopts them");
        }
        let (_, routes) = place(&net, ServerId::MASTER);
        assert!(
            routes.contains("server 4: 4") && routes.contains("server 5: 5-6"),
            "{routes}"
        );
        assert!(!routes.contains("server 3:"), "{routes}");
    }
}
