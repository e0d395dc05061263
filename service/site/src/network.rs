//! Networks of addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::rewrite::SiteError;

/// An address, or all addresses with the same first bits: `192.0.2.0/24`, `2001:db8::/32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether the address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && masked(address, self.bits) == self.first
    }
}

/// The address with all but its first bits zero.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl FromStr for Network {
    type Err = SiteError;

    fn from_str(text: &str) -> Result<Self, SiteError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let wrong = || SiteError::new("give an address or a network, such as 192.0.2.0/24 or ::1");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|digit| digit.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        let first = masked(address, bits);
        if first != address {
            return Err(SiteError::new(format!("the network is {first}/{bits}: write that")));
        }
        Ok(Self { first, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn networks_have_the_addresses_with_their_first_bits() {
        for (network, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::"),
            ("::/0", "::1", "192.0.2.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
    }

    #[test]
    fn what_is_no_network_is_named() {
        for text in
            ["", "a", "1.2.3", "192.0.2.0/33", "::/129", "192.0.2.0/", "192.0.2.0/+8", "1.2.3.4:80"]
        {
            let told = text.parse::<Network>().unwrap_err().to_string();
            assert!(told.starts_with("give an address or a network"), "{text}: {told}");
        }
        let told = "192.0.2.7/24".parse::<Network>().unwrap_err().to_string();
        assert_eq!(told, "the network is 192.0.2.0/24: write that");
    }

    proptest! {
        #[test]
        fn an_address_is_in_all_its_networks(address: u128, bits in 0_u8..=128) {
            let address = IpAddr::V6(address.into());
            let network: Network = format!("{}/{bits}", masked(address, bits)).parse().unwrap();
            prop_assert!(network.contains(address));
        }
    }
}
