//! Networks of addresses in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A set of networks. An IPv4 address that an IPv6 socket maps (`::ffff:192.0.2.1`) is that IPv4 address, and
/// no IPv6 network contains it.
///
/// Looking an address up takes the logarithm of the number of networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks {
    /// First and last address, in order; no two touch.
    v4: Vec<(u128, u128)>,
    v6: Vec<(u128, u128)>,
    unix: bool,
}

/// One network, or `unix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The IPv4 addresses from the one to the other.
    V4(Ipv4Addr, Ipv4Addr),
    /// The IPv6 addresses from the one to the other.
    V6(Ipv6Addr, Ipv6Addr),
    /// Every peer of a Unix socket, which has no address.
    Unix,
}

/// A text that is not a network; says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| {
            NetworkError("give a network such as 10.0.0.0/8 or 2001:db8::/32, or unix".to_owned())
        })?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |prefix: &str| prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = match prefix {
            None => width,
            Some(prefix) => match prefix.parse::<u32>() {
                Ok(number) if number <= width && is_number(prefix) => number,
                _ => return Err(NetworkError(format!("the prefix must be from 0 to {width}"))),
            },
        };
        // A mapped IPv4 network is an IPv4 network.
        let (address, prefix) = match address {
            IpAddr::V6(v6) if prefix >= 96 && v6.to_ipv4_mapped().is_some() => {
                (address.to_canonical(), prefix - 96)
            }
            _ => (address, prefix),
        };
        let (first, mask) = match address {
            IpAddr::V4(v4) => {
                (u128::from(v4.to_bits()), u128::from(u32::MAX.checked_shr(prefix).unwrap_or(0)))
            }
            IpAddr::V6(v6) => (v6.to_bits(), u128::MAX.checked_shr(prefix).unwrap_or(0)),
        };
        let network = Self::of(address.is_ipv4(), first & !mask, first | mask);
        if first & mask != 0 {
            let start = match network {
                Self::V4(start, _) => start.to_string(),
                Self::V6(start, _) => start.to_string(),
                Self::Unix => String::new(),
            };
            let what = format!("the address has bits beyond its prefix: write {start}/{prefix}");
            return Err(NetworkError(what));
        }
        Ok(network)
    }
}

impl Network {
    fn of(is_v4: bool, first: u128, last: u128) -> Self {
        if is_v4 {
            Self::V4(Ipv4Addr::from_bits(first as u32), Ipv4Addr::from_bits(last as u32))
        } else {
            Self::V6(Ipv6Addr::from_bits(first), Ipv6Addr::from_bits(last))
        }
    }
}

impl FromIterator<Network> for Networks {
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        let mut set = Self::default();
        for network in networks {
            match network {
                Network::V4(first, last) => {
                    set.v4.push((first.to_bits().into(), last.to_bits().into()));
                }
                Network::V6(first, last) => set.v6.push((first.to_bits(), last.to_bits())),
                Network::Unix => set.unix = true,
            }
        }
        merge(&mut set.v4);
        merge(&mut set.v6);
        set
    }
}

/// Sorts ranges and joins those that touch.
fn merge(ranges: &mut Vec<(u128, u128)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let touches = next.0 <= kept.1.saturating_add(1);
        if touches {
            kept.1 = kept.1.max(next.1);
        }
        touches
    });
}

impl Networks {
    /// Returns whether the set has no network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && !self.unix
    }

    /// Returns whether a network has this address; `None` is a peer of a Unix socket.
    #[must_use]
    pub fn contains(&self, address: Option<IpAddr>) -> bool {
        let (ranges, bits) = match address.map(|address| address.to_canonical()) {
            None => return self.unix,
            Some(IpAddr::V4(v4)) => (&self.v4, u128::from(v4.to_bits())),
            Some(IpAddr::V6(v6)) => (&self.v6, v6.to_bits()),
        };
        let after = ranges.partition_point(|(first, _)| *first <= bits);
        after > 0 && bits <= ranges[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(texts: &[&str]) -> Networks {
        texts.iter().map(|text| text.parse::<Network>().unwrap()).collect()
    }

    fn has(set: &Networks, address: &str) -> bool {
        set.contains(Some(address.parse().unwrap()))
    }

    #[test]
    fn mapped_addresses_are_ipv4_addresses() {
        let networks = set(&["10.0.0.0/8", "2001:db8::/32", "::ffff:192.0.2.0/120"]);
        for inside in ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1", "192.0.2.9"] {
            assert!(has(&networks, inside), "{inside}");
        }
        for outside in ["11.0.0.0", "9.255.255.255", "::ffff:11.0.0.0", "2001:db9::", "::"] {
            assert!(!has(&networks, outside), "{outside}");
        }
        assert!(!networks.contains(None) && set(&["unix"]).contains(None));
        let everything_of_6 = set(&["::/0"]);
        assert!(has(&everything_of_6, "::1") && !has(&everything_of_6, "::ffff:10.0.0.1"));
        assert!(!has(&everything_of_6, "10.0.0.1"));
        assert!(has(&set(&["0.0.0.0/0"]), "255.255.255.255") && set(&[]).is_empty());
    }

    #[test]
    fn what_is_no_network_is_told_why() {
        for (text, why) in [
            ("10.0.0.1/8", "write 10.0.0.0/8"),
            ("2001:db8::1/32", "write 2001:db8::/32"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("10.0.0.0/+8", "from 0 to 32"),
            ("10.0.0.0/", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("localhost", "such as 10.0.0.0/8"),
            ("010.0.0.1", "such as 10.0.0.0/8"),
            ("", "such as 10.0.0.0/8"),
        ] {
            let said = text.parse::<Network>().unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    proptest! {
        #[test]
        fn a_set_has_what_one_of_its_networks_has(
            networks in prop::collection::vec((any::<u32>(), 0_u32..=32), 0..20),
            address: u32,
        ) {
            let masks = networks.iter().map(|(bits, prefix)| {
                let mask = u32::MAX.checked_shr(*prefix).unwrap_or(0);
                (bits & !mask, bits | mask)
            });
            let v4 = Ipv4Addr::from_bits;
            let all: Networks = masks.clone().map(|(a, b)| Network::V4(v4(a), v4(b))).collect();
            let near = networks.first().map_or(address, |(bits, _)| bits ^ (address & 0xff));
            for one in [address, near] {
                let is_in = masks.clone().any(|(first, last)| first <= one && one <= last);
                prop_assert_eq!(all.contains(Some(v4(one).into())), is_in);
            }
        }
    }
}
