//! What do the tests of drawn programs have in common?

/// A number of programs, or the first one's seed, from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number of programs"),
        Err(_) => default,
    }
}

/// The program without what does not matter for its being `wrong`: as long as one of the `simpler` ones is, too, it is taken
/// instead.
pub fn smallest<P>(
    mut program: P,
    simpler: impl Fn(&P) -> Vec<P>,
    wrong: impl Fn(&P) -> bool,
) -> P {
    while let Some(less) = simpler(&program).into_iter().find(&wrong) {
        program = less;
    }
    program
}

/// What is left of these threads without one of their steps, for each of those.
pub fn without_one<S: Clone>(threads: &[Vec<S>]) -> impl Iterator<Item = Vec<Vec<S>>> {
    let steps = move |thread: usize| (0..threads[thread].len()).map(move |at| (thread, at));
    (0..threads.len()).flat_map(steps).map(move |(thread, at)| {
        let mut less = threads.to_vec();
        less[thread].remove(at);
        less
    })
}

/// Numbers that depend on nothing but the seed (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    /// One below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}
