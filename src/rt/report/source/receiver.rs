//! How does the program write the object that a method is called on?
//!
//! The text before the dot is read from its end, one link of the chain after the other:
//! `self.slots[i].seq`. A part that only goes through a pointer does not belong to the name:
//! `unsafe { &*node }.next` and `(*node).next` are both `node.next`, and so is
//! `node.as_ref().unwrap().next`.

/// Methods without arguments, and unwrapping methods of an option, that return the value behind the
/// expression before them.
const REACHES: [&str; 7] = [
    "as_ref",
    "as_mut",
    "as_deref",
    "as_pin",
    "unwrap",
    "unwrap_unchecked",
    "expect",
];

/// Whether the expression at the end of this text begins further above.
pub(super) fn begins_above(text: &str) -> bool {
    let text = text.trim();
    if text.starts_with(['.', '?']) {
        return true;
    }
    let mut open = 0;
    for (_, c) in outside_strings(text) {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' if open == 0 => return true,
            ')' | ']' | '}' => open -= 1,
            _ => {}
        }
    }
    false
}

/// An object as the program writes it.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Receiver {
    pub(in super::super) name: String,
    /// The part behind the pointer that leads to the object, or behind the first name: the field,
    /// whatever the pointer is.
    pub(in super::super) field: Option<String>,
    /// Whether the part before the field is certainly a pointer.
    pub(in super::super) by_pointer: bool,
}

impl Receiver {
    /// The object at the end of this text, in front of the dot of a method call.
    pub(super) fn of(text: &str) -> Option<Receiver> {
        let (_, chain) = Chain::of(text);
        let name = chain.text(chain.links.len());
        if name.is_empty() {
            return None;
        }
        let (field, by_pointer) = match chain.reached {
            Some((reached, by)) => (chain.text(reached), by == By::Pointer),
            None => {
                let behind = name.split_once('.');
                (
                    behind.map_or_else(String::new, |(_, field)| field.to_owned()),
                    false,
                )
            }
        };
        Some(Receiver {
            name,
            field: (!field.is_empty()).then_some(field),
            by_pointer,
        })
    }
}

/// A chain of fields, calls and indices.
#[derive(Default)]
struct Chain {
    /// The names, the brackets and the dots, from the last one to the first.
    links: Vec<String>,
    /// The number of links behind the last pointer or the last call that the chain goes through.
    reached: Option<(usize, By)>,
}

/// The kind of expression that gives the place which the rest of a chain is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Pointer,
    Call,
}

impl Chain {
    /// The chain at the end of the text, and the text before the chain.
    fn of(text: &str) -> (&str, Chain) {
        let mut rest = text.trim_end();
        let mut chain = Chain::default();
        loop {
            rest = rest.trim_end_matches('?').trim_end();
            if let Some((before, name)) = name_at_end(rest) {
                chain.links.push(name.to_owned());
                rest = before;
            } else {
                let Some(open) = opened(rest) else {
                    break;
                };
                let (before, brackets) = rest.split_at(open);
                let named = name_at_end(before).filter(|_| !brackets.starts_with('{'));
                match named {
                    Some((before, name)) if brackets.starts_with('(') => {
                        let reaches = before.strip_suffix('.').filter(|_| REACHES.contains(&name));
                        if let Some(before) = reaches {
                            chain.goes_through(By::Pointer);
                            rest = before.trim_end();
                            continue;
                        }
                        chain.goes_through(By::Call);
                        chain.links.push(format!("{name}{brackets}"));
                        rest = before;
                    }
                    // The indexed expression comes next.
                    _ if brackets.starts_with('[') => {
                        rest = before;
                        // The result of a macro has no name.
                        if before.ends_with('!') {
                            break;
                        }
                        chain.links.push(brackets.to_owned());
                        continue;
                    }
                    _ => {
                        rest = chain.enter(before, brackets).unwrap_or(rest);
                        break;
                    }
                }
            }
            let Some(before) = rest.trim_end().strip_suffix('.') else {
                break;
            };
            rest = before.trim_end();
            chain.links.push(".".to_owned());
        }
        (rest, chain)
    }

    /// The rest of the chain is a part of the result of `by`.
    fn goes_through(&mut self, by: By) {
        self.reached.get_or_insert((self.links.len(), by));
    }

    /// Continues with the content of brackets or of an unsafe block, if that is only an object that
    /// is borrowed or behind a pointer. Returns the text before it.
    fn enter<'a>(&mut self, before: &'a str, brackets: &str) -> Option<&'a str> {
        let before = if brackets.starts_with('{') {
            before.trim_end().strip_suffix("unsafe")?
        } else {
            before
        };
        let inside = brackets.get(1..brackets.len() - 1)?.trim();
        let mut place = inside;
        loop {
            let shorter = place.trim_start_matches(['&', '*']).trim_start();
            let shorter = shorter.strip_prefix("mut ").unwrap_or(shorter).trim_start();
            if shorter == place {
                break;
            }
            place = shorter;
        }
        let (rest, inner) = Chain::of(place);
        if !rest.is_empty() || inner.links.is_empty() {
            return None;
        }
        if inside[..inside.len() - place.len()].contains('*') {
            self.goes_through(By::Pointer);
        }
        let len = self.links.len();
        let reached = inner.reached.map(|(reached, by)| (len + reached, by));
        self.reached = self.reached.or(reached);
        self.links.extend(inner.links);
        Some(before)
    }

    /// The text of the last `count` links.
    fn text(&self, count: usize) -> String {
        let links: Vec<&str> = (self.links[..count].iter().rev())
            .map(String::as_str)
            .collect();
        links.concat().trim_matches('.').to_owned()
    }
}

/// The path of names at the end of the text, and the text before the path.
fn name_at_end(text: &str) -> Option<(&str, &str)> {
    // The type arguments of a generic function say nothing about the object, but they belong to the
    // name of the function.
    let types = text.ends_with('>').then(|| text.rfind("::<")).flatten();
    let end = types.unwrap_or(text.len());
    let of_a_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let start = text[..end].trim_end_matches(of_a_path).len();
    let (before, name) = text[..end].split_at(start);
    let is_name = name.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    is_name.then_some((before, name))
}

/// The position of the bracket that the last bracket of the text closes.
fn opened(text: &str) -> Option<usize> {
    if !text.ends_with([')', ']', '}']) {
        return None;
    }
    let brackets = outside_strings(text).filter(|(_, c)| "()[]{}".contains(*c));
    let mut open: Vec<usize> = Vec::new();
    let mut last = None;
    for (at, c) in brackets {
        match c {
            '(' | '[' | '{' => open.push(at),
            _ => last = open.pop(),
        }
    }
    last
}

/// The characters of the text outside quotation marks, with their positions.
fn outside_strings(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut inside, mut escaped) = (false, false);
    text.char_indices().filter(move |&(_, c)| {
        let is_mark = c == '"' && !escaped;
        escaped = inside && c == '\\' && !escaped;
        inside ^= is_mark;
        !inside && !is_mark
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_the_chain_before_the_dot() {
        for (text, expected) in [
            ("self.head", Some("self.head")),
            ("let x = self.slots[i].seq", Some("self.slots[i].seq")),
            (
                "if !self.slots[i % N][j].seq",
                Some("self.slots[i % N][j].seq"),
            ),
            ("f(a, pair.0", Some("pair.0")),
            (
                "match self.get(i, \")\").flag",
                Some("self.get(i, \")\").flag"),
            ),
            ("for i in 0..n", Some("n")),
            ("|x| x", Some("x")),
            ("Self::GLOBAL", Some("Self::GLOBAL")),
            ("make::<Vec<u8>>().flag", Some("make().flag")),
            ("self.get()?.flag", Some("self.get().flag")),
            ("self.list.await.head", Some("self.list.await.head")),
            ("vec![1].head", Some("head")),
            ("match x { _ => y }.head", Some("head")),
            ("", None),
            ("\"text\"", None),
            ("+", None),
        ] {
            let name = Receiver::of(text).map(|it| it.name);
            assert_eq!(name.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_only_reaches_through_a_pointer_is_no_part_of_a_name() {
        for (text, expected) in [
            ("unsafe { &*tail }.next", "tail.next"),
            ("unsafe { &*self.tail.get() }", "self.tail.get()"),
            ("unsafe { tail.as_ref() }.next", "tail.next"),
            ("let a = unsafe { (*tail).next", "tail.next"),
            ("(*tail).next", "tail.next"),
            ("(&mut *tail)", "tail"),
            ("(*(*node).prev).next", "node.prev.next"),
            ("f(*node).next", "f(*node).next"),
            ("node.as_ref().unwrap().next", "node.next"),
            ("self.node.expect(\"it (is\").next", "self.node.next"),
            ("(a + b).next", "next"),
            ("unsafe { a; b }.next", "next"),
        ] {
            let name = Receiver::of(text).map(|it| it.name);
            assert_eq!(name.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_field_is_what_is_behind_the_last_pointer() {
        for (text, expected, by_pointer) in [
            ("self.next", Some("next"), false),
            ("node.slots[i].seq", Some("slots[i].seq"), false),
            ("unsafe { &*self.tail.get() }.next", Some("next"), true),
            ("unsafe { &(*node).next }", Some("next"), true),
            ("(*(*node).prev).link.next", Some("link.next"), true),
            ("(*self.tail.get()).next", Some("next"), true),
            ("(&self.tail.next)", Some("tail.next"), false),
            ("self.tail.as_ref().unwrap().next", Some("next"), true),
            ("self.node().links[1]", Some("links[1]"), false),
            ("self.tail.get()", None, false),
            ("(*node)", None, true),
            ("next", None, false),
        ] {
            let it = Receiver::of(text).expect("it has a name");
            let found = (it.field.as_deref(), it.by_pointer);
            assert_eq!(found, (expected, by_pointer), "{text}");
        }
    }

    #[test]
    fn a_chain_goes_on_above_where_a_line_begins_with_a_dot_or_closes_what_it_has_not_opened() {
        for text in [
            ".next",
            "  .next.",
            "}.next",
            "i % N].next",
            ")?.next",
            "?.next",
        ] {
            assert!(begins_above(text), "{text}");
        }
        for text in [
            "self.next",
            "unsafe { &*p }.next",
            "f(a).b[1]",
            "f(\")\").b",
            "{ a.b",
        ] {
            assert!(!begins_above(text), "{text}");
        }
    }
}
