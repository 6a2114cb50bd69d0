use super::interface::{Batch, Interface};
use super::ring::{SEND_MAX, slot_bytes};
use super::*;

fn face() -> Arc<Face> {
    Arc::new(Face::new(&"7@nowhere".parse().unwrap(), None))
}

#[test]
fn a_batch_gives_its_frames_in_order_and_is_empty_when_all_are_gone() {
    let mut batch = Batch::default();
    for n in 0..5_u8 {
        batch.push(&vec![n; usize::from(n)]);
    }
    batch.advance(2);
    assert_eq!((batch.waiting(), batch.len()), (3, 5));
    assert_eq!(batch.frames().collect::<Vec<_>>(), [&[2, 2][..], &[3; 3], &[4; 4]]);
    batch.advance(3);
    assert_eq!((batch.waiting(), batch.len(), batch.frames().count()), (0, 0, 0));
    batch.push(&[9]);
    assert_eq!(batch.frames().collect::<Vec<_>>(), [&[9][..]]);
}

#[test]
fn an_interface_is_full_after_one_batch_and_without_a_link_what_waits_is_counted_as_lost() {
    let face = face();
    let mut interface = Interface::new(Arc::clone(&face));
    for n in 1..=SEND_MAX {
        assert_eq!(interface.push(&[0; 60]), n < SEND_MAX);
    }
    assert!(interface.flush(), "nothing waits afterwards");
    assert_eq!(face.counters.down.load(Ordering::Relaxed), SEND_MAX as u64);
}

#[test]
fn a_face_tells_changes_only_and_counts_how_often_it_came_up() {
    let face = face();
    let changes = [true, true, false, true, true].map(|up| face.set_up(up));
    assert_eq!(changes, [true, false, true, true, false]);
    assert_eq!(face.counters.ups.load(Ordering::Relaxed), 2);
}

#[test]
fn every_counter_has_a_name_and_a_place_of_its_own() {
    let counters = Counters::default();
    for (place, (_, counter)) in COUNTERS.iter().enumerate() {
        count(counter(&counters), place as u64 + 1);
    }
    for (place, (name, counter)) in COUNTERS.iter().enumerate() {
        assert_eq!(counter(&counters).load(Ordering::Relaxed), place as u64 + 1, "{name}");
        assert!(COUNTERS.iter().filter(|(other, _)| other == name).count() == 1);
    }
}

#[test]
fn a_slot_holds_a_frame_of_the_mtu_and_divides_a_block() {
    for (mtu, want) in
        [(68, 256), (1_500, 2_048), (1_800, 2_048), (9_000, 16_384), (65_535, 16_384)]
    {
        assert_eq!(slot_bytes(mtu), want, "{mtu}");
    }
}
