//! Of which classes may there be a block around an address?
//!
//! A block's [`class`] says how wide the cells are in which it is listed. Each class costs two
//! searches for whoever looks for a block, so it is noted of which of them there was a block around
//! there. What was noted is taken back only with all else, so it may be too much, and is never too
//! little.

/// A layout is at most `isize::MAX` bytes long.
const CLASSES: usize = usize::BITS as usize;

/// Blocks of up to 64 bytes are in one class.
const SMALLEST: u32 = 6;

/// How many bits tell addresses in one grain of memory apart, and how many grains are told apart.
const GRAIN: u32 = 9;
const GRAINS: usize = 256;

/// Blocks of larger classes are wide. A small one is in nine grains at the most.
const SMALL: u32 = 12;

/// In which grain of memory an address is.
#[inline]
fn grain(address: usize) -> usize {
    address >> GRAIN
}

/// The number of bits in the width of the cells in which blocks of this size are listed.
#[inline]
pub(super) fn class(size: usize) -> u32 {
    (size.saturating_sub(1) | ((1 << SMALLEST) - 1)).ilog2() + 1
}

/// The classes of the blocks that are listed.
pub(super) struct Classes {
    /// How many blocks there are of each class, and the set of classes that have any.
    population: [usize; CLASSES],
    any: u64,
    /// For each [`grain`] the classes of the small blocks that have had memory there, and the
    /// classes of the others. None as long as there are no blocks.
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
    /// Makes room for grains, before the first block is added.
    pub(super) fn make_room(&mut self) {
        self.grains.resize(GRAINS, 0);
    }

    /// There is a block of so many bytes here, of which there must be one.
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

    /// A block of so many bytes is no more.
    #[inline]
    pub(super) fn remove(&mut self, size: usize) {
        let class = class(size);
        self.population[class as usize] -= 1;
        if self.population[class as usize] == 0 {
            self.any &= !(1 << class);
        }
    }

    /// There are no blocks.
    pub(super) fn clear(&mut self) {
        self.population = [0; CLASSES];
        self.any = 0;
        self.grains.fill(0);
        self.wide = 0;
    }

    /// The set of the classes of which there may be a block around this address: for each a bit,
    /// the number of which it is.
    #[inline]
    pub(super) fn around(&self, address: usize) -> u64 {
        let small = self.grains.get(grain(address) % GRAINS);
        small.map_or(0, |small| self.any & (small | self.wide))
    }
}
