//! Files, each of which is compressed once and sent often: better and slower than what is made for one response.

use std::io::Write;

/// Below this many bytes nothing is gained.
const WORTH_BYTES: usize = 256;

/// Of zstd: what brotli's quality takes in time, about.
const ZSTD_LEVEL: i32 = 9;

/// The codings, in order of preference.
pub const CODINGS: [&str; 3] = ["br", "zstd", "gzip"];

/// The content in this coding, if that is known and makes it smaller.
#[must_use]
pub fn compressed(coding: &str, content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < WORTH_BYTES {
        return None;
    }
    let encoded = match coding {
        "br" => brotli(content),
        "zstd" => zstd::bulk::compress(content, ZSTD_LEVEL).ok(),
        "gzip" => gzip(content),
        _ => None,
    }?;
    (encoded.len() < content.len()).then_some(encoded)
}

fn gzip(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(content).ok()?;
    encoder.finish().ok()
}

fn brotli(content: &[u8]) -> Option<Vec<u8>> {
    const QUALITY: u32 = 5;
    const WINDOW_BITS: u32 = 20;
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 16 * 1024, QUALITY, WINDOW_BITS);
    encoder.write_all(content).ok()?;
    encoder.flush().ok()?;
    Some(encoder.into_inner())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_compressed_comes_back() {
        let text = "All of this is text, and much of it comes again. ".repeat(100);
        let mut back = String::new();
        let gzip = compressed("gzip", text.as_bytes()).unwrap();
        flate2::read::GzDecoder::new(&gzip[..]).read_to_string(&mut back).unwrap();
        assert_eq!(back, text);
        back.clear();
        let br = compressed("br", text.as_bytes()).unwrap();
        brotli::Decompressor::new(&br[..], 4096).read_to_string(&mut back).unwrap();
        assert_eq!(back, text);
        let zstd = compressed("zstd", text.as_bytes()).unwrap();
        assert_eq!(zstd::bulk::decompress(&zstd, text.len()).unwrap(), text.as_bytes());
    }

    #[test]
    fn what_would_not_shrink_is_left() {
        assert_eq!(compressed("gzip", b"short"), None);
        assert_eq!(compressed("deflate", &[b'a'; 1000]), None);
        let mut noise = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (noise >> 56) as u8
        })
        .take(4096)
        .collect();
        assert_eq!(compressed("gzip", &noise), None);
        assert_eq!(compressed("br", &noise), None);
        assert_eq!(compressed("zstd", &noise), None);
    }
}
