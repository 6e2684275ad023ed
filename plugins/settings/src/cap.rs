//! Up to how many requests a server is used before the next ones: a setting of policies that fill some servers first.

use crate::Settings;

/// The keys `fill` and `cap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Millionths of a server's limit.
    fill: i64,
    /// For each unit of the operator's weight, where there is no limit; −1 for none.
    each: i64,
}

impl Cap {
    /// What is configured; what is wrong with it stays in the settings.
    pub fn read(settings: &mut Settings) -> Cap {
        let fill = i64::from(settings.share("fill", "100%"));
        let each = settings.whole("cap", -1, 1..=1_000_000);
        Cap { fill, each }
    }

    /// By the server's limit, or else by its weight, which is 16 for each unit; −1 for none. At least one request.
    pub fn of(&self, limit: i32, weight: i32) -> i32 {
        let cap = match limit {
            ..0 if self.each < 0 => return -1,
            ..0 => self.each * i64::from(weight) / 16,
            limit => i64::from(limit) * self.fill / 1_000_000,
        };
        cap.clamp(1, i64::from(i32::MAX)) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cap(config: &str) -> Cap {
        let mut settings = Settings::read(config);
        let cap = Cap::read(&mut settings);
        assert_eq!(settings.finish(), []);
        cap
    }

    #[test]
    fn a_limit_is_filled_in_part() {
        let cap = cap(r#"{ "fill": "80%" }"#);
        assert_eq!([10, 1, 0, -1, i32::MAX].map(|limit| cap.of(limit, 16)), [8, 1, 1, -1, 1_717_986_917]);
    }

    #[test]
    fn without_a_limit_the_weight_counts() {
        let cap = cap(r#"{ "cap": 20 }"#);
        assert_eq!([1, 16, 64].map(|weight| cap.of(-1, weight)), [1, 20, 80]);
        assert_eq!(cap.of(30, 16), 30);
    }
}
