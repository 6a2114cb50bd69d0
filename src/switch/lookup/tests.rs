use super::reference::Reference;
use super::*;
use crate::time::stream;
use rand::RngExt as _;
use rand_pcg::Pcg64;

fn bytes(value: u128) -> [u8; 16] {
    value.to_be_bytes()
}

/// A value of `width` bits; small ranges of values make hits and near misses likely.
fn small(rng: &mut Pcg64, width: u32) -> u128 {
    let high = if rng.random_range(0..4) == 0 { rng.random::<u128>() } else { 0 };
    let value = (high << 8) | u128::from(rng.random_range(0..6_u8));
    let spread = value.rotate_right(rng.random_range(0..2) * 8 % width.max(1));
    spread & if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

struct Case {
    layout: KeyLayout,
    kinds: Vec<(FieldKind, u32)>,
    rng: Pcg64,
}

impl Case {
    fn new(kinds: &[(FieldKind, u32)], seed: u64) -> Self {
        Self {
            layout: KeyLayout::new(kinds),
            kinds: kinds.to_vec(),
            rng: stream(seed, "lookup test", 0),
        }
    }

    fn entry(&mut self) -> PackedKey {
        let rng = &mut self.rng;
        let mut held: Vec<(u8, [u8; 16], [u8; 16], u32)> = Vec::new();
        for &(kind, width) in &self.kinds {
            let (a, b) = (small(rng, width), small(rng, width));
            held.push(match kind {
                FieldKind::Exact => (0, bytes(a), [0; 16], 0),
                FieldKind::Lpm => (1, bytes(a), [0; 16], rng.random_range(0..=width)),
                FieldKind::Ternary if rng.random_range(0..40) < self.kinds.len() => {
                    (4, [0; 16], [0; 16], 0)
                }
                FieldKind::Ternary => {
                    let all = if width >= 128 { u128::MAX } else { (1 << width) - 1 };
                    let shift = rng.random_range(0..=width / 4);
                    let sparse = (b << 3 | 5) & all;
                    let mask =
                        if rng.random_range(0..3) == 0 { sparse } else { (all >> shift) << shift };
                    (2, bytes(a), bytes(mask), 0)
                }
                FieldKind::Range => (3, bytes(a.min(b)), bytes(a.max(b)), 0),
            });
        }
        let matches: Vec<FieldMatch<'_>> = held
            .iter()
            .map(|(what, a, b, len)| match what {
                0 => FieldMatch::Exact(a),
                1 => FieldMatch::Lpm(a, *len),
                2 => FieldMatch::Ternary(a, b),
                3 => FieldMatch::Range(a, b),
                _ => FieldMatch::Any,
            })
            .collect();
        self.layout.pack(&matches).unwrap()
    }

    fn key(&mut self) -> Vec<u64> {
        let mut key = vec![0; self.layout.words()];
        for (index, &(_, width)) in self.kinds.iter().enumerate() {
            let value = small(&mut self.rng, width);
            if width <= 64 {
                self.layout.put(&mut key, index, value as u64);
            } else {
                self.layout.put_wide(&mut key, index, &[value as u64, (value >> 64) as u64]);
            }
        }
        key
    }

    /// Inserts, removes and looks up at random; structure and twin must agree on every key. Returns (hits, misses).
    fn run(&mut self, entries: usize, lookups: usize) -> (usize, usize) {
        let mut fast = Lookup::new(&self.layout);
        let mut twin = Reference::new(self.layout.clone());
        let mut live: Vec<(EntryId, PackedKey, i32)> = Vec::new();
        let (mut hits, mut misses) = (0, 0);
        for id in 0..entries as u32 {
            let key = self.entry();
            let priority = if fast.by_priority() { self.rng.random_range(1..20) } else { 0 };
            if !live.iter().any(|(_, other, p)| *other == key && *p == priority) {
                let rank = Rank { priority, sequence: u64::from(id) };
                fast.insert(id, &key, rank);
                twin.insert(id, &key, rank);
                live.push((id, key, priority));
            }
            if self.rng.random_range(0..3) == 0 && !live.is_empty() {
                let (id, key, _) = live.swap_remove(self.rng.random_range(0..live.len()));
                fast.remove(id, &key);
                twin.remove(id);
            }
            for _ in 0..lookups {
                let key = self.key();
                let want = twin.find(&key);
                assert_eq!(fast.find(&key), want, "key {key:x?} of {:?}", self.kinds);
                if want.is_some() { hits += 1 } else { misses += 1 }
            }
        }
        for (id, key, _) in live.drain(..) {
            fast.remove(id, &key);
        }
        for _ in 0..lookups {
            assert_eq!(fast.find(&self.key()), None);
        }
        (hits, misses)
    }
}

use FieldKind::{Exact as E, Lpm as L, Range as R, Ternary as T};

#[test]
fn every_structure_agrees_with_the_scan_on_hits_and_misses() {
    let tables: &[&[(FieldKind, u32)]] = &[
        &[(E, 9)],
        &[(E, 32), (E, 16)],
        &[(E, 48), (E, 48), (E, 12)],
        &[(E, 128), (E, 3)],
        &[(L, 32)],
        &[(L, 13)],
        &[(L, 128)],
        &[(L, 66)],
        &[(E, 4), (L, 32)],
        &[(E, 16), (L, 48), (E, 1)],
        &[(T, 8)],
        &[(T, 32), (T, 32), (T, 8), (T, 16), (T, 16), (T, 24)],
        &[(T, 128), (E, 8)],
        &[(R, 16)],
        &[(R, 16), (T, 32), (R, 16)],
        &[(R, 100), (E, 2)],
        &[(L, 32), (T, 4)],
        &[(L, 8), (L, 8)],
    ];
    for (index, kinds) in tables.iter().enumerate() {
        let (mut hits, mut misses) = (0, 0);
        for seed in 0..4 {
            let (h, m) = Case::new(kinds, seed * 100 + index as u64).run(120, 20);
            hits += h;
            misses += m;
        }
        assert!(hits > 50 && misses > 50, "{kinds:?}: {hits} hits, {misses} misses");
    }
}

#[test]
fn masks_without_structure_stay_within_the_bound_on_tuples() {
    let layout = KeyLayout::new(&[(T, 64), (T, 64)]);
    let mut rng = stream(1, "random masks", 0);
    let mut ternary = ternary::Ternary::new(layout.clone());
    let mut twin = Reference::new(layout.clone());
    for id in 0..2_000_u32 {
        let words: [u64; 4] = std::array::from_fn(|_| rng.random());
        let [a, b, c, d] = words.map(u64::to_be_bytes);
        let key = layout.pack(&[FieldMatch::Ternary(&a, &c), FieldMatch::Ternary(&b, &d)]).unwrap();
        let rank = Rank { priority: rng.random_range(1..1000), sequence: u64::from(id) };
        ternary.insert(id, &key, rank);
        twin.insert(id, &key, rank);
        assert!(ternary.tuple_count() <= ternary::MAX_TUPLES + 1);
        // A key made from the entry hits it or something better.
        let hit: Vec<u64> = key.value.to_vec();
        assert!(ternary.find(&hit).is_some());
        assert_eq!(ternary.find(&hit), twin.find(&hit));
    }
}

#[test]
fn a_tries_nodes_are_given_back() {
    let layout = KeyLayout::new(&[(E, 8), (L, 32)]);
    let mut lpm = lpm::Lpm::new(&layout, 1);
    let keys: Vec<PackedKey> = (0..200_u32)
        .map(|i| {
            let address = (i * 0x0101_0101).to_be_bytes();
            layout.pack(&[FieldMatch::Exact(&[i as u8 % 3]), FieldMatch::Lpm(&address, i % 33)])
        })
        .map(Result::unwrap)
        .collect();
    for (id, key) in keys.iter().enumerate() {
        lpm.insert(key, id as u32);
    }
    assert!(lpm.node_count() > 100);
    keys.iter().for_each(|key| lpm.remove(key));
    assert_eq!(lpm.node_count(), 0);
}

#[test]
fn packing_refuses_what_does_not_fit() {
    let layout = KeyLayout::new(&[(E, 9), (R, 16)]);
    let pack = |a, b| layout.pack(&[a, b]).unwrap_err().to_string();
    let wide = pack(FieldMatch::Exact(&[2, 0]), FieldMatch::Any);
    assert_eq!(wide, "field 0 is 9 bits wide and 0x0200 does not fit");
    let range = pack(FieldMatch::Exact(&[1]), FieldMatch::Range(&[2], &[1]));
    assert!(range.contains("field 1: the range's low bound"), "{range}");
    let kind = pack(FieldMatch::Ternary(&[1], &[1]), FieldMatch::Any);
    assert!(kind.contains("matches by Exact"), "{kind}");
    assert!(layout.pack(&[FieldMatch::Any]).is_err());
}

#[test]
fn fields_share_words_and_read_back() {
    let layout =
        KeyLayout::new(&[(T, 32), (T, 32), (T, 8), (T, 16), (T, 16), (T, 24), (E, 128), (E, 1)]);
    assert_eq!(layout.words(), 5); // 32+32 | 8+16+16+24 | 128 | 1
    let mut key = vec![0; layout.words()];
    for (field, value) in
        [(0, 0x0a00_0001), (1, 0x0a00_0002), (2, 17), (3, 0x1234), (4, 4791), (5, 0xabcdef)]
    {
        layout.put(&mut key, field, value);
        assert_eq!(layout.get(&key, field)[..], [value]);
    }
    layout.put_wide(&mut key, 6, &[1, 0xfe80 << 48]);
    assert_eq!(layout.get(&key, 6)[..], [1, 0xfe80 << 48]);
    layout.put(&mut key, 7, 0xffff);
    assert_eq!(layout.get(&key, 7)[..], [1], "bits above the width are cut");
}
