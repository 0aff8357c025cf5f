//! Calls about the switch itself: programs, queues, time; and what of bmv2 this switch has not.

use super::loaded::Running;
use super::{Device, failed};
use crate::limits;
use millrace_dataplane::{NodeWrite, ObjectRequest, PortId, QueueSetting, QueueWrite, Request};
use millrace_describe::bmv2;
use millrace_pipeline::{CrcParameters, CrcWidth};
use millrace_state::ObjectWrite;
use millrace_thrift_api::{
    CallError, Crc16Config, Crc32Config, CrcCode, IdCode, InvalidCrcOperation, InvalidIdLookup,
    InvalidToeplitzHashOperation, ResourceType, SwitchInfo, ToeplitzCode, Undeclared,
};
use std::time::{SystemTime, UNIX_EPOCH};

type Answer<T = ()> = Result<T, CallError<Undeclared>>;

impl Device {
    pub(crate) fn bm_get_config(&self) -> Answer<String> {
        let running = self.running()?;
        limits::charge(running.loaded.json().len())?;
        Ok(running.loaded.json().to_owned())
    }

    pub(crate) fn bm_get_config_md5(&self) -> Answer<Vec<u8>> {
        Ok(self.running()?.loaded.md5())
    }

    pub(crate) fn bm_get_id_from_name(
        &self,
        kind: ResourceType,
        name: String,
    ) -> Result<i32, CallError<InvalidIdLookup>> {
        let Running { loaded, .. } = self.running()?;
        let kind = match kind {
            ResourceType::MatchTable => bmv2::Resource::Table,
            ResourceType::ActionProfile => bmv2::Resource::Profile,
            ResourceType::Counter => bmv2::Resource::Counter,
            ResourceType::Meter => bmv2::Resource::Meter,
            ResourceType::Register => bmv2::Resource::Register,
            ResourceType::LearningList => bmv2::Resource::Digest,
            ResourceType::Unknown => return Err(IdCode::InvalidType.into()),
        };
        let id = bmv2::id(&loaded.program, kind, &name).and_then(|id| i32::try_from(id).ok());
        Ok(id.ok_or(IdCode::InvalidName)?)
    }

    pub(crate) fn bm_reset_state(&self) -> Answer {
        let running = self.running()?;
        let reset = self.objects(&running, ObjectRequest::Reset)?;
        // It cannot be refused where there is nothing to undo.
        self.ask(|to| Request::Node(NodeWrite::Clear, to))?.map_err(failed)?;
        running.loaded.handles().reset();
        reset.map_err(failed)
    }

    pub(crate) fn bm_mgmt_get_info(&self) -> Answer<SwitchInfo> {
        Ok(SwitchInfo {
            device_id: i64::try_from(self.device_id).unwrap_or(i64::MAX),
            thrift_port: i32::from(self.thrift_port),
            notifications_socket: self.notices.as_ref().map(|notices| notices.address().to_owned()),
            ..SwitchInfo::default()
        })
    }

    pub(crate) fn bm_set_crc16_custom_parameters(
        &self,
        name: String,
        config: Crc16Config,
    ) -> Result<(), CallError<InvalidCrcOperation>> {
        // The interface has no unsigned numbers.
        let unsigned = |number: i16| u32::from(number as u16);
        self.set_crc(
            &name,
            CrcParameters {
                width: CrcWidth::Sixteen,
                polynomial: unsigned(config.polynomial),
                initial: unsigned(config.initial_remainder),
                final_xor: unsigned(config.final_xor_value),
                data_reflected: config.data_reflected,
                remainder_reflected: config.remainder_reflected,
            },
        )
    }

    pub(crate) fn bm_set_crc32_custom_parameters(
        &self,
        name: String,
        config: Crc32Config,
    ) -> Result<(), CallError<InvalidCrcOperation>> {
        self.set_crc(
            &name,
            CrcParameters {
                width: CrcWidth::ThirtyTwo,
                polynomial: config.polynomial as u32,
                initial: config.initial_remainder as u32,
                final_xor: config.final_xor_value as u32,
                data_reflected: config.data_reflected,
                remainder_reflected: config.remainder_reflected,
            },
        )
    }

    fn set_crc(&self, name: &str, parameters: CrcParameters) -> Result<(), CallError<InvalidCrcOperation>> {
        let running = self.running()?;
        let mut hashes = running.loaded.program.hashes.iter();
        let (hash, _) = hashes.find(|(_, hash)| hash.name == name).ok_or(CrcCode::InvalidName)?;
        let set = self.write(&running, vec![ObjectWrite::Hash(hash, parameters)])?;
        Ok(set.map_err(|_| CrcCode::WrongType)?)
    }

    pub(crate) fn bm_set_toeplitz_hash_key(
        &self,
        _name: String,
        _key: Vec<u8>,
    ) -> Result<(), CallError<InvalidToeplitzHashOperation>> {
        Err(ToeplitzCode::InvalidName.into())
    }

    pub(crate) fn set_egress_priority_queue_depth(
        &self,
        port: i32,
        priority: i32,
        depth: i32,
    ) -> Answer<i32> {
        self.depth(Some(port), Some(priority), depth)
    }

    pub(crate) fn set_egress_queue_depth(&self, port: i32, depth: i32) -> Answer<i32> {
        self.depth(Some(port), None, depth)
    }

    pub(crate) fn set_all_egress_queue_depths(&self, depth: i32) -> Answer<i32> {
        self.depth(None, None, depth)
    }

    pub(crate) fn set_egress_priority_queue_rate(&self, port: i32, priority: i32, rate: i64) -> Answer<i32> {
        self.rate(Some(port), Some(priority), rate)
    }

    pub(crate) fn set_egress_queue_rate(&self, port: i32, rate: i64) -> Answer<i32> {
        self.rate(Some(port), None, rate)
    }

    pub(crate) fn set_all_egress_queue_rates(&self, rate: i64) -> Answer<i32> {
        self.rate(None, None, rate)
    }

    fn depth(&self, port: Option<i32>, priority: Option<i32>, depth: i32) -> Answer<i32> {
        let Ok(depth) = u32::try_from(depth) else { return Ok(REFUSED) };
        self.queue(port, priority, QueueSetting::Depth(depth))
    }

    fn rate(&self, port: Option<i32>, priority: Option<i32>, rate: i64) -> Answer<i32> {
        let Ok(rate) = u64::try_from(rate) else { return Ok(REFUSED) };
        self.queue(port, priority, QueueSetting::Rate(rate))
    }

    fn queue(&self, port: Option<i32>, priority: Option<i32>, setting: QueueSetting) -> Answer<i32> {
        let port = port.map(PortId::try_from).transpose();
        let priority = priority.map(u8::try_from).transpose();
        let (Ok(port), Ok(priority)) = (port, priority) else { return Ok(REFUSED) };
        let done = self.ask(|to| Request::Queues(QueueWrite { port, priority, setting }, to))?;
        Ok(done.map_or(REFUSED, |()| 0))
    }

    pub(crate) fn get_time_elapsed_us(&self) -> Answer<i64> {
        Ok(microseconds(u128::from(self.ask(Request::Look)?.now_ns)))
    }

    pub(crate) fn get_time_since_epoch_us(&self) -> Answer<i64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(now.map_or(0, |since| microseconds(since.as_nanos())))
    }
}

/// What calls about queues say when nothing was done, instead of 0.
const REFUSED: i32 = 1;

fn microseconds(ns: u128) -> i64 {
    i64::try_from(ns / 1000).unwrap_or(i64::MAX)
}
