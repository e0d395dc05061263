//! Requests with bodies of their own, as a program writes them for `bolide load --exchanges`.

use std::ops::Range;
use std::path::Path;

use bolide_probe::exchanges::{Exchange, Exchanges};
use bolide_probe::plan::{ExpectedBody, RequestPlan};
use bolide_semantics::check_path;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::given::{body_file, method};

/// Reads a list; `fields` go with each request.
pub(crate) fn read(
    path: &Path,
    fields: &[(HeaderName, HeaderValue)],
) -> Result<Vec<RequestPlan>, String> {
    let named = |why: &dyn std::fmt::Display| format!("--exchanges {}: {why}", path.display());
    let text = std::fs::read(path).map_err(|error| named(&error))?;
    let list: Exchanges = serde_json::from_slice(&text).map_err(|error| named(&error))?;
    let bytes = body_file("--exchanges", &list.bytes)?;
    let part = |range: &Range<usize>| -> Result<Bytes, String> {
        let is_inside = range.start <= range.end && range.end <= bytes.len();
        if is_inside { Ok(bytes.slice(range.clone())) } else { Err(named(&"a range is too long")) }
    };
    if list.exchanges.is_empty() {
        return Err(named(&"has no exchange"));
    }
    list.exchanges
        .iter()
        .map(|exchange| {
            let known = if exchange.is_gzip { ExpectedBody::Gzip } else { ExpectedBody::Exact };
            check_path(&exchange.target).map_err(|why| named(&why))?;
            let method = method(&exchange.method).map_err(|why| named(&why))?;
            Ok(RequestPlan {
                fields: fields.to_vec(),
                has_placeholders: true,
                body: part(&exchange.body)?,
                weight: exchange.weight.max(1),
                response: exchange.expected.as_ref().map(part).transpose()?.map(known),
                response_fields: expected_fields(exchange).map_err(|why| named(&why))?,
                ..RequestPlan::new(method, exchange.target.clone())
            })
        })
        .collect()
}

fn expected_fields(exchange: &Exchange) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let parsed = exchange.expected_fields.iter().map(|(name, value)| {
        let wrong = || format!("`{name}: {value}` is not a header field");
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        Ok((name, HeaderValue::try_from(value).map_err(|_| wrong())?))
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(method: &str, body: Range<usize>, expected: Range<usize>) -> Exchange {
        Exchange {
            weight: 3,
            method: method.to_owned(),
            target: "/echo".to_owned(),
            body,
            expected: Some(expected),
            is_gzip: false,
            expected_fields: vec![("x-from".to_owned(), "a b".to_owned())],
        }
    }

    fn plans(exchanges: Vec<Exchange>) -> Result<Vec<RequestPlan>, String> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("bolide-exchanges-{}-{number}", std::process::id());
        let list = std::env::temp_dir().join(name);
        let bytes = list.with_extension("bytes");
        std::fs::write(&bytes, b"onetwo").unwrap();
        let text = serde_json::to_vec(&Exchanges { bytes: bytes.clone(), exchanges }).unwrap();
        std::fs::write(&list, text).unwrap();
        let plans = read(&list, &[]);
        std::fs::remove_file(list).unwrap();
        std::fs::remove_file(bytes).unwrap();
        plans
    }

    #[test]
    fn each_exchange_has_its_own_body_and_expected_body() {
        let plans = plans(vec![exchange("POST", 0..3, 3..6), exchange("GET", 0..0, 0..6)]).unwrap();
        assert_eq!((&plans[0].body[..], plans[0].weight), (&b"one"[..], 3));
        assert!(matches!(&plans[0].response, Some(ExpectedBody::Exact(bytes)) if bytes == "two"));
        let coded = Exchange { is_gzip: true, ..exchange("GET", 0..0, 0..3) };
        let coded = self::plans(vec![coded]).unwrap().remove(0).response;
        assert!(matches!(coded, Some(ExpectedBody::Gzip(bytes)) if bytes == "one"));
        assert_eq!(plans[0].response_fields[0].0, "x-from");
        assert_eq!(plans[0].response_fields[0].1, "a b");
        assert!(plans[1].body.is_empty() && plans[1].method == http::Method::GET);
        assert!(
            matches!(&plans[1].response, Some(ExpectedBody::Exact(bytes)) if bytes == "onetwo")
        );
    }

    #[test]
    fn a_list_that_is_wrong_is_named_with_what_is_wrong() {
        assert!(plans(Vec::new()).unwrap_err().contains("has no exchange"));
        assert!(plans(vec![exchange("GET", 0..7, 0..1)]).unwrap_err().contains("too long"));
        assert!(plans(vec![exchange("G T", 0..1, 0..1)]).unwrap_err().contains("is not a method"));
        let mut unnamed = exchange("GET", 0..0, 0..1);
        unnamed.expected_fields[0].0 = "a b".to_owned();
        assert!(plans(vec![unnamed]).unwrap_err().contains("`a b: a b` is not a header field"));
        let missing = read(Path::new("absent"), &[]).unwrap_err();
        assert!(missing.starts_with("--exchanges absent: "), "{missing}");
    }
}
