//! What follows from the names that a request shows.

/// How the connections of tenants are shared.
pub struct Tenancy {
    /// The mode of the first request on a client's connection; −1 as configured.
    pub first_request: i32,
}

/// The words for modes, from the strictest.
pub const MODES: &str = "\"never\", \"safe\", \"aggressive\", \"always\"";

/// The number of a mode.
pub fn mode(word: &str) -> Option<i32> {
    match word {
        "never" => Some(0),
        "safe" => Some(1),
        "aggressive" => Some(2),
        "always" => Some(3),
        _ => None,
    }
}

impl Tenancy {
    pub const DEFAULT: Tenancy = Tenancy { first_request: -1 };

    /// The mode of a request, and which of the names is its tenant's: the first that is not empty. −1 for no opinion.
    pub fn of(&self, names: [Option<&str>; 2], is_first: bool) -> (i32, i32) {
        let tenant = names.iter().position(|name| name.is_some_and(|name| !name.is_empty()));
        let mode = if is_first { self.first_request } else { -1 };
        (mode, tenant.map_or(-1, |at| at as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_is_not_empty_is_the_tenant() {
        let tenant = |names| Tenancy::DEFAULT.of(names, true).1;
        assert_eq!(tenant([Some("a"), Some("b")]), 0);
        assert_eq!(tenant([None, Some("b")]), 1);
        assert_eq!(tenant([Some(""), Some("b")]), 1);
        assert_eq!(tenant([Some(""), None]), -1);
        assert_eq!(tenant([None, None]), -1);
    }

    #[test]
    fn only_a_first_request_is_treated_apart() {
        let strict = Tenancy { first_request: 0 };
        assert_eq!(strict.of([Some("a"), None], true), (0, 0));
        assert_eq!(strict.of([Some("a"), None], false), (-1, 0));
        assert_eq!(Tenancy::DEFAULT.of([None, None], true), (-1, -1));
    }

    #[test]
    fn modes_go_from_the_strictest() {
        let numbers = MODES.split(", ").map(|word| mode(word.trim_matches('"')));
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(mode("Never"), None);
    }
}
