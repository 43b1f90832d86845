//! What are the small programs and the families, and how many graphs do they have?

/// Each with its graphs under SC and under RC11.
pub(in super::super) const SMALL: &[(&str, usize, usize)] = &[
    // Stores that nothing orders.
    ("W x 1 ∥ W x 2 ∥ W x 3", 6, 6),
    (
        "W x 1 ∥ W x 2 ∥ W x 3 ∥ a=R x; b=R x; c=R x; d=R x",
        210,
        210,
    ),
    // Read-modify-writes.
    (
        "a=A x 1 ∥ b=A x 1 ∥ W x 4 ∥ c=R x; d=R x ∥ e=R x; f=R x",
        600,
        600,
    ),
    (
        "a=A x 1; b=A x 1 ∥ c=A x 1; d=A x 1 ∥ e=A x 1 ∥ f=A x 1",
        180,
        180,
    ),
    ("W x 5 ∥ a=C x 1 2 ∥ b=A x 1 ∥ c=A x 1", 24, 24),
    // Where pairs of old events matter.
    (T2, 34, 39),
    (T3, 22, 22),
    (T4, 86, 86),
    // Awaits. Under SC they are blocked in more executions.
    (T5, 4, 3),
    (T6, 14, 6),
    // What spawns and joins order. Start and end of a thread are events of no location: without
    // them the axiom on `SeqCst` would allow one more graph of the last two.
    ("W x 1; S 1 ∥ a=R x", 1, 1),
    ("W x 1; S 1 ∥ a=R y ∥ W y 1; b=R x", 3, 4),
    ("J 1; a=R x ∥ W x 1", 1, 1),
    ("W x 1 sc; S 1 ∥ a=R y sc ∥ W y 1 sc; b=R x sc", 3, 3),
    ("J 2; a=R y sc ∥ W y 1 sc; b=R x sc ∥ W x 1 sc", 3, 3),
    // A deadlock is an execution under SC only.
    ("await y==0 ∥ W y 1", 2, 1),
    // Each has one execution under SC, a deadlock, and another one under RC11.
    ("W x 1; W x 2; W y 1 ∥ await y==1; await x==1", 1, 1),
];

const T2: &str = "W y 2; a=C y 0 2 sc acq; b=X x 2 sc ∥ c=A x 1 sc; W x 2 sc ∥ \
                             W x 1; d=C x 0 2 rel sc; ?d==2 e=C y 1 1 sc rlx";
const T3: &str = "a=C y 0 1 rlx sc; W x 2; W x 2 ∥ b=C x 0 2 rel rlx ∥ c=R x sc; d=C x 0 1 acq rlx";
pub(in super::super) const T4: &str =
    "W y 1; a=R y acq ∥ W y 2 sc; b=R y sc; c=R y acq ∥ d=R y; e=X y 2 rel";
pub(in super::super) const T5: &str = "W x 1; W x 2; F sc; await y==0 ∥ W y 1; F sc; a=R x";
pub(in super::super) const T6: &str = "W y 1; F sc; await z==0 ∥ W z 1; F sc; a=R x sc; await y==0 ∥ \
                             W y 1; F sc; await z==0; b=R z";

/// How the accesses of a family that have an ordering at all are ordered, in the order of the
/// table's columns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) enum Column {
    Sc,
    Relaxed,
    ReleaseAcquire,
    Fences,
    SeqCst,
}

impl Column {
    /// The program with `{s}` and `{l}` as the orderings of stores and loads. What is behind `{f}`
    /// up to the next `;` is left out if there are no fences.
    pub(in super::super) fn apply(self, text: &str) -> String {
        let (store, load) = match self {
            Column::Sc | Column::Relaxed => ("rlx", "rlx"),
            Column::ReleaseAcquire | Column::Fences => ("rel", "acq"),
            Column::SeqCst => ("sc", "sc"),
        };
        let text = text.replace("{s}", store).replace("{l}", load);
        let mut parts = text.split("{f}");
        let mut applied = parts.next().unwrap_or("").to_owned();
        for part in parts {
            let rest = part.split_once(';').expect("a fence ends with ;").1;
            applied += if self == Column::Fences { part } else { rest };
        }
        applied
    }
}

/// All columns.
pub(in super::super) const COLUMNS: [Column; 5] = [
    Column::Sc,
    Column::Relaxed,
    Column::ReleaseAcquire,
    Column::Fences,
    Column::SeqCst,
];

fn threads(n: usize, of: impl Fn(usize) -> String) -> String {
    (0..n).map(of).collect::<Vec<_>>().join(" ∥ ")
}

pub(in super::super) fn readers(n: usize) -> String {
    format!(
        "W x 1 {{s}} ∥ {}",
        threads(n, |i| format!("r{i}=R x {{l}}"))
    )
}

/// One thread looks from the last element of an array down for one that is zero, which each of the
/// others makes one more than the element before.
pub(in super::super) fn lastzero(n: usize) -> String {
    let look = (0..n).fold("r0=R x0 {l}".to_owned(), |inner, i| {
        format!("r{0}=R x{0} {{l}}; ?r{0}!=0 {{ {inner} }}", i + 1)
    });
    let one = |i: usize| format!("s{i}=R x{i} {{l}}; W x{} s{i}+1 {{s}}", i + 1);
    format!("{look} ∥ {}", threads(n, one))
}

pub(in super::super) fn store_buffering(n: usize) -> String {
    threads(n, |i| {
        format!("W x{i} 1 {{s}}; {{f}}F sc; r{i}=R x{} {{l}}", (i + 1) % n)
    })
}

/// A message that is handed on so many times.
fn chain(n: usize) -> String {
    let relay = |i: usize| {
        let goes_on = if i + 1 == n {
            "b=R x".to_owned()
        } else {
            format!("W f{} 1 {{s}}", i + 1)
        };
        format!("r{i}=R f{i} {{l}}; ?r{i}==1 {goes_on}")
    };
    format!("W x 1; W f0 1 {{s}} ∥ {}", threads(n, relay))
}

fn ticket_lock(n: usize) -> String {
    threads(n, |i| {
        format!("t{i}=A next 1; await serving==t{i} {{l}}; D c; W serving t{i}+1 {{s}}")
    })
}

fn spin_lock(n: usize) -> String {
    threads(n, |_| "L m {l}; D c; W m 0 {s}".to_owned())
}

fn try_once(n: usize) -> String {
    threads(n, |i| {
        format!("r{i}=C m 0 1 {{l}} rlx; ?r{i}==0 {{ D c; W m 0 {{s}} }}")
    })
}

fn in_a_lock(n: usize) -> String {
    threads(n, |i| format!("L m acq; r{i}=R x; W x r{i}+1; W m 0 rel"))
}

pub(in super::super) fn seqlock(readers: usize) -> String {
    let reader = |i: usize| format!("a{i}=R s {{l}}; b{i}=R d; c{i}=R e; {{f}}F acq; d{i}=R s");
    let writer = "W s 1; {f}F rel; W d 1; W e 1; W s 2 {s}";
    format!("{writer} ∥ {}", threads(readers, reader))
}

const DEKKER: &str =
    "W x 1 {s}; {f}F sc; a=R y {l}; ?a==0 D c ∥ W y 1 {s}; {f}F sc; b=R x {l}; ?b==0 D c";

fn peterson() -> String {
    threads(2, |i| {
        let other = 1 - i;
        format!(
            "W f{i} 1 {{s}}; W turn {other} {{s}}; {{f}}F sc; a{i}=R f{other} {{l}}; ?a{i}==0 D c; \
             ?a{i}!=0 {{ b{i}=R turn {{l}}; ?b{i}=={i} D c }}"
        )
    })
}

fn chase_lev(thieves: usize) -> String {
    let owner =
        "W q 7; W b 1 {s}; W b 0; {f}F sc; a=R t; ?a==0 { c=C t 0 1 sc rlx; ?c==0 D q; W b 1 }";
    let thief = |i: usize| {
        format!(
            "a{i}=R t {{l}}; {{f}}F sc; b{i}=R b {{l}}; ?b{i}!=0 {{ q{i}=R q; ?a{i}==0 {{ c{i}=C t 0 1 sc rlx; ?c{i}==0 D q }} }}"
        )
    };
    format!("{owner} ∥ {}", threads(thieves, thief))
}

fn coa(n: usize) -> String {
    let writers = (1..n)
        .map(|_| " ∥ W y 1 {s}; W z 1 {s}")
        .collect::<String>();
    format!(
        "W x 1 {{s}}; a=R y {{l}}; b=R x {{l}} ∥ W x 2 {{s}}; c=R z {{l}}; d=R x {{l}}{writers}"
    )
}

/// How many graphs of a family's program there are in each column, and in which its uses of plain
/// data race.
pub(in super::super) struct Counts {
    pub(in super::super) program: String,
    pub(in super::super) graphs: [usize; 5],
    pub(in super::super) races: &'static [Column],
}

pub(in super::super) fn table() -> Vec<Counts> {
    use Column::{Fences, Relaxed, ReleaseAcquire, Sc};
    let mut table = Vec::new();
    let mut add = |program: String, graphs: [usize; 5], races: &'static [Column]| {
        table.push(Counts {
            program,
            graphs,
            races,
        });
    };
    for n in 1..=6 {
        add(readers(n), [1 << n; 5], &[]);
        let [sc, relaxed] = [[2, 5, 12, 28, 64, 144][n - 1], (n + 1) << (n - 1)];
        add(lastzero(n), [sc, relaxed, sc, sc, sc], &[]);
    }
    for n in 2..=5 {
        let [sc, weak] = [(1 << n) - 1, 1 << n];
        add(store_buffering(n), [sc, weak, weak, sc, sc], &[]);
    }
    for n in 1..=4 {
        add(chain(n), [n + 1, n + 2, n + 1, n + 1, n + 1], &[]);
    }
    for (n, all) in [(2, 2), (3, 6), (4, 24)] {
        add(ticket_lock(n), [all; 5], &[Sc, Relaxed]);
        add(spin_lock(n), [all; 5], &[Sc, Relaxed]);
        add(in_a_lock(n), [all; 5], &[]);
    }
    add(try_once(3), [21; 5], &[Sc, Relaxed]);
    add(seqlock(1), [18, 24, 21, 18, 21], &[]);
    add(seqlock(2), [324, 576, 441, 324, 441], &[]);
    add(
        DEKKER.to_owned(),
        [3, 4, 4, 3, 3],
        &[Relaxed, ReleaseAcquire],
    );
    add(
        peterson(),
        [6, 12, 12, 8, 6],
        &[Relaxed, ReleaseAcquire, Fences],
    );
    add(chase_lev(1), [8, 16, 9, 8, 9], &[]);
    add(chase_lev(2), [58, 224, 75, 58, 75], &[]);
    for (n, sc, weak) in [(1, 4, 4), (2, 15, 16), (3, 130, 144)] {
        add(coa(n), [sc, weak, weak, weak, sc], &[]);
    }
    table
}
