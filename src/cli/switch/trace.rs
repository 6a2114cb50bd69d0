//! `ringpath switch trace`: what packets meet in a P4 program, step by step.
//!
//! In: a program, entries, packets. Out: every event of every packet, as lines or JSON. Runs in process and virtual time.

use crate::cli::{Exit, Format, exit, grid, target::read_p4info};
use crate::id::PortNo;
use crate::p4runtime::device::Device as _;
use crate::p4runtime::proto::p4::config::v1::P4Info;
use crate::p4runtime::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, ReadResponse, Update, WriteRequest, update,
};
use crate::p4runtime::text;
use crate::switch::port::pcap::{Reader, Record};
use crate::switch::stf::{self, Line};
use crate::switch::trace::Event;
use crate::switch::{Config, Switch};
use crate::time::{Span, Time};
use anyhow::Context as _;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Between packets that carry no time of their own.
const GAP: Span = Span::from_millis(1);

/// Arguments of `ringpath switch trace`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath switch trace basic.json --entries basic.stf --packet 1:000000000001000000000002080045...
  ringpath switch trace basic.json --entries basic.stf                  the packets of the case
  ringpath switch trace basic.json --p4info basic.p4info.txtpb --entries write.txtpb --pcap in.pcap --port 1 -o json")]
pub struct Args {
    /// Program: the JSON that p4c-bm2-ss writes.
    #[arg(value_name = "PROGRAM.json")]
    pub program: PathBuf,
    /// P4Info of the program (p4c's text form); needed for entries in P4Runtime's text form.
    #[arg(long, value_name = "FILE")]
    pub p4info: Option<PathBuf>,
    /// Entries, clone sessions, groups…: STF lines, whose `packet` lines are traced too, or a P4Runtime `WriteRequest` or
    /// `ReadResponse` as text.
    #[arg(long, value_name = "FILE")]
    pub entries: Option<PathBuf>,
    /// A packet, as PORT:HEX; may be given again.
    #[arg(long, value_name = "PORT:HEX", value_parser = packet)]
    pub packet: Vec<Packet>,
    /// Packets of a pcap file, at the distances in time that they have there.
    #[arg(long, value_name = "FILE", conflicts_with = "packet")]
    pub pcap: Option<PathBuf>,
    /// The port by which the packets of --pcap come in.
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "pcap", value_parser = port)]
    pub port: u16,
    /// Output: lines for people or JSON.
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

/// A packet and where it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    port: u16,
    bytes: Vec<u8>,
}

fn port(text: &str) -> Result<u16, String> {
    super::within(text, 0, super::PORT_MAX)
}

fn packet(text: &str) -> Result<Packet, String> {
    let (number, hex) =
        text.split_once(':').ok_or("there is no ':'; write for example 1:0a0b0c")?;
    let digits: Vec<u8> = hex
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '_')
        .map(|c| c.to_digit(16).map(|d| d as u8).ok_or(format!("'{c}' is no hexadecimal digit")))
        .collect::<Result<_, _>>()?;
    if digits.len() % 2 == 1 {
        return Err(format!("{} hexadecimal digits are not whole bytes", digits.len()));
    }
    let bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    Ok(Packet { port: port(number)?, bytes })
}

/// What `--entries` holds.
enum Entries {
    None,
    Stf(Vec<Line>),
    Updates(Vec<Update>),
}

/// Traces.
///
/// # Errors
/// A file that cannot be used; nothing to trace.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let shown = args.program.display();
    let json =
        std::fs::read(&args.program).with_context(|| format!("cannot read the program {shown}"))?;
    let index = args.p4info.as_deref().map(read_p4info).transpose()?;
    let info = index.as_ref().map(|index| index.info());
    let entries = match &args.entries {
        None => Entries::None,
        Some(path) => read_entries(path, info.is_some())?,
    };
    let mut seen = Vec::new();
    let (mut switch, mut now) = set_up(args, &json, info, &entries, &mut seen)?;
    for (after, packet) in packets(args)? {
        now += after;
        switch.receive(now, PortNo(packet.port), &packet.bytes);
        switch.advance(now, &mut |_| {});
        now = stf::drain(&mut switch, now, &mut |_| {});
        seen.push(switch.take_trace());
    }
    if seen.is_empty() {
        let text = "there is no packet; give --packet PORT:HEX, --pcap FILE or 'packet' lines in --entries";
        return Err(exit::usage(text.to_owned()));
    }
    let lost: u64 = seen.iter().map(|(_, lost)| lost).sum();
    let events: Vec<Event> = seen.into_iter().flat_map(|(events, _)| events).collect();
    let document = || json!({ "lost": lost, "events": events });
    grid::write(args.output, out, document, |out| lines(&events, lost, out))?;
    Ok(Exit::Done)
}

fn lines(events: &[Event], lost: u64, out: &mut dyn Write) -> std::io::Result<()> {
    for event in events {
        for line in event.kind.to_string().lines() {
            writeln!(out, "#{:<3} {line}", event.packet)?;
        }
    }
    if lost > 0 {
        writeln!(out, "{lost} more events were lost; trace fewer packets at a time")?;
    }
    Ok(())
}

/// A traced switch with the entries in it, and the packets of an STF file already through it.
fn set_up(
    args: &Args,
    json: &[u8],
    info: Option<&P4Info>,
    entries: &Entries,
    seen: &mut Vec<(Vec<Event>, u64)>,
) -> anyhow::Result<(Switch, Time)> {
    let program = args.program.display();
    let Entries::Updates(updates) = entries else {
        let lines: &[Line] = match entries {
            Entries::Stf(lines) => lines,
            _ => &[],
        };
        let loaded =
            stf::Program::new(json, info).with_context(|| format!("cannot run {program}"))?;
        let mut watch = |switch: &mut Switch| seen.push(switch.take_trace());
        let path = args.entries.as_deref().unwrap_or(Path::new("")).display().to_string();
        return loaded.trace(lines, &mut watch).with_context(|| path);
    };
    let mut switch = Switch::new(Config { priority_queues: 8, ..Config::default() });
    let config = ForwardingPipelineConfig {
        p4info: info.cloned(),
        p4_device_config: json.to_vec().into(),
        ..ForwardingPipelineConfig::default()
    };
    switch
        .load_pipeline(Time::ZERO, &config)
        .map_err(|refusal| anyhow::anyhow!("cannot run {program}: {refusal}"))?;
    for (number, update) in updates.iter().enumerate() {
        switch.write(Time::ZERO, update).map_err(|refusal| {
            anyhow::anyhow!("update {} of --entries is refused: {refusal}", number + 1)
        })?;
    }
    switch.set_trace(true);
    Ok((switch, Time::ZERO))
}

/// STF begins with a command; everything else is P4Runtime's text form.
fn read_entries(path: &Path, has_info: bool) -> anyhow::Result<Entries> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read --entries {shown}"))?;
    let first = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let first = first.clone().find(|line| !line.is_empty()).unwrap_or_default();
    let is_message = ["updates", "entities", "device_id", "election_id", "role", "atomicity"]
        .iter()
        .any(|field| first.starts_with(field));
    if !is_message {
        return Ok(Entries::Stf(stf::parse(&text).with_context(|| shown.to_string())?));
    }
    if !has_info {
        return Err(exit::usage(format!("{shown} names things by id; give --p4info FILE too")));
    }
    if first.starts_with("entities") {
        let response: ReadResponse =
            text::parse("p4.v1.ReadResponse", &text).with_context(|| shown.to_string())?;
        let insert =
            |entity: Entity| Update { r#type: insertion(&entity).into(), entity: Some(entity) };
        return Ok(Entries::Updates(response.entities.into_iter().map(insert).collect()));
    }
    let request: WriteRequest =
        text::parse("p4.v1.WriteRequest", &text).with_context(|| shown.to_string())?;
    Ok(Entries::Updates(request.updates))
}

/// How what was read from one switch is written to another: arrays and defaults exist already.
fn insertion(entity: &Entity) -> update::Type {
    use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
    match &entity.entity {
        Some(Kinds::TableEntry(entry)) if !entry.is_default_action => update::Type::Insert,
        Some(
            Kinds::ActionProfileMember(_)
            | Kinds::ActionProfileGroup(_)
            | Kinds::PacketReplicationEngineEntry(_)
            | Kinds::DigestEntry(_),
        ) => update::Type::Insert,
        _ => update::Type::Modify,
    }
}

/// Packets of one trace: more than anybody reads, and their events stay in memory until all are printed.
const PACKETS_MAX: usize = 10_000;

/// The packets, each with the time after the one before.
fn packets(args: &Args) -> anyhow::Result<Vec<(Span, Packet)>> {
    let Some(path) = &args.pcap else {
        return Ok(args.packet.iter().map(|packet| (GAP, packet.clone())).collect());
    };
    let shown = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut reader =
        Reader::new(std::io::BufReader::new(file)).with_context(|| shown.to_string())?;
    let (mut found, mut record, mut last) = (Vec::new(), Record::default(), None);
    while reader.next(&mut record).with_context(|| shown.to_string())? {
        anyhow::ensure!(
            found.len() < PACKETS_MAX,
            "{shown} has more than {PACKETS_MAX} packets; cut it, for example with `tcpdump -r FILE -c 100 -w PART`"
        );
        let time_ns = record.time_ns;
        let after = last.map_or(GAP, |last| Span(time_ns.saturating_sub(last)));
        last = Some(time_ns);
        found.push((after, Packet { port: args.port, bytes: record.bytes.clone() }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_a_port_and_digits() {
        assert_eq!(packet("7:0a 0B_0c"), Ok(Packet { port: 7, bytes: vec![10, 11, 12] }));
        assert_eq!(packet("511:"), Ok(Packet { port: 511, bytes: Vec::new() }));
        for (text, part) in [
            ("0a0b", "there is no ':'"),
            ("512:00", "between 0 and 511"),
            ("1:0", "not whole bytes"),
            ("1:0x", "'x' is no hexadecimal digit"),
        ] {
            let why = packet(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
