//! TLS as a byte transform: the only crate of Bolide that names rustls.
