//! What was probably meant by a name that nobody knows: a slip of the finger, or what other proxies call it.

/// The known name nearest to what was written, if any is near enough to be meant.
///
/// `timeout_client` and `TimeoutClient` are as near as a slip of the finger; what other proxies call a thing is near too.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain(written);
    let meant = FAMILIAR
        .iter()
        .find(|(theirs, _)| *theirs == plain)
        .map(|(_, ours)| *ours);
    let distance = |name: &str| match meant {
        Some(ours) if ours == name => 0,
        _ => strsim::damerau_levenshtein(&plain, &name.to_lowercase()),
    };
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).clamp(1, 4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Lower case, words parted by `-`.
pub(super) fn plain(written: &str) -> String {
    let mut plain = String::with_capacity(written.len() + 4);
    let mut small_before = false;
    for sign in written.chars() {
        if sign.is_uppercase() && small_before {
            plain.push('-');
        }
        small_before = sign.is_lowercase();
        match sign {
            '_' | ' ' => plain.push('-'),
            sign => plain.extend(sign.to_lowercase()),
        }
    }
    plain
}

/// What other proxies call it, and what it is called here.
const FAMILIAR: [(&str, &str); 31] = [
    ("address", "bind"),
    ("algorithm", "balance"),
    ("backends", "backend"),
    ("client-header-timeout", "timeout-http-request"),
    ("cluster", "backend"),
    ("default-backend", "backend"),
    ("frontend", "listen"),
    ("global", "process"),
    ("http-reuse", "reuse"),
    ("keepalive-timeout", "timeout-http-keep-alive"),
    ("large-client-header-buffers", "head-max"),
    ("lb-policy", "balance"),
    ("listener", "listen"),
    ("listeners", "listen"),
    ("methods", "method"),
    ("nbthread", "workers"),
    ("pass", "backend"),
    ("plugin", "policy"),
    ("plugins", "policy"),
    ("policies", "policy"),
    ("port", "bind"),
    ("proxy-connect-timeout", "timeout-connect"),
    ("proxy-pass", "backend"),
    ("proxy-read-timeout", "timeout-server"),
    ("return", "respond"),
    ("server", "servers"),
    ("stats-socket", "control"),
    ("threads", "workers"),
    ("upstream", "backend"),
    ("wasm", "component"),
    ("worker-processes", "workers"),
];

#[cfg(test)]
mod tests {
    use super::super::{Section, homes};
    use super::*;

    #[test]
    fn every_familiar_word_leads_to_a_key() {
        for (theirs, ours) in FAMILIAR {
            assert!(
                homes(ours).next().is_some(),
                "{theirs} leads to {ours}, which is no key"
            );
        }
    }

    #[test]
    fn near_spellings() {
        let known = || Section::Listen.keys().iter().map(|key| key.name);
        for (written, meant) in [
            ("timeout-cilent", Some("timeout-client")),
            ("timeout_client", Some("timeout-client")),
            ("timeoutClient", Some("timeout-client")),
            ("TIMEOUT-CLIENT", Some("timeout-client")),
            ("port", Some("bind")),
            ("bnd", Some("bind")),
            ("colour", None),
        ] {
            assert_eq!(nearest(written, known()), meant, "{written}");
        }
    }
}
