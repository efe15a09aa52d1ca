//! Plans with stages of warpframe as bytes.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use warpframe::plugin::{Plugin, StageCodec};

use crate::attempts::of_reader;

/// Writes and reads the operators of both, warpframe's stages and Ballista's exchanges.
///
/// Without a plugin, stages can be looked at and handed on, but not run: so reads the scheduler.
#[derive(Debug, Default)]
pub struct ClusterCodec {
    stages: StageCodec,
    others: BallistaPhysicalExtensionCodec,
}

impl ClusterCodec {
    /// A codec whose stages run on this device.
    pub fn new(plugin: &Plugin) -> ClusterCodec {
        ClusterCodec { stages: StageCodec::new(plugin), ..ClusterCodec::default() }
    }
}

impl PhysicalExtensionCodec for ClusterCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match StageCodec::reads(bytes) {
            true => self.stages.try_decode(bytes, inputs, context, converter),
            false => {
                let operator = self.others.try_decode(bytes, inputs, context, converter)?;
                Ok(match of_reader(operator.as_ref())? {
                    Some(reader) => Arc::new(reader),
                    None => operator,
                })
            }
        }
    }

    fn try_encode(
        &self,
        operator: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match StageCodec::writes(operator.as_ref()) {
            true => self.stages.try_encode(operator, bytes, converter),
            false => self.others.try_encode(operator, bytes, converter),
        }
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.stages.try_decode_udf(name, bytes)
    }
}
