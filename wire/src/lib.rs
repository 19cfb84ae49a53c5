//! Reading RoCEv2 captures.
