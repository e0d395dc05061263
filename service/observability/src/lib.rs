//! Reports of a server about itself: an access log, metrics, and a profile of where the CPU time goes.
//!
//! Each worker has a part of its own, which it alone writes; what is asked for is summed then.

mod access_log;
pub mod limits;
mod metrics;
mod placeholders;
mod profile;
mod upstream_times;

pub use access_log::{
    AccessLog, AccessLogStats, Asked, Ended, Entry, JSON_FIELDS, LOG_PLACEHOLDERS, LinePrefix,
    LogBuffer, LogFormat, LogTarget, LogTemplate, Outcome, RoutePiece, Sample, Stages, Times, cut,
    trace_id,
};
pub use limits::LogLimits;
pub use metrics::{
    ConnectionCount, Counter, DURATION_BOUNDS_NS, EndCounts, Exposition, Histogram,
    HistogramSnapshot, Http2Counts, Http2Snapshot, METRICS, Metric, Metrics, NameCounts, Place,
    Protocol, RouteCounts, RouteSnapshot, ServerState, Shard, Snapshot, Standing, TlsSnapshot,
};
pub use placeholders::{TextPart, text_parts};
pub use profile::{
    ENCODE, HANDLER, LOOP, PARSE, PROFILE_ONE_IN, Profile, ProfileShard, ProfileSnapshot, ROUTE,
    STAGE_BOUNDS_NS, Stage, StageSnapshot, TLS_OPEN, TLS_SEAL,
};
pub use upstream_times::UpstreamTimes;
