//! The three namespaces, their links, addresses and routes.

use std::fs;

use crate::Mistake;
use crate::linux::namespace::{self, batch};
use crate::spec::{Node, Spec};

/// The router's device towards the client: what leaves it is download.
pub(crate) const LEFT: &str = "left";

/// The router's device towards the server: what leaves it is upload.
pub(crate) const RIGHT: &str = "right";

/// The device of the client, and of the server.
const HOST: &str = "lab0";

/// Makes all of it, unshaped.
pub(crate) fn build(spec: &Spec) -> Result<(), Mistake> {
    check_congestion(&spec.congestion)?;
    let [client, router, server] = Node::ALL.map(|node| spec.namespace(node));
    let namespaces = [&client, &router, &server].map(|name| format!("netns add {name}"));
    batch("ip", None, &namespaces)?;
    let link = |host: &str, side: &str| {
        format!("link add {HOST} netns {host} type veth peer name {side} netns {router}")
    };
    batch("ip", None, &[link(&client, LEFT), link(&server, RIGHT)])?;
    for (namespace, network) in [(&client, spec.left), (&server, spec.right)] {
        let lines = [
            "link set lo up".to_owned(),
            format!("address add {}/{} dev {HOST}", network.host(), network.prefix),
            format!("link set {HOST} up"),
            // The congestion control belongs to the route: a namespace may not always choose one
            // as its own default.
            format!("route add default via {} congctl {}", network.router(), spec.congestion),
        ];
        batch("ip", Some(namespace), &lines)?;
    }
    let mut lines = vec!["link set lo up".to_owned()];
    for (side, network) in [(LEFT, spec.left), (RIGHT, spec.right)] {
        lines.push(format!("address add {}/{} dev {side}", network.router(), network.prefix));
        lines.push(format!("link set {side} up"));
    }
    batch("ip", Some(&router), &lines)?;
    for name in [&client, &router, &server] {
        namespace::inside(name, || {
            // Nothing of IPv6 is routed here, so its messages would only disturb.
            namespace::set("ipv6/conf/all/disable_ipv6", "1");
            namespace::set("ipv6/conf/default/disable_ipv6", "1");
            namespace::set("ipv4/conf/all/rp_filter", "0");
            namespace::set("ipv4/conf/default/rp_filter", "0");
            namespace::set("ipv4/ping_group_range", "0 2147483647");
        })?;
    }
    namespace::inside(&router, || namespace::set("ipv4/ip_forward", "1"))
}

/// Removes what is there of it.
pub(crate) fn remove(spec: &Spec) -> Result<(), Mistake> {
    let there: Vec<String> = Node::ALL
        .into_iter()
        .map(|node| spec.namespace(node))
        .filter(|name| namespace::path(name).exists())
        .map(|name| format!("netns delete {name}"))
        .collect();
    if there.is_empty() { Ok(()) } else { batch("ip", None, &there) }
}

pub(crate) fn check_congestion(wanted: &str) -> Result<(), Mistake> {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    // Without that file the route says whether it can be.
    let Ok(known) = known else { return Ok(()) };
    if known.split_whitespace().any(|name| name == wanted) {
        return Ok(());
    }
    Err(Mistake::Usage(format!(
        "this kernel has no congestion control `{wanted}`; it has {}",
        known.split_whitespace().collect::<Vec<_>>().join(", ")
    )))
}
