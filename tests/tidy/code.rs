//! Rust text without what is no code of the program: comments, literals, and items for tests only.

use std::path::{Path, PathBuf};

/// The code of one source file.
pub(crate) struct Code {
    /// Its path below `src/`, with `/`.
    pub(crate) path: String,
    /// The text, comments and literals replaced by spaces, items under `#[cfg(test)]` removed.
    pub(crate) text: String,
    /// Lines of the file, tests and comments included.
    pub(crate) lines: usize,
}

impl Code {
    /// The top-level module it belongs to: the first folder or the file's own name.
    pub(crate) fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// How many modules lie between it and the crate: 0 for `lib.rs`, 1 for `policy.rs` and `http1/mod.rs`.
    pub(crate) fn depth(&self) -> usize {
        let inner = self
            .path
            .strip_suffix("/mod.rs")
            .or_else(|| self.path.strip_suffix(".rs"));
        match self.path.as_str() {
            "lib.rs" | "main.rs" => 0,
            _ => inner.unwrap_or(&self.path).split('/').count(),
        }
    }
}

/// All source files of the program but those that are modules for tests only, in order of their paths.
pub(crate) fn read_all(src: &Path) -> Vec<Code> {
    let mut files: Vec<(PathBuf, String)> = files_under(src, "rs")
        .into_iter()
        .map(|it| (it.clone(), read(&it)))
        .collect();
    files.sort();
    let for_tests: Vec<PathBuf> = files
        .iter()
        .flat_map(|(path, text)| test_files(path, &blank(text)))
        .collect();
    files.retain(|(path, _)| !for_tests.contains(path));
    let relative = |path: &Path| {
        path.strip_prefix(src)
            .expect("below src")
            .to_str()
            .expect("UTF-8")
            .replace('\\', "/")
    };
    let code = |(path, text): (PathBuf, String)| Code {
        path: relative(&path),
        lines: text.lines().count(),
        text: without_tests(&blank(&text)),
    };
    files.into_iter().map(code).collect()
}

/// Files with that ending under a folder, whatever their depth.
pub(crate) fn files_under(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_under(&path, ending));
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found
}

/// A file's text.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text with comments and the insides of literals replaced by spaces; lines and columns stay.
pub(crate) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest[0] {
            b'/' if rest.starts_with(b"//") => rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with(b"/*") => block_comment(rest),
            b'"' => string(rest),
            b'r' | b'b' | b'c' if !follows_a_word(bytes, at) => raw_or_prefixed(rest),
            b'\'' => character(rest),
            _ => 0,
        };
        for byte in &mut out[at..at + length] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += length.max(1);
    }
    String::from_utf8(out).expect("ASCII spaces in the place of whole characters")
}

fn follows_a_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut open) = (2, 1);
    while at < rest.len() && open > 0 {
        let step = match &rest[at..] {
            it if it.starts_with(b"/*") => (2, 1),
            it if it.starts_with(b"*/") => (2, -1),
            _ => (1, 0),
        };
        (at, open) = (at + step.0, open + step.1);
    }
    at
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// `r"…"`, `r#"…"#`, `b"…"`, `br#"…"#`, `c"…"`, `b'…'`; 0 for a word that only begins like one.
fn raw_or_prefixed(rest: &[u8]) -> usize {
    let prefix = rest
        .iter()
        .take(2)
        .take_while(|it| matches!(it, b'r' | b'b' | b'c'))
        .count();
    let raw = rest[..prefix].contains(&b'r');
    let hashes = rest[prefix..].iter().take_while(|it| **it == b'#').count();
    match rest.get(prefix + hashes) {
        Some(b'"') if raw => {
            let mut end = vec![b'"'];
            end.resize(1 + hashes, b'#');
            let body = &rest[prefix + hashes + 1..];
            let found = body.windows(end.len()).position(|it| it == end);
            prefix + hashes + 1 + found.map_or(body.len(), |it| it + end.len())
        }
        Some(b'"') if hashes == 0 => prefix + string(&rest[prefix..]),
        Some(b'\'') if hashes == 0 && prefix == 1 => 1 + character(&rest[1..]),
        _ => 0,
    }
}

/// A character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return rest
            .iter()
            .skip(3)
            .position(|it| *it == b'\'')
            .map_or(rest.len(), |it| it + 4);
    }
    let within = std::str::from_utf8(&rest[..rest.len().min(8)])
        .or_else(|error| std::str::from_utf8(&rest[..error.valid_up_to()]));
    let mut characters = within.unwrap_or_default().char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// The text without the items that stand under `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn without_tests(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((at, item)) = next_for_tests(rest) {
        out += &rest[..at];
        rest = &item[item_end(item)..];
    }
    out + rest
}

/// Where the next attribute stands that makes an item one for tests only, and the text behind it.
fn next_for_tests(text: &str) -> Option<(usize, &str)> {
    text.match_indices("#[cfg(").find_map(|(at, _)| {
        let end = at + text[at..].find(']')?;
        let condition = &text[at + "#[cfg(".len()..end];
        let for_tests = condition == "test)" || condition.starts_with("all(test");
        for_tests.then_some((at, &text[end + 1..]))
    })
}

/// Where an item ends: at its `;`, or at the brace that closes its body.
fn item_end(item: &str) -> usize {
    let mut open = 0;
    for (at, byte) in item.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' if open == 1 => return at + 1,
            b'}' => open -= 1,
            b';' if open == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// The files of modules declared as `#[cfg(test)] mod NAME;`, of which every file below is one too.
fn test_files(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = match path.file_name().and_then(|it| it.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().expect("a folder").to_path_buf(),
        _ => path.with_extension(""),
    };
    let mut declared = Vec::new();
    let mut rest = text;
    while let Some((_, item)) = next_for_tests(rest) {
        let (own, after) = item.split_at(item_end(item));
        let name = own.trim().trim_start_matches("pub(crate) ").strip_prefix("mod ");
        declared.extend(name.and_then(|name| name.strip_suffix(';')).map(str::to_owned));
        rest = after;
    }
    let mut files = Vec::new();
    for name in declared {
        files.push(folder.join(format!("{name}.rs")));
        let inner = folder.join(&name);
        if inner.is_dir() {
            files.extend(files_under(&inner, "rs"));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::{blank, without_tests};

    #[test]
    fn comments_and_literals_are_blank() {
        for (text, code) in [
            ("a // crate::x\nb", "a            \nb"),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("f(\"crate::x \\\" y\", z)", "f(               , z)"),
            ("r#\"crate::\"x\"#;", "              ;"),
            ("b'\\'' + 'é' + 'a", "      +      + 'a"),
            ("robust::crab", "robust::crab"),
        ] {
            assert_eq!(blank(text), code, "{text}");
        }
    }

    #[test]
    fn items_for_tests_are_removed() {
        let text = "use a;\n#[cfg(test)]\nmod tests {\n fn b() { c() }\n}\nuse d;\n#[cfg(all(test, x))]\nuse e;\nfn f() {}";
        assert_eq!(
            without_tests(text)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            "use a; use d; fn f() {}"
        );
    }
}
