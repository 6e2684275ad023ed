//! The classes of an operator, and which of them a request has.

use settings::Settings;

/// Who stands where.
#[derive(Debug, PartialEq, Eq)]
pub struct Priorities {
    classes: Vec<Class>,
    /// In the order of their names, each with the place of its class.
    tenants: Vec<(String, usize)>,
    /// The place of everybody else's.
    default: Option<usize>,
}

/// How the requests of some tenants wait. What is −1 has no limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    name: String,
    /// The lowest is served first.
    pub number: i32,
    /// In ms: so long they may wait.
    pub deadline: i32,
    /// Where so many wait already, they are turned away.
    queue_max: i32,
    /// In s: then they may come again.
    pub retry_after: i32,
}

impl Class {
    /// Whether one more of them would be too many where so many wait.
    pub fn is_full(&self, queued: i32) -> bool {
        self.queue_max >= 0 && queued >= self.queue_max
    }
}

/// ms of a day.
const DAY: i64 = 86_400_000;

impl Priorities {
    pub const NONE: Priorities = Priorities { classes: Vec::new(), tenants: Vec::new(), default: None };

    /// The class of the first name that is not empty; `None` where nobody said one.
    pub fn of(&self, names: [Option<&str>; 2]) -> Option<&Class> {
        let tenant = names.into_iter().flatten().find(|name| !name.is_empty());
        let listed = tenant.and_then(|tenant| {
            let at = self.tenants.binary_search_by(|(name, _)| name.as_str().cmp(tenant));
            Some(self.tenants[at.ok()?].1)
        });
        Some(&self.classes[listed.or(self.default)?])
    }

    /// What is configured; what is wrong with it stays in the settings.
    pub fn read(settings: &mut Settings) -> Priorities {
        let mut classes = Vec::new();
        for (name, mut table) in settings.tables("classes") {
            let class = class(name, &mut table);
            settings.close(table);
            classes.push(class);
        }
        let mut tenants = Vec::new();
        let (listed, default) = (settings.texts("tenants"), settings.text("default"));
        if listed.is_empty() && default.is_none() {
            settings.wrong::<()>("default", "must name a class, or `tenants` must: else nobody has one");
        }
        for (tenant, class) in listed {
            let at = place(&classes, &class, &format!("tenants.{tenant}"), settings);
            tenants.extend(at.map(|at| (tenant, at)));
        }
        tenants.sort();
        let default = default.and_then(|class| place(&classes, &class, "default", settings));
        Priorities { classes, tenants, default }
    }
}

fn class(name: String, table: &mut Settings) -> Class {
    let number = table.whole("class", 0, -2047..=2047) as i32;
    let deadline = table.duration_if("deadline", 1..=DAY).map_or(-1, |time| time as i32);
    let queue_max = table.whole("queue-max", -1, 0..=1_000_000) as i32;
    let retry_after = table.duration("retry-after", "1s", 1_000..=DAY);
    if retry_after % 1000 != 0 {
        table.wrong::<()>("retry-after", "must be whole seconds");
    }
    Class { name, number, deadline, queue_max, retry_after: (retry_after / 1000) as i32 }
}

/// The place of a class, if there is one of that name.
fn place(classes: &[Class], name: &str, key: &str, settings: &mut Settings) -> Option<usize> {
    let at = classes.iter().position(|class| class.name == name);
    at.or_else(|| {
        let known: Vec<String> = classes.iter().map(|class| format!("`{}`", class.name)).collect();
        let known =
            if known.is_empty() { "there is none".into() } else { format!("there is {}", known.join(", ")) };
        settings.wrong(key, &format!("must be the name of a class in `classes`; {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{
        "tenants": { "zeta": "bulk", "acme": "gold" }, "default": "plain",
        "classes": {
            "gold": { "class": -10 },
            "plain": { "deadline": "2s" },
            "bulk": { "class": 10, "deadline": "500ms", "queue-max": 20, "retry-after": "5s" }
        } }"#;

    fn read(config: &str) -> (Priorities, Vec<String>) {
        let mut settings = Settings::read(config);
        let priorities = Priorities::read(&mut settings);
        let paths = settings.finish().into_iter().map(|(path, _)| path).collect();
        (priorities, paths)
    }

    #[test]
    fn a_tenant_has_its_class_and_others_the_default() {
        let (priorities, problems) = read(CONFIG);
        assert_eq!(problems, [""; 0]);
        let class = |names| priorities.of(names).map(|class| (class.number, class.deadline));
        assert_eq!(class([Some("acme"), None]), Some((-10, -1)));
        assert_eq!(class([Some(""), Some("zeta")]), Some((10, 500)));
        assert_eq!(class([Some("acme"), Some("zeta")]), Some((-10, -1)), "the first name counts");
        for nobody in [[None, None], [Some("Acme"), None], [Some("acm"), Some("zeta")]] {
            assert_eq!(class(nobody), Some((0, 2000)), "{nobody:?}");
        }
        let (without, problems) = read(r#"{ "classes": { "gold": {} }, "tenants": { "acme": "gold" } }"#);
        assert_eq!(problems, [""; 0]);
        assert_eq!(without.of([Some("acme"), None]).map(|class| class.number), Some(0));
        assert_eq!(without.of([Some("zeta"), None]), None);
        assert_eq!(Priorities::NONE.of([Some("acme"), None]), None);
    }

    #[test]
    fn a_class_is_full_where_so_many_wait() {
        let (priorities, _) = read(CONFIG);
        let class = |tenant| priorities.of([Some(tenant), None]).unwrap();
        let bulk = class("zeta");
        assert_eq!([0, 19, 20, i32::MAX].map(|queued| bulk.is_full(queued)), [false, false, true, true]);
        assert_eq!(bulk.retry_after, 5);
        assert!(!class("acme").is_full(i32::MAX));
        let (never, _) = read(r#"{ "classes": { "x": { "queue-max": 0 } }, "default": "x" }"#);
        let never = never.of([None, None]).unwrap();
        assert!(never.is_full(0));
        assert_eq!(never.retry_after, 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (config, paths) in [
            ("{}", &["default"][..]),
            (r#"{ "classes": { "a": {} } }"#, &["default"]),
            (r#"{ "classes": { "a": { "class": 2048 } }, "default": "a" }"#, &["classes.a.class"]),
            (
                r#"{ "classes": { "a": { "deadline": 5, "queue": 1 } }, "default": "a" }"#,
                &["classes.a.deadline", "classes.a.queue"],
            ),
            (
                r#"{ "classes": { "a": { "retry-after": "1500ms" } }, "default": "a" }"#,
                &["classes.a.retry-after"],
            ),
            (r#"{ "classes": { "a": {} }, "default": "a", "tenants": { "x": "b" } }"#, &["tenants.x"]),
            (r#"{ "classes": [], "default": "a" }"#, &["classes", "default"]),
        ] {
            assert_eq!(read(config).1, paths, "{config}");
        }
    }
}
