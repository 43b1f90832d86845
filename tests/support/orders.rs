//! Which orders of search are there?

use dpor::Order;

/// Depth-first, and the others.
pub const ORDERS: [Order; 5] = [
    Order::DepthFirst,
    Order::BitReversal,
    Order::RoundRobin,
    Order::Stride,
    Order::ConflictFirst,
];
