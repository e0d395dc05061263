//! The whole protocol stack of one connection, without I/O.
