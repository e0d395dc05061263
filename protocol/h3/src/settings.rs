//! RFC 9114 §7.2.4, RFC 9204 §5, RFC 9220 §5, RFC 9297 §2.1.1: what both ends announce.

use bolide_semantics::Role;

use crate::error::{ErrorCode, Fault};
use crate::frame::{self, kind};
use crate::limits::Limits;
use crate::varint;

mod id {
    pub(crate) const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
    pub(crate) const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
    pub(crate) const QPACK_BLOCKED_STREAMS: u64 = 0x07;
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
    pub(crate) const H3_DATAGRAM: u64 = 0x33;
}

/// Settings that the peer announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) table_capacity: u64,
    /// True if it understands extended CONNECT.
    pub(crate) connect_protocol: bool,
    /// True if it takes datagrams.
    pub(crate) datagrams: bool,
}

/// Appends our SETTINGS frame.
pub(crate) fn write(
    role: Role,
    limits: &Limits,
    decoder: &bolide_qpack::Decoder,
    out: &mut Vec<u8>,
) {
    let mut payload = Vec::new();
    let mut add = |id, value| {
        varint::write(id, &mut payload);
        varint::write(value, &mut payload);
    };
    add(id::QPACK_MAX_TABLE_CAPACITY, u64::from(decoder.capacity_max()));
    add(id::MAX_FIELD_SECTION_SIZE, u64::from(limits.heads.header_list_bytes));
    add(id::QPACK_BLOCKED_STREAMS, u64::from(decoder.blocked_max()));
    if role == Role::Server {
        add(id::ENABLE_CONNECT_PROTOCOL, 1);
    }
    if limits.datagrams_count > 0 {
        add(id::H3_DATAGRAM, 1);
    }
    frame::write_header(kind::SETTINGS, payload.len() as u64, out);
    out.extend_from_slice(&payload);
}

/// Reads the payload of the peer's SETTINGS.
pub(crate) fn read(mut payload: &[u8], limits: &Limits) -> Result<Settings, Fault> {
    let mut settings = Settings::default();
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let entry = varint::read(payload).and_then(|(id, first)| {
            let (value, second) = varint::read(&payload[first..])?;
            Some((id, value, first + second))
        });
        let Some((id, value, length)) = entry else {
            return Err(Fault::new(ErrorCode::FrameError, "a SETTINGS frame that ends early"));
        };
        payload = &payload[length..];
        if seen.contains(&id) {
            return Err(Fault::new(ErrorCode::SettingsError, "a setting that comes twice"));
        }
        if seen.len() == limits.settings_entries_count as usize {
            return Err(Fault::abuse("settings-flood", "too many entries in a SETTINGS frame"));
        }
        seen.push(id);
        match id {
            id::QPACK_MAX_TABLE_CAPACITY => settings.table_capacity = value,
            id::ENABLE_CONNECT_PROTOCOL => settings.connect_protocol = flag(value)?,
            id::H3_DATAGRAM => settings.datagrams = flag(value)?,
            0x00 | 0x02..=0x05 => {
                return Err(Fault::new(ErrorCode::SettingsError, "a setting of HTTP/2"));
            }
            _ => {}
        }
    }
    Ok(settings)
}

fn flag(value: u64) -> Result<bool, Fault> {
    match value {
        0 | 1 => Ok(value == 1),
        _ => Err(Fault::new(ErrorCode::SettingsError, "a setting that is neither 0 nor 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(entries: &[(u64, u64)]) -> Vec<u8> {
        let mut payload = Vec::new();
        for (id, value) in entries {
            varint::write(*id, &mut payload);
            varint::write(*value, &mut payload);
        }
        payload
    }

    #[test]
    fn ours_are_read_back() {
        let mut out = Vec::new();
        let limits = Limits::default();
        write(Role::Server, &limits, &bolide_qpack::Decoder::default(), &mut out);
        let settings = read(&out[2..], &limits);
        let expected = Settings { table_capacity: 4096, connect_protocol: true, datagrams: true };
        assert_eq!(settings, Ok(expected));
    }

    #[test]
    fn settings_that_are_wrong() {
        let limits = Limits::default();
        let code = |payload: &[u8]| read(payload, &limits).map_err(|fault| fault.code);
        for entries in [
            &[(0, 1)][..],
            &[(2, 0)],
            &[(3, 1)],
            &[(4, 1)],
            &[(5, 1)],
            &[(8, 2)],
            &[(0x33, 2)],
            &[(1, 0), (1, 0)],
            &[(0x21, 0), (0x21, 0)],
        ] {
            assert_eq!(code(&payload(entries)), Err(ErrorCode::SettingsError), "{entries:?}");
        }
        assert_eq!(code(&[6]), Err(ErrorCode::FrameError));
        assert_eq!(code(&[6, 0x40]), Err(ErrorCode::FrameError));
        let many: Vec<_> = (0x100..0x200).map(|id| (id, 0)).collect();
        assert_eq!(code(&payload(&many)), Err(ErrorCode::ExcessiveLoad));
        assert_eq!(code(&payload(&[(0x21, 7), (0x40, 1 << 40)])), Ok(Settings::default()));
    }
}
