//! One message of a conversation.

use serde_json::{Map, Value};

/// Names under which templates look for the reasoning of a message.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// A message: a role, a content, and what else the template reads (`tool_calls`, `name`, `reasoning_content`).
///
/// ```
/// use rlx_models::text::ChatMessage;
///
/// let question = ChatMessage::user("What is 2 + 2?");
/// let call = serde_json::json!([{"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 2}}}]);
/// let answer = ChatMessage::new("assistant", "").with("tool_calls", call);
/// assert_eq!(question.role(), "user");
/// assert!(answer.get("tool_calls").is_some());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatMessage {
    fields: Map<String, Value>,
}

impl ChatMessage {
    /// A message. The content is a text, or a list of parts such as `{"type": "text", "text": "..."}`.
    pub fn new(role: impl Into<String>, content: impl Into<Value>) -> Self {
        Self::default().with("role", role.into()).with("content", content)
    }

    /// What the model is to keep to.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content.into())
    }

    /// What the user says.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content.into())
    }

    /// What the model said.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content.into())
    }

    /// The same with another field. `null` stands for none.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }

    /// A field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// The role, empty where there is none.
    pub fn role(&self) -> &str {
        self.get("role").and_then(Value::as_str).unwrap_or_default()
    }

    /// What a template sees: no field that is `null`, and reasoning under each of its names that templates read.
    pub(super) fn for_template(&self) -> Map<String, Value> {
        let mut fields: Map<String, Value> =
            self.fields.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
        if let Some(reasoning) = REASONING.iter().find_map(|&name| fields.get(name)).cloned() {
            if !fields.contains_key("thinking") {
                let rest = std::mem::take(&mut fields);
                fields.insert("thinking".into(), reasoning.clone());
                fields.extend(rest);
            }
            fields.insert("reasoning_content".into(), reasoning);
        }
        fields
    }
}

impl From<Map<String, Value>> for ChatMessage {
    /// A message as it stands in JSON.
    fn from(fields: Map<String, Value>) -> Self {
        Self { fields }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_see_no_null_and_reasoning_under_all_names() {
        let message = ChatMessage::assistant("4").with("tool_calls", Value::Null).with("reasoning", "sum");
        assert_eq!(
            Value::Object(message.for_template()),
            json!({"thinking": "sum", "role": "assistant", "content": "4", "reasoning": "sum", "reasoning_content": "sum"})
        );
        assert_eq!(
            Value::Object(ChatMessage::user("x").for_template()),
            json!({"role": "user", "content": "x"})
        );
    }
}
