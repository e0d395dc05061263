//! RFC 9110 §7.6.1: fields that concern one connection and never travel further.

use crate::FieldName;

/// Returns whether HTTP/2 forbids the field (RFC 9113 §8.2.2). `te` is allowed there with the value
/// `trailers` only, and is not listed here.
#[inline]
#[must_use]
pub const fn is_connection_specific(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::Connection
            | FieldName::KeepAlive
            | FieldName::ProxyConnection
            | FieldName::TransferEncoding
            | FieldName::Upgrade
    )
}

/// Returns whether an intermediary must not forward the field, even when no `Connection` field lists it. `trailer` is none of
/// them (RFC 9110 §6.6.2): some recipients take only those trailers that it has announced.
#[must_use]
pub fn is_hop_by_hop(name: FieldName) -> bool {
    is_connection_specific(name)
        || matches!(
            name,
            FieldName::Te
                | FieldName::Http2Settings
                | FieldName::ProxyAuthenticate
                | FieldName::ProxyAuthorization
        )
}

/// The members of a comma-separated list (RFC 9110 §5.6.1), without white space and empty members.
pub fn names_in(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_at_its_commas() {
        let names: Vec<_> = names_in(b" close, ,\tUpgrade,").collect();
        assert_eq!(names, [&b"close"[..], b"Upgrade"]);
        assert_eq!(names_in(b"").count(), 0);
    }

    #[test]
    fn what_http2_forbids_is_hop_by_hop() {
        for name in FieldName::ALL {
            assert!(!is_connection_specific(*name) || is_hop_by_hop(*name));
        }
        assert!(!is_hop_by_hop(FieldName::ContentLength));
        assert!(!is_hop_by_hop(FieldName::Trailer));
    }
}
