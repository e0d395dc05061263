//! RFC 5280 §4.1.2.6, RFC 4514: who a client says that it is.

use std::any::Any;
use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::ClientCertificate;
use crate::facts::hex;

impl ClientCertificate {
    pub(crate) fn new(der: &CertificateDer<'_>) -> Self {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, der).as_ref());
        let subject =
            EndEntityCert::try_from(der).ok().map(|parsed| distinguished(parsed.subject()));
        Self { der: Box::from(&**der), fingerprint, subject: subject.unwrap_or_default() }
    }

    /// The first of the certificates that rustls tells of a peer over QUIC: a list of them.
    #[must_use]
    pub fn of_peer(identity: Box<dyn Any>) -> Option<Self> {
        let certificates = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
        certificates.first().map(Self::new)
    }
}

/// The attributes that RFC 4514 §3 names, and the address that many certificates have, by the DER form of
/// their identifier.
const NAMED: [(&[u8], &str); 10] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 100, 1, 25], "DC"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 100, 1, 1], "UID"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
];

pub(crate) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const IDENTIFIER: u8 = 0x06;
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// A name (RFC 5280 §4.1.2.4) as text, from the content of its sequence. What can't be read ends it.
fn distinguished(mut name: &[u8]) -> String {
    let mut parts = Vec::new();
    while let Some((SET, mut set, rest)) = element(name) {
        let mut attributes = Vec::new();
        while let Some((SEQUENCE, pair, others)) = element(set) {
            attributes.extend(attribute(pair));
            set = others;
        }
        parts.push(attributes.join("+"));
        name = rest;
    }
    parts.reverse();
    parts.join(",")
}

/// `CN=alice`.
fn attribute(pair: &[u8]) -> Option<String> {
    let (IDENTIFIER, identifier, rest) = element(pair)? else { return None };
    let (tag, value, _) = element(rest)?;
    let name = NAMED.iter().find(|(known, _)| *known == identifier);
    let text = std::str::from_utf8(value).ok().filter(|_| TEXTS.contains(&tag));
    match (name, text) {
        (Some((_, name)), Some(text)) => Some(format!("{name}={}", escaped(text))),
        (Some((_, name)), None) => Some(format!("{name}=#{}", hex(value))),
        // RFC 4514 §2.4 asks for the number with dots; its bytes say as much.
        (None, _) => Some(format!("#{}=#{}", hex(identifier), hex(value))),
    }
}

/// RFC 4514 §2.4: what would be read as something else.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (at, letter) in text.chars().enumerate() {
        match letter {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => out.extend(['\\', letter]),
            '#' if at == 0 => out.push_str("\\#"),
            ' ' if at == 0 || at == last => out.push_str("\\ "),
            _ if letter.is_control() => {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    // Writing to a string never fails.
                    let _ = write!(out, "\\{byte:02x}");
                }
            }
            _ => out.push(letter),
        }
    }
    out
}

/// One element of DER (X.690 §8.1): its tag, its content, and what follows it.
pub(crate) fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        // More than 65,535 bytes are no part of a certificate.
        if !(1..=2).contains(&count) || rest.len() < count {
            return None;
        }
        let (bytes, rest) = rest.split_at(count);
        (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    (length <= rest.len()).then(|| {
        let (content, rest) = rest.split_at(length);
        (tag, content, rest)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::DnType;

    use super::*;

    fn of(parts: &[(DnType, &str)]) -> ClientCertificate {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in parts {
            parameters.distinguished_name.push(kind.clone(), *value);
        }
        let key = rcgen::KeyPair::generate().unwrap();
        ClientCertificate::new(parameters.self_signed(&key).unwrap().der())
    }

    #[test]
    fn a_subject_is_written_with_its_last_part_first() {
        let made = of(&[
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "Example, Inc."),
            (DnType::CommonName, " #alice+bob\u{7f} "),
        ]);
        assert_eq!(made.subject, "CN=\\ #alice\\+bob\\7f\\ ,O=Example\\, Inc.,C=DE");
        assert_eq!(made.fingerprint_hex().len(), 64);
        assert_ne!(made.fingerprint, of(&[]).fingerprint);
        assert_eq!(of(&[]).subject, "");
    }

    #[test]
    fn what_has_no_name_is_written_in_hexadecimal() {
        let made = of(&[(DnType::CustomDnType(vec![2, 5, 4, 5]), "7")]);
        assert_eq!(made.subject, "#550405=#37");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            distinguished(&bytes);
            let mut framed = vec![SET, bytes.len() as u8];
            framed.extend(&bytes);
            distinguished(&framed);
        }
    }
}
