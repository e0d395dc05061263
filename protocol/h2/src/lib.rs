//! The HTTP/2 connection of Bolide, without I/O (RFC 9113, RFC 9218).
