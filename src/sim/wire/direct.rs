//! The wire without a wire: the server's handlers in process.

use super::{Said, Wire, WireError};
use crate::controller::messages::StreamNo;
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1::StreamMessageRequest;
use crate::p4runtime::rpc::{Code, Rpc, RpcResult, StreamEnd};
use crate::p4runtime::server::{StreamId, ToClient};
use crate::sim::fabric::{SharedServer, lock};
use crate::time::Time;
use std::collections::BTreeMap;

/// Calls the servers directly.
pub struct DirectWire {
    switches: Vec<Endpoint>,
}

struct Endpoint {
    server: SharedServer,
    streams: BTreeMap<StreamNo, StreamId>,
    said: Vec<(StreamNo, Said)>,
}

impl Endpoint {
    fn take(&mut self, told: Vec<ToClient>) {
        for (id, what) in told {
            let named = self.streams.iter().find(|(_, own)| **own == id);
            let Some(stream) = named.map(|(stream, _)| *stream) else { continue };
            let said = match what {
                Ok(message) => Said::Message(message),
                Err(end) => {
                    self.streams.remove(&stream);
                    Said::Ended(end)
                }
            };
            self.said.push((stream, said));
        }
    }
}

impl Endpoint {
    /// What the device has put into its outbox follows what the server said.
    fn listen(&mut self, now: Time) {
        let told = lock(&self.server).drain(now);
        self.take(told);
    }
}

impl DirectWire {
    /// A wire to servers in order of switch id.
    #[must_use]
    pub fn new(servers: &[SharedServer]) -> Self {
        let endpoint = |server: &SharedServer| Endpoint {
            server: server.clone(),
            streams: BTreeMap::new(),
            said: Vec::new(),
        };
        Self { switches: servers.iter().map(endpoint).collect() }
    }
}

impl Wire for DirectWire {
    fn open(&mut self, switch: SwitchId, _now: Time, stream: StreamNo) -> Result<(), WireError> {
        let endpoint = &mut self.switches[switch.index()];
        let id = lock(&endpoint.server).open_stream();
        endpoint.streams.insert(stream, id);
        Ok(())
    }

    fn call(&mut self, switch: SwitchId, now: Time, rpc: Rpc) -> Result<RpcResult, WireError> {
        Ok(lock(&self.switches[switch.index()].server).call(now, rpc))
    }

    fn send(
        &mut self,
        switch: SwitchId,
        now: Time,
        stream: StreamNo,
        messages: &[StreamMessageRequest],
    ) -> Result<(), WireError> {
        let endpoint = &mut self.switches[switch.index()];
        for message in messages {
            let Some(id) = endpoint.streams.get(&stream).copied() else { break };
            let answers = lock(&endpoint.server).stream_message(now, id, message.clone());
            endpoint.take(answers);
            endpoint.listen(now);
        }
        Ok(())
    }

    fn close(&mut self, switch: SwitchId, now: Time, stream: StreamNo) -> Result<(), WireError> {
        let endpoint = &mut self.switches[switch.index()];
        if let Some(id) = endpoint.streams.remove(&stream) {
            let told = lock(&endpoint.server).close_stream(now, id);
            endpoint.take(told);
        }
        Ok(())
    }

    fn break_streams(&mut self, switch: SwitchId, now: Time) -> Result<(), WireError> {
        let endpoint = &mut self.switches[switch.index()];
        for (stream, id) in std::mem::take(&mut endpoint.streams) {
            lock(&endpoint.server).close_stream(now, id);
            let end = StreamEnd { code: Code::Unavailable, message: super::RESET.into() };
            endpoint.said.push((stream, Said::Ended(end)));
        }
        Ok(())
    }

    fn drain(&mut self, switch: SwitchId, now: Time) -> Result<Vec<(StreamNo, Said)>, WireError> {
        let endpoint = &mut self.switches[switch.index()];
        endpoint.listen(now);
        let mut said = std::mem::take(&mut endpoint.said);
        said.sort_by_key(|(stream, _)| *stream);
        Ok(said)
    }
}
