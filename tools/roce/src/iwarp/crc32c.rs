//! CRC32c, the sum that MPA uses and iSCSI as well: Castagnoli's polynomial, bits in reverse, sent with its lowest byte first.

const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// The sum over these bytes.
pub fn of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8)
}

#[cfg(test)]
mod tests {
    /// RFC 3720, B.4.
    #[test]
    fn the_sums_that_iscsi_publishes() {
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!([super::of(&[0; 32]), super::of(&[0xff; 32])], [0x8a91_36aa, 0x62a8_ab43]);
        assert_eq!([super::of(&ascending), super::of(b"123456789")], [0x46dd_794e, 0xe306_9283]);
    }
}
