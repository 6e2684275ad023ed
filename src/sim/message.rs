//! What a request says. Its head is written and read when somebody looks at it, and once for all requests of a kind that
//! say the same: most runs look at nothing but who asks.

use super::random::Dice;
use super::traffic::Asks;
use crate::decide::exchange::Idempotent;
use crate::http1::{Limits, Method, RequestHead, parse_request};
use std::fmt::Write as _;

/// Of the heads that a scenario writes.
const LIMITS: Limits = Limits {
    head_max: 64 << 10,
    request_line_max: 32 << 10,
    headers_max: 200,
};

/// What the newest request of a traffic says.
#[derive(Debug, Default)]
pub(super) struct Message<'w> {
    asks: Option<&'w Asks>,
    template: Template,
    numbers: Numbers,
    /// What `{key}` stands for.
    key: String,
    text: String,
    head: RequestHead,
    /// Whether `text` and `head` are this request's.
    is_read: bool,
    /// Whether fields of `head` were taken away.
    is_edited: bool,
}

/// What the placeholders of one request stand for, besides its key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) client: u32,
    pub(super) request: u64,
}

impl<'w> Message<'w> {
    /// The next request, which looks like this; `None` where nobody looks at it. Its key is drawn in any case.
    pub(super) fn begin(&mut self, asks: Option<&'w Asks>, numbers: Numbers, dice: &mut Dice) {
        let is_same = match (self.asks, asks) {
            (Some(before), Some(now)) => std::ptr::eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if !is_same {
            self.template = asks.map(Template::of).unwrap_or_default();
            self.is_read = false;
        }
        self.is_read &= self.template.is_constant() && !std::mem::take(&mut self.is_edited);
        (self.asks, self.numbers) = (asks, numbers);
        self.key.clear();
        if let Some(asks) = asks {
            asks.keys.write(dice, &mut self.key);
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Whether it may be sent twice; so it is where nobody looks at it.
    pub(super) fn idempotent(&mut self) -> Idempotent {
        let is_idempotent = match (self.asks, self.template.method) {
            (None, _) => true,
            (Some(_), Some(method)) => method.is_idempotent(),
            (Some(_), None) => self.head().0.method.is_idempotent(),
        };
        if is_idempotent {
            Idempotent::Yes
        } else {
            Idempotent::No
        }
    }

    /// Its head, and the bytes that the head's spans mean.
    pub(super) fn head(&mut self) -> (&RequestHead, &[u8]) {
        self.read();
        (&self.head, self.text.as_bytes())
    }

    /// Takes fields away, of this request only.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut RequestHead, &[u8])) {
        self.read();
        self.is_edited = true;
        edit(&mut self.head, self.text.as_bytes());
    }

    /// The head in one line: method, target, and the fields other than `host`. Empty where nobody looks at it.
    pub(super) fn shown(&mut self) -> String {
        if self.asks.is_none() {
            return String::new();
        }
        self.read();
        let mut lines = self.text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let mut shown = first.trim_end_matches(" HTTP/1.1").to_owned();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("host:")) {
            shown.push(' ');
            shown.push_str(&line.replacen(": ", "=", 1));
        }
        // A transcript is text: what would move the cursor of whoever reads it does not.
        shown.replace(|it: char| it.is_control(), "?")
    }

    fn read(&mut self) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        self.text.clear();
        self.template.fill(&self.key, self.numbers, &mut self.text);
        parse_request(self.text.as_bytes(), &LIMITS, &mut self.head)
            .unwrap_or_else(|refusal| panic!("a scenario's request is checked when it is read: {refusal:?}"));
    }
}

/// A head with its placeholders found.
#[derive(Debug, Default)]
struct Template {
    pieces: Vec<Piece>,
    /// Unless a placeholder is in it.
    method: Option<Method>,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Key,
    Client,
    Number,
}

impl Template {
    fn of(asks: &Asks) -> Template {
        let mut template = Template::default();
        template.add(&asks.method);
        template.method = template.is_constant().then(|| Method::of(asks.method.as_bytes()));
        for text in [" ", &asks.target, " HTTP/1.1\r\nhost: ", &asks.host, "\r\n"] {
            template.add(text);
        }
        for (name, value) in &asks.headers {
            for text in [name, ": ", value, "\r\n"] {
                template.add(text);
            }
        }
        template.add("\r\n");
        template
    }

    /// Whether it says the same for each request.
    fn is_constant(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    fn add(&mut self, text: &str) {
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            self.add_text(&rest[..open]);
            rest = &rest[open..];
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            match &rest[..end] {
                "{key}" => self.pieces.push(Piece::Key),
                "{client}" => self.pieces.push(Piece::Client),
                "{n}" => self.pieces.push(Piece::Number),
                other => self.add_text(other),
            }
            rest = &rest[end..];
        }
        self.add_text(rest);
    }

    fn add_text(&mut self, more: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(more),
            _ => self.pieces.push(Piece::Text(more.to_owned())),
        }
    }

    fn fill(&self, key: &str, numbers: Numbers, out: &mut String) {
        for piece in &self.pieces {
            // Writing to a String does not fail.
            let _ = match piece {
                Piece::Text(text) => out.write_str(text),
                Piece::Key => out.write_str(key),
                Piece::Client => write!(out, "{}", numbers.client),
                Piece::Number => write!(out, "{}", numbers.request),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::traffic::Keys;

    const NUMBERS: Numbers = Numbers {
        client: 3,
        request: 12,
    };

    fn asks(method: &str, target: &str) -> Asks {
        Asks {
            method: method.into(),
            host: "app.test".into(),
            target: target.into(),
            headers: vec![("x-client".into(), "c{client}".into())],
            keys: Keys::Of(vec!["ann".into()]),
        }
    }

    fn said(message: &mut Message<'_>) -> String {
        String::from_utf8(message.head().1.to_vec()).unwrap()
    }

    #[test]
    fn placeholders_are_filled_in() {
        let asks = asks("GET", "/users/{key}?n={n}&c={other}");
        let mut message = Message::default();
        message.begin(Some(&asks), NUMBERS, &mut Dice::new(1));
        assert_eq!(
            said(&mut message),
            "GET /users/ann?n=12&c={other} HTTP/1.1\r\nhost: app.test\r\nx-client: c3\r\n\r\n"
        );
        assert_eq!(message.shown(), "GET /users/ann?n=12&c={other} x-client=c3");
    }

    /// A head is never that of the request before, whoever looked at which.
    #[test]
    fn each_request_says_its_own() {
        let (one, other) = (
            asks("GET", "/{n}"),
            Asks {
                headers: vec![],
                ..asks("POST", "/all")
            },
        );
        let (mut message, mut dice) = (Message::default(), Dice::new(1));
        let number = |request| Numbers { request, ..NUMBERS };
        for (asks, request, target) in [
            (&one, 1, "/1"),
            (&one, 2, "/2"),
            (&other, 3, "/all"),
            (&other, 4, "/all"),
            (&one, 5, "/5"),
        ] {
            message.begin(Some(asks), number(request), &mut dice);
            if request != 1 {
                assert!(said(&mut message).contains(&format!(" {target} ")), "{request}");
            }
            let expected = if std::ptr::eq(asks, &other) {
                Idempotent::No
            } else {
                Idempotent::Yes
            };
            assert_eq!(message.idempotent(), expected);
        }
        message.begin(None, number(6), &mut dice);
        assert_eq!(
            (message.shown(), message.idempotent()),
            (String::new(), Idempotent::Yes)
        );
    }

    /// What the first of a kind said was read, and stands for all of them; what was taken from one is there in the next.
    #[test]
    fn a_kind_that_says_the_same_is_read_once() {
        let asks = Asks {
            headers: vec![("x-mark".into(), "1".into())],
            ..asks("GET", "/all")
        };
        let (mut message, mut dice) = (Message::default(), Dice::new(1));
        let marks = |message: &mut Message<'_>| {
            let (head, bytes) = message.head();
            head.values(bytes, b"x-mark").count()
        };
        message.begin(Some(&asks), NUMBERS, &mut dice);
        assert!(!message.is_read);
        assert_eq!(marks(&mut message), 1);
        message.begin(Some(&asks), NUMBERS, &mut dice);
        assert!(message.is_read);
        message.edit(|head, bytes| head.drop_named(bytes, b"x-mark"));
        assert_eq!(marks(&mut message), 0);
        message.begin(Some(&asks), NUMBERS, &mut dice);
        assert_eq!(marks(&mut message), 1);
    }
}
