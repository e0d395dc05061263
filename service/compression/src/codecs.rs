//! RFC 9110 §8.4.1: the codings, in parameters that bound their memory.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};

use bolide_server::{BodyEncoder, Codec};
use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;
use libdeflater::{CompressionLvl, Compressor};
use zstd::zstd_safe::CParameter;

use crate::limits::FAST_INLINE_BYTES;

/// 20 KiB of JSON become a quarter smaller than by nginx's default, 1, in twice the time; level 5 takes half as much again for
/// a fourteenth less.
const GZIP_LEVEL: u32 = 2;

/// Of a whole body, by a library that needs all of it at once: smaller than the level above makes it, in little more than half
/// the time.
const WHOLE_GZIP_LEVEL: i32 = 1;

/// A smaller result than gzip's in half as much time again; the next level takes three times the memory.
const BROTLI_QUALITY: i32 = 3;

const BROTLI_WINDOW_BITS: u8 = 14;

/// A smaller result than gzip's in a quarter of the time.
const ZSTD_LEVEL: i32 = 3;

/// zstd's memory is a multiple of its window.
const ZSTD_WINDOW_BITS: u32 = 15;

/// Of its tables.
const ZSTD_HASH_BITS: u32 = 14;

pub(crate) static ZSTD: Zstd = Zstd;
pub(crate) static BROTLI: Brotli = Brotli;
pub(crate) static GZIP: Gzip = Gzip;

/// RFC 8878.
#[derive(Debug)]
pub(crate) struct Zstd;

/// RFC 7932.
#[derive(Debug)]
pub(crate) struct Brotli;

/// RFC 1952.
#[derive(Debug)]
pub(crate) struct Gzip;

thread_local! {
    /// Compressor for small bodies: it takes more to make than to use.
    static SMALL_ZSTD: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static SMALL_GZIP: RefCell<Option<Compressor>> = const { RefCell::new(None) };
}

impl Codec for Zstd {
    fn name(&self) -> &'static str {
        "zstd"
    }

    fn inline_bytes(&self) -> usize {
        FAST_INLINE_BYTES
    }

    fn encode(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        SMALL_ZSTD.with_borrow_mut(|kept| {
            let compressor = match kept {
                Some(compressor) => compressor,
                None => kept.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
            };
            compressor.compress(body)
        })
    }

    fn encoder(&self) -> io::Result<Box<dyn BodyEncoder>> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
        for parameter in zstd_parameters() {
            encoder.set_parameter(parameter)?;
        }
        Ok(Box::new(ZstdEncoder(encoder)))
    }
}

impl Codec for Brotli {
    fn name(&self) -> &'static str {
        "br"
    }

    fn encode(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        let window_bits = usize::BITS - body.len().leading_zeros();
        let mut encoder =
            brotli_encoder(window_bits.clamp(10, BROTLI_WINDOW_BITS.into()) as u8, body.len());
        encoder.write(body)?;
        encoder.finish()?;
        Ok(encoder.take())
    }

    fn encoder(&self) -> io::Result<Box<dyn BodyEncoder>> {
        Ok(Box::new(brotli_encoder(BROTLI_WINDOW_BITS, 0)))
    }
}

impl Codec for Gzip {
    fn name(&self) -> &'static str {
        "gzip"
    }

    fn inline_bytes(&self) -> usize {
        FAST_INLINE_BYTES
    }

    fn encode(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        SMALL_GZIP.with_borrow_mut(|kept| {
            let compressor = match kept {
                Some(compressor) => compressor,
                None => {
                    let level = CompressionLvl::new(WHOLE_GZIP_LEVEL);
                    kept.insert(Compressor::new(level.map_err(|_| io::ErrorKind::InvalidInput)?))
                }
            };
            let mut out = vec![0; compressor.gzip_compress_bound(body.len())];
            let length = compressor.gzip_compress(body, &mut out).map_err(io::Error::other)?;
            out.truncate(length);
            Ok(out)
        })
    }

    fn encoder(&self) -> io::Result<Box<dyn BodyEncoder>> {
        let level = flate2::Compression::new(GZIP_LEVEL);
        Ok(Box::new(GzipEncoder(GzEncoder::new(Vec::new(), level))))
    }
}

fn zstd_parameters() -> [CParameter; 4] {
    [
        CParameter::CompressionLevel(ZSTD_LEVEL),
        CParameter::WindowLog(ZSTD_WINDOW_BITS),
        CParameter::HashLog(ZSTD_HASH_BITS),
        CParameter::ChainLog(ZSTD_HASH_BITS),
    ]
}

struct ZstdEncoder(zstd::stream::write::Encoder<'static, Vec<u8>>);

struct GzipEncoder(GzEncoder<Vec<u8>>);

/// Once it has finished, there is what it has made last.
struct BrotliEncoder(Option<CompressorWriter<Vec<u8>>>, Vec<u8>);

fn brotli_encoder(window_bits: u8, length: usize) -> BrotliEncoder {
    const BUFFER_BYTES: usize = 4 * 1024;
    let params = BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: i32::from(window_bits),
        size_hint: length,
        ..BrotliEncoderParams::default()
    };
    let writer = CompressorWriter::with_params(Vec::new(), BUFFER_BYTES, &params);
    BrotliEncoder(Some(writer), Vec::new())
}

impl fmt::Debug for ZstdEncoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ZstdEncoder")
    }
}

impl fmt::Debug for GzipEncoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GzipEncoder")
    }
}

impl fmt::Debug for BrotliEncoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BrotliEncoder")
    }
}

impl BodyEncoder for ZstdEncoder {
    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.write_all(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.do_finish()
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.0.get_mut())
    }

    fn held_bytes(&self) -> usize {
        ZSTD_HELD_BYTES
    }
}

impl BodyEncoder for GzipEncoder {
    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.write_all(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.try_finish()
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.0.get_mut())
    }

    fn held_bytes(&self) -> usize {
        GZIP_HELD_BYTES
    }
}

impl BodyEncoder for BrotliEncoder {
    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |encoder| encoder.write_all(data))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(encoder) = self.0.take() {
            self.1 = encoder.into_inner();
        }
        Ok(())
    }

    fn take(&mut self) -> Vec<u8> {
        match &mut self.0 {
            Some(encoder) => std::mem::take(encoder.get_mut()),
            None => std::mem::take(&mut self.1),
        }
    }

    fn held_bytes(&self) -> usize {
        BROTLI_HELD_BYTES
    }
}

/// Memory of one encoder, in bytes, whatever it encodes.
const GZIP_HELD_BYTES: usize = 448 * 1024;
const BROTLI_HELD_BYTES: usize = 544 * 1024;
const ZSTD_HELD_BYTES: usize = 448 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    use proptest::prelude::*;

    const CODECS: [&dyn Codec; 3] = [&ZSTD, &BROTLI, &GZIP];

    fn decode(name: &str, encoded: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let read = match name {
            "zstd" => zstd::stream::read::Decoder::new(encoded).unwrap().read_to_end(&mut out),
            "br" => brotli::Decompressor::new(encoded, 4096).read_to_end(&mut out),
            _ => flate2::read::GzDecoder::new(encoded).read_to_end(&mut out),
        };
        read.unwrap();
        out
    }

    /// Returns what can be decoded of a body that goes on.
    fn decode_part(name: &str, encoded: &[u8], length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        match name {
            "zstd" => zstd::stream::read::Decoder::new(encoded).unwrap().read_exact(&mut out),
            "br" => brotli::Decompressor::new(encoded, 4096).read_exact(&mut out),
            _ => flate2::read::GzDecoder::new(encoded).read_exact(&mut out),
        }
        .unwrap();
        out
    }

    fn text(length: usize) -> Vec<u8> {
        let words = ["alpha ", "beta, ", "{\"gamma\": 12} ", "delta\n", "<p>epsilon</p>"];
        let mut seed = 1_u64;
        let mut text = Vec::new();
        while text.len() < length {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.extend_from_slice(words[(seed >> 60) as usize % words.len()].as_bytes());
            text.extend_from_slice((seed >> 40).to_string().as_bytes());
        }
        text.truncate(length);
        text
    }

    #[test]
    fn text_becomes_smaller_at_once_and_in_pieces() {
        let body = text(20 * 1024);
        for codec in CODECS {
            let mut encoder = codec.encoder().unwrap();
            encoder.write(&body).unwrap();
            encoder.finish().unwrap();
            let lengths = [codec.encode(&body).unwrap().len(), encoder.take().len()];
            let smaller = lengths.iter().all(|length| *length < body.len() / 2);
            assert!(smaller, "{}: {lengths:?} of {}", codec.name(), body.len());
        }
    }

    #[test]
    fn what_was_flushed_can_be_decoded_before_the_end() {
        for codec in CODECS {
            let mut encoder = codec.encoder().unwrap();
            let mut encoded = Vec::new();
            for nth in 1..=5 {
                encoder.write(&text(300)).unwrap();
                encoder.flush().unwrap();
                encoded.extend(encoder.take());
                let part = decode_part(codec.name(), &encoded, nth * 300);
                assert_eq!(part, text(300).repeat(nth), "{}", codec.name());
            }
            encoder.finish().unwrap();
            encoded.extend(encoder.take());
            assert_eq!(decode(codec.name(), &encoded), text(300).repeat(5), "{}", codec.name());
        }
    }

    #[test]
    fn an_encoder_keeps_no_more_than_it_says() {
        let body = text(4 * 1024 * 1024);
        let mut context = zstd::zstd_safe::CCtx::create();
        for parameter in zstd_parameters() {
            context.set_parameter(parameter).unwrap();
        }
        let mut out = vec![0; 128 * 1024];
        for piece in body.chunks(4 * 1024) {
            let mut output = zstd::zstd_safe::OutBuffer::around(&mut out[..]);
            let mut input = zstd::zstd_safe::InBuffer::around(piece);
            context.compress_stream(&mut output, &mut input).unwrap();
        }
        // The rest is the buffer of the library around it.
        let zstd_bytes = context.sizeof() + 32 * 1024;
        assert!(zstd_bytes <= ZSTD_HELD_BYTES, "zstd: {zstd_bytes}");
        assert!(zstd_bytes > ZSTD_HELD_BYTES / 2, "zstd: {zstd_bytes}");
        for codec in [&BROTLI as &dyn Codec, &GZIP] {
            let mut said = 0;
            let info = allocation_counter::measure(|| {
                let mut encoder = codec.encoder().unwrap();
                said = encoder.held_bytes() as u64;
                for piece in body.chunks(4 * 1024) {
                    encoder.write(piece).unwrap();
                    drop(encoder.take());
                }
                encoder.finish().unwrap();
            });
            let name = codec.name();
            assert!(info.bytes_max <= said, "{name}: {} of {said}", info.bytes_max);
            assert!(info.bytes_max > said / 2, "{name}: {} of {said}", info.bytes_max);
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(
            pieces in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..3000), any::<bool>()), 0..6),
        ) {
            let body: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
            for codec in CODECS {
                prop_assert_eq!(&decode(codec.name(), &codec.encode(&body).unwrap()), &body);
                let mut encoder = codec.encoder().unwrap();
                let mut encoded = Vec::new();
                for (piece, flushes) in &pieces {
                    encoder.write(piece).unwrap();
                    if *flushes {
                        encoder.flush().unwrap();
                    }
                    encoded.extend(encoder.take());
                }
                encoder.finish().unwrap();
                encoded.extend(encoder.take());
                prop_assert_eq!(&decode(codec.name(), &encoded), &body);
            }
        }
    }
}
