//! RFC 9113 §10.5: every known way to make a connection expensive, by its name, and the limit that
//! answers it.

mod bodies;
mod heads;
mod resets;
mod slow;
mod useless_frames;
