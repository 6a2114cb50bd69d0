//! Faults that happen at a time: broken streams, restarts, cables.

use super::control::Waiting;
use super::{Happened, World, WorldError};
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use crate::p4runtime::proto::p4::v1::stream_message_request::Update as Arbitrate;
use crate::p4runtime::rpc::Rpc;
use crate::p4runtime::server::{Profile, Server};
use crate::sim::fabric::{device_id, lock, switch_losses};
use crate::sim::fault::Fault;
use crate::sim::wire::Wire;
use crate::switch::Switch;
use crate::time::Time;

impl<W: Wire> World<W> {
    pub(super) fn schedule_faults(&mut self) {
        for number in 0..self.faults.list().len() {
            let at = match self.faults.list()[number] {
                Fault::StreamsBroken { at, .. }
                | Fault::Restart { at, .. }
                | Fault::CableDown { at, .. } => at,
                Fault::ReplyLost { .. }
                | Fault::UpdateRefused { .. }
                | Fault::Stall { .. }
                | Fault::Lies { .. }
                | Fault::Reading { .. }
                | Fault::PacketIns { .. } => {
                    continue;
                }
            };
            self.push(at, Waiting::Fault(number as u32));
        }
    }

    pub(super) fn fault(&mut self, now: Time, number: u32) -> Result<Happened, WorldError> {
        let Some(fault) = self.faults.list().get(number as usize).copied() else {
            return Ok(Happened::Scripted);
        };
        match fault {
            Fault::StreamsBroken { switch, .. } => {
                self.wire.break_streams(switch, now)?;
                self.touched(now, switch)?;
                Ok(Happened::Executed(switch, false))
            }
            Fault::Restart { switch, keep_pipeline, .. } => {
                self.restart(now, switch, keep_pipeline)?;
                Ok(Happened::Restarted(switch))
            }
            Fault::CableDown { link, lasts, .. } => {
                self.cable(now, link, (Some(false), None));
                let up = super::Step::Cable { link, up: true };
                self.push(now + lasts, Waiting::Script(up));
                Ok(Happened::Scripted)
            }
            Fault::ReplyLost { .. }
            | Fault::UpdateRefused { .. }
            | Fault::Stall { .. }
            | Fault::Lies { .. }
            | Fault::Reading { .. }
            | Fault::PacketIns { .. } => Ok(Happened::Scripted),
        }
    }

    /// A switch starts anew: no entries, no registers, no clients, and its program only if it keeps that on its own disk.
    fn restart(
        &mut self,
        now: Time,
        switch: SwitchId,
        keep_pipeline: bool,
    ) -> Result<(), WorldError> {
        self.wire.break_streams(switch, now)?;
        {
            let mut server = lock(&self.servers[switch.index()]);
            let mut losses = switch_losses(server.device());
            losses.other += server.device().packets_held();
            self.lost_in_restarts.add(losses);
            let config = server.device().config().clone();
            let program = server.config().cloned().filter(|_| keep_pipeline);
            *server = Server::new(Switch::new(config), Profile::Spec);
            if let Some(program) = program {
                load(&mut server, now, switch, program);
            }
        }
        self.net.rewire(&mut self.queue, now, switch);
        self.touched(now, switch)
    }
}

/// Loads a program as the switch's own start-up does: nobody is primary yet, and nobody is afterwards.
fn load(
    server: &mut Server<Switch>,
    now: Time,
    switch: SwitchId,
    program: proto::ForwardingPipelineConfig,
) {
    let election = proto::Uint128 { high: 0, low: 1 };
    let stream = server.open_stream();
    let arbitration = proto::MasterArbitrationUpdate {
        device_id: device_id(switch),
        election_id: Some(election),
        ..Default::default()
    };
    let message = proto::StreamMessageRequest { update: Some(Arbitrate::Arbitration(arbitration)) };
    server.stream_message(now, stream, message);
    let request = proto::SetForwardingPipelineConfigRequest {
        device_id: device_id(switch),
        election_id: Some(election),
        action: Action::VerifyAndCommit.into(),
        config: Some(program),
        ..Default::default()
    };
    // It ran this program a moment ago; if it refuses it now, it comes back without one, which the controller repairs.
    let _ = server.call(now, Rpc::SetPipeline(request));
    server.close_stream(now, stream);
}
