//! Longest prefix match. In: a packed key. Out: the entry with the longest prefix. Must not know what the other fields
//! mean: they select one trie each, by hash.
//!
//! A trie of 4-bit strides; every node keeps the prefixes that end inside it (lengths 0 to 3 below the node) as a
//! heap-ordered bitmap, so a node answers with one mask and one count of leading zeros:
//! ```text
//!   bit 0: length 0;  bits 1-2: length 1;  bits 3-6: length 2;  bits 7-14: length 3
//! ```
//! A lookup costs one node per 4 bits walked, whatever the number of entries; insert and remove touch one path.

use super::exact::Exact;
use super::{EntryId, KeyLayout, PackedKey, Place, Words};

const NONE: u32 = u32::MAX;
const STRIDE: u32 = 4;

/// For each nibble: which of the 15 inner prefixes cover it.
const COVER: [u16; 16] = {
    let mut cover = [0_u16; 16];
    let mut nibble = 0;
    while nibble < 16 {
        let mut len = 0;
        while len < 4 {
            cover[nibble] |= 1 << ((1 << len) - 1 + (nibble >> (4 - len)));
            len += 1;
        }
        nibble += 1;
    }
    cover
};

#[derive(Clone, Debug)]
struct Node {
    children: [u32; 16],
    entries: [EntryId; 15],
    have: u16,
    used_children: u8,
}

impl Node {
    const EMPTY: Self =
        Self { children: [NONE; 16], entries: [NONE; 15], have: 0, used_children: 0 };

    fn is_empty(&self) -> bool {
        self.have == 0 && self.used_children == 0
    }
}

/// One trie per value of the exact fields, all in one arena.
#[derive(Clone, Debug)]
pub struct Lpm {
    place: Place,
    words: usize,
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Root by the key with the LPM field zeroed; a table with the LPM field alone has a single root.
    roots: Exact,
    single: Option<u32>,
}

impl Lpm {
    /// An empty structure for keys of this layout with the LPM field at `field`.
    #[must_use]
    pub fn new(layout: &KeyLayout, field: usize) -> Self {
        let place = layout.field(field).map_or(Place { word: 0, shift: 0, width: 0 }, |(_, p)| p);
        let mut lpm = Self {
            place,
            words: layout.words(),
            nodes: Vec::new(),
            free: Vec::new(),
            roots: Exact::new(layout.words()),
            single: None,
        };
        if layout.len() == 1 {
            lpm.single = Some(lpm.new_node());
        }
        lpm
    }

    /// Nodes in use, roots included.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    fn new_node(&mut self) -> u32 {
        if let Some(node) = self.free.pop() {
            return node;
        }
        self.nodes.push(Node::EMPTY);
        (self.nodes.len() - 1) as u32
    }

    /// The key with the LPM field cleared: what the exact fields say.
    fn exact_part(&self, key: &[u64]) -> Words {
        let mut rest = Words::from_slice(key);
        rest.resize(self.words, 0);
        for i in 0..self.place.words() {
            rest[self.place.word + i] &= !(self.place.keep(i) << self.place.shift);
        }
        rest
    }

    /// Bits `4*level .. 4*level+4` from the top of the field; bits past its end are 0.
    #[inline]
    fn nibble(&self, key: &[u64], level: u32) -> usize {
        let Place { word, shift, width } = self.place;
        let end = (level + 1) * STRIDE;
        if end > width {
            let left = width.saturating_sub(level * STRIDE);
            let low = (key[word] >> shift) & super::low_bits(left);
            return (low << (STRIDE - left)) as usize & 15;
        }
        let from_bottom = width - end;
        let at = word + (from_bottom / 64) as usize;
        let offset = from_bottom % 64 + shift;
        let mut bits = key[at] >> offset;
        if offset > 60 && width > 64 && from_bottom / 64 < (width - 1) / 64 {
            bits |= key[at + 1] << (64 - offset);
        }
        bits as usize & 15
    }

    /// Adds or replaces the entry of this prefix.
    pub fn insert(&mut self, key: &PackedKey, id: EntryId) {
        let mut node = match self.single {
            Some(root) => root,
            None => {
                let rest = self.exact_part(&key.value);
                match self.roots.find(&rest) {
                    Some(root) => root,
                    None => {
                        let root = self.new_node();
                        self.roots.insert(&rest, root);
                        root
                    }
                }
            }
        };
        let value = &key.value;
        for level in 0..key.prefix_len / STRIDE {
            let nibble = self.nibble(value, level);
            let mut child = self.nodes[node as usize].children[nibble];
            if child == NONE {
                child = self.new_node();
                let parent = &mut self.nodes[node as usize];
                parent.children[nibble] = child;
                parent.used_children += 1;
            }
            node = child;
        }
        let slot = self.slot(value, key.prefix_len);
        let node = &mut self.nodes[node as usize];
        node.entries[slot] = id;
        node.have |= 1 << slot;
    }

    /// Slot of a prefix in the node where it ends.
    fn slot(&self, value: &[u64], prefix_len: u32) -> usize {
        let rest = prefix_len % STRIDE;
        let first = self.nibble(value, prefix_len / STRIDE) >> (STRIDE - rest);
        (1 << rest) - 1 + first
    }

    /// Removes the entry of this prefix and the nodes that served it alone.
    pub fn remove(&mut self, key: &PackedKey) {
        let rest = self.single.is_none().then(|| self.exact_part(&key.value));
        let root = match &rest {
            None => self.single,
            Some(rest) => self.roots.find(rest),
        };
        let Some(root) = root else { return };
        let value = &key.value;
        let mut path: Vec<(u32, usize)> = Vec::new();
        let mut node = root;
        for level in 0..key.prefix_len / STRIDE {
            let nibble = self.nibble(value, level);
            path.push((node, nibble));
            node = self.nodes[node as usize].children[nibble];
            if node == NONE {
                return;
            }
        }
        let slot = self.slot(value, key.prefix_len);
        self.nodes[node as usize].have &= !(1 << slot);
        while self.nodes[node as usize].is_empty() {
            let Some((parent, nibble)) = path.pop() else { break };
            self.free_node(node);
            let above = &mut self.nodes[parent as usize];
            above.children[nibble] = NONE;
            above.used_children -= 1;
            node = parent;
        }
        if let Some(rest) = rest
            && self.nodes[root as usize].is_empty()
        {
            self.roots.remove(&rest);
            self.free_node(root);
        }
    }

    fn free_node(&mut self, node: u32) {
        self.nodes[node as usize] = Node::EMPTY;
        self.free.push(node);
    }

    /// The entry with the longest prefix of the key.
    #[must_use]
    pub fn find(&self, key: &[u64]) -> Option<EntryId> {
        let mut node = match self.single {
            Some(root) => root,
            None => self.roots.find(&self.exact_part(key))?,
        };
        if key.len() < self.words {
            return None;
        }
        let mut best = NONE;
        for level in 0..=self.place.width / STRIDE {
            let here = &self.nodes[node as usize];
            let nibble = self.nibble(key, level);
            let hit = here.have & COVER[nibble];
            if hit != 0 {
                best = here.entries[15 - hit.leading_zeros() as usize];
            }
            node = here.children[nibble];
            if node == NONE {
                break;
            }
        }
        (best != NONE).then_some(best)
    }
}
