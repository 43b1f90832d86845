//! Which classes may have a block around an address?
//!
//! A block's [`class`] is the width of the cells under which it is listed. Each class costs two
//! lookups in the search for a block. So this set records the classes that have had a block around
//! an address. An entry is removed only together with all others, so the set may contain too many
//! classes, and never too few.

/// A layout is at most `isize::MAX` bytes long.
const CLASSES: usize = usize::BITS as usize;

/// Blocks of up to 64 bytes are in one class.
const SMALLEST: u32 = 6;

/// The number of bits of the width of one grain of memory, and the number of grains that are
/// distinguished.
const GRAIN: u32 = 9;
const GRAINS: usize = 256;

/// Blocks of larger classes are wide. A small block touches nine grains at the most.
const SMALL: u32 = 12;

/// The grain of memory that contains an address.
#[inline]
fn grain(address: usize) -> usize {
    address >> GRAIN
}

/// The number of bits of the width of the cells under which blocks of this size are listed.
#[inline]
pub(super) fn class(size: usize) -> u32 {
    (size.saturating_sub(1) | ((1 << SMALLEST) - 1)).ilog2() + 1
}

/// The classes of the listed blocks.
pub(super) struct Classes {
    /// The number of blocks of each class, and the set of classes that have any.
    population: [usize; CLASSES],
    any: u64,
    /// For each [`grain`] the classes of the small blocks that have had memory there, and the
    /// classes of the others. Empty as long as there are no blocks.
    grains: Vec<u64>,
    wide: u64,
}

impl Default for Classes {
    fn default() -> Classes {
        Classes {
            population: [0; CLASSES],
            any: 0,
            grains: Vec::new(),
            wide: 0,
        }
    }
}

impl Classes {
    /// Allocates the grains, before the first block is added.
    pub(super) fn make_room(&mut self) {
        self.grains.resize(GRAINS, 0);
    }

    /// Adds a block of this size, which is not 0.
    #[inline]
    pub(super) fn add(&mut self, start: usize, size: usize) {
        let class = class(size);
        self.population[class as usize] += 1;
        self.any |= 1 << class;
        if class > SMALL {
            self.wide |= 1 << class;
        } else {
            for grain in grain(start)..=grain(start + (size - 1)) {
                self.grains[grain % GRAINS] |= 1 << class;
            }
        }
    }

    /// Removes a block of this size.
    #[inline]
    pub(super) fn remove(&mut self, size: usize) {
        let class = class(size);
        self.population[class as usize] -= 1;
        if self.population[class as usize] == 0 {
            self.any &= !(1 << class);
        }
    }

    /// Removes all blocks.
    pub(super) fn clear(&mut self) {
        self.population = [0; CLASSES];
        self.any = 0;
        self.grains.fill(0);
        self.wide = 0;
    }

    /// The set of the classes that may have a block around this address: one bit for each class, at
    /// the position of its number.
    #[inline]
    pub(super) fn around(&self, address: usize) -> u64 {
        let small = self.grains.get(grain(address) % GRAINS);
        small.map_or(0, |small| self.any & (small | self.wide))
    }
}
