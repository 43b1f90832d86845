//! How are a few words mixed into one that reveals nothing of them?
//!
//! By the finalizer of SplitMix64 (Steele, Lea, Flood, *Fast Splittable Pseudorandom Number
//! Generators*, OOPSLA 2014): each bit of the input changes about half of the bits of the output,
//! and different inputs have different outputs.

/// 2^64 divided by the golden ratio. Its multiples reach all words, spread evenly.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The word, mixed.
#[inline]
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// These words, mixed one after the other.
#[inline]
pub(crate) fn mix_all<const N: usize>(words: [u64; N]) -> u64 {
    (words.into_iter()).fold(0, |mixed, word| mix(mixed.wrapping_add(STEP) ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_of_a_word_changes_about_half_of_the_bits() {
        for bit in 0..64 {
            let changed: u32 = (0..100u64)
                .map(|word| (mix_all([word, 5]) ^ mix_all([word ^ 1 << bit, 5])).count_ones())
                .sum();
            assert!((2_900..3_500).contains(&changed), "{bit}: {changed}");
        }
    }

    #[test]
    fn the_order_of_words_counts() {
        assert_ne!(mix_all([1, 2]), mix_all([2, 1]));
        assert_ne!(mix_all([0, 1]), mix_all([1, 0]));
        assert_ne!(mix_all([0]), mix_all([0, 0]));
    }
}
