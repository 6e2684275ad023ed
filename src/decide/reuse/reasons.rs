//! Why a server connection was opened, and why it was closed: the words that metrics and logs use (POOL-71).
//!
//! They answer *why is my reuse rate low?* A few are ours beyond POOL-71's list: `never`, `retry`, `fresh` and
//! `preconnect` for opens, and `fd_low`, `busy`, `max_reuse` and `not_reusable` for closes, so that none of its words stands for two
//! causes.

/// Declares an enum of reasons with the word that metrics and logs use for each.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them, in the order of [`Self::index`].
            pub const ALL: &[$name] = &[$($name::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Its place in an array of counters.
            pub fn index(self) -> usize {
                self as usize
            }

            /// Its word in metrics and logs.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }
    };
}

reasons! {
    /// Why a server connection was closed (POOL-71).
    CloseReason {
        /// Its client went, and it was that client's alone.
        Private = "private",
        /// The server is in maintenance, or has another address now.
        Maintenance = "maint",
        /// The backend shares nothing.
        Never = "never",
        /// Descriptors above the high threshold.
        DescriptorsHigh = "fd_high",
        /// Descriptors between the thresholds, and this worker keeps one already.
        DescriptorsLow = "fd_low",
        /// `pool-max-conn` reached.
        Max = "max",
        /// More than the server has needed lately.
        Need = "need",
        /// Not free: streams left on it, or it takes no more.
        Busy = "busy",
        /// It has carried as many requests as it may (`max-reuse`, POOL-53).
        MaxReuse = "max_reuse",
        /// The message was not finished, or its peer asked to close.
        NotReusable = "not_reusable",
        /// An error on it.
        Error = "error",
        /// The server sent bytes that belong to no response.
        ExcessData = "excess_data",
        /// The server closed it.
        Remote = "remote",
        /// Idle for too long, or nothing may be idle.
        Purge = "purge",
        /// Oldest while descriptors were short (POOL-50).
        Evicted = "evicted",
    }
}

reasons! {
    /// Why a server connection was opened instead of reused (POOL-71).
    OpenReason {
        /// First request of its client, which may not share yet, or nothing that has proven itself.
        FirstRequest = "first_request",
        /// The server had no idle connection.
        None = "none",
        /// Below `pool-low-conn`: every worker grows its own reserve.
        LowConn = "low_conn",
        /// Only other workers had idle connections, and they do not share.
        SharingOff = "sharing_off",
        /// Other workers had some, but were at them.
        Contended = "contended",
        /// There were idle ones, none with the right key.
        Key = "key",
        /// The backend shares nothing.
        Never = "never",
        /// A second attempt after a dead connection wants a fresh one.
        Retry = "retry",
        /// A policy asked for a fresh one.
        Fresh = "fresh",
        /// For nobody yet: a policy wants some to be there in advance.
        Preconnect = "preconnect",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_places_and_words_of_their_own() {
        for (place, reason) in CloseReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), place);
            assert_eq!(
                CloseReason::ALL
                    .iter()
                    .filter(|other| other.word() == reason.word())
                    .count(),
                1
            );
        }
        for (place, reason) in OpenReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), place);
            assert_eq!(
                OpenReason::ALL
                    .iter()
                    .filter(|other| other.word() == reason.word())
                    .count(),
                1
            );
        }
    }
}
