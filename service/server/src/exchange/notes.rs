//! Notes of handlers and sessions about an exchange for the access log.

use bolide_observability::UpstreamTimes;

use super::Io;

impl Io<'_> {
    /// Notes for the access log which server behind was asked; the latest counts. What was noted of the times of
    /// the one before is forgotten.
    pub fn note_upstream(&mut self, name: &str) {
        if let Some(entry) = &mut self.state.record.entry {
            entry.set_upstream(name);
            entry.times.upstream = None;
        }
    }

    /// Notes for the access log when the server behind did what; the latest counts.
    pub fn note_upstream_times(&mut self, times: &UpstreamTimes) {
        if let Some(entry) = &mut self.state.record.entry {
            entry.times.upstream = Some(*times);
        }
    }
}
