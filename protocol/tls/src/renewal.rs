//! RFC 5280 §4.1, RFC 9773 §4.1: what of a certificate decides when it is renewed.

use std::time::{Duration, SystemTime};

use crate::client_certificate::{SEQUENCE, element};

const INTEGER: u8 = 0x02;
const BYTES: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The version of a certificate, and the key identifier of an authority: `[0]`, constructed and primitive.
const VERSION: u8 = 0xa0;
const KEY_IDENTIFIER: u8 = 0x80;
/// The extensions of a certificate.
const EXTENSIONS: u8 = 0xa3;
/// `id-ce-authorityKeyIdentifier`.
const AUTHORITY_KEY: [u8; 3] = [0x55, 0x1d, 0x23];

/// How long a certificate is valid, and how its CA identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewalFacts {
    /// The beginning of its validity.
    pub not_before: SystemTime,
    /// The end of its validity.
    pub not_after: SystemTime,
    /// The content of its serial number, as DER has it.
    pub serial: Box<[u8]>,
    /// The identifier of its CA's key, where the certificate has one.
    pub authority_key: Option<Box<[u8]>>,
}

impl RenewalFacts {
    /// Reads a certificate in DER; `None` for what is not one.
    #[must_use]
    pub fn of_der(der: &[u8]) -> Option<Self> {
        let certificate = content(der, SEQUENCE)?.0;
        let (mut fields, _) = content(certificate, SEQUENCE)?;
        if let Some((_, rest)) = content(fields, VERSION) {
            fields = rest;
        }
        let (serial, rest) = content(fields, INTEGER)?;
        let (_, rest) = content(rest, SEQUENCE)?;
        let (_, rest) = content(rest, SEQUENCE)?;
        let (validity, mut rest) = content(rest, SEQUENCE)?;
        let (tag, text, after) = element(validity)?;
        let not_before = time(tag, text)?;
        let (tag, text, _) = element(after)?;
        let not_after = time(tag, text)?;
        let mut authority_key = None;
        while let Some((tag, value, following)) = element(rest) {
            if tag == EXTENSIONS {
                authority_key = authority_key_of(value);
            }
            rest = following;
        }
        Some(Self { not_before, not_after, serial: serial.into(), authority_key })
    }
}

/// The content of the first element, if it has this tag, and what follows it.
fn content(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(input)?;
    (found == tag).then_some((content, rest))
}

/// RFC 5280 §4.2.1.1: the key identifier among the extensions.
fn authority_key_of(extensions: &[u8]) -> Option<Box<[u8]>> {
    let (mut list, _) = content(extensions, SEQUENCE)?;
    while let Some((extension, rest)) = content(list, SEQUENCE) {
        let (name, mut after) = content(extension, IDENTIFIER)?;
        if name == AUTHORITY_KEY {
            // Whether it is critical may come between.
            let (mut tag, mut value, _) = element(after)?;
            while tag != BYTES {
                (_, _, after) = element(after)?;
                (tag, value, _) = element(after)?;
            }
            let (fields, _) = content(value, SEQUENCE)?;
            return content(fields, KEY_IDENTIFIER).map(|(key, _)| key.into());
        }
        list = rest;
    }
    None
}

/// RFC 5280 §4.1.2.5: `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`. What is before 1970 counts as 1970.
fn time(tag: u8, text: &[u8]) -> Option<SystemTime> {
    let digits = text.strip_suffix(b"Z")?;
    let expected = match tag {
        UTC_TIME => 12,
        GENERALIZED_TIME => 14,
        _ => return None,
    };
    if digits.len() != expected || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| {
        digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'))
    };
    let (year, rest) = digits.split_at(expected - 10);
    let year = match (tag, number(year)) {
        (UTC_TIME, year @ 0..50) => 2000 + year,
        (UTC_TIME, year) => 1900 + year,
        (_, year) => year,
    };
    let part = |at: usize| number(&rest[at..at + 2]);
    let (month, day, hour, minute, second) = (part(0), part(2), part(4), part(6), part(8));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    let seconds = ((days(year, month, day)? * 24 + hour) * 60 + minute) * 60 + second.min(59);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// The days from 1970-01-01 to a day of the Gregorian calendar, by years that begin in March; those before are 0.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let since_march = year * 365 + year / 4 - year / 100 + year / 400 + of_year;
    Some(since_march.saturating_sub(719_468))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, IsCa, Issuer, KeyPair};

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn times_of_both_kinds_are_read() {
        for (tag, text, seconds) in [
            (UTC_TIME, "700101000000Z", 0),
            (UTC_TIME, "261123180000Z", 1_795_456_800),
            (UTC_TIME, "000229235959Z", 951_868_799),
            (GENERALIZED_TIME, "20500101000000Z", 2_524_608_000),
            (GENERALIZED_TIME, "99991231235959Z", 253_402_300_799),
            (UTC_TIME, "500101000000Z", 0),
        ] {
            assert_eq!(time(tag, text.as_bytes()), Some(at(seconds)), "{text}");
        }
        for (tag, text) in [
            (UTC_TIME, "20500101000000Z"),
            (GENERALIZED_TIME, "700101000000Z"),
            (UTC_TIME, "701301000000Z"),
            (UTC_TIME, "700100000000Z"),
            (UTC_TIME, "700101240000Z"),
            (UTC_TIME, "700101000000"),
            (UTC_TIME, "7001010000-0Z"),
            (0x0c, "700101000000Z"),
        ] {
            assert_eq!(time(tag, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_certificate_tells_its_validity_its_serial_and_its_issuers_key() {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let root = authority.self_signed(&authority_key).unwrap();
        let identifier = authority.key_identifier(&authority_key);
        let issuer = Issuer::new(authority, authority_key);
        let mut parameters = CertificateParams::new(vec!["a.org".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2026, 11, 23);
        parameters.not_after = rcgen::date_time_ymd(2051, 2, 21);
        parameters.serial_number = Some(rcgen::SerialNumber::from(vec![0x87, 0x65]));
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let made = parameters.signed_by(&key, &issuer).unwrap();
        let facts = RenewalFacts::of_der(made.der()).unwrap();
        assert_eq!(facts.not_before, at(1_795_392_000));
        assert_eq!(facts.not_after, at(2_560_550_400));
        assert_eq!(&*facts.serial, [0, 0x87, 0x65], "a positive number");
        assert_eq!(facts.authority_key.as_deref(), Some(&identifier[..]));
        assert_eq!(RenewalFacts::of_der(root.der()).unwrap().authority_key, None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            at in 0_usize..400,
            byte in any::<u8>(),
        ) {
            let _ = RenewalFacts::of_der(&bytes);
            let _ = authority_key_of(&bytes);
            let made = rcgen::generate_simple_self_signed(vec!["a.org".to_owned()]).unwrap();
            let mut der = made.cert.der().to_vec();
            let place = at % der.len();
            der[place] = byte;
            let _ = RenewalFacts::of_der(&der);
            let _ = RenewalFacts::of_der(&der[..place]);
        }
    }
}
