//! The search over graphs in a checkpoint.

use crate::rt::memory::search::saved::SavedGraphs;

pub(super) fn encode(graphs: &Option<SavedGraphs>) -> Result<Vec<u8>, String> {
    let bytes = postcard::to_allocvec(graphs);
    bytes.map_err(|error| format!("the search over graphs: {error}"))
}

/// Reads the bytes of [`encode`]. `None` if they are invalid, or too many.
pub(super) fn decode(bytes: &[u8]) -> Option<Option<SavedGraphs>> {
    let (graphs, unread) = postcard::take_from_bytes(bytes).ok()?;
    unread.is_empty().then_some(graphs)
}
