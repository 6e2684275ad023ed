//! Guests in text. A guest is a core module whose pieces can be replaced one by one; what is not replaced works.

use forebay::wasm::{Text, pack};

/// The world of the contract that a guest implements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum World {
    Picker,
    Router,
    Planner,
    Sharer,
    Stocker,
    /// Classifies with `body` and admits with `admission`.
    Usher,
    /// All interfaces: it picks with `body`, says how connections are shared with `sharing`, classifies with `standing`
    /// and admits with `admission`; the others have no opinion.
    Whole,
}

/// The pieces of a guest: bodies of functions, and what stands before them.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) world: World,
    /// Imports beside those of the world.
    pub(crate) imports: &'static str,
    pub(crate) before: &'static str,
    pub(crate) configure: &'static str,
    pub(crate) realloc: &'static str,
    pub(crate) table: &'static str,
    /// What `body` declares.
    pub(crate) locals: &'static str,
    pub(crate) body: &'static str,
    /// A plan, of a whole guest.
    pub(crate) planning: &'static str,
    /// How connections are shared, of a whole guest.
    pub(crate) sharing: &'static str,
    /// Where a request stands, of a whole guest.
    pub(crate) standing: &'static str,
    /// Whether a request may wait.
    pub(crate) admission: &'static str,
}

/// Answers with the pair of numbers on the stack.
pub(crate) const PICK_FIRST: &str = "(call $choice (i32.const 0) (i32.const 1))";
/// No opinion about servers or connections.
pub(crate) const SILENT_PLAN: &str = "(i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)";
/// What reads measures imports.
pub(crate) const MEASURES: &str = r#"
    (import "forebay:policy/measures@0.1.0" "measure" (func $measure (param i32 i32) (result i32)))
    (import "forebay:policy/measures@0.1.0" "value" (func $value (param i32 i32) (result i32)))
    (import "forebay:policy/measures@0.1.0" "column" (func $measures (param i32 i32)))"#;
/// What counts imports.
pub(crate) const COUNTERS: &str = r#"
    (import "forebay:policy/counters@0.1.0" "counter" (func $counter (param i32 i32) (result i32)))
    (import "forebay:policy/counters@0.1.0" "gauge" (func $gauge (param i32 i32) (result i32)))
    (import "forebay:policy/counters@0.1.0" "add" (func $add (param i32 i32)))
    (import "forebay:policy/counters@0.1.0" "set" (func $set_gauge (param i32 i32)))"#;
/// What keeps bytes imports, and counts.
pub(crate) const STORE: &str = r#"
    (import "forebay:policy/counters@0.1.0" "counter" (func $counter (param i32 i32) (result i32)))
    (import "forebay:policy/counters@0.1.0" "add" (func $add (param i32 i32)))
    (import "forebay:policy/store@0.1.0" "save" (func $save (param i32 i32 i32) (result i32)))
    (import "forebay:policy/store@0.1.0" "restore" (func $restore (param i32 i32)))"#;
/// The wishes that stand at 16: `header:x-user` and `path`, and the header `x-shard` to edit.
pub(crate) const WISHES: &str = "(i32.const 16)";
/// An arena that is reset by each call.
pub(crate) const ARENA: &str = "
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.sub (local.get 2) (i32.const 1)))
                            (i32.sub (i32.const 0) (local.get 2))))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at)";

/// The interface `balance-pick` of a component written by hand, made of the instance `$m` of its core module.
pub(crate) const PICK: &str = r#"
    (type $columns' (record (field "names" (list string)) (field "zones" (list string))
      (field "weights" (list s32)) (field "states" (list s32))
      (field "limits" (list s32)) (field "latencies" (list s32))))
    (type $choice' (record (field "first" s32) (field "second" s32)))
    (component $api
      (import "columns" (type $columns (eq $columns')))
      (import "choice" (type $choice (eq $choice')))
      (import "table" (func $table (param "table" $columns)))
      (import "pick" (func $pick (param "key" string) (param "avoid" s32) (result $choice)))
      (export $columns2 "columns" (type $columns))
      (export $choice2 "choice" (type $choice))
      (export "table" (func $table) (func (param "table" $columns2)))
      (export "pick" (func $pick)
        (func (param "key" string) (param "avoid" s32) (result $choice2))))
    (func $table (param "table" $columns')
      (canon lift (core func $m "table") (memory (core memory $m "m")) (realloc (core func $m "realloc"))))
    (func $pick (param "key" string) (param "avoid" s32) (result $choice')
      (canon lift (core func $m "pick") (memory (core memory $m "m")) (realloc (core func $m "realloc"))))
    (instance $api (instantiate $api
      (with "columns" (type $columns')) (with "choice" (type $choice'))
      (with "table" (func $table)) (with "pick" (func $pick))))
    (export "forebay:policy/balance-pick@0.1.0" (instance $api))"#;

impl World {
    pub(crate) fn name(self) -> &'static str {
        match self {
            World::Picker => "picker",
            World::Router => "router",
            World::Planner => "planner",
            World::Sharer => "sharer",
            World::Stocker => "stocker",
            World::Usher => "usher",
            World::Whole => "policy",
        }
    }
}

impl Guest {
    /// Picks with that body.
    pub(crate) fn picker(body: &'static str) -> Guest {
        Guest {
            world: World::Picker,
            imports: "",
            before: "",
            configure: WISHES,
            realloc: ARENA,
            table: "",
            locals: "",
            body,
            planning: SILENT_PLAN,
            sharing: "(call $preference (i32.const -1) (i32.const -1) (i32.const -1) (i32.const -1))",
            standing: "(call $preference (i32.const -1) (i32.const 0) (i32.const 0) (i32.const -1))",
            admission: "(call $preference (i32.const -1) (i32.const -1) (i32.const -1) (i32.const -1))",
        }
    }

    /// Routes with that body.
    pub(crate) fn router(body: &'static str) -> Guest {
        Guest {
            world: World::Router,
            ..Guest::picker(body)
        }
    }

    /// Plans with that body.
    pub(crate) fn planner(body: &'static str) -> Guest {
        Guest {
            world: World::Planner,
            ..Guest::picker(body)
        }
    }

    /// Says with that body how connections are shared.
    pub(crate) fn sharer(body: &'static str) -> Guest {
        Guest {
            world: World::Sharer,
            ..Guest::picker(body)
        }
    }

    /// Says with that body how many connections there are to be.
    pub(crate) fn stocker(body: &'static str) -> Guest {
        Guest {
            world: World::Stocker,
            ..Guest::picker(body)
        }
    }

    /// Says with that body where a request stands, and nothing about whether it may wait.
    pub(crate) fn classifier(body: &'static str) -> Guest {
        Guest {
            world: World::Usher,
            ..Guest::picker(body)
        }
    }

    /// Says with that body whether a request may wait, and nothing about where it stands.
    pub(crate) fn admitter(body: &'static str) -> Guest {
        let silent = Guest::picker("");
        Guest {
            world: World::Usher,
            body: silent.standing,
            admission: body,
            ..silent
        }
    }

    /// Picks with that body, and says nothing to all other questions; has these imports.
    pub(crate) fn whole(imports: &'static str, body: &'static str) -> Guest {
        Guest {
            world: World::Whole,
            imports,
            ..Guest::picker(body)
        }
    }

    /// As a component.
    pub(crate) fn component(&self) -> Vec<u8> {
        let module = wat::parse_str(self.text()).expect("a guest is correct text");
        pack(&module, Some((self.world.name(), Text::Utf8))).expect("a guest fits its world")
    }

    fn imports(&self) -> &'static str {
        match self.world {
            World::Picker | World::Whole => concat!(
                r#"(import "forebay:policy/log@0.1.0" "write" (func $log (param i32 i32 i32)))"#,
                r#"(import "forebay:policy/request@0.1.0" "attribute" (func $attribute (param i32 i32)))"#,
                r#"(import "forebay:policy/request@0.1.0" "length" (func $length (param i32) (result i32)))"#,
                r#"(import "forebay:policy/request@0.1.0" "hash" (func $hash (param i32) (result i32)))"#,
                r#"(import "forebay:policy/request@0.1.0" "draw" (func $draw (param i32) (result i32)))"#,
                r#"(import "forebay:policy/request@0.1.0" "now" (func $now (result i64)))"#,
                r#"(import "forebay:policy/servers@0.1.0" "in-flight" (func $in_flight (param i32) (result i32)))"#,
                r#"(import "forebay:policy/servers@0.1.0" "column" (func $column (param i32 i32)))"#,
            ),
            World::Router => concat!(
                r#"(import "forebay:policy/request@0.1.0" "length" (func $length (param i32) (result i32)))"#,
                r#"(import "forebay:policy/edits@0.1.0" "set" (func $set (param i32 i32 i32 i32)))"#,
                r#"(import "forebay:policy/edits@0.1.0" "remove" (func $remove (param i32 i32)))"#,
            ),
            World::Sharer | World::Usher => concat!(
                r#"(import "forebay:policy/request@0.1.0" "length" (func $length (param i32) (result i32)))"#,
                r#"(import "forebay:policy/request@0.1.0" "attribute" (func $attribute (param i32 i32)))"#,
            ),
            World::Planner | World::Stocker => "",
        }
    }

    fn exports(&self) -> String {
        match self.world {
            World::Whole => {
                let unrouted = "(call $decision (i32.const -1) (i32.const -1) (i32.const 0))";
                let others = [
                    Guest::planner(self.planning),
                    Guest::router(unrouted),
                    Guest::sharer(self.sharing),
                    Guest::stocker(SILENT_PLAN),
                    Guest {
                        admission: self.admission,
                        ..Guest::classifier(self.standing)
                    },
                ];
                let picker = Guest {
                    world: World::Picker,
                    ..self.clone()
                };
                others.iter().chain([&picker]).map(Guest::exports).collect()
            }
            World::Picker => format!(
                r#"(func (export "forebay:policy/balance-pick@0.1.0#table")
                     (param $names i32) (param $count i32) {} (global.set $count (local.get $count)) {})
                   (func (export "forebay:policy/balance-pick@0.1.0#pick")
                     (param $key i32) (param $size i32) (param $avoid i32) (result i32)
                     {} (global.set $free (i32.const 8192)) {})"#,
                "(param i32) ".repeat(10),
                self.table,
                self.locals,
                self.body
            ),
            World::Router => format!(
                r#"(func (export "forebay:policy/route@0.1.0#route")
                     (param $method i32) (param $host i32) (param $host_size i32)
                     (param $path i32) (param $path_size i32)
                     (param $has_first i32) (param $first i32) (param $first_size i32)
                     (param $has_second i32) (param $second i32) (param $second_size i32) (result i32)
                     (global.set $free (i32.const 8192)) {})"#,
                self.body
            ),
            World::Planner => format!(
                r#"(func (export "forebay:policy/balance-plan@0.1.0#plan")
                     (param $now i64) (param $servers i32) (param $count i32) (result i32)
                     (global.set $free (i32.const 8192)) {})"#,
                self.body
            ),
            World::Sharer => format!(
                r#"(func (export "forebay:policy/reuse@0.1.0#prefer")
                     (param $has_first i32) (param $first i32) (param $first_size i32)
                     (param $has_second i32) (param $second i32) (param $second_size i32)
                     (param $first_request i32) (result i32)
                     {} (global.set $free (i32.const 8192)) {})"#,
                self.locals, self.body
            ),
            World::Usher => format!(
                r#"(func (export "forebay:policy/classify@0.1.0#classify")
                     (param $has_first i32) (param $first i32) (param $first_size i32)
                     (param $has_second i32) (param $second i32) (param $second_size i32)
                     (param $server i32) (param $queued i32) (param $class i32) (param $offset i32) (result i32)
                     {} (global.set $free (i32.const 8192)) {})
                   (func (export "forebay:policy/admit@0.1.0#admit")
                     (param $has_first i32) (param $first i32) (param $first_size i32)
                     (param $has_second i32) (param $second i32) (param $second_size i32)
                     (param $server i32) (param $queued i32) (param $class i32) (result i32)
                     (global.set $free (i32.const 8192)) {})"#,
                self.locals, self.body, self.admission
            ),
            World::Stocker => format!(
                r#"(func (export "forebay:policy/reuse-plan@0.1.0#plan")
                     (param $now i64) (param $servers i32) (param $count i32) (result i32)
                     (global.set $free (i32.const 8192)) {})"#,
                self.body
            ),
        }
    }

    fn text(&self) -> String {
        self.text_with(self.imports)
    }

    /// With more imports.
    pub(crate) fn text_with(&self, imports: &str) -> String {
        format!(
            r#"(module
              {own}
              {imports}
              (memory (export "memory") 4)
              (global $free (mut i32) (i32.const 8192))
              (global $count (mut i32) (i32.const 0))
              (global $seen (mut i32) (i32.const 0))
              (data (i32.const 16) "\00\00\00\00\40\00\00\00\02\00\00\00\60\00\00\00\01\00\00\00")
              (data (i32.const 64) "\80\00\00\00\0d\00\00\00\a0\00\00\00\04\00\00\00")
              (data (i32.const 96) "\c0\00\00\00\07\00\00\00")
              (data (i32.const 128) "header:x-user")
              (data (i32.const 160) "path")
              (data (i32.const 192) "x-shard")
              (data (i32.const 224) "eu\r\nx-evil: 1")
              (data (i32.const 256) "\ff\fe")
              (func $choice (param i32 i32) (result i32)
                (i32.store (i32.const 48) (local.get 0)) (i32.store (i32.const 52) (local.get 1)) (i32.const 48))
              (func $decision (param i32 i32 i32) (result i32)
                (i32.store (i32.const 48) (local.get 0)) (i32.store (i32.const 52) (local.get 1))
                (i32.store (i32.const 56) (local.get 2)) (i32.const 48))
              (func $preference (param i32 i32 i32 i32) (result i32)
                (i32.store (i32.const 48) (local.get 0)) (i32.store (i32.const 52) (local.get 1))
                (i32.store (i32.const 56) (local.get 2)) (i32.store (i32.const 60) (local.get 3)) (i32.const 48))
              (func $figures (param $server i32) (param $low i32) (param $max i32) (param $need i32)
                (param $preconnect i32) (result i32)
                (i32.store8 (i32.const 400) (i32.const 1))
                (i32.store (i32.const 404) (i32.const 420)) (i32.store (i32.const 408) (i32.const 1))
                (i32.store (i32.const 420) (local.get $server)) (i32.store (i32.const 424) (local.get $low))
                (i32.store (i32.const 428) (local.get $max)) (i32.store (i32.const 432) (local.get $need))
                (i32.store (i32.const 436) (local.get $preconnect)) (i32.const 400))
              (func $deep (param i32) (result i32)
                (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
              {before}
              (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc})
              (func (export "forebay:policy/configure@0.1.0#configure") {twelve} (result i32) {configure})
              {exports})"#,
            own = self.imports(),
            before = self.before,
            realloc = self.realloc,
            twelve = "(param i32) ".repeat(12),
            configure = self.configure,
            exports = self.exports(),
        )
    }
}
