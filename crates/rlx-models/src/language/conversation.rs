//! Chats: rendering messages, and a cache that is kept from one turn to the next.

use std::ops::ControlFlow;

use super::cache::Cache;
use super::model::LanguageModel;
use super::options::GenerateOptions;
use super::output::{GenerateEvent, Generation};
use crate::Result;
use crate::text::{ChatMessage, ChatOptions, EncodeOptions};

impl LanguageModel {
    /// The tokens of a conversation, as the model's chat template writes it. The template decides about BOS: none is added.
    ///
    /// # Errors
    /// Errors of [`chat_template`](Self::chat_template), of [`ChatTemplate::apply`](crate::text::ChatTemplate::apply) and of
    /// the tokenizer.
    pub fn chat_ids(&self, messages: &[ChatMessage], options: &ChatOptions) -> Result<Vec<u32>> {
        let text = self.chat_template()?.apply(messages, options)?;
        let parsed = EncodeOptions { add_special: false, parse_special: true };
        self.encode(&text, parsed)
    }

    /// A conversation, whose tokens are kept in the cache between turns.
    ///
    /// # Errors
    /// `Device` where memory cannot be had.
    pub fn conversation(&self) -> Result<Conversation<'_>> {
        Ok(Conversation { model: self, cache: Cache::new(self.session(self.limits().context)?) })
    }
}

/// A conversation with a model. Each turn runs only the tokens that the cache does not hold yet.
///
/// ```no_run
/// # fn main() -> rlx_models::Result<()> {
/// # let runtime = rlx_runtime::Runtime::new(vec![], rlx_ir::env::Settings::defaults());
/// use std::ops::ControlFlow;
///
/// use rlx_models::language::{GenerateOptions, LanguageModel, LanguageOptions};
/// use rlx_models::text::{ChatMessage, ChatOptions};
///
/// let model = LanguageModel::load(&runtime, "model.gguf", &LanguageOptions::default())?;
/// let mut conversation = model.conversation()?;
/// let mut messages = vec![ChatMessage::system("Answer in one word.")];
/// for question in ["What is the capital of France?", "And of Spain?"] {
///     messages.push(ChatMessage::user(question));
///     let answer = conversation.reply(
///         &messages,
///         &ChatOptions::default(),
///         &GenerateOptions::default(),
///         |_| ControlFlow::Continue(()),
///     )?;
///     println!("{}", answer.text);
///     messages.push(ChatMessage::assistant(answer.text));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Conversation<'m> {
    model: &'m LanguageModel,
    cache: Cache,
}

impl Conversation<'_> {
    /// How many tokens are in the cache.
    pub fn cached_tokens(&self) -> usize {
        self.cache.len()
    }

    /// The model's answer to `messages`: all of the conversation so far, as nothing but the cache is kept. `on_event` is
    /// told what happens; its `Break` ends the answer.
    ///
    /// # Errors
    /// As [`LanguageModel::chat_ids`] and [`LanguageModel::generate`]; `ContextExceeded` where the conversation does not
    /// fit. The conversation can go on after an error.
    pub fn reply(
        &mut self,
        messages: &[ChatMessage],
        chat: &ChatOptions,
        options: &GenerateOptions,
        on_event: impl FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Generation> {
        let ids = self.model.chat_ids(messages, chat)?;
        self.generate(&ids, options, on_event)
    }

    /// The same for a prompt of tokens.
    ///
    /// # Errors
    /// As [`LanguageModel::generate`]; `InvalidArgument` for a prompt without tokens.
    pub fn generate(
        &mut self,
        prompt_ids: &[u32],
        options: &GenerateOptions,
        on_event: impl FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Generation> {
        let text = self.model.text_stream(options)?;
        self.model.run(prompt_ids, text, options, &mut self.cache, on_event)
    }
}
