//! The part of STF (the P4 community's switch tests) that our files use. In: text. Out: commands with their line. Must not
//! know a switch. Everything else is refused with its line, so that a test never passes because a line was skipped.

/// A key or an argument: `name:value`.
pub type Named = (String, u128);

/// What an `expect` line wants on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// One per nibble; `None` = any.
    pub nibbles: Vec<Option<u8>>,
    /// `$`: nothing may follow.
    pub exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Add { table: String, priority: i32, keys: Vec<Named>, action: String, args: Vec<Named> },
    Packet { port: u16, bytes: Vec<u8> },
    Expect { port: u16, pattern: Pattern },
}

/// Commands in order, each with its line number from 1.
pub fn parse(text: &str) -> Result<Vec<(usize, Command)>, String> {
    let mut commands = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let command = command(line).map_err(|why| format!("line {}: {why}", number + 1))?;
        commands.push((number + 1, command));
    }
    Ok(commands)
}

fn command(line: &str) -> Result<Command, String> {
    let (verb, rest) = line.split_once(' ').ok_or_else(|| format!("nothing after `{line}`"))?;
    match verb {
        "add" | "setdefault" => add(rest),
        "packet" => {
            let (port, data) = port(rest)?;
            let nibbles = pattern(data)?.nibbles;
            let nibbles: Option<Vec<u8>> = nibbles.into_iter().collect();
            let nibbles = nibbles.ok_or("a packet cannot hold `*`")?;
            if !nibbles.len().is_multiple_of(2) {
                return Err("half a byte is left over".to_owned());
            }
            let bytes = nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
            Ok(Command::Packet { port, bytes })
        }
        "expect" => {
            let (port, data) = port(rest)?;
            Ok(Command::Expect { port, pattern: pattern(data)? })
        }
        other => Err(format!("`{other}` is not among add, setdefault, packet, expect")),
    }
}

fn port(rest: &str) -> Result<(u16, &str), String> {
    let (port, data) = rest.split_once(' ').ok_or("no data after the port")?;
    let port = port.parse().map_err(|_| format!("`{port}` is no port number"))?;
    Ok((port, data))
}

fn pattern(data: &str) -> Result<Pattern, String> {
    let data = data.trim();
    let (data, exact) = match data.strip_suffix('$') {
        Some(data) => (data, true),
        None => (data, false),
    };
    let mut nibbles = Vec::new();
    for c in data.chars().filter(|c| !c.is_whitespace()) {
        nibbles.push(match (c, c.to_digit(16)) {
            ('*', _) => None,
            (_, Some(digit)) => u8::try_from(digit).ok(),
            _ => return Err(format!("`{c}` is no hexadecimal digit")),
        });
    }
    Ok(Pattern { nibbles, exact })
}

fn add(rest: &str) -> Result<Command, String> {
    let (head, args) = rest
        .strip_suffix(')')
        .and_then(|rest| rest.split_once('('))
        .ok_or("no action with its arguments in parentheses")?;
    let mut words: Vec<&str> = head.split_whitespace().collect();
    let action = words.pop().ok_or("no action")?.to_owned();
    let mut words = words.into_iter().peekable();
    let table = words.next().ok_or("no table")?.to_owned();
    let priority = words.next_if(|word| !word.contains(':')).unwrap_or("0");
    let priority = priority.parse().map_err(|_| format!("`{priority}` is no priority"))?;
    let args = args.split(',').map(str::trim).filter(|arg| !arg.is_empty());
    Ok(Command::Add {
        table,
        priority,
        keys: words.map(named).collect::<Result<_, _>>()?,
        action,
        args: args.map(named).collect::<Result<_, _>>()?,
    })
}

fn named(word: &str) -> Result<Named, String> {
    let (name, value) = word.split_once(':').ok_or_else(|| format!("`{word}` has no `:`"))?;
    let number = match value.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => value.parse(),
    };
    Ok((name.to_owned(), number.map_err(|_| format!("`{value}` is no number"))?))
}
