//! Which backends get shares: one by `backend` and `share`, or several by `backends`.

use crate::exports::forebay::policy::configure::Setup;
use crate::side::Share;
use settings::Settings;

/// All clients.
const WHOLE: i32 = 1_000_000;

/// As they are written.
pub enum Backends {
    /// The name of one, if there is one.
    One(Option<String>),
    /// In the order of their names, each with its share in millionths.
    Several(Vec<(String, i32)>),
}

/// What is configured; what is wrong with it stays in the settings.
pub fn backends(settings: &mut Settings, setup: &Setup) -> Backends {
    let (one, mut several) = (settings.text("backend"), settings.shares("backends"));
    several.sort();
    match (one, several.is_empty()) {
        (None, true) => Backends::One(settings.wrong("backend", "must name the backend that gets the share")),
        (Some(name), true) => {
            check(settings, "backend", &name, setup);
            Backends::One(Some(name))
        }
        (None, false) => {
            for (name, _) in &several {
                check(settings, &format!("backends.{name}"), name, setup);
            }
            if several.iter().map(|(_, share)| i64::from(*share)).sum::<i64>() > i64::from(WHOLE) {
                settings.wrong::<()>("backends", "must be 100% together at most");
            }
            Backends::Several(several)
        }
        (Some(_), false) => {
            let wrong = "must not stand beside `backends`: put all of them there, each with its share";
            settings.wrong::<()>("backend", wrong);
            Backends::Several(several)
        }
    }
}

/// Says so if it is none that a route may name.
fn check(settings: &mut Settings, key: &str, name: &String, setup: &Setup) {
    // Without an attachment there may be no list to look in.
    let unchecked = setup.attachment.is_empty() && setup.backends.is_empty();
    if !unchecked && !setup.backends.contains(name) {
        let names = setup.backends.join("`, `");
        settings.wrong::<()>(key, &format!("there is no backend `{name}`, only `{names}`"));
    }
}

impl Backends {
    /// Each where the one before it ends.
    pub fn shares(&self, settings: &mut Settings) -> Vec<Share> {
        match self {
            Backends::One(name) => {
                let until = settings.share("share", "0%");
                name.iter().map(|name| Share { backend: name.clone(), until }).collect()
            }
            Backends::Several(several) => {
                let ends = several.iter().scan(0, |until, (name, share)| {
                    *until = WHOLE.min(*until + share);
                    Some(Share { backend: name.clone(), until: *until })
                });
                ends.collect()
            }
        }
    }

    /// The name by which clients are dealt out: one that stays when a share is added.
    pub fn salt<'a>(&'a self, setup: &'a Setup) -> &'a str {
        match self {
            Backends::One(name) => name.as_deref().unwrap_or_default(),
            Backends::Several(_) => &setup.policy,
        }
    }

    /// What the header is set to for those of a share.
    pub fn mark<'a>(&self, share: &'a Share) -> &'a str {
        match self {
            Backends::One(_) => "1",
            Backends::Several(_) => &share.backend,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str) -> (Vec<(String, i32)>, Vec<String>) {
        let setup = Setup {
            policy: "split".into(),
            attachment: "web".into(),
            config: config.into(),
            backends: ["app", "beta", "next"].map(String::from).into(),
            redirects: vec![],
            responses: vec![],
        };
        let mut settings = Settings::read(config);
        let backends = backends(&mut settings, &setup);
        let shares = backends.shares(&mut settings);
        let paths = settings.finish().into_iter().map(|(path, _)| path).collect();
        (shares.into_iter().map(|share| (share.backend, share.until)).collect(), paths)
    }

    #[test]
    fn one_or_several_are_read() {
        let one = read(r#"{ "backend": "next", "share": "5%" }"#);
        assert_eq!(one, (vec![("next".into(), 50_000)], vec![]));
        let (several, problems) = read(r#"{ "backends": { "next": "5%", "beta": "10%" } }"#);
        assert_eq!(several, [("beta".into(), 100_000), ("next".into(), 150_000)]);
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (config, paths) in [
            ("{}", &["backend"][..]),
            (r#"{ "backend": "far" }"#, &["backend"]),
            (r#"{ "backends": { "far": "1%", "beta": "1" } }"#, &["backends.beta", "backends.far"]),
            (r#"{ "backends": { "next": "60%", "beta": "60%" } }"#, &["backends"]),
            (r#"{ "backend": "next", "backends": { "beta": "1%" } }"#, &["backend"]),
            (r#"{ "backends": { "next": "5%" }, "share": "5%" }"#, &["share"]),
        ] {
            assert_eq!(read(config).1, paths, "{config}");
        }
    }
}
