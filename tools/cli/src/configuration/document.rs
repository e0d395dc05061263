//! A TOML file as sections whose keys are taken one by one: what is not taken is a mistake with a place.

use std::borrow::Cow;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bolide_probe::nearest::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::environment::expand;
use super::value::{Texts, Value};
use crate::place::Place;

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Document {
    name: String,
    directory: PathBuf,
    text: String,
}

impl Document {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path)
            .map_err(|error| format!("--config {}: can't be read: {error}", path.display()))?;
        let directory = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { name: path.display().to_string(), directory, text })
    }

    /// A file that stands in memory.
    #[cfg(test)]
    pub(crate) fn of(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), directory: PathBuf::new(), text: text.to_owned() }
    }

    /// The whole of it.
    pub(crate) fn section(&self) -> Result<Section<'_>, String> {
        Ok(Section::new(self, String::new(), 0..self.text.len(), self.table()?))
    }

    /// Its table, with all variables replaced.
    pub(super) fn table(&self) -> Result<DeTable<'_>, String> {
        let table = DeTable::parse(&self.text).map_err(|error| {
            let place = self.place(error.span().unwrap_or(0..0));
            place.mistake(format!("invalid TOML: {}", error.message().replace('\n', " ")))
        })?;
        expand(table.into_inner(), &|name| std::env::var(name).ok())
            .map_err(|(span, what)| self.place(span).mistake(what))
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Place { at: format!("{}:{line}:{column}", self.name), line }
    }
}

/// A table of a [`Document`], key by key.
#[derive(Debug)]
pub(crate) struct Section<'d> {
    document: &'d Document,
    /// As the file writes it: `[limits]`, `[[route]]`; empty for the file itself.
    name: String,
    span: Range<usize>,
    left: Vec<(Spanned<Cow<'d, str>>, Spanned<DeValue<'d>>)>,
    /// The keys that were asked for.
    known: Vec<String>,
}

impl<'d> Section<'d> {
    fn new(document: &'d Document, name: String, span: Range<usize>, table: DeTable<'d>) -> Self {
        Self { document, name, span, left: table.into_iter().collect(), known: Vec::new() }
    }

    /// Returns where it begins.
    pub(crate) fn place(&self) -> Place {
        self.document.place(self.span.clone())
    }

    /// Returns where the value of a key stands that has not been taken yet; where the section begins if there is none.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        let value = self.left.iter().find(|(known, _)| known.get_ref() == key);
        value.map_or_else(|| self.place(), |(_, value)| self.document.place(value.span()))
    }

    /// A path that the file names: relative ones start at its directory.
    pub(crate) fn path(&self, given: &str) -> PathBuf {
        self.document.directory.join(given)
    }

    /// Takes a key's value as it stands there.
    fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'d>>> {
        self.known.push(key.to_owned());
        let at = self.left.iter().position(|(known, _)| known.get_ref() == key)?;
        Some(self.left.swap_remove(at).1)
    }

    /// Takes a key's value, and where it stands.
    pub(crate) fn placed<T: Value>(&mut self, key: &str) -> Result<Option<(T, Place)>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let place = self.document.place(value.span());
        match T::of(value.get_ref()) {
            Ok(value) => Ok(Some((value, place))),
            Err(what) => Err(place.mistake(format!("`{key}` {what}"))),
        }
    }

    /// Takes a key's value.
    pub(crate) fn value<T: Value>(&mut self, key: &str) -> Result<Option<T>, String> {
        Ok(self.placed(key)?.map(|(value, _)| value))
    }

    /// Takes a key's value by a function that says what is wrong with it.
    pub(crate) fn read(
        &mut self,
        key: &str,
        read: impl FnOnce(&DeValue<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(value) = self.take(key) else { return Ok(()) };
        read(value.get_ref())
            .map_err(|what| self.document.place(value.span()).mistake(format!("`{key}` {what}")))
    }

    /// Takes one text or several, each with its place.
    pub(crate) fn texts(&mut self, key: &str) -> Result<Vec<(String, Place)>, String> {
        let mut taken = Vec::new();
        match self.take(key) {
            None => {}
            Some(list) if matches!(list.get_ref(), DeValue::Array(_)) => {
                let DeValue::Array(items) = list.into_inner() else { return Ok(taken) };
                for item in items {
                    let place = self.document.place(item.span());
                    match String::of(item.get_ref()) {
                        Ok(text) => taken.push((text, place)),
                        Err(what) => return Err(place.mistake(format!("`{key}` {what}"))),
                    }
                }
            }
            Some(one) => {
                let place = self.document.place(one.span());
                let Texts(texts) = Texts::of(one.get_ref())
                    .map_err(|what| place.mistake(format!("`{key}` {what}")))?;
                taken.extend(texts.into_iter().map(|text| (text, place.clone())));
            }
        }
        Ok(taken)
    }

    /// Takes the tables of `[[key]]`; a text among them in an inline array becomes a table with this one
    /// key.
    pub(crate) fn sections(
        &mut self,
        key: &str,
        text_as: Option<&'static str>,
    ) -> Result<Vec<Self>, String> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let (document, whole) = (self.document, value.span());
        // A list of texts and tables has no header of its own.
        let name = if text_as.is_some() { format!("`{key}`") } else { format!("[[{key}]]") };
        let wrong = |span: Range<usize>| {
            let what = match text_as {
                Some(text) => format!("strings and tables: write {key} = [{{ {text} = \"…\" }}]"),
                None => format!("tables: write {name}"),
            };
            document.place(span).mistake(format!("`{key}` is a list of {what}"))
        };
        let items = match value.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            text @ DeValue::String(_) if text_as.is_some() => {
                vec![Spanned::new(whole.clone(), text)]
            }
            _ => return Err(wrong(whole)),
        };
        let mut sections = Vec::new();
        for item in items {
            let span = item.span();
            let table = match (item.into_inner(), text_as) {
                (DeValue::Table(table), _) => table,
                (text @ DeValue::String(_), Some(name)) => {
                    let mut table = DeTable::new();
                    table.insert(
                        Spanned::new(span.clone(), Cow::Borrowed(name)),
                        Spanned::new(span.clone(), text),
                    );
                    table
                }
                _ => return Err(wrong(span)),
            };
            sections.push(Self::new(document, name.clone(), span, table));
        }
        Ok(sections)
    }

    /// Takes the table `[key]`; an empty one when the file has none.
    pub(crate) fn table(&mut self, key: &str) -> Result<Self, String> {
        let name = match self.name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(outer) => format!("[{outer}.{key}]"),
            None => format!("[{key}]"),
        };
        let Some(value) = self.take(key) else {
            return Ok(Self::new(self.document, name, self.span.clone(), DeTable::new()));
        };
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self::new(self.document, name, span, table)),
            _ => {
                Err(self.document.place(span).mistake(format!("`{key}` is a table: write {name}")))
            }
        }
    }

    /// Takes the table that is the value of a key.
    pub(crate) fn inline(&mut self, key: &str) -> Result<Option<Self>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let (span, name) = (value.span(), format!("`{key}`"));
        match value.into_inner() {
            DeValue::Table(table) => Ok(Some(Self::new(self.document, name, span, table))),
            _ => {
                let what = format!("`{key}` is a table: write {key} = {{ … }}");
                Err(self.document.place(span).mistake(what))
            }
        }
    }

    /// Returns whether the value of a key that has not been taken yet is a table.
    pub(crate) fn is_table(&self, key: &str) -> bool {
        let is_it = |(known, value): &(Spanned<Cow<'_, str>>, Spanned<DeValue<'_>>)| {
            known.get_ref() == key && matches!(value.get_ref(), DeValue::Table(_))
        };
        self.left.iter().any(is_it)
    }

    /// The keys that have not been taken yet, in the order of the file.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.left.iter().map(|(key, _)| key).collect();
        keys.sort_by_key(|key| key.span().start);
        keys.into_iter().map(|key| key.get_ref().to_string()).collect()
    }

    /// Returns where a key stands that has not been taken yet.
    pub(crate) fn place_of_key(&self, key: &str) -> Place {
        let found = self.left.iter().find(|(known, _)| known.get_ref() == key);
        found.map_or_else(|| self.place(), |(known, _)| self.document.place(known.span()))
    }

    /// Returns whether a key is there that has not been taken yet.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.left.iter().any(|(known, _)| known.get_ref() == key)
    }

    /// Notes keys that are no slips, whether they are of use or not.
    pub(crate) fn could_have(&mut self, keys: &[&str]) {
        self.known.extend(keys.iter().map(ToString::to_string));
    }

    /// Everything was asked for: what is left is unknown.
    pub(crate) fn finish(self) -> Result<(), String> {
        #[cfg(test)]
        asked::note(&self.name, &self.known);
        let unknown =
            |key: &&Spanned<Cow<'_, str>>| !self.known.iter().any(|known| known == key.get_ref());
        let left = self.left.iter().map(|(key, _)| key).filter(unknown);
        let Some(key) = left.min_by_key(|key| key.span().start) else { return Ok(()) };
        let name = key.get_ref();
        let known = self.known.iter().map(String::as_str);
        let advice = match nearest(name, known) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("known keys are {}", listed(&self.known)),
        };
        let whose = if self.name.is_empty() { "here" } else { &self.name };
        let place = self.document.place(key.span());
        Err(place.mistake(
            format!("`{name}` is not known in {whose}: {advice}").replace("in here", "here"),
        ))
    }
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The keys that sections were asked for, by the name of the section: what the parser knows.
#[cfg(test)]
pub(super) mod asked {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};

    /// The keys of each section.
    pub(crate) type Asked = BTreeMap<String, BTreeSet<String>>;

    thread_local! {
        static ASKED: RefCell<Asked> = RefCell::default();
    }

    pub(super) fn note(section: &str, keys: &[String]) {
        let keys = keys.iter().cloned();
        ASKED.with_borrow_mut(|asked| asked.entry(section.to_owned()).or_default().extend(keys));
    }

    /// Those that this thread has asked for.
    pub(crate) fn take() -> Asked {
        ASKED.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(text: &str) -> String {
        let document = Document::of("a.toml", text);
        let mut section = document.section().unwrap();
        section.value::<bool>("builtin").unwrap();
        section.value::<String>("root").unwrap();
        section.finish().unwrap_err()
    }

    #[test]
    fn what_nobody_takes_is_named_with_its_place_and_the_nearest() {
        assert_eq!(
            unknown("# a comment\n  roots = 1\n"),
            "a.toml:2:3: `roots` is not known here: did you mean `root`?"
        );
        assert_eq!(
            unknown("z = 1\ncompletely-other = 1\n"),
            "a.toml:1:1: `z` is not known here: known keys are `builtin`, `root`"
        );
    }

    #[test]
    fn a_wrong_type_is_named_with_its_place() {
        let document = Document::of("a.toml", "a = [\"b\", 3]\nc = 1\n[d]\n");
        let mut section = document.section().unwrap();
        let wrong = section.texts("a").unwrap_err();
        assert_eq!(wrong, "a.toml:1:11: `a` is a number: give a string");
        assert!(section.sections("c", None).unwrap_err().contains("a.toml:2:5: `c` is a list"));
        assert!(section.value::<bool>("d").unwrap_err().contains("`d` is a table: give true"));
    }

    #[test]
    fn what_is_no_toml_says_where() {
        let said = Document::of("a.toml", "a = 1\nb = \n").section().unwrap_err();
        assert!(said.starts_with("a.toml:2:"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let twice = Document::of("a.toml", "a = 1\na = 2\n").section().unwrap_err();
        assert!(twice.starts_with("a.toml:2:1: "), "{twice}");
    }
}
