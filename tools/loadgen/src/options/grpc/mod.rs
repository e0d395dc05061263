//! Calls of gRPC: from a method's name and messages in JSON to requests with bodies in protobuf, made once.

mod reflection;

use std::fmt::Display;
use std::time::Duration;

use bolide_probe::plan::{Origin, RequestPlan, TlsPlan};
use bolide_semantics::Url;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, TE};
use http::{HeaderValue, Method};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, ServiceDescriptor};
use serde_json::Value;

use super::arguments::RequestArguments;
use crate::given::LARGEST_BODY_BYTES;

/// `grpc-timeout` has at most so many digits.
const DEADLINE_DIGITS: usize = 8;

/// Place of the server.
pub(super) struct Server<'a> {
    pub(super) target: &'a Url,
    pub(super) origin: &'a Origin,
    pub(super) tls: &'a TlsPlan,
}

/// Makes calls of `name` of the requests, whose bodies are JSON.
///
/// # Errors
///
/// What is wrong with the name, the files, the server's reflection or a message, in a sentence.
pub(super) fn prepare(
    name: &str,
    arguments: &RequestArguments,
    server: &Server<'_>,
    requests: &mut [RequestPlan],
) -> Result<(), String> {
    let wrong = |why: &dyn Display| format!("--grpc {name}: {why}");
    if server.target.path != "/" {
        return Err(wrong(&format!(
            "the URL names the server only, without `{}`",
            server.target.path
        )));
    }
    if arguments.bodies.data_size.is_some() {
        return Err(wrong(&"messages are JSON: use --data, --data-file or --data-lines"));
    }
    let (service, method) = name
        .trim_start_matches('/')
        .rsplit_once('/')
        .ok_or_else(|| wrong(&"must be SERVICE/METHOD, such as package.Service/Method"))?;
    let pool = if arguments.messages.proto.is_empty() {
        reflection::ask(service, server).map_err(|why| {
            wrong(&format!("the server's reflection was no help: {why} (use --proto FILE)"))
        })?
    } else {
        compile(arguments)?
    };
    let method = find(&pool, service, method).map_err(|why| wrong(&why))?;
    let times = arguments.messages.repeat_messages.unwrap_or(1);
    if times > 1 && !method.is_client_streaming() {
        return Err(wrong(&"--repeat-messages needs a method whose client streams"));
    }
    let fields = fields(arguments.messages.deadline);
    for request in requests {
        request.method = Method::POST;
        request.target = format!("/{service}/{}", method.name());
        request.body = body(&method, &request.body, times).map_err(|why| wrong(&why))?;
        let set = |name: &HeaderName| request.fields.iter().any(|(known, _)| known == name);
        let missing: Vec<_> = fields.iter().filter(|(name, _)| !set(name)).cloned().collect();
        request.fields.extend(missing);
    }
    Ok(())
}

/// Reads files of definitions, and what they import.
fn compile(arguments: &RequestArguments) -> Result<DescriptorPool, String> {
    let mut includes = arguments.messages.proto_path.clone();
    if includes.is_empty() {
        let parents = arguments.messages.proto.iter().filter_map(|file| file.parent());
        includes.extend(parents.map(|parent| {
            let is_here = parent.as_os_str().is_empty();
            if is_here { ".".into() } else { parent.to_path_buf() }
        }));
    }
    let wrong = |why: &protox::Error| format!("--proto: {}", why.to_string().replace('\n', " "));
    let mut compiler = protox::Compiler::new(includes).map_err(|error| wrong(&error))?;
    compiler.include_imports(true);
    for file in &arguments.messages.proto {
        compiler.open_file(file).map_err(|error| wrong(&error))?;
    }
    Ok(compiler.descriptor_pool())
}

fn find(pool: &DescriptorPool, service: &str, method: &str) -> Result<MethodDescriptor, String> {
    let Some(found) = pool.get_service_by_name(service) else {
        let names: Vec<String> =
            pool.services().map(|service| service.full_name().to_owned()).collect();
        return Err(format!("there is no service `{service}`, only {}", names.join(", ")));
    };
    found.methods().find(|known| known.name() == method).ok_or_else(|| {
        let names: Vec<String> =
            ServiceDescriptor::methods(&found).map(|method| method.name().to_owned()).collect();
        format!("`{service}` has no method `{method}`, only {}", names.join(", "))
    })
}

/// Returns what every call says of itself.
fn fields(deadline: Option<Duration>) -> Vec<(HeaderName, HeaderValue)> {
    let mut fields = vec![
        (CONTENT_TYPE, HeaderValue::from_static("application/grpc")),
        (TE, HeaderValue::from_static("trailers")),
    ];
    if let Some(deadline) = deadline
        && let Ok(value) = HeaderValue::try_from(timeout(deadline))
    {
        fields.push((HeaderName::from_static("grpc-timeout"), value));
    }
    fields
}

/// The value of `grpc-timeout`, in the finest unit that it fits into.
fn timeout(deadline: Duration) -> String {
    let units = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S')];
    let fits = units.iter().find_map(|(ns, unit)| {
        let text = (deadline.as_nanos() / ns).to_string();
        (text.len() <= DEADLINE_DIGITS).then(|| format!("{text}{unit}"))
    });
    fits.unwrap_or_else(|| "99999999S".to_owned())
}

/// The content of a request: each message behind a flag and its length.
fn body(method: &MethodDescriptor, json: &[u8], times: u64) -> Result<Bytes, String> {
    let json = if json.trim_ascii().is_empty() { b"{}" } else { json };
    let value: Value =
        serde_json::from_slice(json).map_err(|why| format!("the message is not JSON: {why}"))?;
    let values = match value {
        Value::Array(values) if method.is_client_streaming() => values,
        Value::Array(_) => {
            return Err("takes one message, not a list: its client doesn't stream".into());
        }
        value => vec![value],
    };
    let mut once = Vec::new();
    for value in values {
        let message = DynamicMessage::deserialize(method.input(), value).map_err(|why| {
            format!("the message is not a `{}`: {why}", method.input().full_name())
        })?;
        let length = u32::try_from(message.encoded_len())
            .map_err(|_| "a message has more than 4 GiB".to_owned())?;
        once.push(0);
        once.extend_from_slice(&length.to_be_bytes());
        once.extend_from_slice(&message.encode_to_vec());
    }
    if (once.len() as u64).saturating_mul(times) > LARGEST_BODY_BYTES {
        return Err("the messages of a call have more than 4 GiB together".into());
    }
    Ok(once.repeat(usize::try_from(times).unwrap_or(usize::MAX)).into())
}

#[cfg(test)]
mod tests;
