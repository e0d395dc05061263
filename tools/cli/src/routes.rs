//! What `bolide serve` answers: its built-in routes, a folder, or what other servers say.

use std::path::PathBuf;

use bolide::{ProxySettings, ReverseProxy, Router, StaticFiles};

use bolide_measurement::Ndt7Settings;

use crate::{files, proxy};

/// The arguments about what is answered.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: files::Arguments,

    #[command(flatten)]
    proxy: proxy::Arguments,

    /// Answer the built-in routes too, where --root or --proxy has turned them off. They win over files and
    /// upstreams.
    #[arg(long)]
    builtin: bool,

    /// Write a file ndt7-….json.gz for each speed test by ndt7 into this folder, which must exist.
    #[arg(long, value_name = "DIR")]
    ndt7_archive: Option<PathBuf>,
}

/// What is answered beside the built-in routes.
#[derive(Debug, Clone)]
enum Rest {
    Nothing,
    Files(StaticFiles),
    Upstreams(ProxySettings),
}

/// The routes of a server, made anew for each worker.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    rest: Rest,
    builtin: bool,
    ndt7: Ndt7Settings,
}

impl Arguments {
    /// Opens the root, or looks up the upstreams.
    pub(crate) fn routes(&self) -> Result<Routes, String> {
        let rest = match (self.files.files()?, self.proxy.settings()?) {
            (Some(files), _) => Rest::Files(files),
            (None, Some(settings)) => Rest::Upstreams(settings),
            (None, None) if self.builtin => {
                let what =
                    "--builtin brings back what --root or --proxy turns off: give one of them";
                return Err(what.to_owned());
            }
            (None, None) => Rest::Nothing,
        };
        if let Some(folder) = &self.ndt7_archive
            && !folder.is_dir()
        {
            return Err(format!("--ndt7-archive {}: there is no such folder", folder.display()));
        }
        let ndt7 = Ndt7Settings { archive: self.ndt7_archive.clone() };
        Ok(Routes { rest, builtin: self.builtin, ndt7 })
    }
}

impl Routes {
    /// One worker's router.
    pub(crate) fn router(&self) -> Router {
        let routes = Router::new();
        match &self.rest {
            Rest::Nothing => bolide_measurement::routes_with(routes, &self.ndt7),
            Rest::Files(files) if self.builtin => {
                files.routes(bolide_measurement::endpoints_with(routes, &self.ndt7))
            }
            Rest::Files(files) => files.routes(bolide_measurement::ping(routes)),
            Rest::Upstreams(settings) => {
                let routes = if self.builtin {
                    bolide_measurement::routes_with(routes, &self.ndt7)
                } else {
                    routes
                };
                routes.fallback(ReverseProxy::new(settings))
            }
        }
    }
}
