//! Inputs as lines of JSON, so that a run of the core can be repeated decision by decision.
//!
//! In: an instant and an [`Input`]. Out: one line; and back. Must not know what the core does with it. Protocol messages
//! are written as their wire bytes in hexadecimal: the wire form is the contract, and unknown fields survive.

use super::messages::{Input, RankSaid, RequestId, StreamNo, TimerKey};
use super::store::Record;
use crate::elastic::Generation;
use crate::id::{HostId, JobId, LinkId, SwitchId};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::rpc::{Code, Failure, Reply, RpcResult, StreamEnd};
use crate::pipeline::probe::ProbeKey;
use crate::time::{Span, Time};
use crate::workload::{Flow, Job};
use prost::Message;
use serde::{Deserialize, Serialize};

/// Why a line is no recorded input.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not the JSON that [`to_line`] writes.
    #[error("this is not a recorded input; give a file written by --record of the same version")]
    Json(#[from] serde_json::Error),
    /// A protocol message that cannot be decoded.
    #[error("the recording holds a broken {what} message; the file was changed or cut")]
    Message {
        /// Which message.
        what: &'static str,
    },
}

/// A message's wire bytes in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Wire(String);

impl Wire {
    fn of(message: &impl Message) -> Self {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
        let bytes = message.encode_to_vec();
        Self(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }

    fn read<M: Message + Default>(&self, what: &'static str) -> Result<M, RecordError> {
        let broken = || RecordError::Message { what };
        let nibble = |c: u8| char::from(c).to_digit(16).and_then(|n| u8::try_from(n).ok());
        let pairs = self.0.as_bytes().chunks(2).map(|pair| match *pair {
            [high, low] => Some(nibble(high)? << 4 | nibble(low)?),
            _ => None,
        });
        let bytes: Option<Vec<u8>> = pairs.collect();
        M::decode(&bytes.ok_or_else(broken)?[..]).map_err(|_| broken())
    }
}

/// What a call came to, as written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Capabilities(Wire),
    Write,
    Read(Vec<Wire>),
    SetPipeline,
    GetPipeline(Wire),
    Failure { code: Code, message: String, updates: Vec<Wire> },
}

/// An input, as written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Written {
    Boot { stored: Vec<Record>, wall_ms: u64, probe_key: ProbeKey },
    Reply { switch: SwitchId, request: RequestId, answer: Answer },
    Stream { switch: SwitchId, stream: StreamNo, message: Wire },
    StreamEnded { switch: SwitchId, stream: StreamNo, end: StreamEnd },
    Timer(TimerKey),
    SubmitJobs(Vec<(Job, Vec<Flow>)>),
    JobFinished(JobId),
    Progress { job: JobId, iterations: u32, compute: Vec<Span> },
    Rank { job: JobId, host: HostId, said: RankSaid },
    Host { host: HostId, up: bool },
    Joined { job: JobId, generation: Generation, flows: Vec<Flow> },
    Link { link: LinkId, up: bool },
    SetPolicy(String),
    Replan,
    Resync(SwitchId),
}

#[derive(Serialize, Deserialize)]
struct Line {
    at: Time,
    input: Written,
}

/// One input as a line of JSON, without the line's end.
///
/// # Errors
/// [`RecordError::Json`] when a number has no JSON form (not a number, infinite).
pub fn to_line(at: Time, input: &Input) -> Result<String, RecordError> {
    Ok(serde_json::to_string(&Line { at, input: written(input) })?)
}

/// The instant and input of a line.
///
/// # Errors
/// [`RecordError`] when it is not one that [`to_line`] wrote.
pub fn from_line(line: &str) -> Result<(Time, Input), RecordError> {
    let Line { at, input } = serde_json::from_str(line)?;
    Ok((at, read(input)?))
}

fn written(input: &Input) -> Written {
    match input.clone() {
        Input::Boot { stored, wall_ms, probe_key } => Written::Boot { stored, wall_ms, probe_key },
        Input::Reply { switch, request, result } => {
            Written::Reply { switch, request, answer: answer(&result) }
        }
        Input::Stream { switch, stream, message } => {
            Written::Stream { switch, stream, message: Wire::of(&message) }
        }
        Input::StreamEnded { switch, stream, end } => Written::StreamEnded { switch, stream, end },
        Input::Timer(key) => Written::Timer(key),
        Input::SubmitJobs(jobs) => Written::SubmitJobs(jobs),
        Input::JobFinished { job } => Written::JobFinished(job),
        Input::Progress { job, iterations, compute } => {
            Written::Progress { job, iterations, compute }
        }
        Input::Rank { job, host, said } => Written::Rank { job, host, said },
        Input::Host { host, up } => Written::Host { host, up },
        Input::Joined { job, generation, flows } => Written::Joined { job, generation, flows },
        Input::Link { link, up } => Written::Link { link, up },
        Input::SetPolicy { policy } => Written::SetPolicy(policy),
        Input::Replan => Written::Replan,
        Input::Resync { switch } => Written::Resync(switch),
    }
}

fn answer(result: &RpcResult) -> Answer {
    match result {
        Ok(Reply::Capabilities(response)) => Answer::Capabilities(Wire::of(response)),
        Ok(Reply::Write) => Answer::Write,
        Ok(Reply::Read(entities)) => Answer::Read(entities.iter().map(Wire::of).collect()),
        Ok(Reply::SetPipeline) => Answer::SetPipeline,
        Ok(Reply::GetPipeline(response)) => Answer::GetPipeline(Wire::of(response)),
        Err(Failure { code, message, updates }) => Answer::Failure {
            code: *code,
            message: message.clone(),
            updates: updates.iter().map(Wire::of).collect(),
        },
    }
}

fn read(input: Written) -> Result<Input, RecordError> {
    Ok(match input {
        Written::Boot { stored, wall_ms, probe_key } => Input::Boot { stored, wall_ms, probe_key },
        Written::Reply { switch, request, answer } => {
            Input::Reply { switch, request, result: result(&answer)? }
        }
        Written::Stream { switch, stream, message } => {
            Input::Stream { switch, stream, message: message.read("stream")? }
        }
        Written::StreamEnded { switch, stream, end } => Input::StreamEnded { switch, stream, end },
        Written::Timer(key) => Input::Timer(key),
        Written::SubmitJobs(jobs) => Input::SubmitJobs(jobs),
        Written::JobFinished(job) => Input::JobFinished { job },
        Written::Progress { job, iterations, compute } => {
            Input::Progress { job, iterations, compute }
        }
        Written::Rank { job, host, said } => Input::Rank { job, host, said },
        Written::Host { host, up } => Input::Host { host, up },
        Written::Joined { job, generation, flows } => Input::Joined { job, generation, flows },
        Written::Link { link, up } => Input::Link { link, up },
        Written::SetPolicy(policy) => Input::SetPolicy { policy },
        Written::Replan => Input::Replan,
        Written::Resync(switch) => Input::Resync { switch },
    })
}

fn result(answer: &Answer) -> Result<RpcResult, RecordError> {
    Ok(match answer {
        Answer::Capabilities(response) => Ok(Reply::Capabilities(response.read("capabilities")?)),
        Answer::Write => Ok(Reply::Write),
        Answer::Read(entities) => {
            let entities = entities.iter().map(|wire| wire.read::<proto::Entity>("entity"));
            Ok(Reply::Read(entities.collect::<Result<_, _>>()?))
        }
        Answer::SetPipeline => Ok(Reply::SetPipeline),
        Answer::GetPipeline(response) => Ok(Reply::GetPipeline(response.read("pipeline")?)),
        Answer::Failure { code, message, updates } => {
            let updates = updates.iter().map(|wire| wire.read::<proto::Error>("error"));
            let updates = updates.collect::<Result<_, _>>()?;
            Err(Failure { code: *code, message: message.clone(), updates })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::messages::RankState;

    fn round(input: Input) {
        let line = to_line(Time(7), &input).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(from_line(&line).unwrap(), (Time(7), input), "{line}");
    }

    #[test]
    fn every_kind_of_answer_and_message_reads_back() {
        let reply = |result| Input::Reply { switch: SwitchId(1), request: RequestId(2), result };
        let entity = crate::pipeline::tests::program().read_all().swap_remove(1);
        let error =
            proto::Error { canonical_code: 5, message: "ä\"".into(), ..Default::default() };
        let failure = Failure { updates: vec![error], ..Failure::new(Code::Unknown, "no") };
        for input in [
            reply(Ok(Reply::Write)),
            reply(Ok(Reply::SetPipeline)),
            reply(Ok(Reply::Read(vec![entity.clone(), entity]))),
            reply(Ok(Reply::GetPipeline(proto::GetForwardingPipelineConfigResponse::default()))),
            reply(Ok(Reply::Capabilities(proto::CapabilitiesResponse::default()))),
            reply(Err(failure)),
            Input::Timer(TimerKey::Lost(SwitchId(3), 4)),
            Input::SetPolicy { policy: "x".into() },
            Input::Replan,
            Input::Rank { job: JobId(1), host: HostId(2), said: RankSaid::Silent },
            Input::Rank {
                job: JobId(1),
                host: HostId(2),
                said: RankSaid::State(RankState { lost: Some(HostId(3)), ..RankState::default() }),
            },
            Input::Host { host: HostId(2), up: false },
            Input::Joined { job: JobId(1), generation: Generation(2), flows: Vec::new() },
            Input::Progress { job: JobId(4), iterations: 7, compute: vec![Span(5), Span(6)] },
            Input::Link { link: LinkId(3), up: false },
        ] {
            round(input);
        }
    }

    #[test]
    fn a_broken_line_is_refused_by_what_is_broken() {
        let line = r#"{"at":1,"input":{"stream":{"switch":0,"stream":1,"message":"0a0"}}}"#;
        assert!(matches!(from_line(line), Err(RecordError::Message { what: "stream" })));
        assert!(matches!(from_line("{}"), Err(RecordError::Json(_))));
    }
}
