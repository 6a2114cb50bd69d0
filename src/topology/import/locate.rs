//! Where an element of a JSON text stands.
//!
//! In: text that `serde_json` has accepted, and the way to an element. Out: line and column. `serde_json` reports places
//! of syntax errors only. Must not know: what the elements mean.

/// One step into a JSON value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// A key of an object.
    Key(&'a str),
    /// An index of an array.
    Index(usize),
}

/// Line and column (from 1) of the element, or of the deepest part of the way that exists.
pub(super) fn locate(text: &str, way: &[Step<'_>]) -> (u64, u64) {
    let mut cursor = Cursor { bytes: text.as_bytes(), at: 0 };
    cursor.space();
    for step in way {
        let back = cursor.at;
        if cursor.enter(*step).is_none() {
            cursor.at = back;
            break;
        }
    }
    let before = &text.as_bytes()[..cursor.at.min(text.len())];
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|&&byte| byte != b'\n').count();
    (line as u64, column as u64)
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while self.peek().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    /// Passes a string and returns its raw bytes between the quotes.
    fn string(&mut self) -> &[u8] {
        let start = self.at + 1;
        self.at = start;
        while self.at < self.bytes.len() && self.peek() != b'"' {
            self.at += if self.peek() == b'\\' { 2 } else { 1 };
        }
        let end = self.at.min(self.bytes.len());
        self.at += 1;
        &self.bytes[start.min(end)..end]
    }

    /// Passes any value: brackets are balanced in valid JSON, so counting them outside strings is enough.
    fn skip(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match self.peek() {
                b'"' => {
                    self.string();
                    self.at -= 1;
                }
                b'[' | b'{' => depth += 1,
                b']' | b'}' | b',' if depth == 0 => return,
                b']' | b'}' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    fn enter(&mut self, step: Step<'_>) -> Option<()> {
        let open = self.peek();
        self.at += 1;
        let mut index = 0;
        loop {
            self.space();
            if matches!(self.peek(), b']' | b'}' | 0) {
                return None;
            }
            let found = match step {
                Step::Key(key) if open == b'{' => self.string() == key.as_bytes(),
                Step::Index(wanted) if open == b'[' => index == wanted,
                _ => return None,
            };
            if open == b'{' {
                self.space();
                self.at += 1; // the colon
                self.space();
            }
            if found {
                return Some(());
            }
            self.skip();
            self.space();
            self.at += usize::from(self.peek() == b',');
            index += 1;
        }
    }
}
