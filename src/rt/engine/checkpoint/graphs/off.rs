//! A build without the feature `checkpoint` saves no search over graphs.

use crate::rt::memory::search::saved::SavedGraphs;

/// What the feature writes for no search.
const NONE: [u8; 1] = [0];

pub(super) fn encode(graphs: &Option<SavedGraphs>) -> Result<Vec<u8>, String> {
    match graphs {
        None => Ok(NONE.to_vec()),
        Some(_) => {
            Err("a search over graphs is saved with the feature `checkpoint` of dpor".into())
        }
    }
}

pub(super) fn decode(bytes: &[u8]) -> Option<Option<SavedGraphs>> {
    (bytes == NONE).then_some(None)
}
