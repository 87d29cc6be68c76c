//! Options that commands share.

use std::path::{Path, PathBuf};

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{ArgAction, Args, ValueEnum};
use rlx::compile::precision::Compute as ComputeType;
use rlx::gguf::same_file;
use rlx::ir::DType;
use rlx::ir::env::{Origin, SETTINGS, SettingType, Settings};
use rlx::ir::quant::BlockType;
use rlx::prelude::*;

use crate::error::{Error, Result};

/// Where the help lists them, after the options of the command itself.
const COMMON: &str = "Options of every command";

/// Options of every command.
#[derive(Args, Debug)]
pub struct Global {
    /// The device that models run on [default: RLX_DEVICE, or the best one there]
    #[arg(long, global = true, help_heading = COMMON, value_name = "DEVICE", value_parser = choices("RLX_DEVICE"))]
    pub device: Option<String>,
    /// CPU threads; 0 takes the processors that this process may use [default: RLX_THREADS, or 0]
    #[arg(short, long, global = true, help_heading = COMMON, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<u32>,
    /// How a compiled model is run [default: RLX_STRATEGY, or auto]
    #[arg(long, global = true, help_heading = COMMON, value_name = "STRATEGY", value_parser = choices("RLX_STRATEGY"))]
    pub strategy: Option<String>,
    /// The form of the results
    #[arg(long, global = true, help_heading = COMMON, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Writes a trace for Perfetto or chrome://tracing
    #[arg(long, global = true, help_heading = COMMON, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// No warnings and no progress
    #[arg(short, long, global = true, help_heading = COMMON, conflicts_with = "verbose")]
    pub quiet: bool,
    /// More on stderr: once for what is done, twice for details, three times for all
    #[arg(short, long, global = true, help_heading = COMMON, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The words that a setting takes, from the registry.
fn choices(setting: &str) -> PossibleValuesParser {
    let words = SETTINGS.iter().find(|s| s.name == setting).map(|s| s.ty);
    PossibleValuesParser::new(match words {
        Some(SettingType::Choice(words)) => words,
        _ => &[],
    })
}

impl Global {
    /// The settings: those of the command line before those of the environment.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = rlx::runtime::settings_from_env()?;
        let threads = self.threads.map(|n| n.to_string());
        let verbose = (self.verbose > 0).then(|| self.verbose.to_string());
        for (name, value) in [
            ("RLX_DEVICE", &self.device),
            ("RLX_STRATEGY", &self.strategy),
            ("RLX_THREADS", &threads),
            ("RLX_VERBOSE", &verbose),
        ] {
            if let Some(value) = value {
                settings.set(name, value, Origin::Program)?;
            }
        }
        Ok(settings)
    }

    /// The backends that are here, with these settings.
    pub fn runtime(&self) -> Result<Runtime> {
        Ok(Runtime::detect_with(self.settings()?)?)
    }

    /// An error where `output`, which a command is about to replace by a whole file, is that of `--trace`, which is written
    /// already, or stdout, which has the results.
    pub fn refuse_output(&self, output: &Path) -> Result<()> {
        if output.as_os_str() == "-" || same_file(output, Path::new("/dev/stdout")) {
            rlx::ir::bail!(
                InvalidArgument,
                "{}: it is not written to stdout: name a file (one that is called - is ./-)",
                output.display()
            );
        }
        if self.trace.as_deref().is_some_and(|trace| same_file(trace, output)) {
            rlx::ir::bail!(
                InvalidArgument,
                "{}: it is the file of --trace: name another one to write",
                output.display()
            );
        }
        Ok(())
    }

    /// The form of the results, which must be one of `known`; its first one is the default.
    pub fn format_of(&self, known: &[Format]) -> Result<Format> {
        match self.format {
            None => Ok(known.first().copied().unwrap_or(Format::Text)),
            Some(format) if known.contains(&format) => Ok(format),
            Some(format) => {
                let known: Vec<&str> = known.iter().map(|f| f.name()).collect();
                rlx::ir::bail!(
                    InvalidArgument,
                    "--format {}: this command has {}",
                    format.name(),
                    known.join(", ")
                )
            }
        }
    }
}

/// The form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// A NumPy array.
    Npy,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Npy => "npy",
        }
    }
}

/// The types that a model is run in.
#[derive(Args, Debug)]
pub struct TypeArgs {
    /// Type of the weight matrices, converted while they load; auto keeps that of the file
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Types")]
    weights: Option<Weights>,
    /// Type of the activations in matrix products
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Types")]
    compute: Option<Compute>,
    /// Type of the keys and values of models that continue texts: f16, in `forward` f32, unless asked for
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Types")]
    kv_dtype: Option<Kv>,
    /// Short for --weights f32 --compute f32 --kv-dtype f32, or for --weights q8_0 --compute int8; one of these that is given
    /// too goes before it
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Types")]
    dtype: Option<Shorthand>,
}

/// What [`TypeArgs`] ask for; `None` leaves it to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types {
    /// Of the weight matrices.
    pub weights: Option<DType>,
    /// Of the activations.
    pub compute: Option<ComputeType>,
    /// Of keys and values.
    pub kv: Option<DType>,
    /// Whether that of keys and values was named by itself.
    pub kv_named: bool,
}

impl Types {
    /// Warns where a type is asked for that a model without a cache has nothing of.
    pub fn warn_without_cache(&self) {
        if self.kv_named {
            tracing::warn!("--kv-dtype is without effect: this run has no cache of keys and values");
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Weights {
    Auto,
    F32,
    Bf16,
    F16,
    #[value(name = "q8_0")]
    Q8_0,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Compute {
    Auto,
    F32,
    F16,
    Bf16,
    Int8,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kv {
    F16,
    F32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shorthand {
    F32,
    #[value(name = "q8_0")]
    Q8_0,
}

const Q8_0: DType = DType::Block(BlockType::Q8_0);

impl TypeArgs {
    /// The types asked for; an option of its own goes before the shorthand.
    pub fn types(&self) -> Types {
        let mut types = match self.dtype {
            None => Types::default(),
            Some(Shorthand::F32) => Types {
                weights: Some(DType::F32),
                compute: Some(ComputeType::F32),
                kv: Some(DType::F32),
                kv_named: false,
            },
            Some(Shorthand::Q8_0) => {
                Types { weights: Some(Q8_0), compute: Some(ComputeType::Int8), ..Types::default() }
            }
        };
        if let Some(weights) = self.weights {
            types.weights = match weights {
                Weights::Auto => None,
                Weights::F32 => Some(DType::F32),
                Weights::Bf16 => Some(DType::BF16),
                Weights::F16 => Some(DType::F16),
                Weights::Q8_0 => Some(Q8_0),
            };
        }
        if let Some(compute) = self.compute {
            types.compute = match compute {
                Compute::Auto => None,
                Compute::F32 => Some(ComputeType::F32),
                Compute::F16 => Some(ComputeType::F16),
                Compute::Bf16 => Some(ComputeType::BF16),
                Compute::Int8 => Some(ComputeType::Int8),
            };
        }
        if let Some(kv) = self.kv_dtype {
            types.kv_named = true;
            types.kv = Some(match kv {
                Kv::F16 => DType::F16,
                Kv::F32 => DType::F32,
            });
        }
        types
    }
}

/// The model of a command that has no default for it.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// A folder in the Hugging Face layout, a .safetensors beside its config.json, a .gguf, or a hub id (org/name)
    #[arg(short, long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub model: String,
    #[command(flatten)]
    pub types: TypeArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        types: TypeArgs,
    }

    fn types(words: &str) -> Types {
        Words::try_parse_from(format!("rlx {words}").split_whitespace()).unwrap().types.types()
    }

    #[test]
    fn an_option_of_its_own_goes_before_the_shorthand() {
        assert_eq!(types(""), Types::default());
        let f32 = types("--dtype f32 --weights bf16");
        assert_eq!((f32.weights, f32.compute), (Some(DType::BF16), Some(ComputeType::F32)));
        assert_eq!(f32.kv, Some(DType::F32));
        let q8_0 = types("--dtype q8_0 --compute auto");
        assert_eq!((q8_0.weights, q8_0.compute, q8_0.kv), (Some(Q8_0), None, None));
    }
}
