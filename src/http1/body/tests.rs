use super::{Body, Output, Step};
use crate::http1::{BodyError, Framing, TrailerLimits};
use proptest::prelude::*;

const LIMITS: TrailerLimits = TrailerLimits {
    bytes_max: 256,
    fields_max: 8,
};

/// What goes on of a chunked body that comes in pieces of `step` bytes; the rest of the input; whether it was all verbatim.
fn run(mut body: Body, input: &[u8], step: usize) -> Result<(Vec<u8>, usize, bool), BodyError> {
    let (mut out, mut at, mut verbatim) = (Vec::new(), 0, true);
    while at < input.len() && !body.is_done() {
        let piece = &input[at..(at + step).min(input.len())];
        let before = out.len();
        let step = body.advance(piece, &mut out)?;
        assert!(step.consumed == piece.len() || step.done);
        match step.output {
            Output::Verbatim(length) => {
                assert_eq!((length, before), (step.consumed, out.len()));
                out.extend_from_slice(&piece[..length]);
            }
            Output::Rewritten => verbatim = false,
        }
        at += step.consumed;
    }
    Ok((out, input.len() - at, verbatim))
}

fn chunked(input: &str) -> Result<(String, usize, bool), BodyError> {
    let bytes: Vec<u8> = input.chars().map(|c| c as u8).collect();
    let whole = run(Body::new(Framing::Chunked, LIMITS), &bytes, usize::MAX / 2);
    let bytewise = run(Body::new(Framing::Chunked, LIMITS), &bytes, 1);
    assert_eq!(
        whole.as_ref().map(|run| &run.0),
        bytewise.as_ref().map(|run| &run.0),
        "{input:?}"
    );
    whole.map(|(out, rest, verbatim)| (String::from_utf8_lossy(&out).into_owned(), rest, verbatim))
}

#[test]
fn the_reader_is_small() {
    assert!(size_of::<Body>() <= 48, "{}", size_of::<Body>());
}

#[test]
fn lengths() {
    assert!(Body::new(Framing::None, LIMITS).is_done());
    assert!(Body::new(Framing::Length(0), LIMITS).is_done());
    let mut body = Body::new(Framing::Length(5), LIMITS);
    let mut none = Vec::new();
    let first = body.advance(b"abc", &mut none);
    assert_eq!(
        first,
        Ok(Step {
            consumed: 3,
            done: false,
            output: Output::Verbatim(3)
        })
    );
    assert!(!body.is_complete_at_close());
    assert_eq!(body.remaining(), Some(2));
    let last = body.advance(b"deGET /", &mut none);
    assert_eq!(
        last,
        Ok(Step {
            consumed: 2,
            done: true,
            output: Output::Verbatim(2)
        })
    );
    assert_eq!(
        body.advance(b"more", &mut none),
        Ok(Step {
            consumed: 0,
            done: true,
            output: Output::Verbatim(0)
        })
    );
    let mut open = Body::new(Framing::UntilClose, LIMITS);
    assert_eq!(
        open.advance(b"abc", &mut none),
        Ok(Step {
            consumed: 3,
            done: false,
            output: Output::Verbatim(3)
        })
    );
    assert!(open.is_complete_at_close() && open.remaining().is_none());
}

#[test]
fn plain_chunks_go_as_they_came() {
    for input in [
        "0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
        "000A\r\n0123456789\r\n0000000000\r\n\r\n",
        "f\r\n5\r\nhello\r\n0\r\n\r\n\r\n0\r\n\r\n",
    ] {
        assert_eq!(
            chunked(&format!("{input}GET /")),
            Ok((input.to_owned(), 5, true)),
            "{input:?}"
        );
    }
}

#[test]
fn extensions_are_cut_out() {
    for input in [
        "5;name=value;flag\r\nhello\r\n0;last=\"1\"\r\n\r\n",
        "5;a=\"x;y\\\"\u{e9}\"\r\nhello\r\n0\r\n\r\n",
        "5 ; a = b\r\nhello\r\n0\t;x\r\n\r\n",
        "5;\r\nhello\r\n0\r\n\r\n",
    ] {
        assert_eq!(
            chunked(input),
            Ok(("5\r\nhello\r\n0\r\n\r\n".to_owned(), 0, false)),
            "{input:?}"
        );
    }
}

#[test]
fn bad_chunks() {
    let sizes = [
        "0x5",
        "+5",
        "-5",
        "5g",
        "0_5",
        " 5",
        "5.",
        "5\0",
        "\u{c}5",
        "5 ",
        "",
        "10000000000000005",
        "fffffffffffffffff",
        "5 x",
        "00000000000000000",
    ];
    for size in sizes {
        assert_eq!(
            chunked(&format!("{size}\r\nhello\r\n0\r\n\r\n")),
            Err(BodyError::ChunkSize),
            "{size:?}"
        );
    }
    let cases = [
        ("3\nabc\r\n0\r\n\r\n", BodyError::ChunkSize),
        ("3\rXabc\r\n0\r\n\r\n", BodyError::ChunkSize),
        ("3\r\nabcdef\r\n0\r\n\r\n", BodyError::ChunkEnd),
        ("3\r\nabc\n0\r\n\r\n", BodyError::ChunkEnd),
        ("3\r\nabc\rX0\r\n\r\n", BodyError::ChunkEnd),
        ("2;\nxx\r\n0\r\n\r\n", BodyError::ChunkExtension),
        ("5;a\rb\r\nhello\r\n0\r\n\r\n", BodyError::ChunkSize),
        ("5;a=\"x\r\"\r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        ("5;a\0\r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        ("0\r\n\rX", BodyError::MalformedTrailer),
    ];
    for (input, error) in cases {
        assert_eq!(chunked(input), Err(error), "{input:?}");
    }
}

#[test]
fn trailers_are_checked_and_written_afresh() {
    let good = "3\r\nabc\r\n0\r\nX-Sum:  1 \r\nHost: evil\r\ncontent-LENGTH: 7\r\nX-B:2\r\n\r\nGET";
    assert_eq!(
        chunked(good),
        Ok(("3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-B: 2\r\n\r\n".to_owned(), 3, false))
    );
    for line in [
        "JustAWord",
        "X-T : 1",
        "X-T: a\0b",
        "X T: 1",
        " X: 1",
        "X: 1\n",
        "GET /smuggled HTTP/1.1",
        ": x",
    ] {
        let input = format!("3\r\nabc\r\n0\r\n{line}\r\n\r\n");
        assert_eq!(chunked(&input), Err(BodyError::MalformedTrailer), "{line:?}");
    }
    let large = format!("0\r\nX: {}\r\n\r\n", "x".repeat(256));
    assert_eq!(chunked(&large), Err(BodyError::TrailersTooLarge));
    let many = format!("0\r\n{}\r\n", "X: 1\r\n".repeat(9));
    assert_eq!(chunked(&many), Err(BodyError::TrailersTooLarge));
}

#[test]
fn extensions_are_limited_by_the_data_that_comes_with_them() {
    assert_eq!(
        chunked(&format!("5;{}\r\nhello\r\n", "e".repeat(16384))),
        Err(BodyError::ExtensionsTooLarge)
    );
    let flood = format!("1;{}\r\nz\r\n", "e".repeat(200)).repeat(100);
    assert_eq!(chunked(&flood), Err(BodyError::ExtensionsTooLarge));
    let signed = format!(
        "1000;chunk-signature={}\r\n{}\r\n",
        "f".repeat(64),
        "d".repeat(4096)
    )
    .repeat(1000);
    let out = run(Body::new(Framing::Chunked, LIMITS), signed.as_bytes(), 65536)
        .unwrap()
        .0;
    assert_eq!(out.len(), (4 + 2 + 4096 + 2) * 1000);
}

#[test]
fn nothing_is_appended_on_an_error() {
    let mut out = b"before".to_vec();
    let mut body = Body::new(Framing::Chunked, LIMITS);
    assert_eq!(
        body.advance(b"1;x\r\na\r\nX", &mut out),
        Err(BodyError::ChunkSize)
    );
    assert_eq!(out, b"before");
}

#[test]
fn decoding_keeps_the_data_only() {
    let input = b"2\r\nun\r\n7;x\r\nchunked\r\n0\r\nX-Sum: 9\r\n\r\nrest";
    for step in [1, 3, 100] {
        let (out, rest, _) = run(Body::decoding(Framing::Chunked, LIMITS), input, step).unwrap();
        assert_eq!((out.as_slice(), rest), (b"unchunked".as_slice(), 4));
    }
    let bad = run(Body::decoding(Framing::Chunked, LIMITS), b"0\r\nX\r\n\r\n", 100);
    assert_eq!(bad, Err(BodyError::MalformedTrailer));
}

proptest! {
    /// However a body comes in pieces, the same goes on; and what goes on decodes to the data.
    #[test]
    fn any_split(
        chunks in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..40), "(;[a-z=]{0,6})?"), 0..6),
        trailer in prop_oneof![Just(""), Just("X-Sum: 1\r\n"), Just("Host: x\r\nX-B:2\r\n")],
        cuts in proptest::collection::vec(1usize..20, 1..40),
    ) {
        let (mut input, mut data) = (Vec::new(), Vec::new());
        for (chunk, extension) in &chunks {
            input.extend_from_slice(format!("{:X}{extension}\r\n", chunk.len()).as_bytes());
            input.extend_from_slice(chunk);
            input.extend_from_slice(b"\r\n");
            data.extend_from_slice(chunk);
        }
        input.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
        let (whole, rest, verbatim) = run(Body::new(Framing::Chunked, LIMITS), &input, input.len()).unwrap();
        prop_assert_eq!(rest, 0);
        let plain = trailer.is_empty() && chunks.iter().all(|(_, extension)| extension.is_empty());
        prop_assert_eq!(verbatim, plain);
        let (mut body, mut out, mut at) = (Body::new(Framing::Chunked, LIMITS), Vec::new(), 0);
        for cut in cuts.iter().cycle() {
            let piece = &input[at..(at + cut).min(input.len())];
            let step = body.advance(piece, &mut out).unwrap();
            if let Output::Verbatim(length) = step.output {
                out.extend_from_slice(&piece[..length]);
            }
            at += step.consumed;
            if step.done {
                break;
            }
        }
        prop_assert_eq!(&out, &whole);
        let (decoded, rest, _) = run(Body::decoding(Framing::Chunked, LIMITS), &whole, 7).unwrap();
        prop_assert_eq!((decoded, rest), (data, 0));
    }

    /// Input that is no chunked body is refused or waited for, never a panic, never more than was given.
    #[test]
    fn any_bytes(bytes in "[0-9a-f;\r\n \"x:]{0,60}", step in 1usize..20) {
        if let Ok((out, rest, _)) = run(Body::new(Framing::Chunked, LIMITS), bytes.as_bytes(), step) {
            prop_assert!(out.len() + rest <= bytes.len() + 4);
        }
    }
}
