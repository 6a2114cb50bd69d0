//! The switch allocates nothing for a packet once it has seen its busiest moment.

use ringpath::id::PortNo;
use ringpath::p4runtime::device::Device as _;
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use ringpath::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use ringpath::p4runtime::proto::p4::v1::table_action::Type as ActionType;
use ringpath::p4runtime::proto::p4::v1::update::Type;
use ringpath::p4runtime::proto::p4::v1::{
    Action, Entity, FieldMatch, ForwardingPipelineConfig, TableAction, TableEntry, Update, action,
};
use ringpath::p4runtime::value::encode;
use ringpath::switch::{Config, Switch};
use ringpath::time::Time;
use ringpath::units::BitRate;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(
    unsafe_code,
    reason = "a global allocator cannot be written without; it only counts and passes on"
)]
// SAFETY: every call goes to the system allocator with the arguments as they came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    work();
    COUNT.with(Cell::get) - before
}

struct Loaded {
    switch: Switch,
    info: Index,
}

fn load(json: &[u8], text: &str) -> Loaded {
    let info = Index::from_text(text).unwrap();
    let mut switch = Switch::new(Config { priority_queues: 8, ..Config::default() });
    let config = ForwardingPipelineConfig {
        p4info: Some(info.info().clone()),
        p4_device_config: json.to_vec().into(),
        cookie: None,
    };
    switch.load_pipeline(Time(0), &config).unwrap();
    switch.set_port(PortNo(2), true, Some(BitRate(100_000_000_000)));
    Loaded { switch, info }
}

fn exact(value: u128) -> FieldMatchType {
    FieldMatchType::Exact(field_match::Exact { value: encode(value) })
}

impl Loaded {
    fn insert(
        &mut self,
        table: &str,
        key: &[(&str, FieldMatchType)],
        priority: i32,
        (name, params): (&str, &[(&str, u128)]),
    ) {
        let table = self.info.table(table).unwrap();
        let action = self.info.action(name).unwrap();
        let entry = TableEntry {
            table_id: table.names.id,
            r#match: key
                .iter()
                .map(|(name, kind)| FieldMatch {
                    field_id: table.field(name).unwrap().id,
                    field_match_type: Some(kind.clone()),
                })
                .collect(),
            priority,
            action: Some(TableAction {
                r#type: Some(ActionType::Action(Action {
                    action_id: action.names.id,
                    params: params
                        .iter()
                        .map(|(name, value)| action::Param {
                            param_id: action.param(name).unwrap().id,
                            value: encode(*value),
                        })
                        .collect(),
                })),
            }),
            ..TableEntry::default()
        };
        let entity = Some(Entity { entity: Some(Kinds::TableEntry(entry)) });
        let update = Update { r#type: Type::Insert.into(), entity };
        self.switch.write(Time(0), &update).unwrap();
    }

    /// Sends each packet in turn, `rounds` times, a burst of eight at one time. Returns how many left.
    fn run(&mut self, now: &mut u64, rounds: usize, packets: &[Vec<u8>]) -> u64 {
        let mut left = 0;
        for _ in 0..rounds {
            for burst in packets.chunks(8) {
                for packet in burst {
                    self.switch.receive(Time(*now), PortNo(1), packet);
                }
                while let Some(at) = self.switch.poll_at() {
                    *now = (*now).max(at.0);
                    self.switch
                        .advance(Time(*now), &mut |sent| left += u64::from(sent.port.0 != 0));
                }
            }
        }
        left
    }

    /// Warms up, then demands that nothing is allocated.
    fn check(&mut self, packets: &[Vec<u8>]) {
        let mut now = 1;
        self.run(&mut now, 20, packets);
        let mut left = 0;
        let count = allocations(|| left = self.run(&mut now, 50, packets));
        assert!(left >= 50, "{left} packets left");
        assert_eq!(count, 0, "allocations for {left} packets");
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))), 1);
}

#[test]
fn our_program_forwards_without_allocating() {
    let mut loaded = load(
        include_bytes!("../../p4/build/ringpath.json"),
        include_str!("../../p4/build/ringpath.p4info.txtpb"),
    );
    let classify = [
        ("src_addr", 0x0a00_0001_u128, 0xffff_ffff_u128),
        ("dst_addr", 0x0a00_0002, 0xffff_ffff),
        ("dst_qp", 0x77, 0xff_ffff),
    ];
    let key: Vec<(&str, FieldMatchType)> = classify
        .iter()
        .map(|(name, value, mask)| {
            let (value, mask) = (encode(*value), encode(*mask));
            (*name, FieldMatchType::Ternary(field_match::Ternary { value, mask }))
        })
        .collect();
    let params = [
        ("label", 5_u128),
        ("queue", 3),
        ("src_slot", 1),
        ("slot", 1),
        ("epoch", 1),
        ("flip", 0),
        ("old_label", 5),
        ("old_queue", 3),
        ("force", 0),
        ("flip_gap", 200),
    ];
    loaded.insert("classify", &key, 10, ("tag", &params));
    loaded.insert("path_forward", &[("label", exact(5))], 0, ("forward", &[("port", 2)]));
    loaded.insert("host", &[("dst_addr", exact(0x0a00_0003))], 0, ("to_host", &[("port", 3)]));
    let packets = vec![roce(2, 0x77), roce(3, 0x77), roce(2, 0x77)];
    loaded.check(&packets);
    let tagged = loaded.switch.stats().port(PortNo(2)).sent;
    assert_eq!(tagged.bytes, tagged.packets * (1024 + 24), "the tag is on");
}

/// A RoCEv2 packet of 1,024 bytes from 10.0.0.1 to 10.0.0.`to`.
fn roce(to: u8, qp: u8) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&1010_u16.to_be_bytes());
    (bytes[22], bytes[23]) = (64, 17);
    bytes[26..30].copy_from_slice(&[10, 0, 0, 1]);
    bytes[30..34].copy_from_slice(&[10, 0, 0, to]);
    bytes[34..36].copy_from_slice(&49152_u16.to_be_bytes());
    bytes[36..38].copy_from_slice(&4791_u16.to_be_bytes());
    bytes[49] = qp;
    bytes
}

#[test]
fn every_service_works_without_allocating() {
    let mut loaded = load(
        include_bytes!("../data/switch/exercise.json"),
        include_str!("../data/switch/exercise.p4info.txtpb"),
    );
    loaded.insert("deliver", &[("dst", exact(2))], 0, ("send", &[("port", 2)]));
    loaded.insert("exact_table", &[("key", exact(5))], 0, ("result_counted", &[("value", 1)]));
    // 18 is a digest and 19 a packet-in: those are messages, and messages are allocated.
    let commands = (0..=24_u8).filter(|op| ![18, 19].contains(op)).map(|op| {
        let mut bytes =
            vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0x88, 0xb6, op, 3, 0, 5, 0, 0, 0, 5];
        bytes.resize(200, 0);
        bytes
    });
    let packets: Vec<Vec<u8>> = commands.collect();
    loaded.check(&packets);
}
