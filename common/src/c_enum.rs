//! C's enums as types of their own: a number that has a name. A value that a newer kernel or device adds is just another
//! number, and harmless.

/// A type for an enum of C, its constants by their C names, and the name as its text; a number without a name follows the words
/// after `else`.
macro_rules! c_enum {
    ($(#[$doc:meta])* $type:ident = $c:ident else $unknown:literal { $($name:ident)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $type(pub u32);

        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            pub const $name: $type = $type(rdma_sys::$c::$name as u32);
        )+

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                match *self {
                    $($name => f.write_str(stringify!($name)),)+
                    $type(number) => write!(f, concat!($unknown, " {}"), number),
                }
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub(crate) use c_enum;
