//! Chat templates: a conversation to the text that a model was trained on.
//!
//! [`ChatTemplate`] renders what the model's files bring, as `transformers` renders it: the same settings of the template
//! language, the same functions and variables, values written as Python writes them. A model without a template is an
//! error, never a guess. Templates are foreign code: what they may compute is bounded, and they see nothing but the
//! conversation.

mod compile;
mod environment;
mod generation_tag;
mod guards;
mod json_dumps;
mod message;
mod methods;
mod nesting;
mod options;
mod python;
mod source;
mod strftime;
mod template;
mod tests_and_filters;

pub use message::ChatMessage;
pub use options::{ChatEnd, ChatOptions};
pub use template::ChatTemplate;
