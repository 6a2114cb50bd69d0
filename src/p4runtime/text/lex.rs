//! Words, numbers, strings and punctuation of protobuf text format, with their places.
//! In: a text. Out: tokens, one ahead. Must not know messages.

use super::{Place, TextError, What};
use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name: letters, digits, underscores.
    Word(String),
    /// A number as written, without sign.
    Number(String),
    /// A string with its escapes resolved.
    Text(Vec<u8>),
    /// Any other single character that the format uses.
    Punct(char),
    /// The end of the text.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) | Self::Number(word) => write!(f, "'{word}'"),
            Self::Text(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Punct(c) => write!(f, "'{c}'"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Reads tokens, always holding the next one.
pub(super) struct Lexer<'t> {
    chars: Peekable<Chars<'t>>,
    /// Where `chars` stands.
    here: Place,
    next: Token,
    /// Where `next` starts.
    start: Place,
}

impl<'t> Lexer<'t> {
    /// Starts at the first token.
    pub(super) fn new(text: &'t str) -> Result<Self, TextError> {
        let here = Place { line: 1, column: 1 };
        let chars = text.chars().peekable();
        let mut lexer = Self { chars, here, next: Token::End, start: here };
        lexer.next()?;
        Ok(lexer)
    }

    /// The next token.
    pub(super) fn peek(&self) -> &Token {
        &self.next
    }

    /// Where the next token starts.
    pub(super) fn place(&self) -> Place {
        self.start
    }

    /// Takes the next token and reads the one after.
    pub(super) fn next(&mut self) -> Result<Token, TextError> {
        self.skip_space();
        self.start = self.here;
        let token = match self.chars.peek().copied() {
            None => Token::End,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => Token::Word(self.run()),
            Some(c) if c.is_ascii_digit() => Token::Number(self.run()),
            Some(quote @ ('"' | '\'')) => Token::Text(self.string(quote)?),
            Some(c) if "{}<>[]:,;-/.".contains(c) => {
                self.advance();
                Token::Punct(c)
            }
            Some(c) => return Err(TextError { place: self.here, what: What::Character(c) }),
        };
        Ok(std::mem::replace(&mut self.next, token))
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        if c == '\n' {
            self.here = Place { line: self.here.line + 1, column: 1 };
        } else {
            self.here.column += 1;
        }
        Some(c)
    }

    fn skip_space(&mut self) {
        while let Some(c) = self.chars.peek().copied() {
            if c == '#' {
                while self.chars.peek().is_some_and(|c| *c != '\n') {
                    self.advance();
                }
            } else if c.is_whitespace() || c == '\u{feff}' {
                self.advance();
            } else {
                return;
            }
        }
    }

    fn run(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) =
            self.chars.peek().copied().filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            word.push(c);
            self.advance();
        }
        word
    }

    fn string(&mut self, quote: char) -> Result<Vec<u8>, TextError> {
        let open = self.here;
        self.advance();
        let mut bytes = Vec::new();
        loop {
            match self.advance() {
                None | Some('\n') => {
                    return Err(TextError { place: open, what: What::OpenString(quote) });
                }
                Some(c) if c == quote => return Ok(bytes),
                Some('\\') => self.escape(&mut bytes)?,
                Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), TextError> {
        let place = self.here;
        let bad = |text: String| TextError { place, what: What::Escape(text) };
        let Some(c) = self.advance() else { return Err(bad(String::new())) };
        let simple = match c {
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'a' => Some(7),
            'b' => Some(8),
            'f' => Some(12),
            'v' => Some(11),
            '"' | '\'' | '\\' | '?' => u8::try_from(c).ok(),
            _ => None,
        };
        if let Some(byte) = simple {
            bytes.push(byte);
            return Ok(());
        }
        let (most, radix) = match c {
            '0'..='7' => (3, 8),
            'x' | 'X' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            _ => return Err(bad(c.to_string())),
        };
        let mut digits = if radix == 8 { c.to_string() } else { String::new() };
        while digits.len() < most
            && let Some(digit) = self.chars.peek().copied().filter(|digit| digit.is_digit(radix))
        {
            digits.push(digit);
            self.advance();
        }
        let written = if radix == 8 { digits.clone() } else { format!("{c}{digits}") };
        let value = u32::from_str_radix(&digits, radix).map_err(|_| bad(written.clone()))?;
        if matches!(c, 'u' | 'U') {
            let full = digits.len() == most;
            let letter = char::from_u32(value).filter(|_| full).ok_or_else(|| bad(written))?;
            bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            bytes.push(u8::try_from(value).map_err(|_| bad(written))?);
        }
        Ok(())
    }
}
