//! Which files has a new policy? Those of its language, those of its hook, and the one that belongs to both: the policy.
//!
//! They are real files beside this one. In them `{{name}}` and the like stand for what differs: see [`Filling`].

use super::{File, Hook, Language};
use crate::wasm;

/// The same file for each hook, in their order.
macro_rules! by_hook {
    ($folder:literal, $ending:literal) => {
        [
            include_str!(concat!($folder, "/plan", $ending)),
            include_str!(concat!($folder, "/pick", $ending)),
            include_str!(concat!($folder, "/route", $ending)),
            include_str!(concat!($folder, "/reuse", $ending)),
        ]
    };
}

const CONFIGURATION: [&str; 4] = by_hook!("shared", "/forebay.toml");
const SCENARIO: [&str; 4] = by_hook!("shared", "/first.toml");
const README: &str = include_str!("shared/README.md");
const IGNORED: &str = include_str!("shared/gitignore");

/// What a language brings.
struct Kit {
    name: &'static str,
    /// What its build needs, and how to get it.
    needs: &'static str,
    /// Where the policy stands.
    source: &'static str,
    policies: [&'static str; 4],
    /// How the host asks, where no tool of the language writes it.
    glue: Option<[&'static str; 4]>,
    /// Files that are the same for each hook.
    files: &'static [(&'static str, &'static str)],
    /// Rows of the README about them.
    rows: &'static str,
    /// Lines about the policy in the configuration.
    limits: &'static str,
}

const RUST: Kit = Kit {
    name: "Rust",
    needs: "Rust from https://rustup.rs with `rustup target add wasm32-unknown-unknown`, or Debian's rustc-web with \
            rust-web-src",
    source: "src/lib.rs",
    policies: by_hook!("rust", ".rs"),
    glue: None,
    files: &[
        ("Cargo.toml", include_str!("rust/Cargo.toml")),
        ("build.sh", include_str!("rust/build.sh")),
        ("src/support.rs", include_str!("rust/support.rs")),
    ],
    rows: "| `src/support.rs` | settings, and a hook that logs panics |",
    limits: "",
};

const C: Kit = Kit {
    name: "C",
    needs: "clang with a C library for WebAssembly: `apt-get install clang lld wasi-libc`, or the WASI SDK",
    source: "policy.c",
    policies: by_hook!("c", ".c"),
    glue: None,
    files: &[
        ("build.sh", include_str!("c/build.sh")),
        ("support.h", include_str!("c/support.h")),
        ("support.c", include_str!("c/support.c")),
    ],
    rows: "| `support.c` | settings |\n| `bindings/` | the contract in C, generated |",
    limits: "",
};

const JAVASCRIPT: Kit = Kit {
    name: "JavaScript",
    needs: "Node.js with npm, which gets the compiler",
    source: "policy.js",
    policies: by_hook!("js", ".js"),
    glue: None,
    files: &[
        ("package.json", include_str!("js/package.json")),
        ("build.sh", include_str!("js/build.sh")),
        ("guarded.js", include_str!("js/guarded.js")),
    ],
    rows: "| `guarded.js` | settings, and a guard that logs what is thrown |",
    limits: "mean-max = \"500us\"\n",
};

const PYTHON: Kit = Kit {
    name: "Python",
    needs: "componentize-py: `python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1` in the new folder",
    source: "policy.py",
    policies: by_hook!("python", ".py"),
    glue: None,
    files: &[
        ("build.sh", include_str!("python/build.sh")),
        ("guarded.py", include_str!("python/guarded.py")),
    ],
    rows: "| `guarded.py` | settings, and a guard that logs what is raised |",
    limits: "mean-max = \"500us\"\nmemory-max = \"32MiB\"\n",
};

const ASSEMBLY_SCRIPT: Kit = Kit {
    name: "AssemblyScript",
    needs: "Node.js with npm, which gets the compiler",
    source: "policy.ts",
    policies: by_hook!("as", ".ts"),
    glue: Some(by_hook!("as/forebay", ".ts")),
    files: &[
        ("package.json", include_str!("as/package.json")),
        ("build.sh", include_str!("as/build.sh")),
        ("forebay/configure.ts", include_str!("as/forebay/configure.ts")),
        ("forebay/host.ts", include_str!("as/forebay/host.ts")),
        ("forebay/memory.ts", include_str!("as/forebay/memory.ts")),
        ("forebay/rename.mjs", include_str!("as/forebay/rename.mjs")),
    ],
    rows: "| `forebay/` | the contract in AssemblyScript; what is thrown is logged there |",
    limits: "",
};

impl Language {
    fn kit(self) -> &'static Kit {
        match self {
            Language::Rust => &RUST,
            Language::C => &C,
            Language::Js => &JAVASCRIPT,
            Language::Python => &PYTHON,
            Language::As => &ASSEMBLY_SCRIPT,
        }
    }

    /// What its build needs, and how to get it.
    pub(super) fn needs(self) -> &'static str {
        self.kit().needs
    }
}

impl Hook {
    fn word(self) -> &'static str {
        ["plan", "pick", "route", "reuse"][self as usize]
    }

    /// The world of the contract that asks nothing else.
    fn world(self) -> &'static str {
        ["planner", "picker", "router", "sharer"][self as usize]
    }

    /// What the policies of the templates do, as the end of a sentence.
    fn what(self) -> &'static str {
        [
            "the faster a server answers, the more requests it gets.",
            "each value of a header has its server; when that one is crowded, another one helps.",
            "requests with a cookie go to another backend.",
            "requests with a header go over connections that nobody shares.",
        ][self as usize]
    }
}

/// All files of a new policy.
pub(super) fn files(name: &str, language: Language, hook: Hook) -> anyhow::Result<Vec<File>> {
    let (kit, filling) = (language.kit(), Filling { name, language, hook });
    let of_hook = hook as usize;
    let mut files = vec![
        filling.file("README.md", README),
        filling.file(".gitignore", IGNORED),
        filling.file("forebay.toml", CONFIGURATION[of_hook]),
        filling.file("scenarios/first.toml", SCENARIO[of_hook]),
        filling.file(kit.source, kit.policies[of_hook]),
    ];
    if let Some(glue) = kit.glue {
        files.push(filling.file(&format!("forebay/{}.ts", hook.word()), glue[of_hook]));
    }
    files.extend(kit.files.iter().map(|(path, text)| filling.file(path, text)));
    files.extend(
        wasm::WIT
            .iter()
            .map(|(path, text)| file(format!("wit/{path}"), *text)),
    );
    if language == Language::C {
        let bindings = wasm::c_bindings(hook.world())?;
        files.extend(
            bindings
                .into_iter()
                .map(|(path, contents)| file(format!("bindings/{path}"), contents)),
        );
    }
    Ok(files)
}

fn file(path: String, contents: impl Into<Vec<u8>>) -> File {
    let contents = contents.into();
    File { path, contents }
}

/// What stands in the place of `{{…}}`.
struct Filling<'a> {
    name: &'a str,
    language: Language,
    hook: Hook,
}

impl Filling<'_> {
    fn file(&self, path: &str, text: &str) -> File {
        let kit = self.language.kit();
        let values = [
            ("{{limits}}\n", kit.limits),
            ("{{name}}", self.name),
            ("{{world}}", self.hook.world()),
            ("{{hook}}", self.hook.word()),
            ("{{what}}", self.hook.what()),
            ("{{language}}", kit.name),
            ("{{needs}}", kit.needs),
            ("{{source}}", kit.source),
            ("{{rows}}", kit.rows),
        ];
        let filled = values
            .iter()
            .fold(text.to_owned(), |text, (place, value)| text.replace(place, value));
        file(path.to_owned(), filled)
    }
}
