//! `${NAME}` and `${NAME:-default}` in the strings of a file.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A value, or where its mistake is in the file and what it is.
type Expanded<T> = Result<T, (std::ops::Range<usize>, String)>;

/// Replaces the variables in every string of a table. `look_up` has their values.
pub(super) fn expand<'d>(
    table: DeTable<'d>,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Expanded<DeTable<'d>> {
    let pair = |(key, value)| Ok((key, expand_value(value, look_up)?));
    table.into_iter().map(pair).collect()
}

fn expand_value<'d>(
    value: Spanned<DeValue<'d>>,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Expanded<Spanned<DeValue<'d>>> {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) if text.contains("${") => {
            let text = expand_text(&text, look_up).map_err(|what| (span.clone(), what))?;
            DeValue::String(Cow::Owned(text))
        }
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| expand_value(item, look_up));
            DeValue::Array(items.collect::<Expanded<DeArray<'d>>>()?)
        }
        DeValue::Table(table) => DeValue::Table(expand(table, look_up)?),
        other => other,
    };
    Ok(Spanned::new(span, value))
}

/// Replaces each variable once; `$${` stands for `${`.
fn expand_text(text: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        rest = &from[2..];
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            continue;
        }
        expanded.push_str(before);
        let Some((inner, after)) = rest.split_once('}') else {
            return Err("`${` has no `}`: write ${NAME}, or $${ for the characters".to_owned());
        };
        rest = after;
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(format!("`${{{inner}}}` names no environment variable: write ${{NAME}}"));
        }
        // As in shells, one that is empty has the default, too.
        match (look_up(name).filter(|value| !value.is_empty() || default.is_none()), default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the environment variable `{name}` is not set: set it, or write ${{{name}:-default}}"
                ));
            }
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        expand_text(text, &|name| match name {
            "HOST" => Some("example.org".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOST}".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_replaced_once() {
        for (text, becomes) in [
            ("${HOST}:${PORT:-80}", "example.org:80"),
            ("${NESTED}", "${HOST}"),
            ("${EMPTY}${EMPTY:-x}${NONE:-}", "x"),
            ("$HOST $5 ^/a$ $${HOST}", "$HOST $5 ^/a$ ${HOST}"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(becomes), "{text}");
        }
    }

    #[test]
    fn variables_that_are_not_set_are_named() {
        for (text, said) in [
            ("${NONE}", "the environment variable `NONE` is not set"),
            ("${HOST", "`${` has no `}`"),
            ("${}", "names no environment variable"),
            ("${a b}", "names no environment variable"),
        ] {
            let told = expanded(text).unwrap_err();
            assert!(told.contains(said), "{text}: {told}");
        }
    }
}
