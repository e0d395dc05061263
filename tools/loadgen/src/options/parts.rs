//! The options of a run on several hosts.

use std::time::Duration;

/// One run by several processes.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Many hosts")]
pub(crate) struct PartsArguments {
    /// Number of this part and count of all, from 1: 2/4. Default: from mpirun, srun or a Kubernetes Indexed Job.
    #[arg(long, value_name = "K/N")]
    pub(crate) part: Option<String>,

    /// Meeting place of the parts: an address of part 1. Default: BOLIDE_RENDEZVOUS, the scheduler's name of part 1, or
    /// 127.0.0.1; port 7117. Other hosts need the same secret in BOLIDE_SECRET.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) rendezvous: Option<String>,

    /// Wait this long for all parts.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = bolide_units::positive_seconds)]
    pub(crate) join_timeout: Duration,

    /// Go on with up to N parts missing or lost. Default: the run ends with exit code 4.
    #[arg(long, value_name = "N", value_parser = bolide_units::count)]
    pub(crate) missing_ok: Option<u64>,

    /// Run as parts on this host and, by ssh, on these. Without --rendezvous, they meet through ssh.
    #[arg(long, value_name = "HOST,HOST,…", value_delimiter = ',', conflicts_with = "part")]
    pub(crate) on: Vec<String>,

    /// Print a Kubernetes Indexed Job of --hosts parts, and its Service, as YAML; send nothing.
    #[arg(long, requires = "hosts")]
    pub(crate) print_job: bool,

    /// Parts of --print-job.
    #[arg(long, value_name = "N", requires = "print_job", value_parser = bolide_units::count)]
    pub(crate) hosts: Option<u64>,

    /// Container image of --print-job. Default: bolide.
    #[arg(long, value_name = "NAME", requires = "print_job")]
    pub(crate) image: Option<String>,
}
