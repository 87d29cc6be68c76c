//! Rendering a conversation.

use std::path::Path;

use minijinja::value::Value;
use minijinja::{Environment, Error as TemplateError};
use rlx_gguf::Metadata;
use rlx_ir::{ErrorKind, bail};
use serde_json::{Map, Value as Json};

use super::compile::compile;
use super::environment::{self, value};
use super::source::{self, DEFAULT, Sources};
use super::tests_and_filters::Raised;
use super::{ChatEnd, ChatMessage, ChatOptions, generation_tag};
use crate::text::{Tokenizer, TokenizerConfig};
use crate::{Error, Result};

/// Marks the end of the message that the model is to go on with. The space tells whether the template trims it.
const CONTINUE_MARK: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// The stack of the thread that a template is parsed and rendered on, in bytes; what is not used takes no memory. It holds
/// what [`nesting`](super::nesting) and [`guards`](super::guards) let pass, which a thread of a server might not.
const STACK_BYTES: usize = 256 << 20;

struct Named {
    name: String,
    source: String,
    /// Why it cannot be used.
    broken: Option<Error>,
}

/// The chat templates of a model, ready to render.
///
/// ```
/// use rlx_models::text::{ChatMessage, ChatOptions, ChatTemplate};
///
/// let source = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}\n{% endfor %}\
///               {% if add_generation_prompt %}<assistant>{% endif %}";
/// let template = ChatTemplate::new(source, [("bos_token", "<s>")])?;
/// let messages = [ChatMessage::system("Be brief."), ChatMessage::user(" Hello! ")];
/// let text = template.apply(&messages, &ChatOptions::default())?;
/// assert_eq!(text, "<s><system>Be brief.\n<user>Hello!\n<assistant>");
/// # Ok::<(), rlx_models::Error>(())
/// ```
pub struct ChatTemplate {
    env: Environment<'static>,
    templates: Vec<Named>,
    /// Special tokens by their names in templates: `bos_token`, `eos_token`.
    tokens: Vec<(String, String)>,
}

impl ChatTemplate {
    /// A template from its source, and the texts of special tokens by their names in templates (`bos_token`).
    ///
    /// # Errors
    /// `InvalidFile` where the source is no template.
    pub fn new<N: Into<String>, T: Into<String>>(
        source: &str,
        tokens: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self> {
        let tokens = tokens.into_iter().map(|(name, token)| (name.into(), token.into())).collect();
        Self::named(vec![(DEFAULT.to_owned(), source.to_owned())], tokens)
    }

    /// The templates of a folder in the Hugging Face layout: `chat_template.jinja` with `additional_chat_templates/`, else
    /// `chat_template` in `tokenizer_config.json` or `chat_template.json`.
    ///
    /// # Errors
    /// `NotFound` where there is none; `InvalidFile` for what is no template and for damaged files; `Io`.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let sources = source::from_folder(folder)?;
        let tokens = TokenizerConfig::from_folder(folder)?.named_tokens();
        Self::named(sources, tokens).map_err(|e| e.context(folder.display()))
    }

    /// The templates of a GGUF file with this tokenizer: `tokenizer.chat_template` and named variants.
    ///
    /// # Errors
    /// `NotFound` where there is none; `InvalidFile` for what is no template.
    pub fn from_gguf(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Self> {
        let special = tokenizer.special_tokens();
        let tokens = [
            ("bos_token", special.bos),
            ("eos_token", special.eos),
            ("unk_token", special.unk),
            ("sep_token", special.sep),
            ("pad_token", special.pad),
            ("cls_token", special.cls),
            ("mask_token", special.mask),
        ];
        let text = |(name, id): (&str, Option<u32>)| Some((name.to_owned(), tokenizer.token(id?)?));
        Self::named(source::from_gguf(metadata)?, tokens.into_iter().filter_map(text).collect())
    }

    fn named(sources: Sources, tokens: Vec<(String, String)>) -> Result<Self> {
        let mut templates = Vec::with_capacity(sources.len());
        let only = sources.len() == 1;
        for (name, source) in sources {
            let source = generation_tag::replace(&source.replace("\r\n", "\n").replace('\r', "\n"));
            let parsed = with_room(|| compile(&name, &source).map(drop).map_err(|e| describe(&e)))?;
            let broken = parsed.err().map(|message| Error::new(ErrorKind::InvalidFile, message));
            match broken {
                Some(e) if only || name == DEFAULT => return Err(e),
                broken => templates.push(Named { name, source, broken }),
            }
        }
        Ok(Self { env: environment::new(), templates, tokens })
    }

    /// The names of the templates; mostly one, `default`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.templates.iter().map(|t| t.name.as_str())
    }

    /// The text of a conversation. Special tokens in it are those of the model: encode it without adding any.
    ///
    /// # Errors
    /// `InvalidArgument` for no messages, an unknown name of a template, what the template itself refuses (roles in an
    /// order that it does not take), and a last message that cannot be continued; `InvalidFile` where the template fails.
    pub fn apply(&self, messages: &[ChatMessage], options: &ChatOptions) -> Result<String> {
        let named = self.choose(options)?;
        let mut messages: Vec<Map<String, Json>> = messages.iter().map(ChatMessage::for_template).collect();
        let Some(last) = messages.last_mut() else {
            bail!(InvalidArgument, "a conversation needs at least one message");
        };
        let continued = match options.end {
            ChatEnd::ContinueFinalMessage => Some(mark_end(last)?),
            _ => None,
        };
        let list = |values: &[Json]| -> Value {
            if values.is_empty() { Value::from(()) } else { values.iter().map(value).collect() }
        };
        let mut variables: Vec<(&str, Value)> =
            self.tokens.iter().map(|(name, token)| (name.as_str(), Value::from(token.as_str()))).collect();
        variables.extend(options.variables.iter().map(|(name, json)| (name.as_str(), value(json))));
        variables.extend([
            ("messages", messages.into_iter().map(|m| value(&Json::Object(m))).collect()),
            ("tools", list(&options.tools)),
            ("documents", list(&options.documents)),
            ("add_generation_prompt", Value::from(options.end == ChatEnd::GenerationPrompt)),
        ]);
        let mut env = self.env.clone();
        environment::set_now(&mut env, options.now);
        let variables = Value::from_pairs(variables);
        let rendered = with_room(|| {
            let compiled = compile(&named.name, &named.source);
            compiled.and_then(|t| t.render(&env, variables)).map_err(|e| refusal(&e))
        });
        let text = rendered??;
        match continued {
            Some(message) => cut_at_mark(text, &message),
            None => Ok(text),
        }
    }

    fn choose(&self, options: &ChatOptions) -> Result<&Named> {
        let find = |name: &str| self.templates.iter().find(|t| t.name == name);
        let known = || self.names().collect::<Vec<_>>().join(", ");
        let found = match &options.template {
            Some(name) => find(name),
            None if !options.tools.is_empty() => find("tool_use").or_else(|| find(DEFAULT)),
            None => find(DEFAULT),
        };
        let found = match (found, &options.template, self.templates.as_slice()) {
            (Some(found), _, _) => found,
            (None, Some(name), _) => {
                bail!(InvalidArgument, "no chat template \"{name}\"; the model has {}", known())
            }
            (None, None, [only]) => only,
            (None, None, _) => bail!(
                InvalidArgument,
                "the model has no default chat template; ask for one by name: {}",
                known()
            ),
        };
        match &found.broken {
            Some(e) => Err(e.clone()),
            None => Ok(found),
        }
    }
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("names", &self.names().collect::<Vec<_>>())
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// Runs `work` on a thread of its own with a large stack.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => bail!(InvalidFile, "the chat template makes the template engine fail"),
            Err(e) => bail!(Device, "no thread to render the chat template on: {e}"),
        }
    })
}

/// Puts the mark at the end of the last message's text, and gives that text.
fn mark_end(message: &mut Map<String, Json>) -> Result<String> {
    let text = match message.get_mut("content") {
        Some(Json::String(text)) => Some(text),
        Some(Json::Array(parts)) => parts.iter_mut().rev().find_map(|part| match part.get_mut("text") {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }),
        _ => None,
    };
    let Some(text) = text else {
        bail!(InvalidArgument, "the last message has no text to continue");
    };
    let before = text.clone();
    text.push_str(CONTINUE_MARK);
    Ok(before)
}

/// The rendered text up to the mark.
fn cut_at_mark(mut text: String, message: &str) -> Result<String> {
    let Some(at) = text.rfind(CONTINUE_MARK.trim_end()).filter(|_| text.contains(message.trim())) else {
        bail!(
            InvalidArgument,
            "the last message cannot be continued: the chat template leaves a part of it out"
        );
    };
    let kept = text[at..].starts_with(CONTINUE_MARK);
    text.truncate(at);
    if !kept {
        text.truncate(text.trim_end().len());
    }
    Ok(text)
}

/// The error of a template that raised one itself, or failed.
fn refusal(e: &TemplateError) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(e);
    while let Some(at) = cause {
        if let Some(error) = at.downcast_ref::<TemplateError>()
            && std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<Raised>)
        {
            let message = error.detail().unwrap_or_default();
            return Error::new(
                ErrorKind::InvalidArgument,
                format!("the chat template refuses this conversation: {message}"),
            );
        }
        cause = at.source();
    }
    Error::new(ErrorKind::InvalidFile, describe(e))
}

/// What is wrong with a template, and in which line.
fn describe(e: &TemplateError) -> String {
    let place = e.line().map_or_else(String::new, |line| format!(" in line {line}"));
    let detail = e.detail().map_or_else(|| e.kind().to_string(), |detail| format!("{}: {detail}", e.kind()));
    format!("the chat template fails{place}: {detail}")
}
