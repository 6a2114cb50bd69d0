//! Models that jobs can name: gradient size and compute time per iteration, each with its source.
//!
//! In: a name. Out: bytes and time. Must not know: jobs.
//!
//! Sizes are parameters times bytes per gradient element (2 in half precision, 4 in single). Times are batch / measured
//! throughput of *one* GPU without inter-node communication, as NVIDIA publishes them in the README tables of
//! `NVIDIA/DeepLearningExamples` at 729963dd, unless the row says otherwise. Rows with `estimate` set have no measured
//! time behind them; their source says how the number came about.

use crate::time::Span;
use crate::units::Bytes;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Name in scenario files.
    pub name: &'static str,
    /// Parameters that are all-reduced, in millions.
    pub parameters_m: f64,
    /// Bytes per gradient element on the wire.
    pub element_bytes: u32,
    /// Compute time of one iteration (all accumulated micro-batches), milliseconds.
    pub compute_ms: f64,
    /// Where size and time come from, and for which GPU, precision and batch.
    pub source: &'static str,
    /// Whether the compute time is scaled from another row instead of measured.
    pub estimate: bool,
}

impl Model {
    /// Gradient bytes S of one replica.
    #[must_use]
    pub fn gradient(&self) -> Bytes {
        Bytes((self.parameters_m * 1e6 * f64::from(self.element_bytes)).round() as u64)
    }

    /// Compute time of one iteration.
    #[must_use]
    pub fn compute(&self) -> Span {
        Span::from_secs_f64(self.compute_ms / 1e3)
    }
}

/// The table, ascending by name.
pub const MODELS: &[Model] = &[
    Model {
        name: "bert-base",
        parameters_m: 110.0,
        element_bytes: 2,
        compute_ms: 143.0,
        source: "110 M parameters (Devlin et al. 2019), fp16 gradients; time = bert-large's 441 ms x 110/340 by \
                 parameters, A100-80, sequence 128, batch 256",
        estimate: true,
    },
    Model {
        name: "bert-large",
        parameters_m: 340.0,
        element_bytes: 2,
        compute_ms: 441.0,
        source: "340 M parameters (Devlin et al. 2019), fp16 gradients; NVIDIA DeepLearningExamples 729963dd, BERT, \
                 A100-80, FP16, sequence 128, batch 256: 580 sequences/s, no accumulation",
        estimate: false,
    },
    Model {
        name: "bert-large-s512",
        parameters_m: 340.0,
        element_bytes: 2,
        compute_ms: 152.0,
        source: "340 M parameters (Devlin et al. 2019), fp16 gradients; NVIDIA DeepLearningExamples 729963dd, BERT, \
                 A100-80, FP16, sequence 512, batch 32: 210 sequences/s, no accumulation",
        estimate: false,
    },
    Model {
        name: "bert-large-squad",
        parameters_m: 340.0,
        element_bytes: 2,
        compute_ms: 290.0,
        source: "340 M parameters (Devlin et al. 2019), fp16 gradients; NVIDIA DeepLearningExamples 729963dd, BERT \
                 SQuAD fine-tuning, A100, FP16, batch 32: 110.5 sequences/s",
        estimate: false,
    },
    Model {
        name: "bert-large-v100",
        parameters_m: 340.0,
        element_bytes: 2,
        compute_ms: 286.0,
        source: "340 M parameters (Devlin et al. 2019), fp16 gradients; NVIDIA DeepLearningExamples 729963dd, BERT, \
                 V100-32, FP16, sequence 128, batch 64: 224 sequences/s, no accumulation",
        estimate: false,
    },
    Model {
        name: "gpt2-large",
        parameters_m: 774.0,
        element_bytes: 2,
        compute_ms: 320.0,
        source: "774 M parameters (Radford et al. 2019), bf16 gradients; time = gpt2-medium's x 774/355 by parameters",
        estimate: true,
    },
    Model {
        name: "gpt2-medium",
        parameters_m: 355.0,
        element_bytes: 2,
        compute_ms: 147.0,
        source: "355 M parameters (Radford et al. 2019), bf16 gradients; time by floating-point operations: 6 x \
                 parameters x 8,192 tokens (batch 8 of 1,024) at 38 % of an A100's 312 TFLOP/s",
        estimate: true,
    },
    Model {
        name: "gpt2-small",
        parameters_m: 124.0,
        element_bytes: 2,
        compute_ms: 51.0,
        source: "124 M parameters (Radford et al. 2019), bf16 gradients; time = gpt2-medium's x 124/355 by parameters",
        estimate: true,
    },
    Model {
        name: "resnet-101",
        parameters_m: 44.55,
        element_bytes: 2,
        compute_ms: 198.0,
        source: "44.55 M parameters (He et al. 2016), fp16 gradients; time = resnet-50's 104 ms x 7.8/4.1 by GFLOP \
                 per image, A100-80, AMP, batch 256",
        estimate: true,
    },
    Model {
        name: "resnet-152",
        parameters_m: 60.19,
        element_bytes: 2,
        compute_ms: 292.0,
        source: "60.19 M parameters (He et al. 2016), fp16 gradients; time = resnet-50's 104 ms x 11.5/4.1 by GFLOP \
                 per image, A100-80, AMP, batch 256",
        estimate: true,
    },
    Model {
        name: "resnet-50",
        parameters_m: 25.56,
        element_bytes: 2,
        compute_ms: 104.0,
        source: "25.56 M parameters (He et al. 2016), fp16 gradients; NVIDIA DeepLearningExamples 729963dd, ResNet-50 \
                 v1.5, A100-80, AMP: 2,470 images/s, batch 256 (assumed)",
        estimate: false,
    },
    Model {
        name: "resnet-50-tf32",
        parameters_m: 25.56,
        element_bytes: 4,
        compute_ms: 273.0,
        source: "25.56 M parameters (He et al. 2016), fp32 gradients; NVIDIA DeepLearningExamples 729963dd, ResNet-50 \
                 v1.5, A100-80, TF32: 938 images/s, batch 256 (assumed)",
        estimate: false,
    },
    Model {
        name: "resnet-50-v100",
        parameters_m: 25.56,
        element_bytes: 4,
        compute_ms: 349.0,
        source: "25.56 M parameters (He et al. 2016), fp32 gradients; NVIDIA DeepLearningExamples 729963dd, ResNet-50 \
                 v1.5, V100-16, FP32: 367 images/s, batch 128 (assumed)",
        estimate: false,
    },
    Model {
        name: "vgg-16",
        parameters_m: 138.36,
        element_bytes: 2,
        compute_ms: 196.0,
        source: "138.36 M parameters (Simonyan & Zisserman 2015), fp16 gradients; time = resnet-50's 104 ms x \
                 15.5/4.1 by GFLOP per image, halved to batch 128, A100-80, AMP",
        estimate: true,
    },
    Model {
        name: "vgg-19",
        parameters_m: 143.67,
        element_bytes: 2,
        compute_ms: 249.0,
        source: "143.67 M parameters (Simonyan & Zisserman 2015), fp16 gradients; time = resnet-50's 104 ms x \
                 19.6/4.1 by GFLOP per image, halved to batch 128, A100-80, AMP",
        estimate: true,
    },
];

/// The model of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_row_names_its_source() {
        assert!(MODELS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for model in MODELS {
            assert!(model.source.contains("parameters"), "{}", model.name);
            assert_eq!(model.estimate, !model.source.contains("729963dd"), "{}", model.name);
            assert!(model.gradient().0 > 1_000_000 && model.compute().0 > 1_000_000);
            assert_eq!(find(model.name), Some(model));
        }
        assert_eq!(find("bert-large").unwrap().gradient(), Bytes(680_000_000));
        assert_eq!(find("BERT"), None);
    }

    #[test]
    fn measured_times_are_batch_over_throughput() {
        for (name, batch, per_second) in [
            ("bert-large", 256.0, 580.0),
            ("bert-large-s512", 32.0, 210.0),
            ("bert-large-squad", 32.0, 110.5),
            ("bert-large-v100", 64.0, 224.0),
            ("resnet-50", 256.0, 2470.0),
            ("resnet-50-tf32", 256.0, 938.0),
            ("resnet-50-v100", 128.0, 367.0),
        ] {
            let seconds: f64 = batch / per_second;
            let table = find(name).unwrap().compute().as_secs_f64();
            assert!((table - seconds).abs() < 0.001, "{name}: {table} against {seconds}");
        }
    }
}
