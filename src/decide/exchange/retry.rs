//! What is tried again at the request's expense (`retry-on`, RT-7), and where (`redispatch`, RT-3).

/// Causes of a second attempt. What a server may have begun to read is repeated only if its method allows it, whatever
/// stands here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// No connection came about (`conn-failure`).
    pub conn_failure: bool,
    /// The connection ended before the first byte of a response (`empty-response`).
    pub empty_response: bool,
    /// The server took too long for the first byte (`response-timeout`).
    pub response_timeout: bool,
}

impl RetryOn {
    /// `none`.
    pub const NOTHING: RetryOn = RetryOn {
        conn_failure: false,
        empty_response: false,
        response_timeout: false,
    };

    /// What holds where nothing is said.
    pub const USUAL: RetryOn = RetryOn {
        conn_failure: true,
        empty_response: true,
        response_timeout: false,
    };

    /// Whether all is tried again that a dead idle connection can cause, so that a client's first request may use one
    /// (POOL-11).
    pub fn covers_reuse(self) -> bool {
        self.conn_failure && self.empty_response && self.response_timeout
    }

    /// The words of the configuration.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let words = [
            (self.conn_failure, "conn-failure"),
            (self.empty_response, "empty-response"),
            (self.response_timeout, "response-timeout"),
            (self == RetryOn::NOTHING, "none"),
        ];
        words
            .into_iter()
            .filter_map(|(is_on, word)| is_on.then_some(word))
    }
}

impl Default for RetryOn {
    fn default() -> RetryOn {
        RetryOn::USUAL
    }
}

/// When another attempt may leave a server that the request is tied to (`redispatch`, RT-3). One that is tied to none
/// leaves at once, unless it is [`Redispatch::Never`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redispatch {
    /// Every attempt goes to the first server.
    Never,
    /// Each so-manieth retry leaves; 1 is every one. 0 is none.
    Every(u8),
    /// Counted from the end: 1 is the last retry.
    BeforeEnd(u8),
}

impl Redispatch {
    /// What holds where nothing is said (RT-4): on, and on the last retry.
    pub const USUAL: Redispatch = Redispatch::BeforeEnd(1);

    /// Whether retry `count`, from 1, of `retries` leaves the server.
    pub fn is_due(self, count: u8, retries: u8) -> bool {
        let period = match self {
            Redispatch::Never => 0,
            Redispatch::Every(period) => u16::from(period),
            Redispatch::BeforeEnd(before) => (u16::from(retries) + 1).saturating_sub(u16::from(before)),
        };
        u16::from(count).checked_rem(period) == Some(0)
    }
}
