//! Frames in flight: one slab, handles instead of boxes.
//!
//! In: bytes. Out: a handle. Must not know what a frame is. Grows to the largest number in flight and no further.

/// A slab of frames of bounded length.
#[derive(Clone, Debug)]
pub struct Pool {
    bytes: Vec<u8>,
    lens: Vec<u16>,
    epochs: Vec<u32>,
    free: Vec<u32>,
    stride: usize,
}

impl Pool {
    /// A pool for frames of at most `longest` bytes.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        // Whole cache lines, so that two frames never share one.
        let stride = longest.next_multiple_of(64);
        Self { bytes: Vec::new(), lens: Vec::new(), epochs: Vec::new(), free: Vec::new(), stride }
    }

    /// A place for a frame: its handle and its bytes, `stride` long, holding whatever was there.
    pub fn reserve(&mut self) -> (u32, &mut [u8]) {
        let handle = self.free.pop().unwrap_or_else(|| {
            let next = self.lens.len();
            self.lens.push(0);
            self.epochs.push(0);
            self.bytes.resize((next + 1) * self.stride, 0);
            // 2^32 frames would be terabytes; memory ends long before.
            next as u32
        });
        let at = handle as usize * self.stride;
        (handle, &mut self.bytes[at..at + self.stride])
    }

    /// States how long the frame is and in which epoch of its link it was sent.
    pub fn seal(&mut self, handle: u32, len: usize, epoch: u32) {
        self.lens[handle as usize] = len as u16;
        self.epochs[handle as usize] = epoch;
    }

    /// Copies a frame in; `None` if it is longer than the pool's frames.
    pub fn store(&mut self, frame: &[u8], epoch: u32) -> Option<u32> {
        if frame.len() > self.stride {
            return None;
        }
        let (handle, place) = self.reserve();
        place[..frame.len()].copy_from_slice(frame);
        self.seal(handle, frame.len(), epoch);
        Some(handle)
    }

    /// The frame's bytes.
    #[must_use]
    pub fn frame(&self, handle: u32) -> &[u8] {
        let at = handle as usize * self.stride;
        &self.bytes[at..at + usize::from(self.lens[handle as usize])]
    }

    /// The link epoch in which the frame was sent.
    #[must_use]
    pub fn epoch(&self, handle: u32) -> u32 {
        self.epochs[handle as usize]
    }

    /// Gives the place back.
    pub fn release(&mut self, handle: u32) {
        self.free.push(handle);
    }

    /// Frames in flight.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.lens.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_bytes_until_released_and_places_are_used_again() {
        let mut pool = Pool::new(100);
        let a = pool.store(&[1; 100], 3).expect("fits");
        let b = pool.store(&[2; 50], 4).expect("fits");
        assert_eq!(pool.frame(a), &[1; 100]);
        assert_eq!((pool.frame(b), pool.epoch(b)), (&[2_u8; 50][..], 4));
        pool.release(a);
        assert_eq!(pool.in_use(), 1);
        let c = pool.store(&[3; 10], 0).expect("fits");
        assert_eq!((c, pool.frame(c)), (a, &[3_u8; 10][..]));
        assert_eq!(pool.frame(b), &[2; 50], "its neighbour is untouched");
        assert_eq!(pool.store(&[0; 200], 0), None, "too long");
    }
}
