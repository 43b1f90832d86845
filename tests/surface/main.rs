//! Is every public item of std's and loom's concurrency here, with its signature?
//!
//! The lists in `tests/surface/` name each item and how it is here. Modelled and re-exported items
//! are compiled with their signatures, once against std and once against `dpor`, so that neither
//! side of the list can be wrong; items that std has since a compiler newer than our oldest are
//! compiled against `dpor` only. `docs/SURFACE.md` is printed from the same lists; `DPOR_BLESS=1`
//! writes it anew.
//!
//! What std has not on every system is compiled `on` one that has it.
//! Where std and loom disagree a row is `of_std` or `of_loom`: with the feature `loom` the rows of
//! loom are compiled against `dpor`, and without it those of std. The behaviour of loom's
//! signatures is tested in `tests/surface/loom_signatures.rs`.

/// How an item is here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The model knows it.
    Modelled,
    /// It needs no model and is std's own, or one that does the same.
    Reexported,
    /// It is not here.
    Refused,
}

/// One row of the table.
struct Item {
    how: How,
    name: &'static str,
    /// Its methods, and the traits it implements.
    methods: Vec<&'static str>,
    traits: Vec<&'static str>,
    note: &'static str,
}

/// The items of a list, as values.
macro_rules! list {
    (@how modelled) => { crate::How::Modelled };
    (@how reexported) => { crate::How::Reexported };
    (@how refused) => { crate::How::Refused };
    (@row $item:ident impl $($trait:tt)*) => { $item.traits.push(stringify!($($trait)*)); };
    (@row $item:ident since $since:literal impl $($trait:tt)*) => {
        $item.traits.push(concat!(stringify!($($trait)*), " (", $since, ")"));
    };
    (@row $item:ident of_std $($row:tt)*) => { list!(@row $item $($row)*); };
    (@row $item:ident of_loom $($row:tt)*) => { list!(@row $item $($row)*); };
    (@row $item:ident on $os:literal $($row:tt)*) => { list!(@row $item $($row)*); };
    (@row $item:ident since $since:literal fn $name:ident $($rest:tt)*) => {
        list!(@row $item since $since $name);
    };
    (@row $item:ident since $since:literal $name:ident $($rest:tt)*) => {
        $item.methods.push(concat!(stringify!($name), " (", $since, ")"));
    };
    (@row $item:ident const unsafe $name:ident $($rest:tt)*) => {
        $item.methods.push(stringify!($name));
    };
    (@row $item:ident const $name:ident $($rest:tt)*) => { $item.methods.push(stringify!($name)); };
    (@row $item:ident fn $name:ident $($rest:tt)*) => { $item.methods.push(stringify!($name)); };
    (@row $item:ident $name:ident $($rest:tt)*) => { $item.methods.push(stringify!($name)); };
    ($($how:ident $name:literal $(as $ty:ty)? { $([ $($row:tt)* ])* } $($note:literal)?;)*) => {
        vec![$({
            #[allow(unused_mut)]
            let mut item = crate::Item {
                how: list!(@how $how),
                name: $name,
                methods: Vec::new(),
                traits: Vec::new(),
                note: concat!($($note)?),
            };
            $(list!(@row item $($row)*);)*
            item
        }),*]
    };
}

/// Code that compiles if every item of a list is there, against `std` or against `dpor`.
macro_rules! check {
    (@row $side:ident impl $($bound:tt)*) => {{
        fn holds<T: ?Sized + $($bound)*>() {}
        holds::<This>();
    }};
    (@row std of_std $($row:tt)*) => { check!(@row std $($row)*) };
    (@row $side:ident on $os:literal $($row:tt)*) => {
        #[cfg(target_os = $os)]
        {
            check!(@row $side $($row)*);
        }
    };
    (@row dpor of_std $($row:tt)*) => {
        #[cfg(not(any(loom, feature = "loom")))]
        {
            check!(@row dpor $($row)*);
        }
    };
    (@row dpor of_loom $($row:tt)*) => {
        #[cfg(any(loom, feature = "loom"))]
        {
            check!(@row dpor $($row)*);
        }
    };
    (@row std since $since:literal $($row:tt)*) => {};
    (@row dpor since $since:literal $($row:tt)*) => { check!(@row dpor $($row)*) };
    (@row $side:ident const unsafe $name:ident($($arg:ident: $ty:ty),*) -> $result:ty) => {{
        /// # Safety
        ///
        /// As the method of this name.
        const unsafe fn $name($($arg: $ty),*) -> $result {
            // SAFETY: the caller's contract is the method's.
            unsafe { <This>::$name($($arg),*) }
        }
        _ = $name;
    }};
    (@row $side:ident const fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty) => {{
        use $name as there;
        const fn here($($arg: $ty),*) -> $result {
            there($($arg),*)
        }
        _ = here;
    }};
    (@row $side:ident const $name:ident($($arg:ident: $ty:ty),*) -> $result:ty) => {{
        const fn $name($($arg: $ty),*) -> $result {
            <This>::$name($($arg),*)
        }
        _ = $name;
    }};
    (@row $side:ident fn $name:ident: $ty:ty) => { let _: $ty = $name; };
    (@row $side:ident $name:ident = $call:expr) => { _ = $call; };
    (@row $side:ident $name:ident: $ty:ty) => { let _: $ty = <This>::$name; };
    ($side:ident; $($how:ident $name:literal $(as $ty:ty)? { $([ $($row:tt)* ])* } $($note:literal)?;)*) => {
        $({
            $(
                #[allow(dead_code)]
                type This = $ty;
            )?
            $(check!(@row $side $($row)*);)*
        })*
    };
}

mod alloc;
mod arc;
mod atomic;
mod cell;
mod drop_in;
mod drop_in_atomic;
mod loom;
mod loom_signatures;
mod sync;
mod thread;
mod time;

/// The text of `docs/SURFACE.md`.
fn document() -> String {
    let mut out = String::from(
        "# What `dpor` has of std and loom\n\n\
         This page is generated from the lists in `tests/surface/`\n\
         (`DPOR_BLESS=1 cargo test --test surface` writes it). The same lists are compiled against std and\n\
         against `dpor`.\n\n\
         | status | meaning |\n\
         |---|---|\n\
         | modelled | inside a model, `dpor` explores it; outside a model, it does what std's does |\n\
         | re-exported | it needs no model: it is std's own, or does the same |\n\
         | refused | `dpor` does not have it, for the reason given |\n\n\
         A number after an item is the version of Rust in which std got it, if that is newer than the oldest\n\
         compiler that builds this crate. `dpor` has the item with every compiler, unless the row says otherwise.\n\n\
         **Std or loom.** Where std and loom disagree, `dpor` follows std. It follows loom instead\n\n\
         * with `--cfg loom`, with which users of loom compile their tests, or\n\
         * with the feature `loom`, for crates whose cfg has another name.\n\n\
         That changes the rows that begin with *loom's signature*, and what other rows say about it.\n",
    );
    let sections = [
        ("`std::sync`", sync::items()),
        ("`std::sync::Arc` and `Weak`", arc::items()),
        ("`std::sync::mpsc`", sync::queues()),
        ("`std::sync::atomic`", atomic::items()),
        ("`std::thread`", thread::items()),
        ("`std::time`", time::items()),
        ("`std::cell`", cell::items()),
        ("`std::hint` and `std::alloc`", alloc::items()),
        ("loom 0.7", loom::items()),
        (
            "What stable Rust does not let `dpor` do as std does",
            differences(),
        ),
    ];
    for (title, items) in sections {
        out += &format!("\n## {title}\n\n| item | status | remarks |\n|---|---|---|\n");
        for item in items {
            let how = match item.how {
                How::Modelled => "modelled",
                How::Reexported => "re-exported",
                How::Refused => "refused",
            };
            out += &format!("| {} | {how} | {} |\n", item.name, item.details());
        }
    }
    out
}

impl Item {
    fn details(&self) -> String {
        let code = |names: &[&str]| {
            let names = names.iter().map(|name| match name.split_once(" (1.") {
                Some((name, since)) => format!("`{}` (1.{since}", tidy(name)),
                None => format!("`{}`", tidy(name)),
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let mut parts = Vec::new();
        if !self.methods.is_empty() {
            parts.push(code(&self.methods));
        }
        if !self.traits.is_empty() {
            parts.push(code(&self.traits));
        }
        if !self.note.is_empty() {
            parts.push(self.note.to_owned());
        }
        parts.join("; ")
    }
}

/// A type as one writes it: the compiler's own way to space tokens differs between its versions.
fn tidy(tokens: &str) -> String {
    let mut out = String::new();
    for c in tokens.chars().filter(|&c| c != '\n') {
        let tight = |c: char| !c.is_alphanumeric() && c != '_' && c != '\'' && c != ' ';
        match (out.chars().last(), c) {
            (None, ' ') => {}
            (Some(before), ' ') if tight(before) || before == ' ' => {}
            (Some(' '), c) if tight(c) => {
                out.pop();
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    for (tight, wide) in [(",", ", "), (";", "; "), ("=", " = "), ("+", " + ")] {
        out = out.replace(tight, wide);
    }
    out.replace("&mut[", "&mut [")
        .replace("static[", "static [")
}

/// What differs although it is here.
fn differences() -> Vec<Item> {
    list! {
        refused "`Arc<T>` to `Arc<dyn Trait>` by itself" {}
            "needs `CoerceUnsized`. Write `Arc::from(Box::new(value) as Box<dyn Trait>)` or `Arc::from_std(std_arc)`";
        refused "`Weak<T>` to `Weak<dyn Trait>` by itself" {} "needs `CoerceUnsized`. `Arc::downgrade` makes one of an `Arc<dyn Trait>`";
        refused "`==` of an `Arc` with itself, without asking `T: Eq`" {}
            "needs specialisation: `T::eq` is called, as for a `T` that is only `PartialEq`";
        refused "methods with `self: Arc<Self>`" {}
            "need `Receiver`. Write `this: Arc<Self>`, or `&self` in a trait that is implemented for `Arc<T>`";
        refused "`Waker::from(Arc<impl Wake>)`, `RawWaker::from(Arc<impl Wake>)`" {}
            "`Wake` takes std's `Arc` by `self`. Make the waker from a `std::sync::Arc`; its methods may use `dpor`'s";
        refused "`#[may_dangle]` on `Arc`, `Weak`, `OnceLock`" {}
            "not stable: a value that borrows must be dropped before what it borrows, even if its destructor does not use the borrow";
        refused "`const` of `Cell::{get, replace}`" {} "an access informs the model";
        refused "`#[must_not_suspend]` on guards" {} "not stable";
        refused "the sizes of locks" {}
            "atomics and cells have std's size; locks are larger, because they hold what std's lock holds and their identity";
        refused "atomics of 64 bits on targets without them" {}
            "std does not have the types there; this crate does not build there";
    }
}

#[test]
fn the_documented_table_is_what_is_compiled() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/SURFACE.md");
    let printed = document();
    if std::env::var_os("DPOR_BLESS").is_some() {
        std::fs::write(path, &printed).expect("docs can be written");
    }
    let documented = std::fs::read_to_string(path).expect("docs/SURFACE.md exists");
    pretty_assertions::assert_eq!(documented, printed);
}

#[test]
fn nothing_is_listed_twice_and_every_refusal_has_a_reason() {
    let lists = [
        sync::items(),
        arc::items(),
        sync::queues(),
        atomic::items(),
        thread::items(),
        time::items(),
        cell::items(),
        alloc::items(),
        loom::items(),
    ];
    for items in lists {
        let mut names = std::collections::HashSet::new();
        for item in items {
            assert!(names.insert(item.name), "{} is listed twice", item.name);
            let refused = item.how == How::Refused;
            assert!(
                !refused || !item.note.is_empty(),
                "{} has no reason",
                item.name
            );
        }
    }
}
