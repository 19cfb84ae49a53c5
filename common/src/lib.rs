//! What the lessons call.
