//! What goes wrong in a run: a list, drawn from a seed, that can be shortened.
//!
//! In: a seed and a fabric. Out: the fate of each call, and faults at their times. Must not know invariants or why a fault
//! matters.

use crate::id::{LinkId, SwitchId};
use crate::p4runtime::proto::p4::v1::StreamMessageResponse;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::proto::p4::v1::p4_data::Data;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update;
use crate::p4runtime::rpc::{Code, Reply, Rpc, RpcResult};
use crate::time::{Span, Time, stream};
use crate::topology::Topology;
use rand::RngExt as _;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "fault")]
pub enum Fault {
    /// The switch executes a call, the answer never arrives.
    ReplyLost {
        /// The switch.
        switch: SwitchId,
        /// The call, counted at the switch from 0.
        call: u32,
    },
    /// One update of a Write is refused, the others are executed.
    UpdateRefused {
        /// The switch.
        switch: SwitchId,
        /// The Write, counted at the switch from 0.
        write: u32,
        /// The update, modulo the number of updates.
        update: u32,
        /// With which code.
        code: Code,
    },
    /// All streams of a switch break.
    StreamsBroken {
        /// The switch.
        switch: SwitchId,
        /// When.
        at: Time,
    },
    /// A switch restarts and has lost its entries and registers.
    Restart {
        /// The switch.
        switch: SwitchId,
        /// When.
        at: Time,
        /// Whether it comes back with its program.
        keep_pipeline: bool,
    },
    /// A cable carries nothing for a while.
    CableDown {
        /// Either direction.
        link: LinkId,
        /// When.
        at: Time,
        /// For how long.
        lasts: Span,
    },
    /// A switch stops answering: what is sent to it meanwhile is executed when it wakes up, whether anybody still waits or not.
    Stall {
        /// The switch.
        switch: SwitchId,
        /// When.
        at: Time,
        /// For how long.
        lasts: Span,
    },
    /// Of a thousand packets and register values that a switch sends to the controller so many have another content: bytes
    /// changed, cut off or added.
    Lies {
        /// The switch.
        switch: SwitchId,
        /// Of a thousand.
        share: u32,
    },
    /// Of a thousand calls that read telemetry so many fail, half of them unexecuted with an error, half executed without an answer.
    Reading {
        /// The switch.
        switch: SwitchId,
        /// Of a thousand.
        share: u32,
        /// The error's code.
        code: Code,
    },
    /// Some packets of a switch to the controller are lost, others come twice.
    PacketIns {
        /// The switch.
        switch: SwitchId,
        /// Lost, of a thousand.
        lost: u32,
        /// Delivered twice, of a thousand.
        twice: u32,
    },
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing special.
    Normal,
    /// Executed, but the answer is lost.
    LoseReply,
    /// Not executed; the answer is an error.
    Fail(Code),
    /// One update is refused.
    Refuse {
        /// Which.
        update: usize,
        /// With which code.
        code: Code,
    },
}

/// The faults of one run, and how many calls each switch has seen.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    list: Vec<Fault>,
    calls: Vec<u32>,
    writes: Vec<u32>,
    packets: Vec<u64>,
    /// Payloads looked at by [`Faults::distort`].
    payloads: u64,
    /// Calls looked at by [`Faults::on_reading`].
    readings: u64,
    /// Registers that a lying switch lies about.
    registers: Vec<u32>,
}

/// Codes that a switch may give an update although nothing is wrong with it: the unclear ones of the outcome table.
/// Permanent codes would rightly make the controller give up.
const UNCLEAR: [Code; 3] = [Code::Aborted, Code::Internal, Code::Unknown];

impl Faults {
    /// Exactly these faults.
    #[must_use]
    pub fn new(list: Vec<Fault>) -> Self {
        Self { list, ..Self::default() }
    }

    /// The faults.
    #[must_use]
    pub fn list(&self) -> &[Fault] {
        &self.list
    }

    /// A few faults of every kind or none, within `horizon` of the start.
    #[must_use]
    pub fn draw(seed: u64, topology: &Topology, horizon: Span) -> Vec<Fault> {
        let mut random = stream(seed, "faults", 0);
        let count = random.random_range(0..MAX_DRAWN);
        (0..count).map(|_| one(&mut random, topology, horizon)).collect()
    }

    /// What happens to the next call at a switch.
    pub fn on_call(&mut self, switch: SwitchId, rpc: &Rpc) -> Fate {
        let call = bump(&mut self.calls, switch);
        let updates = match rpc {
            Rpc::Write(write) => write.updates.len(),
            _ => 0,
        };
        let write = if updates > 0 { Some(bump(&mut self.writes, switch)) } else { None };
        for fault in &self.list {
            match *fault {
                Fault::ReplyLost { switch: at, call: number } if at == switch && number == call => {
                    return Fate::LoseReply;
                }
                Fault::UpdateRefused { switch: at, write: number, update, code }
                    if at == switch && Some(number) == write =>
                {
                    return Fate::Refuse { update: update as usize % updates, code };
                }
                _ => {}
            }
        }
        Fate::Normal
    }

    /// What happens to the next call that reads telemetry.
    pub fn on_reading(&mut self, switch: SwitchId) -> Fate {
        let fault = self.list.iter().find_map(|fault| match *fault {
            Fault::Reading { switch: it, share, code } if it == switch => Some((share, code)),
            _ => None,
        });
        let Some((share, code)) = fault else { return Fate::Normal };
        self.readings += 1;
        let mut random = stream(self.readings, "readings", u64::from(switch.0));
        match (random.random_range(0..1000) < share, random.random_range(0..2)) {
            (false, _) => Fate::Normal,
            (true, 0) => Fate::Fail(code),
            (true, _) => Fate::LoseReply,
        }
    }

    /// When a switch that stalls at `now` wakes up.
    #[must_use]
    pub fn stalled_until(&self, switch: SwitchId, now: Time) -> Option<Time> {
        let end = |fault: &Fault| match *fault {
            Fault::Stall { switch: it, at, lasts } if it == switch && at <= now => Some(at + lasts),
            _ => None,
        };
        self.list.iter().filter_map(end).filter(|end| *end > now).max()
    }

    /// A switch that lies does so about these registers only, beside its packets: one that lies about its tables or about
    /// flips in force cannot be controlled at all.
    #[must_use]
    pub fn about(mut self, registers: impl IntoIterator<Item = u32>) -> Self {
        self.registers = registers.into_iter().collect();
        self
    }

    /// Distorts the answer to a Read.
    pub fn distort_answer(&mut self, switch: SwitchId, result: &mut RpcResult) {
        let Ok(Reply::Read(entities)) = result else { return };
        for entity in entities {
            let Some(Kind::RegisterEntry(entry)) = &mut entity.entity else { continue };
            let data = entry.data.as_mut().and_then(|data| data.data.as_mut());
            if let Some(Data::Bitstring(bytes)) = data
                && self.registers.contains(&entry.register_id)
            {
                self.distort(switch, bytes);
            }
        }
    }

    /// Distorts a packet to the controller.
    pub fn distort_packet(&mut self, switch: SwitchId, message: &mut StreamMessageResponse) {
        if let Some(Update::Packet(packet)) = &mut message.update {
            self.distort(switch, &mut packet.payload);
        }
    }

    /// What a switch that lies makes of something that it sends.
    fn distort(&mut self, switch: SwitchId, payload: &mut Vec<u8>) {
        let share = self.list.iter().find_map(|fault| match *fault {
            Fault::Lies { switch: it, share } if it == switch => Some(share),
            _ => None,
        });
        let Some(share) = share else { return };
        self.payloads += 1;
        let mut random = stream(self.payloads, "lies", u64::from(switch.0));
        if random.random_range(0..1000) >= share {
            return;
        }
        match random.random_range(0..8) {
            0 => payload.truncate(random.random_range(0..=payload.len())),
            1 => payload.extend(std::iter::repeat_n(0xff, random.random_range(1..64))),
            2 => payload.iter_mut().for_each(|byte| *byte = random.random()),
            _ => {
                for _ in 0..random.random_range(1..4) {
                    let at = random.random_range(0..payload.len().max(1));
                    if let Some(byte) = payload.get_mut(at) {
                        *byte = random.random();
                    }
                }
            }
        }
    }

    /// How often the next packet of a switch reaches the controller: not, once, or twice.
    pub fn on_packet_in(&mut self, switch: SwitchId) -> usize {
        for fault in &self.list {
            let Fault::PacketIns { switch: at, lost, twice } = *fault else { continue };
            if at != switch {
                continue;
            }
            if self.packets.len() <= switch.index() {
                self.packets.resize(switch.index() + 1, 0);
            }
            let number = &mut self.packets[switch.index()];
            *number += 1;
            let drawn = stream(*number, "packet-ins", u64::from(switch.0)).random_range(0..1000);
            return match drawn {
                drawn if drawn < lost => 0,
                drawn if drawn < lost + twice => 2,
                _ => 1,
            };
        }
        1
    }
}

/// Most faults drawn for one run: more hide each other.
const MAX_DRAWN: u32 = 6;
/// Longest drawn stall: past the deadline of a call, short of the time after which a switch counts as lost, and some beyond.
const STALL_MAX: Span = Span::from_millis(4_000);
/// Calls and Writes that drawn faults aim at: a small fabric makes about so many.
const AIM: u32 = 12;

fn bump(counts: &mut Vec<u32>, switch: SwitchId) -> u32 {
    if counts.len() <= switch.index() {
        counts.resize(switch.index() + 1, 0);
    }
    counts[switch.index()] += 1;
    counts[switch.index()] - 1
}

fn one(random: &mut Pcg64, topology: &Topology, horizon: Span) -> Fault {
    let switch = SwitchId(random.random_range(0..topology.switch_count().max(1) as u32));
    let at = Time(random.random_range(0..horizon.0.max(1)));
    match random.random_range(0..10) {
        0 => Fault::ReplyLost { switch, call: random.random_range(0..AIM) },
        1 => Fault::UpdateRefused {
            switch,
            write: random.random_range(0..AIM),
            update: random.random_range(0..1000),
            code: UNCLEAR[random.random_range(0..UNCLEAR.len())],
        },
        2 => Fault::StreamsBroken { switch, at },
        6 => Fault::Stall { switch, at, lasts: Span(random.random_range(1_000_000..=STALL_MAX.0)) },
        7 => Fault::Lies { switch, share: random.random_range(1..=1000) },
        8 => Fault::PacketIns {
            switch,
            lost: random.random_range(0..=500),
            twice: random.random_range(0..=500),
        },
        9 => Fault::Reading {
            switch,
            share: random.random_range(1..=1000),
            code: UNCLEAR[random.random_range(0..UNCLEAR.len())],
        },
        3 => Fault::Restart { switch, at, keep_pipeline: random.random_range(0..2) == 0 },
        _ => Fault::CableDown {
            link: cable(random, topology),
            at,
            lasts: Span(random.random_range(1_000_000..=horizon.0.max(2_000_000) / 2)),
        },
    }
}

/// A cable between two switches: a host's only cable has no other way round.
fn cable(random: &mut Pcg64, topology: &Topology) -> LinkId {
    let cables: Vec<LinkId> = topology.cables().filter(|link| topology.is_inner(*link)).collect();
    match cables.len() {
        0 => LinkId(0),
        n => cables[random.random_range(0..n)],
    }
}
