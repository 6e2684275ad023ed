//! Why a message is refused: one variant per cause, with the status to answer and a name for counters and logs.
//!
//! Who is at fault is in the type: [`Refusal`] is the client's head, [`BadResponse`] the server's head, [`BodyError`] a
//! body of either side.

/// A list of causes as an enum that counts and names itself.
macro_rules! causes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $reason:literal, $status:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every cause, in the order of [`Self::index`].
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// Number of causes: the size of a counter array.
            pub const COUNT: usize = Self::ALL.len();

            /// Place of the cause in a counter array, below [`Self::COUNT`].
            pub fn index(self) -> usize {
                self as usize
            }

            /// The cause in snake case, for counters and logs.
            pub fn reason(self) -> &'static str {
                match self { $($name::$variant => $reason),+ }
            }

            /// The status that answers the client, if nothing was sent to it yet.
            pub fn status(self) -> u16 {
                match self { $($name::$variant => $status),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.reason())
            }
        }

        impl std::error::Error for $name {}
    };
}

causes! {
    /// Why a request is answered by us and never reaches a server. The connection closes after the answer.
    Refusal {
        /// No `method SP target SP version` (RFC 9112 §3).
        MalformedRequestLine = "malformed_request_line", 400;
        /// A well-formed version that is neither 1.0 nor 1.1 (RFC 9110 §15.6.6).
        UnsupportedVersion = "unsupported_version", 505;
        /// A target that is neither a path nor an absolute URI, `*` without OPTIONS, a fragment, user information (RFC 9112 §3.2).
        MalformedTarget = "malformed_target", 400;
        /// A CR without its LF, or a line end where none belongs (RFC 9112 §2.2).
        MalformedLineEnd = "malformed_line_end", 400;
        /// A field name that is no token, white space before the colon, a folded line (RFC 9112 §5.1, §5.2).
        MalformedFieldName = "malformed_field_name", 400;
        /// A control character in a field value (RFC 9110 §5.5).
        MalformedFieldValue = "malformed_field_value", 400;
        /// The request line is longer than allowed (RFC 9110 §15.5.15).
        RequestLineTooLong = "request_line_too_long", 414;
        /// The head is larger than allowed (RFC 6585 §5).
        HeadTooLarge = "head_too_large", 431;
        /// More header fields than allowed (RFC 6585 §5).
        TooManyFields = "too_many_fields", 431;
        /// HTTP/1.1 without `Host` (RFC 9112 §3.2).
        HostMissing = "host_missing", 400;
        /// More than one `Host` line (RFC 9112 §3.2).
        HostRepeated = "host_repeated", 400;
        /// A `Host` that is no `host [":" port]` (RFC 9112 §3.2).
        HostInvalid = "host_invalid", 400;
        /// A `Content-Length` that is not digits alone, or above 2⁶⁴ − 1 (RFC 9112 §6.3 rule 5).
        LengthInvalid = "length_invalid", 400;
        /// `Content-Length` lines that differ (RFC 9112 §6.3 rule 5).
        LengthConflict = "length_conflict", 400;
        /// `Transfer-Encoding` whose last coding is not `chunked`, or that names `chunked` twice (RFC 9112 §6.3 rule 4).
        CodingInvalid = "coding_invalid", 400;
        /// Codings under `chunked` that we do not pass on (RFC 9112 §6.1).
        CodingUnsupported = "coding_unsupported", 501;
        /// `Transfer-Encoding` beside `Content-Length` (RFC 9112 §6.1).
        FramingConflict = "framing_conflict", 400;
        /// `Transfer-Encoding` in an HTTP/1.0 request (RFC 9112 §6.1).
        CodingInHttp10 = "coding_in_http10", 400;
        /// `Content_Length` or `Transfer_Encoding`: some servers take them for the framing.
        FramingLookAlike = "framing_look_alike", 400;
        /// `Connection` names more than 64 fields.
        TooManyOptions = "too_many_connection_options", 400;
        /// CONNECT: a gateway opens no tunnel by address (RFC 9110 §9.3.6).
        ConnectMethod = "connect_method", 501;
    }
}

causes! {
    /// Why a server's response is not passed on. The server's connection closes.
    BadResponse {
        /// No `HTTP/1.0 or 1.1 SP three digits` (RFC 9112 §4).
        MalformedStatusLine = "malformed_status_line", 502;
        /// A status below 100 (RFC 9110 §15).
        StatusOutOfRange = "status_out_of_range", 502;
        /// A CR without its LF (RFC 9112 §2.2).
        MalformedLineEnd = "malformed_line_end", 502;
        /// A field name that is no token, white space before the colon, a folded line (RFC 9112 §5.1, §5.2).
        MalformedFieldName = "malformed_field_name", 502;
        /// A control character in a field value (RFC 9110 §5.5).
        MalformedFieldValue = "malformed_field_value", 502;
        /// The head is larger than allowed.
        HeadTooLarge = "head_too_large", 502;
        /// More header fields than allowed.
        TooManyFields = "too_many_fields", 502;
        /// A `Content-Length` that is not digits alone, or above 2⁶⁴ − 1 (RFC 9112 §6.3 rule 5).
        LengthInvalid = "length_invalid", 502;
        /// `Content-Length` lines that differ (RFC 9112 §6.3 rule 5).
        LengthConflict = "length_conflict", 502;
        /// `Transfer-Encoding` whose last coding is not `chunked`, or that names `chunked` twice (RFC 9112 §6.3 rule 4).
        CodingInvalid = "coding_invalid", 502;
        /// Codings under `chunked` that we do not pass on (RFC 9112 §6.1).
        CodingUnsupported = "coding_unsupported", 502;
        /// `Transfer-Encoding` in an HTTP/1.0 response (RFC 9112 §6.1).
        CodingInHttp10 = "coding_in_http10", 502;
        /// `Connection` names more than 64 fields.
        TooManyOptions = "too_many_connection_options", 502;
        /// 101 to a request that asked for no upgrade, or from an HTTP/1.0 server (RFC 9110 §15.2.2).
        UnaskedUpgrade = "unasked_upgrade", 502;
    }
}

causes! {
    /// Why a body cannot be read on. The status is for the client's body; a server's bad body cuts the response short, or
    /// gives 502 if nothing of it was sent.
    BodyError {
        /// A chunk size that is not 1…16 hexadecimal digits and CRLF (RFC 9112 §7.1).
        ChunkSize = "chunk_size", 400;
        /// A byte that no chunk extension may contain (RFC 9112 §7.1.1).
        ChunkExtension = "chunk_extension", 400;
        /// More chunk extensions than allowed for the data that came with them.
        ExtensionsTooLarge = "chunk_extensions_too_large", 400;
        /// Chunk data that is not followed by CRLF (RFC 9112 §7.1).
        ChunkEnd = "chunk_end", 400;
        /// A trailer line that is no field (RFC 9112 §7.1.2).
        MalformedTrailer = "malformed_trailer", 400;
        /// Trailers beyond their limits.
        TrailersTooLarge = "trailers_too_large", 431;
    }
}

/// What is wrong with the framing fields of a head, whichever side sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramingFault {
    LengthInvalid,
    LengthConflict,
    CodingInvalid,
    CodingUnsupported,
}

impl From<FramingFault> for Refusal {
    fn from(fault: FramingFault) -> Refusal {
        match fault {
            FramingFault::LengthInvalid => Refusal::LengthInvalid,
            FramingFault::LengthConflict => Refusal::LengthConflict,
            FramingFault::CodingInvalid => Refusal::CodingInvalid,
            FramingFault::CodingUnsupported => Refusal::CodingUnsupported,
        }
    }
}

impl From<FramingFault> for BadResponse {
    fn from(fault: FramingFault) -> BadResponse {
        match fault {
            FramingFault::LengthInvalid => BadResponse::LengthInvalid,
            FramingFault::LengthConflict => BadResponse::LengthConflict,
            FramingFault::CodingInvalid => BadResponse::CodingInvalid,
            FramingFault::CodingUnsupported => BadResponse::CodingUnsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BadResponse, BodyError, Refusal};
    use std::collections::BTreeSet;

    #[test]
    fn every_cause_has_its_own_place_and_name() {
        let names = |reasons: Vec<&'static str>| reasons.into_iter().collect::<BTreeSet<_>>().len();
        assert!(
            Refusal::ALL
                .iter()
                .enumerate()
                .all(|(at, cause)| cause.index() == at)
        );
        assert_eq!(
            names(Refusal::ALL.iter().map(|c| c.reason()).collect()),
            Refusal::COUNT
        );
        assert_eq!(
            names(BadResponse::ALL.iter().map(|c| c.reason()).collect()),
            BadResponse::COUNT
        );
        assert_eq!(
            names(BodyError::ALL.iter().map(|c| c.reason()).collect()),
            BodyError::COUNT
        );
    }
}
