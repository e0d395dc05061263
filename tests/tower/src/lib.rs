//! axum, tower-http and tonic on Bolide: a package that only tests. Everything is under `tests/`.
