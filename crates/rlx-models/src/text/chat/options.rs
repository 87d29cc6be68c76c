//! How a conversation is rendered.

use std::time::SystemTime;

use serde_json::{Map, Value};

/// What stands at the end of a rendered conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatEnd {
    /// The start of the model's answer (`add_generation_prompt`).
    #[default]
    GenerationPrompt,
    /// The end of the last message.
    Nothing,
    /// The last message without its end, for the model to go on with (`continue_final_message`).
    ContinueFinalMessage,
}

/// What a template gets besides the messages.
///
/// ```
/// use rlx_models::text::ChatOptions;
///
/// let options = ChatOptions::default().variable("enable_thinking", false);
/// assert!(options.variables.contains_key("enable_thinking"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatOptions {
    /// The end.
    pub end: ChatEnd,
    /// Tools that the model may call, as JSON schemas. Empty: none.
    pub tools: Vec<Value>,
    /// Documents that the model may quote. Empty: none.
    pub documents: Vec<Value>,
    /// The name of the template, for models with several. Without it `tool_use` is taken where there are tools and such a
    /// template, else `default`.
    pub template: Option<String>,
    /// More variables; they go before the special tokens.
    pub variables: Map<String, Value>,
    /// The time that the template is told, written in the local time zone. Without it that of the call.
    pub now: Option<SystemTime>,
}

impl ChatOptions {
    /// The same with another variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }
}
