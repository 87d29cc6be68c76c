//! Rotary position embeddings from a `config.json`: `rope_parameters`, or `rope_theta` and `rope_scaling` before it.

use rlx_ir::bail;
use rlx_ir::ops::position::rope::RopeStyle;

use super::{RopeConfig, RopeScaling, yarn_attention_factor};
use crate::files::HfConfig;
use crate::{Error, Result};

/// The kinds of scaling by the words of a `config.json`, for messages.
const KINDS: &str = "default, linear, llama3 and yarn";

/// What the config says outside of the section about rope.
#[derive(Clone, Copy, Debug)]
pub(in crate::arch) struct Context {
    /// The length of a head's vector.
    pub head_dim: usize,
    /// `max_position_embeddings`.
    pub context_length: usize,
    /// The base of the frequencies where nothing names one.
    pub default_theta: f64,
}

/// The rope of a model whose layers all have the same.
///
/// # Errors
/// `InvalidFile` naming the key; `UnsupportedModel` for kinds of scaling that are not built, by name.
pub(in crate::arch) fn read(config: &HfConfig, context: Context) -> Result<RopeConfig> {
    let section = match config.section("rope_parameters")? {
        Some(section) => Some(section),
        None => config.section("rope_scaling")?,
    };
    if let Some(section) = &section
        && (section.get("full_attention").is_some() || section.get("sliding_attention").is_some())
    {
        bail!(
            UnsupportedModel,
            "rope parameters by the type of a layer are not supported for this architecture"
        );
    }
    from_section(config, section.as_ref(), config.f64("rope_theta")?, context)
}

/// The rope that `section` describes; `theta` counts where the section has none.
///
/// # Errors
/// As [`read`].
pub(in crate::arch) fn from_section(
    config: &HfConfig,
    section: Option<&HfConfig>,
    theta: Option<f64>,
    context: Context,
) -> Result<RopeConfig> {
    let in_section = |key: &str| section.map_or(Ok(None), |s| s.f64(key));
    let theta = in_section("rope_theta")?.or(theta).unwrap_or(context.default_theta);
    for factor in [in_section("partial_rotary_factor")?, config.f64("partial_rotary_factor")?] {
        if factor.is_some_and(|f| f != 1.0) {
            bail!(UnsupportedModel, "partial_rotary_factor other than 1 is not supported");
        }
    }
    let scaling = match section {
        Some(section) => scaling(config, section, context.context_length)?,
        None => RopeScaling::None,
    };
    Ok(RopeConfig { style: RopeStyle::Half, theta, rotary_dim: context.head_dim, scaling })
}

fn scaling(config: &HfConfig, section: &HfConfig, context_length: usize) -> Result<RopeScaling> {
    if section.get("mrope_section").is_some() {
        bail!(UnsupportedModel, "rope over several axes (mrope_section) is not supported");
    }
    let kind = match section.str("rope_type")? {
        Some(kind) => kind,
        None => section.str("type")?.unwrap_or("default"),
    };
    Ok(match kind {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear { factor: section.require_f64("factor")? },
        "llama3" => RopeScaling::Llama3 {
            factor: section.require_f64("factor")?,
            low_freq_factor: section.require_f64("low_freq_factor")?,
            high_freq_factor: section.require_f64("high_freq_factor")?,
            original_context: section.require_f64("original_max_position_embeddings")?,
        },
        "yarn" => yarn(config, section, context_length)?,
        other => {
            let other: String = other.chars().take(80).collect();
            bail!(UnsupportedModel, "rope scaling \"{other}\" is not supported; {KINDS} are")
        }
    })
}

fn yarn(config: &HfConfig, section: &HfConfig, context_length: usize) -> Result<RopeScaling> {
    let trained = match section.f64("original_max_position_embeddings")? {
        Some(trained) => Some(trained),
        None => config.f64("original_max_position_embeddings")?,
    };
    let original_context = trained.unwrap_or(context_length as f64);
    let factor = section.f64("factor")?.unwrap_or(context_length as f64 / original_context);
    // A zero stands for no value here, as in the reference.
    let given = |key: &str| Ok::<_, Error>(section.f64(key)?.filter(|v| *v != 0.0));
    let recommended = match given("mscale")?.zip(given("mscale_all_dim")?) {
        Some((mscale, all_dim)) => {
            yarn_attention_factor(factor, mscale) / yarn_attention_factor(factor, all_dim)
        }
        None => yarn_attention_factor(factor, 1.0),
    };
    Ok(RopeScaling::Yarn {
        factor,
        original_context,
        beta_fast: given("beta_fast")?.unwrap_or(32.0),
        beta_slow: given("beta_slow")?.unwrap_or(1.0),
        attention_factor: section.f64("attention_factor")?.unwrap_or(recommended),
        truncate: section.bool("truncate")?.unwrap_or(true),
    })
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::{Value, json};

    use super::*;

    const CONTEXT: Context = Context { head_dim: 16, context_length: 512, default_theta: 1e4 };

    fn rope(keys: Value) -> Result<RopeConfig> {
        let Value::Object(keys) = keys else { panic!("an object") };
        read(&HfConfig::new("m/config.json", keys), CONTEXT)
    }

    #[test]
    fn rope_is_read_from_either_place() {
        let old = json!({ "rope_theta": 5e5, "rope_scaling": { "type": "linear", "factor": 4 } });
        let new = json!({ "rope_parameters": { "rope_type": "linear", "factor": 4.0, "rope_theta": 5e5 } });
        let (old, new) = (rope(old).unwrap(), rope(new).unwrap());
        assert_eq!(old, new);
        assert_eq!((old.theta, old.scaling), (5e5, RopeScaling::Linear { factor: 4.0 }));
        assert_eq!(rope(json!({})).unwrap().theta, 1e4);
        assert_eq!(rope(json!({ "rope_scaling": null })).unwrap().scaling, RopeScaling::None);
    }

    #[test]
    fn yarn_takes_its_factor_from_the_lengths() {
        let c =
            rope(json!({ "rope_scaling": { "rope_type": "yarn", "original_max_position_embeddings": 128 } }));
        let RopeScaling::Yarn { factor, attention_factor, .. } = c.unwrap().scaling else { panic!("yarn") };
        assert_eq!((factor, attention_factor), (4.0, yarn_attention_factor(4.0, 1.0)));
    }

    #[test]
    fn the_factor_of_attention_is_given_or_recommended() {
        let factor = |extra: Value| {
            let mut keys =
                json!({ "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128 });
            let (Value::Object(section), Value::Object(extra)) = (&mut keys, extra) else {
                panic!("objects")
            };
            section.extend(extra);
            match rope(json!({ "rope_parameters": keys })).unwrap().scaling {
                RopeScaling::Yarn { attention_factor, .. } => attention_factor,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(factor(json!({})), yarn_attention_factor(4.0, 1.0));
        assert_eq!(factor(json!({ "attention_factor": 1.0 })), 1.0);
        let both = yarn_attention_factor(4.0, 0.5) / yarn_attention_factor(4.0, 0.7);
        assert_eq!(factor(json!({ "mscale": 0.5, "mscale_all_dim": 0.7 })), both);
        assert_eq!(factor(json!({ "mscale": 0.5 })), yarn_attention_factor(4.0, 1.0));
        assert_eq!(factor(json!({ "mscale": 0.5, "mscale_all_dim": 0 })), yarn_attention_factor(4.0, 1.0));
    }

    #[test]
    fn other_kinds_are_refused_by_name() {
        for (keys, part) in [
            (json!({ "rope_scaling": { "type": "longrope" } }), "longrope"),
            (json!({ "rope_scaling": { "type": "dynamic", "factor": 2.0 } }), "dynamic"),
            (json!({ "rope_scaling": { "type": "default", "mrope_section": [1, 2, 3] } }), "mrope_section"),
            (json!({ "partial_rotary_factor": 0.5 }), "partial_rotary_factor"),
            (json!({ "rope_parameters": { "full_attention": {} } }), "by the type of a layer"),
        ] {
            let e = rope(keys).unwrap_err();
            assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains(part), "{e}");
        }
        let e = rope(json!({ "rope_scaling": { "type": "llama3" } })).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains("factor"), "{e}");
    }
}
