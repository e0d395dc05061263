//! The HTTP/1.1 connection of Bolide, without I/O (RFC 9112).
