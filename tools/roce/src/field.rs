//! How a header is declared: a list of fields, each with its place, width and meaning.
//!
//! The same declaration decodes a packet ([`Field::read`]) and explains it byte by byte
//! (`wire show --packet`), so what is shown can never differ from what is decoded.

/// How a field's value is written for a human reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A number that is counted or compared: decimal.
    Dec,
    /// A number that is a name, such as a key or an address: hexadecimal with `0x`.
    Hex,
    /// Longer than 64 bits, or not a number: the bytes themselves.
    Bytes,
    /// Sixteen bytes: a GID or an IP address.
    Address,
}

/// One field of a header. All RDMA headers are big-endian, and what NVMe puts into them is little-endian; bit 0 is the first bit sent.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name the InfiniBand specification uses.
    pub name: &'static str,
    /// Distance from the start of the header, in bits.
    pub bit: usize,
    /// Width in bits.
    pub bits: usize,
    /// How to write the value.
    pub base: Base,
    /// What a value means, in words; an empty text where the number says it all.
    pub meaning: fn(u64) -> String,
    /// Whether the byte that counts least comes first. Such a field has whole bytes.
    pub is_little_endian: bool,
}

fn says_it_all(_: u64) -> String {
    String::new()
}

impl Field {
    /// A field of `bits` bits that begins `byte` bytes and `bit` bits into the header.
    pub const fn new(name: &'static str, (byte, bit): (usize, usize), bits: usize, base: Base) -> Field {
        Field { name, bit: byte * 8 + bit, bits, base, meaning: says_it_all, is_little_endian: false }
    }

    /// A field shown in decimal, see [`Field::new`].
    pub const fn dec(name: &'static str, at: (usize, usize), bits: usize) -> Field {
        Field::new(name, at, bits, Base::Dec)
    }

    /// A field shown in hexadecimal, see [`Field::new`].
    pub const fn hex(name: &'static str, at: (usize, usize), bits: usize) -> Field {
        Field::new(name, at, bits, Base::Hex)
    }

    /// A run of whole bytes, see [`Field::new`].
    pub const fn bytes(name: &'static str, byte: usize, length: usize) -> Field {
        Field::new(name, (byte, 0), length * 8, Base::Bytes)
    }

    /// A GID or an IP address of sixteen bytes, see [`Field::new`].
    pub const fn address(name: &'static str, byte: usize) -> Field {
        Field::new(name, (byte, 0), 128, Base::Address)
    }

    /// Adds what a value means in words.
    pub const fn means(self, meaning: fn(u64) -> String) -> Field {
        Field { meaning, ..self }
    }

    /// The same, with the byte that counts least first.
    pub const fn little_endian(self) -> Field {
        Field { is_little_endian: true, ..self }
    }

    /// The first byte the field touches and the first it does not, counted from the start of the header.
    pub const fn span(&self) -> (usize, usize) {
        (self.bit / 8, (self.bit + self.bits).div_ceil(8))
    }

    /// The field's value in `header`; None where the header was cut off by a snap length, or when the
    /// field is wider than 64 bits.
    #[inline(always)] // Where the field is known, little is left of this.
    pub fn read(&self, header: &[u8]) -> Option<u64> {
        let (first, end) = self.span();
        if end - first > 8 {
            return None;
        }
        let mut value = 0;
        for &byte in header.get(first..end)? {
            value = value << 8 | u64::from(byte);
        }
        if self.is_little_endian {
            value = value.swap_bytes() >> (64 - self.bits);
        }
        let unused_low_bits = end * 8 - self.bit - self.bits;
        Some(value >> unused_low_bits & (u64::MAX >> (64 - self.bits)))
    }

    /// The bytes the field touches in `header`; None where they were cut off.
    pub fn slice<'a>(&self, header: &'a [u8]) -> Option<&'a [u8]> {
        let (first, end) = self.span();
        header.get(first..end)
    }
}

/// One header: its name, its length and its fields in the order of the wire.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The short name, such as `BTH`.
    pub name: &'static str,
    /// The name written out.
    pub title: &'static str,
    /// Length in bytes.
    pub length: usize,
    /// Every field; together they cover each bit of the header once.
    pub fields: &'static [Field],
}

/// Declares headers, each a module with the constant `HEADER`: name, name written out, length, and every field in the
/// order of the wire. A field that other code reads gets a name, too.
macro_rules! headers {
    ($($(#[$about:meta])* pub mod $module:ident = $name:literal, $title:literal, $length:expr => {
        $($field:expr $(=> $constant:ident, $doc:literal)?;)*
    })*) => {
        $($(#[$about])* pub mod $module {
            use super::*;
            use crate::field::Header;

            $($(#[doc = $doc] pub const $constant: Field = $field;)?)*
            /// The whole header.
            pub const HEADER: Header = Header { name: $name, title: $title, length: $length, fields: &[$($field),*] };
        })*

        #[test]
        fn every_bit_of_every_header_belongs_to_one_field() {
            $(crate::field::tests::assert_covered(&$module::HEADER);)*
        }
    };
}
pub(crate) use headers;

/// `text` where a field has one certain value, else nothing.
pub(crate) fn only(value: u64, one: u64, text: &str) -> String {
    if value == one {
        text.into()
    } else {
        String::new()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Fails unless the fields of `header` follow one another without gap or overlap up to its length.
    pub(crate) fn assert_covered(header: &Header) {
        let mut bit = 0;
        for field in header.fields {
            assert_eq!(field.bit, bit, "{} {}", header.name, field.name);
            let is_number = !matches!(field.base, Base::Bytes | Base::Address);
            assert!(field.bits <= 64 || !is_number, "{} {}", header.name, field.name);
            bit += field.bits;
        }
        assert_eq!(bit, header.length * 8, "{}", header.name);
    }
}
