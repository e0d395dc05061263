//! The HTTP server of Bolide: listeners, router, handlers, limits, shutdown.
