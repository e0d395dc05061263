//! Part of wrk's Lua scripts that is understood: `wrk.method`, `wrk.headers` and `wrk.body`, set to strings.
//!
//! Strings are literals, `string.rep(text, count)`, and such joined by `..`. All else is an error that
//! names the line, for a script that is half understood would measure something else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use memchr::memmem;

/// The strings that a script may make, in bytes, all of them together.
const STRING_BYTES_MAX: usize = 1 << 30;

/// `string.rep` in `string.rep`, at most.
const DEPTH_MAX: usize = 100;

/// Settings of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) method: Option<String>,
    /// `Name: value` by the name in lower case; a name that is set again is there once.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(Vec<u8>),
    Number(usize),
    Sign(char),
    /// `..`
    Join,
}

struct Reader {
    tokens: Vec<(Token, usize)>,
    place: usize,
    last_line: usize,
    /// `string.rep` under way.
    depth: usize,
    /// Size of the strings so far.
    string_bytes: usize,
}

impl Script {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let text = fs::read(path).map_err(|error| {
            let why = error.to_string();
            let why = why.split(" (os error").next().unwrap_or(&why);
            format!("{name}: cannot open {name}: {why}")
        })?;
        Self::parse(&text).map_err(|why| format!("{name}: {why}"))
    }

    pub(super) fn parse(source: &[u8]) -> Result<Self, String> {
        let (tokens, last_line) = tokens(source)?;
        let mut reader = Reader { tokens, place: 0, last_line, depth: 0, string_bytes: 0 };
        let mut script = Self::default();
        while !reader.is_at_end() {
            if reader.take(&Token::Sign(';')) {
                continue;
            }
            reader.statement(&mut script)?;
        }
        Ok(script)
    }

    fn set_header(&mut self, name: &[u8], value: &[u8]) {
        let name = String::from_utf8_lossy(name).into_owned();
        let line = format!("{name}: {}", String::from_utf8_lossy(value));
        self.headers.insert(name.to_ascii_lowercase(), line);
    }
}

impl Reader {
    fn is_at_end(&self) -> bool {
        self.place >= self.tokens.len()
    }

    fn next(&mut self) -> Option<Token> {
        let (token, _) = self.tokens.get(self.place)?;
        self.place += 1;
        Some(token.clone())
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_it = self.tokens.get(self.place).is_some_and(|(next, _)| next == token);
        if is_it {
            self.place += 1;
        }
        is_it
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        if self.take(&Token::Sign(sign)) { Ok(()) } else { Err(self.unsupported()) }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Name(name)) => Ok(name),
            _ => {
                self.place = self.place.saturating_sub(1);
                Err(self.unsupported())
            }
        }
    }

    fn line(&self) -> usize {
        self.tokens.get(self.place).map_or(self.last_line, |(_, line)| *line)
    }

    fn unsupported(&self) -> String {
        let line = self.line();
        let what = match self.tokens.get(self.place) {
            Some((Token::Name(name), _)) => format!("`{name}`"),
            Some((Token::Text(_), _)) => "a string".to_owned(),
            Some((Token::Number(number), _)) => format!("`{number}`"),
            Some((Token::Sign(sign), _)) => format!("`{}`", sign.escape_default()),
            Some((Token::Join, _)) => "`..`".to_owned(),
            None => "the end".to_owned(),
        };
        format!(
            "line {line}: {what} is not supported here: only wrk.method, wrk.headers[\"Name\"] and \
             wrk.body may be set, to strings and string.rep(\"text\", count)"
        )
    }

    /// `wrk.method = …`, `wrk.body = …`, `wrk.headers["Name"] = …` or `wrk.headers.Name = …`.
    fn statement(&mut self, script: &mut Script) -> Result<(), String> {
        let start = self.place;
        if self.name()? != "wrk" {
            self.place = start;
            return Err(self.unsupported());
        }
        self.expect('.')?;
        let field = self.place;
        match self.name()?.as_str() {
            "method" => {
                self.expect('=')?;
                let method = self.string()?;
                script.method = Some(String::from_utf8_lossy(&method).into_owned());
            }
            "body" => {
                self.expect('=')?;
                script.body = Some(self.string()?);
            }
            "headers" => {
                let name = if self.take(&Token::Sign('[')) {
                    let name = self.string()?;
                    self.expect(']')?;
                    name
                } else {
                    self.expect('.')?;
                    self.name()?.into_bytes()
                };
                self.expect('=')?;
                let value = self.string()?;
                script.set_header(&name, &value);
            }
            _ => {
                self.place = field;
                return Err(self.unsupported());
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Result<Vec<u8>, String> {
        let mut text = self.piece()?;
        while self.take(&Token::Join) {
            text.extend(self.piece()?);
        }
        Ok(text)
    }

    fn piece(&mut self) -> Result<Vec<u8>, String> {
        match self.next() {
            Some(Token::Text(text)) => {
                self.made(Some(text.len()))?;
                Ok(text)
            }
            Some(Token::Name(name)) if name == "string" => {
                self.expect('.')?;
                if self.name()? != "rep" {
                    self.place -= 1;
                    return Err(self.unsupported());
                }
                self.expect('(')?;
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    let line = self.line();
                    return Err(format!(
                        "line {line}: string.rep is nested more than {DEPTH_MAX} deep, the most that \
                         is supported"
                    ));
                }
                let text = self.string()?;
                self.depth -= 1;
                self.expect(',')?;
                let count = self.number()?;
                self.expect(')')?;
                self.made(text.len().checked_mul(count))?;
                Ok(text.repeat(count))
            }
            other => {
                self.place -= usize::from(other.is_some());
                Err(self.unsupported())
            }
        }
    }

    /// A string of so many bytes is about to be made.
    fn made(&mut self, bytes: Option<usize>) -> Result<(), String> {
        let all = bytes.and_then(|bytes| self.string_bytes.checked_add(bytes));
        self.string_bytes = all.filter(|all| *all <= STRING_BYTES_MAX).ok_or_else(|| {
            let line = self.line();
            format!("line {line}: strings of more than 1 GiB are made, the most that is supported")
        })?;
        Ok(())
    }

    /// A number, or a product of numbers such as `64 * 1024`.
    fn number(&mut self) -> Result<usize, String> {
        let mut product = 1_usize;
        loop {
            match self.next() {
                Some(Token::Number(number)) => product = product.saturating_mul(number),
                other => {
                    self.place -= usize::from(other.is_some());
                    return Err(self.unsupported());
                }
            }
            if !self.take(&Token::Sign('*')) {
                return Ok(product);
            }
        }
    }
}

/// Splits a script; also returns its number of lines.
fn tokens(source: &[u8]) -> Result<(Vec<(Token, usize)>, usize), String> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    let mut long = LongBrackets { source, end: 0 };
    while let Some(byte) = source.get(at).copied() {
        let rest = &source[at..];
        let begin = line;
        if byte == b'\n' {
            line += 1;
            at += 1;
        } else if byte.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with(b"--") {
            if let Some(length) = long.length(at + 2) {
                line += rest[..2 + length].iter().filter(|byte| **byte == b'\n').count();
                at += 2 + length;
            } else {
                at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            }
        } else if let Some(length) = long.length(at) {
            let text = &rest[2..length - 2];
            line += text.iter().filter(|byte| **byte == b'\n').count();
            let text = text.strip_prefix(b"\n").unwrap_or(text);
            tokens.push((Token::Text(text.to_vec()), begin));
            at += length;
        } else if byte == b'"' || byte == b'\'' {
            let (text, length) = quoted(rest).map_err(|why| format!("line {line}: {why}"))?;
            tokens.push((Token::Text(text), begin));
            at += length;
        } else if byte.is_ascii_digit() {
            let length = word_length(rest);
            let digits = String::from_utf8_lossy(&rest[..length]);
            let number = digits.parse().map_err(|_| {
                format!("line {line}: `{digits}` is not supported: whole numbers are")
            })?;
            tokens.push((Token::Number(number), begin));
            at += length;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let length = word_length(rest);
            let name = String::from_utf8_lossy(&rest[..length]).into_owned();
            tokens.push((Token::Name(name), begin));
            at += length;
        } else if rest.starts_with(b"..") {
            tokens.push((Token::Join, begin));
            at += 2;
        } else {
            tokens.push((Token::Sign(char::from(byte)), begin));
            at += 1;
        }
    }
    Ok((tokens, line))
}

fn word_length(rest: &[u8]) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len())
}

/// Finds `[[…]]`.
struct LongBrackets<'a> {
    source: &'a [u8],
    /// The next `]]` is here, or none is left where this is the end of the source; nothing is searched twice.
    end: usize,
}

impl LongBrackets<'_> {
    /// The length of `[[…]]`, if that is what begins at `at`.
    fn length(&mut self, at: usize) -> Option<usize> {
        self.source.get(at..)?.strip_prefix(b"[[")?;
        let inner = at + 2;
        if self.end < inner {
            let found = memmem::find(&self.source[inner..], b"]]");
            self.end = found.map_or(self.source.len(), |found| inner + found);
        }
        (self.end < self.source.len()).then(|| self.end + 2 - at)
    }
}

/// A string in quotes, and its length with them.
fn quoted(rest: &[u8]) -> Result<(Vec<u8>, usize), String> {
    let quote = rest[0];
    let mut text = Vec::new();
    let mut at = 1;
    loop {
        match rest.get(at).copied() {
            None | Some(b'\n') => return Err("a string has no end".into()),
            Some(byte) if byte == quote => return Ok((text, at + 1)),
            Some(b'\\') => {
                let escaped = rest.get(at + 1).copied().unwrap_or(b'\n');
                at += 2;
                match escaped {
                    b'n' => text.push(b'\n'),
                    b'r' => text.push(b'\r'),
                    b't' => text.push(b'\t'),
                    b'0' if !rest.get(at).is_some_and(u8::is_ascii_digit) => text.push(0),
                    b'\\' | b'"' | b'\'' => text.push(escaped),
                    other => {
                        let other = char::from(other).escape_default();
                        return Err(format!("the escape `\\{other}` is not supported"));
                    }
                }
            }
            Some(byte) => {
                text.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_settings_are_recognised_in_their_usual_forms() {
        let script = Script::parse(
            b"-- a comment\n--[[ a long\none ]] wrk.method = 'PUT';\nwrk.headers[\"Content-Type\"] = \
              \"text/plain\" wrk.headers.Accept=[[*/*]]\nwrk.headers['accept'] = 'a' .. \"b\"\nwrk.body \
              = '{\"a\":\\n' .. string.rep(\"xy\", 2 * 2) .. '}'\n",
        )
        .unwrap();
        assert_eq!(script.method.as_deref(), Some("PUT"));
        let headers: Vec<_> = script.headers.values().collect();
        assert_eq!(headers, ["accept: ab", "Content-Type: text/plain"]);
        assert_eq!(script.body.unwrap(), b"{\"a\":\nxyxyxyxy}");
        assert_eq!(Script::parse(b""), Ok(Script::default()));
    }

    #[test]
    fn all_else_is_named_with_its_line() {
        for (source, said) in [
            ("\n\nfunction request() end", "line 3: `function` is not supported"),
            ("wrk.path = '/a'", "line 1: `path`"),
            ("wrk.body = io.open('x')", "`io`"),
            ("wrk.body = string.format('x')", "`format`"),
            ("wrk.body = string.rep('x', n)", "`n`"),
            ("wrk.body =", "the end"),
            ("wrk.body = 'x", "no end"),
            ("wrk.body = '\\x41'", "escape `\\x`"),
            ("wrk.body = string.rep('xxxx', 1000000000)", "1 GiB"),
            ("wrk.body = string.rep('x', 1e9)", "whole numbers"),
            ("wrk.headers = {}", "`=`"),
            ("local x = 1", "`local`"),
        ] {
            let mistake = Script::parse(source.as_bytes()).unwrap_err();
            assert!(mistake.contains(said), "{source}: {mistake}");
        }
    }

    #[test]
    fn a_deep_script_is_refused() {
        let nested = |depth: usize| {
            let (open, close) = ("string.rep(".repeat(depth), ", 1)".repeat(depth));
            Script::parse(format!("wrk.body = {open}'x'{close}").as_bytes())
        };
        assert_eq!(nested(DEPTH_MAX).unwrap().body.unwrap(), b"x");
        let mistake = nested(200_000).unwrap_err();
        assert!(mistake.contains("line 1: string.rep is nested more than 100 deep"), "{mistake}");
    }

    #[test]
    fn the_strings_of_a_script_are_bounded_together() {
        let line = "wrk.body = string.rep('x', 400000000)\n";
        let mistake = Script::parse(line.repeat(3).as_bytes()).unwrap_err();
        assert!(mistake.contains("1 GiB"), "{mistake}");
    }

    #[test]
    fn many_headers_and_brackets_take_linear_time() {
        // Minutes if each were compared with, or searched behind, all others.
        let headers: String = (0..200_000).map(|n| format!("wrk.headers.h{n} = 'x'\n")).collect();
        assert_eq!(Script::parse(headers.as_bytes()).unwrap().headers.len(), 200_000);
        let brackets = "[[".repeat(1_000_000);
        assert!(Script::parse(brackets.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_parser(source in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Script::parse(&source);
        }

        #[test]
        fn no_tokens_break_the_parser(
            source in "((wrk|string|rep|body|headers|method|[.=\\[\\]()*,;'\"\\\\-]|\\.\\.|[0-9]{1,4}|\\[\\[|\\]\\]| |\n)){0,30}"
        ) {
            let _ = Script::parse(source.as_bytes());
        }

        #[test]
        fn a_literal_comes_back(text in "[^\\\\\"\n]{0,40}") {
            let script = Script::parse(format!("wrk.body = \"{text}\"").as_bytes()).unwrap();
            prop_assert_eq!(script.body.unwrap(), text.as_bytes());
        }
    }
}
