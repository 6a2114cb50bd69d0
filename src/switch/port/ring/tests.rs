use super::*;
use std::os::unix::net::UnixDatagram;

#[test]
fn a_frame_gets_its_own_copy_or_none_whatever_else_waits() {
    let (kernel, ours) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let ours = OwnedFd::from(ours);
    let mut buffer = vec![0; HEADROOM + 64];
    let copy = |fill: u8, bytes: usize| [vec![0; HEADROOM], vec![fill; bytes]].concat();
    let mut find = |fill: u8, bytes| {
        let found = copy_of(&ours, &mut buffer, &[fill; 8], bytes);
        found.then(|| buffer[..HEADROOM + bytes].to_vec())
    };
    for (fill, bytes) in [(1, 40), (2, 40), (3, 41), (4, 40), (5, 40)] {
        kernel.send(&copy(fill, bytes)).unwrap();
    }
    assert_eq!(find(1, 40), Some(copy(1, 40)));
    assert_eq!(find(4, 40), Some(copy(4, 40)), "2 is as long, 3 is not: neither is given");
    assert_eq!(find(5, 41), None, "5 is shorter than the frame was");
    kernel.send(&copy(6, 40)).unwrap();
    assert_eq!(find(6, 40), Some(copy(6, 40)), "the queues agree again");
    assert_eq!(find(7, 40), None);
}
