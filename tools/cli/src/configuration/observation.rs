//! `[log]`, `[access-log]`, `[admin]`, `[profile]` and `server-timing`: what the server shows of itself.

use bolide::metrics::PROFILE_ONE_IN;
use bolide::server::{LogFormat, LogTarget, LogTemplate};

use super::choice::{choice, one_of};
use super::document::Section;
use super::limit_tables;
use super::value::Texts;
use crate::observe::{
    AccessLogSettings, AdminSettings, EventFormat, LEVELS, Levels, PROFILE_RANGE, Settings, TARGETS,
};

/// Reads the sections.
pub(super) fn read(root: &mut Section<'_>) -> Result<Settings, String> {
    let mut settings = Settings::default();
    log(root.table("log")?, &mut settings)?;
    settings.access_log = access_log(root)?;
    settings.admin = admin(root)?;
    settings.profile_one_in = profile(root)?;
    settings.server_timing = root.value::<bool>("server-timing")?.unwrap_or(false);
    Ok(settings)
}

fn log(mut section: Section<'_>, settings: &mut Settings) -> Result<(), String> {
    let mut levels = Levels::default();
    if let Some(level) = level(&mut section, "level")? {
        levels.set_default(level);
    }
    let formats = [("text", EventFormat::Text), ("json", EventFormat::Json)];
    if let Some(format) = choice(&mut section, "format", &formats)? {
        settings.event_format = format;
    }
    let mut targets = section.table("targets")?;
    for target in TARGETS {
        if let Some(level) = level(&mut targets, target)? {
            levels.set(target, level);
        }
    }
    targets.finish()?;
    section.finish()?;
    settings.levels = levels;
    Ok(())
}

fn level(section: &mut Section<'_>, key: &str) -> Result<Option<&'static str>, String> {
    let words: Vec<(&'static str, &'static str)> =
        LEVELS.iter().map(|word| (*word, *word)).collect();
    choice(section, key, &words)
}

fn access_log(root: &mut Section<'_>) -> Result<Option<AccessLogSettings>, String> {
    let is_there = root.has("access-log");
    let mut section = root.table("access-log")?;
    let place = section.place();
    let file = section.placed::<String>("file")?;
    let mut settings = AccessLogSettings::new(LogTarget::Stdout, line_format(&mut section)?);
    if let Some((share, at)) = section.placed::<f64>("sample")? {
        if !(share > 0.0 && share <= 1.0) {
            return Err(at.mistake("`sample` must be above 0 and at most 1, such as 0.1"));
        }
        settings.sample.0 = share;
    }
    settings.sample.1 = section.value::<bool>("sample-errors")?.unwrap_or(false);
    limit_tables::read(&mut section, &mut settings.limits)?;
    if let Some((file, at)) = file {
        match file.as_str() {
            "" => {
                return Err(
                    at.mistake("`file` is empty: name a file, or - for the standard output")
                );
            }
            "-" => {}
            file => settings.target = LogTarget::File(section.path(file)),
        }
        settings.place = Some(at);
    }
    section.finish()?;
    match (is_there, &settings.place) {
        (true, None) => {
            Err(place.mistake("[access-log] needs a file: write `file`, or remove the section"))
        }
        (true, Some(_)) => Ok(Some(settings)),
        (false, _) => Ok(None),
    }
}

/// `format`: a word, or text with placeholders.
fn line_format(section: &mut Section<'_>) -> Result<LogFormat, String> {
    let Some((text, at)) = section.placed::<String>("format")? else {
        return Ok(LogFormat::default());
    };
    if text.contains('{') {
        let template = LogTemplate::parse(&text);
        return template
            .map(LogFormat::Template)
            .map_err(|what| at.mistake(format!("`format` {what}")));
    }
    let formats = [
        ("common", LogFormat::Common),
        ("combined", LogFormat::Combined),
        ("json", LogFormat::Json),
    ];
    one_of(&text, &at, "format", &formats)
}

fn profile(root: &mut Section<'_>) -> Result<Option<u32>, String> {
    let is_there = root.has("profile");
    let mut section = root.table("profile")?;
    let one_in = section.placed::<u32>("one-in")?;
    section.finish()?;
    match one_in {
        None => Ok(is_there.then_some(PROFILE_ONE_IN)),
        Some((one_in, _)) if PROFILE_RANGE.contains(&one_in) => Ok(Some(one_in)),
        Some((one_in, at)) => Err(at.mistake(format!(
            "`one-in` is {one_in}: give a number from {} to {}",
            PROFILE_RANGE.start(),
            PROFILE_RANGE.end()
        ))),
    }
}

fn admin(root: &mut Section<'_>) -> Result<Option<AdminSettings>, String> {
    let is_there = root.has("admin");
    let mut section = root.table("admin")?;
    let place = section.place();
    let listen = section.placed::<String>("listen")?;
    let public = section.value::<bool>("public")?.unwrap_or(false);
    let names = section.value::<Texts>("names")?.map_or_else(Vec::new, |names| names.0);
    section.finish()?;
    let Some((given, at)) = listen else {
        let what = "[admin] needs an address: write `listen`, or remove the section";
        return if is_there { Err(place.mistake(what)) } else { Ok(None) };
    };
    let address = given.parse().map_err(|_| {
        at.mistake(format!(
            "`listen` is `{given}`: give an IP address and a port, such as 127.0.0.1:9090"
        ))
    })?;
    let settings = AdminSettings { address, public, names };
    if !settings.may_be() {
        return Err(at.mistake(format!(
            "`listen` is {address}: other machines could reach it, and it has no authentication: \
             use 127.0.0.1:9090, or write `public = true`"
        )));
    }
    Ok(Some(settings))
}
