//! gRPC server reflection: a service's definition from the server itself.

use std::collections::BTreeSet;
use std::time::Duration;

use bolide_client::{Client, Destination, Trust, Versions};
use bolide_connection::Identity;
use bolide_probe::plan::{ServerAddress, TlsTrust};
use bytes::Bytes;
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;

use super::Server;

/// The versions of the service, the newest first.
const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// The code of a method that a server doesn't have.
const UNIMPLEMENTED: &str = "12";

/// How long each question may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// More files than this, no service is made of.
const FILES_COUNT: usize = 1000;

/// Question to the server: one of both.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, optional, tag = "3")]
    file_by_filename: Option<String>,
    #[prost(string, optional, tag = "4")]
    file_containing_symbol: Option<String>,
}

/// Response of the server.
#[derive(Clone, PartialEq, Message)]
struct ReflectionResponse {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "7")]
    error: Option<Refusal>,
}

/// Files of definitions.
#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    files: Vec<Bytes>,
}

/// Why there is none.
#[derive(Clone, PartialEq, Message)]
struct Refusal {
    #[prost(string, tag = "2")]
    message: String,
}

/// Asks a server for the definition of a service.
///
/// # Errors
///
/// Why there is none, in words.
pub(super) fn ask(service: &str, server: &Server<'_>) -> Result<DescriptorPool, String> {
    let client = client(server)?;
    let mut files: Vec<FileDescriptorProto> = Vec::new();
    let mut asked = BTreeSet::new();
    let symbol = Some(service.to_owned());
    let mut questions = vec![Question { file_containing_symbol: symbol, ..Question::default() }];
    while let Some(question) = questions.pop() {
        for file in call(&client, server, &question)? {
            let file = FileDescriptorProto::decode(file).map_err(|why| why.to_string())?;
            if files.iter().any(|known| known.name() == file.name()) {
                continue;
            }
            asked.insert(file.name().to_owned());
            for name in &file.dependency {
                if asked.insert(name.clone()) {
                    let file_by_filename = Some(name.clone());
                    questions.push(Question { file_by_filename, ..Question::default() });
                }
            }
            files.push(file);
            if files.len() > FILES_COUNT {
                return Err(format!("it has more than {FILES_COUNT} files"));
            }
        }
    }
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files).map_err(|why| why.to_string())?;
    Ok(pool)
}

fn client(server: &Server<'_>) -> Result<Client, String> {
    let mut builder = Client::builder().versions(Versions::Http2);
    if server.origin.is_https {
        builder = match &server.tls.trust {
            TlsTrust::Platform => builder,
            TlsTrust::Roots(pem) => builder.trust(Trust::Pem(pem.to_vec())),
            TlsTrust::Any => builder.trust(Trust::Any),
        };
        let identity = server.tls.identity.as_ref().map(|(chain, key)| {
            Identity::from_pem(chain, key)
                .map_err(|why| format!("the client's certificate can't be used: {why}"))
        });
        builder = builder.identity(identity.transpose()?);
        builder = builder.server_name(server.tls.server_name.clone());
    }
    builder.build().map_err(|why| why.to_string())
}

/// One question, and the files that come.
fn call(client: &Client, server: &Server<'_>, question: &Question) -> Result<Vec<Bytes>, String> {
    let scheme = if server.origin.is_https { "https" } else { "http" };
    let message = question.encode_to_vec();
    let mut body = vec![0];
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(&message);
    let body = Bytes::from(body);
    let to: Vec<Destination> = server
        .origin
        .addresses
        .iter()
        .map(|address| match address {
            ServerAddress::Inet(address) => Destination::Inet(*address),
            ServerAddress::Unix(path) => Destination::Unix(path.as_path().into()),
        })
        .collect();
    let mut refusal = String::new();
    for path in PATHS {
        let url = format!("{scheme}://{}{path}", server.origin.authority);
        let request = client.post(&url).via(to.clone()).timeout(TIMEOUT);
        let request = request.header("content-type", "application/grpc").header("te", "trailers");
        let mut response = request.body(body.clone()).send().map_err(|why| why.to_string())?;
        let content = response.collect().map_err(|why| why.to_string())?;
        let trailers = response.trailers().unwrap_or_default();
        let said = |name: &str| {
            let from_head = response.header(name).map(str::to_owned);
            let value = trailers.get(name).and_then(|value| value.to_str().ok());
            from_head.or_else(|| value.map(str::to_owned))
        };
        match said("grpc-status").as_deref() {
            Some("0") => return files(content),
            Some(UNIMPLEMENTED) => "it has none".clone_into(&mut refusal),
            Some(code) => {
                let why = said("grpc-message").unwrap_or_default();
                return Err(format!("it ended with grpc-status {code} {why}"));
            }
            None => return Err(format!("status {} without grpc-status", response.status())),
        }
    }
    Err(refusal)
}

/// The files of the first message.
fn files(mut content: Bytes) -> Result<Vec<Bytes>, String> {
    let truncated = || "its message is truncated".to_owned();
    if content.len() < 5 {
        return Err(truncated());
    }
    let prefix = content.split_to(5);
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
    if prefix[0] != 0 {
        return Err("its message is compressed, which was not offered".into());
    }
    let message = content.get(..length).ok_or_else(truncated)?;
    let response = ReflectionResponse::decode(message).map_err(|why| why.to_string())?;
    if let Some(refusal) = response.error {
        return Err(format!("it says `{}`", refusal.message));
    }
    Ok(response.files.unwrap_or_default().files)
}
