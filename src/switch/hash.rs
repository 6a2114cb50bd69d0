//! Hashes and checksums over bytes. In: bytes. Out: a 64-bit value. The algorithms are those that simple_switch
//! registers under the same names (`calculations.cpp`), with its built-in parameters for the `_custom` ones.

use std::str::FromStr;

/// Parameters of a cyclic redundancy check (the Rocksoft model, both reflections equal).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Crc {
    width: u32,
    polynomial: u64,
    start: u64,
    end: u64,
    reflected: bool,
}

/// A hash algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in BMv2")]
pub enum Algorithm {
    Crc8Custom,
    Crc16,
    Crc16Custom,
    CrcCcitt,
    Crc32,
    Crc32Custom,
    Crc64Custom,
    Csum16,
    Xor16,
    Xor32,
    Identity,
}

/// The names of all algorithms, as the JSON has them.
pub const NAMES: [(&str, Algorithm); 12] = [
    ("crc8_custom", Algorithm::Crc8Custom),
    ("crc16", Algorithm::Crc16),
    ("crc16_custom", Algorithm::Crc16Custom),
    ("crcCCITT", Algorithm::CrcCcitt),
    ("crc32", Algorithm::Crc32),
    ("crc32_custom", Algorithm::Crc32Custom),
    ("crc64_custom", Algorithm::Crc64Custom),
    ("csum16", Algorithm::Csum16),
    ("cksum16", Algorithm::Csum16),
    ("xor16", Algorithm::Xor16),
    ("xor32", Algorithm::Xor32),
    ("identity", Algorithm::Identity),
];

impl FromStr for Algorithm {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, a)| *a).ok_or(())
    }
}

const CRC8: Crc = Crc { width: 8, polynomial: 0x07, start: 0, end: 0, reflected: false };
const CRC16: Crc = Crc { width: 16, polynomial: 0x8005, start: 0, end: 0, reflected: true };
const CCITT: Crc = Crc { width: 16, polynomial: 0x1021, start: 0xffff, end: 0, reflected: false };
const CRC32: Crc = Crc {
    width: 32,
    polynomial: 0x04c1_1db7,
    start: 0xffff_ffff,
    end: 0xffff_ffff,
    reflected: true,
};
const CRC64: Crc = Crc { width: 64, polynomial: 0x1b, start: 0, end: 0, reflected: true };

/// Table of a reflected or plain CRC, aligned at the top of 64 bits when plain and at the bottom when reflected.
const fn table(crc: Crc) -> [u64; 256] {
    let mut out = [0; 256];
    let polynomial = if crc.reflected {
        (crc.polynomial << (64 - crc.width)).reverse_bits()
    } else {
        crc.polynomial << (64 - crc.width)
    };
    let mut i = 0;
    while i < 256 {
        let mut r = if crc.reflected { i as u64 } else { (i as u64) << 56 };
        let mut bit = 0;
        while bit < 8 {
            r = if crc.reflected {
                if r & 1 == 1 { r >> 1 ^ polynomial } else { r >> 1 }
            } else if r >> 63 == 1 {
                r << 1 ^ polynomial
            } else {
                r << 1
            };
            bit += 1;
        }
        out[i] = r;
        i += 1;
    }
    out
}

static CRC8_TABLE: [u64; 256] = table(CRC8);
static CRC16_TABLE: [u64; 256] = table(CRC16);
static CCITT_TABLE: [u64; 256] = table(CCITT);
static CRC32_TABLE: [u64; 256] = table(CRC32);
static CRC64_TABLE: [u64; 256] = table(CRC64);

fn crc(crc: Crc, table: &[u64; 256], bytes: &[u8]) -> u64 {
    if crc.reflected {
        // All start values in use are the same read backwards.
        let mut r = crc.start;
        for byte in bytes {
            r = table[((r ^ u64::from(*byte)) & 0xff) as usize] ^ r >> 8;
        }
        r ^ crc.end
    } else {
        let mut r = crc.start << (64 - crc.width);
        for byte in bytes {
            r = table[((r >> 56) ^ u64::from(*byte)) as usize] ^ r << 8;
        }
        (r >> (64 - crc.width)) ^ crc.end
    }
}

/// Sum of 16-bit words, a last odd byte padded with 0; not folded. It adds words of 32 bits, which fold to the same.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut total: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    total += u64::from(u32::from_be_bytes(last));
    total
}

/// The Internet checksum (RFC 1071) of a [`sum`], or of several together.
#[must_use]
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

fn xor(bytes: &[u8], size: usize) -> u64 {
    bytes.chunks(size).fold(0, |folded, chunk| {
        let value = chunk.iter().fold(0_u64, |v, b| v << 8 | u64::from(*b));
        folded ^ value << (8 * (size - chunk.len()))
    })
}

/// The hash of the bytes.
#[must_use]
pub fn hash(algorithm: Algorithm, bytes: &[u8]) -> u64 {
    match algorithm {
        Algorithm::Crc8Custom => crc(CRC8, &CRC8_TABLE, bytes),
        Algorithm::Crc16 | Algorithm::Crc16Custom => crc(CRC16, &CRC16_TABLE, bytes),
        Algorithm::CrcCcitt => crc(CCITT, &CCITT_TABLE, bytes),
        Algorithm::Crc32 | Algorithm::Crc32Custom => crc(CRC32, &CRC32_TABLE, bytes),
        Algorithm::Crc64Custom => crc(CRC64, &CRC64_TABLE, bytes),
        Algorithm::Csum16 => fold(sum(bytes)).into(),
        Algorithm::Xor16 => xor(bytes, 2),
        Algorithm::Xor32 => xor(bytes, 4),
        Algorithm::Identity => bytes.iter().take(8).fold(0, |v, b| v << 8 | u64::from(*b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check values of the catalogue of parametrised CRC algorithms for "123456789".
    #[test]
    fn checks_of_the_crc_catalogue_hold() {
        let check = b"123456789";
        assert_eq!(hash(Algorithm::Crc16, check), 0xbb3d, "CRC-16/ARC");
        assert_eq!(hash(Algorithm::CrcCcitt, check), 0x29b1, "CRC-16/IBM-3740");
        assert_eq!(hash(Algorithm::Crc32, check), 0xcbf4_3926, "CRC-32/ISO-HDLC");
        assert_eq!(hash(Algorithm::Crc8Custom, check), 0xf4, "CRC-8/SMBUS");
    }

    #[test]
    fn the_internet_checksum_of_a_correct_header_verifies() {
        // The header of RFC 1071's usual example, checksum 0xb861.
        let mut header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
            0xc7,
        ];
        assert_eq!(hash(Algorithm::Csum16, &header), 0xb861);
        header[10..12].copy_from_slice(&[0xb8, 0x61]);
        assert_eq!(hash(Algorithm::Csum16, &header), 0);
    }

    #[test]
    fn a_tail_is_padded_with_zeros_at_its_end() {
        assert_eq!(hash(Algorithm::Csum16, &[0x12]), !0x1200 & 0xffff);
        assert_eq!(hash(Algorithm::Xor16, &[0x12, 0x34, 0x56]), 0x1234 ^ 0x5600);
        assert_eq!(hash(Algorithm::Xor32, &[1, 2, 3, 4, 5]), 0x0102_0304 ^ 0x0500_0000);
        assert_eq!(hash(Algorithm::Identity, &[1, 2, 3]), 0x0001_0203);
        assert_eq!(hash(Algorithm::Identity, &[1, 2, 3, 4, 5, 6, 7, 8, 9]), 0x0102_0304_0506_0708);
    }

    /// A bit-by-bit CRC as in the definition.
    fn slow_crc(crc: Crc, bytes: &[u8]) -> u64 {
        let top = 1_u64 << (crc.width - 1);
        let mask = u64::MAX >> (64 - crc.width);
        let mut r = crc.start;
        for byte in bytes {
            let byte = if crc.reflected { byte.reverse_bits() } else { *byte };
            for bit in (0..8).rev() {
                let feedback = (r & top != 0) ^ (byte >> bit & 1 == 1);
                r = r << 1 & mask;
                if feedback {
                    r ^= crc.polynomial;
                }
            }
        }
        let r = if crc.reflected { r.reverse_bits() >> (64 - crc.width) } else { r };
        r ^ crc.end
    }

    /// Word by word, as RFC 1071 tells it: the twin of `fold(sum(..))`.
    fn slow_csum16(bytes: &[u8]) -> u64 {
        let mut sum = 0_u64;
        let mut words = bytes.chunks_exact(2);
        for word in &mut words {
            sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            sum += u64::from(*last) << 8;
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !sum & 0xffff
    }

    proptest::proptest! {
        #[test]
        fn the_internet_checksum_agrees_with_its_definition(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60), full in 0_usize..60) {
            // Words of ones are where the two zeros of ones' complement meet.
            let ones = [&vec![0xff; full][..], &bytes].concat();
            for bytes in [&bytes[..], &ones, &ones[..full]] {
                proptest::prop_assert_eq!(hash(Algorithm::Csum16, bytes), slow_csum16(bytes));
            }
        }

        #[test]
        fn tables_agree_with_the_definition(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
            for (c, table) in [
                (CRC8, &CRC8_TABLE), (CRC16, &CRC16_TABLE), (CCITT, &CCITT_TABLE), (CRC32, &CRC32_TABLE), (CRC64, &CRC64_TABLE),
            ] {
                proptest::prop_assert_eq!(crc(c, table, &bytes), slow_crc(c, &bytes));
            }
        }
    }
}
