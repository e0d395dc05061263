//! Specification of a lab: its name, addresses and shapes.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_COUNT;
use crate::shape::Shape;

/// The name of a lab that was given none.
pub const DEFAULT_NAME: &str = "bolide";

/// A place in the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// Namespace of the clients.
    Client,
    /// Namespace that forwards, and shapes.
    Router,
    /// Namespace of the servers.
    Server,
}

impl Node {
    /// All of them, from left to right.
    pub const ALL: [Self; 3] = [Self::Client, Self::Router, Self::Server];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Router => "router",
            Self::Server => "server",
        }
    }
}

impl FromStr for Node {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|node| node.name() == text)
            .ok_or_else(|| format!("no node `{text}`; there are client, router and server"))
    }
}

/// A network of IPv4 with at least two usable addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Its first address.
    pub base: Ipv4Addr,
    /// Bits of the prefix, at most 30.
    pub prefix: u8,
}

impl Network {
    /// The router's address in it: the first.
    pub fn router(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base) + 1)
    }

    /// The other's address in it: the second.
    pub fn host(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base) + 2)
    }

    fn overlaps(self, other: Self) -> bool {
        let shift = 32 - u32::from(self.prefix.min(other.prefix));
        u32::from(self.base) >> shift == u32::from(other.base) >> shift
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a network: use an address and a prefix from 8 to 30, such as 192.168.0.0/24"
            )
        };
        let (base, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let base: Ipv4Addr = base.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if !(8..=30).contains(&prefix) {
            return Err(wrong());
        }
        let first = u32::from(base) >> (32 - prefix) << (32 - prefix);
        if first != u32::from(base) {
            let first = Ipv4Addr::from(first);
            return Err(format!("`{text}` has bits set after its prefix: use {first}/{prefix}"));
        }
        if base.is_loopback() || base.is_multicast() || base.octets()[0] == 0 {
            return Err(format!("`{text}` is not a network for hosts"));
        }
        Ok(Self { base, prefix })
    }
}

/// A lab as it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name; namespaces are called `NAME-client`, `NAME-router`, `NAME-server`.
    pub name: String,
    /// The client's network: router .1, client .2.
    pub left: Network,
    /// The server's network: router .1, server .2.
    pub right: Network,
    /// Server to client.
    pub down: Shape,
    /// Client to server.
    pub up: Shape,
    /// The congestion control of both sides' connections.
    pub congestion: String,
    /// Seed from which lost and delayed packets are drawn.
    pub seed: u64,
    /// True if the kernel's shaping is left aside, so that the delay line does it all.
    pub only_line: bool,
    /// True if RTT and rate are measured after set-up.
    pub verify: bool,
    /// True if it lives in a user namespace.
    pub rootless: bool,
    /// True if it ends with the process that makes it: killed, what is left is removed by the next lab.
    #[serde(default)]
    pub owned: bool,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            name: DEFAULT_NAME.to_owned(),
            left: Network { base: Ipv4Addr::new(192, 168, 0, 0), prefix: 24 },
            right: Network { base: Ipv4Addr::new(192, 168, 1, 0), prefix: 24 },
            down: Shape::default(),
            up: Shape::default(),
            congestion: "cubic".to_owned(),
            seed: 1,
            only_line: false,
            verify: true,
            rootless: false,
            owned: false,
        }
    }
}

impl Spec {
    /// The name of a node's namespace.
    pub fn namespace(&self, node: Node) -> String {
        format!("{}-{}", self.name, node.name())
    }

    /// Checks what single values can't tell.
    ///
    /// # Errors
    ///
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        if self.left.overlaps(self.right) {
            return Err(format!(
                "the client's network {} and the server's {} overlap: choose others with \
                 --left and --right",
                self.left, self.right
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.congestion.is_empty() || !self.congestion.chars().all(plain) {
            return Err(format!(
                "`{}` is not a name of a congestion control, such as cubic",
                self.congestion
            ));
        }
        self.down.check("download")?;
        self.up.check("upload")
    }
}

/// Checks a lab's name.
///
/// # Errors
///
/// One sentence.
pub fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if first && name.len() <= NAME_COUNT && name.chars().all(plain) {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a name of a lab: use up to {NAME_COUNT} letters, digits, `-`, `_` and `.`, the \
         first a letter or digit"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_are_the_first_two_of_each_network() {
        let spec = Spec::default();
        assert_eq!(spec.left.router(), Ipv4Addr::new(192, 168, 0, 1));
        assert_eq!(spec.right.host(), Ipv4Addr::new(192, 168, 1, 2));
        assert_eq!(spec.namespace(Node::Router), "bolide-router");
        assert_eq!(spec.check(), Ok(()));
    }

    #[test]
    fn networks_are_read_exactly() {
        assert_eq!("10.1.0.0/16".parse::<Network>().unwrap().to_string(), "10.1.0.0/16");
        for (text, expected) in [
            ("10.0.0.1/24", "use 10.0.0.0/24"),
            ("10.0.0.0", "not a network: use"),
            ("10.0.0.0/31", "prefix from 8 to 30"),
            ("127.0.0.0/8", "for hosts"),
            ("::/64", "not a network: use"),
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_address_clash_is_one_sentence() {
        let clash = Spec { right: "192.168.0.0/16".parse().unwrap(), ..Spec::default() }
            .check()
            .unwrap_err();
        assert!(clash.contains("overlap") && clash.contains("--right"), "{clash}");
    }

    #[test]
    fn names_that_could_leave_their_directory_are_refused() {
        for wrong in ["", "..", "../x", "a/b", "-a", "a b", &"a".repeat(33)] {
            assert!(check_name(wrong).unwrap_err().contains("not a name of a lab"), "{wrong}");
        }
        assert_eq!(check_name("bulk-17"), Ok(()));
    }

    #[test]
    fn nodes_have_names() {
        assert_eq!("server".parse(), Ok(Node::Server));
        assert!("srv".parse::<Node>().unwrap_err().contains("client, router and server"));
    }
}
