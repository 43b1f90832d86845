//! Which objects are in front of the table?
//!
//! A step finds its object by address, and mostly that object was met not long ago. Each address
//! has a place in the front, and one comparison finds the object that was met last there.

use crate::rt::event::id::ObjectId;

/// The number of places.
pub(super) const PLACES: usize = 256;

/// The objects that were met last. Addresses and objects lie in two arrays, because then one
/// instruction finds each.
pub(super) struct Front {
    addresses: [usize; PLACES],
    objects: [ObjectId; PLACES],
}

impl Default for Front {
    fn default() -> Front {
        Front {
            addresses: [0; PLACES],
            objects: [ObjectId::NONE; PLACES],
        }
    }
}

/// The place of an address in the front.
#[inline(always)]
pub(super) fn place(address: usize) -> usize {
    address / 8 % PLACES
}

impl Front {
    /// The object at this address, if the front has it.
    #[inline(always)]
    pub(super) fn find(&self, address: usize) -> Option<ObjectId> {
        let place = place(address);
        (self.addresses[place] == address).then_some(self.objects[place])
    }

    /// Puts the object at this address into its place, instead of the object there.
    #[inline]
    pub(super) fn put(&mut self, address: usize, object: ObjectId) {
        let place = place(address);
        self.addresses[place] = address;
        self.objects[place] = object;
    }

    /// Removes the object at this address, which is gone.
    #[inline]
    pub(super) fn forget(&mut self, address: usize) {
        let known = &mut self.addresses[place(address)];
        if *known == address {
            *known = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_met_last_at_a_place_is_at_hand_until_it_is_gone() {
        let mut front = Front::default();
        let (address, elsewhere) = (0x1000, 0x1008);
        // This address has the same place.
        let later = address + 8 * PLACES;
        assert_eq!(front.find(address), None);
        front.put(address, ObjectId(3));
        front.put(elsewhere, ObjectId(4));
        assert_eq!(front.find(address), Some(ObjectId(3)));
        assert_eq!(front.find(later), None);
        front.put(later, ObjectId(5));
        assert_eq!(front.find(address), None);
        front.forget(address);
        assert_eq!(front.find(later), Some(ObjectId(5)), "another one is gone");
        front.forget(later);
        assert_eq!(front.find(later), None);
        assert_eq!(front.find(elsewhere), Some(ObjectId(4)));
    }
}
