//! Fingerprints of real contents: keyed 128-bit hashes (remap.md, section 11).
//!
//! The key is the device's own. Without it nobody can construct contents that collide, or that crowd
//! together in the index. Fingerprints of two keys or two kinds say nothing about each other.

use onefold_ftl::Fingerprint;
use sha2::{Digest as _, Sha256};
use twox_hash::XxHash3_128;

/// Block length of SHA-256 in bytes.
const SHA256_BLOCK: usize = 64;
/// Length of the secret of XXH3 in bytes, as its reference implementation has it.
const XXH3_SECRET: usize = 192;

/// How contents are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashKind {
    /// BLAKE3 in its keyed mode: the fastest strong one where the processor has wide vectors.
    #[default]
    Blake3,
    /// SHA-256 after a block that begins with the key.
    Sha256,
    /// XXH3 with a secret made of the key: more than ten times as fast, but made for hash tables.
    Xxh3,
}

impl HashKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Blake3, Self::Sha256, Self::Xxh3];

    /// Name in configuration, tables and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::Xxh3 => "xxh3",
        }
    }

    /// Whether equal fingerprints may be taken for equal contents: a collision has probability
    /// 2^-53 on 1 PiB of pages. If not, a hit has to be verified by reading the page.
    #[must_use]
    pub const fn strong(self) -> bool {
        matches!(self, Self::Blake3 | Self::Sha256)
    }
}

/// Computes fingerprints of one kind under one key.
///
/// ```
/// use onefold_ssd::{HashKind, Hasher};
///
/// let hasher = Hasher::new(HashKind::Blake3, [7; 32]);
/// let page = [0; 4096];
/// assert_eq!(hasher.of(&page), hasher.of(&page));
/// assert_ne!(hasher.of(&page), hasher.of(&[1; 4096]));
/// ```
#[derive(Clone)]
pub struct Hasher(State);

#[derive(Clone)]
enum State {
    Blake3([u8; 32]),
    /// The state after the key's block, so that the key costs nothing per content.
    Sha256(Box<Sha256>),
    Xxh3(Box<[u8; XXH3_SECRET]>),
}

impl Hasher {
    /// A hasher with this key.
    #[must_use]
    pub fn new(kind: HashKind, key: [u8; 32]) -> Self {
        Self(match kind {
            HashKind::Blake3 => State::Blake3(key),
            HashKind::Sha256 => {
                let mut block = [0; SHA256_BLOCK];
                block[..key.len()].copy_from_slice(&key);
                State::Sha256(Box::new(Sha256::new_with_prefix(block)))
            }
            HashKind::Xxh3 => {
                let mut secret = Box::new([0; XXH3_SECRET]);
                blake3::Hasher::new_keyed(&key).finalize_xof().fill(secret.as_mut_slice());
                State::Xxh3(secret)
            }
        })
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> HashKind {
        match &self.0 {
            State::Blake3(_) => HashKind::Blake3,
            State::Sha256(_) => HashKind::Sha256,
            State::Xxh3(_) => HashKind::Xxh3,
        }
    }

    /// The fingerprint of a content; contents to be compared have one length, the mapping unit.
    #[must_use]
    pub fn of(&self, data: &[u8]) -> Fingerprint {
        Fingerprint::new(match &self.0 {
            State::Blake3(key) => leading(blake3::keyed_hash(key, data).as_bytes()),
            State::Sha256(keyed) => {
                let mut hash = Sha256::clone(keyed);
                hash.update(data);
                leading(&hash.finalize().into())
            }
            State::Xxh3(secret) => {
                match XxHash3_128::oneshot_with_secret(secret.as_slice(), data) {
                    Ok(hash) => hash,
                    Err(_) => {
                        unreachable!("the secret has {XXH3_SECRET} bytes, at least 136 are needed")
                    }
                }
            }
        })
    }
}

/// Hides the key.
impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hasher").field(&self.kind()).finish()
    }
}

/// The first 128 bits of a hash.
fn leading(hash: &[u8; 32]) -> u128 {
    let (halves, _) = hash.as_chunks::<16>();
    u128::from_le_bytes(halves[0])
}

#[cfg(test)]
mod tests {
    use onefold_units::convert::{low8, u64_from};

    use super::{HashKind, Hasher};

    /// The page of the published test vectors of BLAKE3: 0 to 250, again and again.
    fn page() -> [u8; 4096] {
        std::array::from_fn(|at| low8(u64_from(at) % 251))
    }

    /// BLAKE3: `test_vectors.json` of its authors, `keyed_hash` of 4096 bytes. SHA-256: `hashlib` of
    /// Python on key, 32 zeroes and page. XXH3: crate `xxhash-rust`, with the same secret.
    #[test]
    fn known_fingerprints() {
        let key = *b"whats the Elvish word for friend";
        for (kind, wanted) in [
            (HashKind::Blake3, 0x1128_90b9_ded8_4c88_1817_2fea_0a66_fcbe_u128),
            (HashKind::Sha256, 0x4003_5738_1c8f_220c_d994_f67e_e222_d2b4),
            (HashKind::Xxh3, 0xfc41_2656_8725_9313_92c6_92ec_60aa_bd20),
        ] {
            let found = Hasher::new(kind, key).of(&page());
            assert_eq!(found.raw(), wanted, "{}: {:x}", kind.name(), found.raw());
        }
    }

    #[test]
    fn every_bit_of_key_and_content_counts() {
        for kind in HashKind::ALL {
            let of = |key, data: &[u8]| Hasher::new(kind, key).of(data);
            let (mut key, mut data) = ([0; 32], page());
            let before = of(key, &data);
            data[4095] ^= 0x80;
            assert_ne!(of(key, &data), before, "{} and the content", kind.name());
            data[4095] ^= 0x80;
            key[31] = 1;
            assert_ne!(of(key, &data), before, "{} and the key", kind.name());
            key[31] = 0;
            assert_eq!(of(key, &data), before);
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        let shown = format!("{:?}", Hasher::new(HashKind::Blake3, [77; 32]));
        assert_eq!(shown, "Hasher(Blake3)");
    }
}
