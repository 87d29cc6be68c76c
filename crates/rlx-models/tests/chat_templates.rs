//! Chat templates with the features that those of real models use, rendered as transformers renders them.
//!
//! `data/make_chat.py` holds the templates and asks transformers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::time::{Duration, SystemTime};

use common::json;
use rlx_ir::ErrorKind;
use rlx_models::text::{ChatEnd, ChatMessage, ChatOptions, ChatTemplate};
use serde_json::Value;

fn options(case: &Value, now: u64) -> ChatOptions {
    let list = |key: &str| case[key].as_array().cloned().unwrap_or_default();
    ChatOptions {
        end: match case["end"].as_str() {
            None => ChatEnd::GenerationPrompt,
            Some("nothing") => ChatEnd::Nothing,
            Some("continue") => ChatEnd::ContinueFinalMessage,
            Some(other) => panic!("{other}"),
        },
        tools: list("tools"),
        documents: list("documents"),
        variables: case["variables"].as_object().cloned().unwrap_or_default(),
        now: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(now)),
        ..ChatOptions::default()
    }
}

fn messages(case: &Value) -> Vec<ChatMessage> {
    let messages = case["messages"].as_array().unwrap().iter();
    messages.map(|m| ChatMessage::from(m.as_object().unwrap().clone())).collect()
}

#[test]
fn templates_render_as_the_reference_renders_them() {
    let fixture = json("chat_templates.json");
    let tokens = fixture["tokens"].as_object().unwrap();
    let tokens: Vec<(&str, &str)> = tokens.iter().map(|(k, v)| (k.as_str(), v.as_str().unwrap())).collect();
    let (mut texts, mut errors) = (0, 0);
    for case in fixture["cases"].as_array().unwrap() {
        let name = &case["name"];
        let found = ChatTemplate::new(case["template"].as_str().unwrap(), tokens.iter().copied())
            .and_then(|t| t.apply(&messages(case), &options(case, fixture["now"].as_u64().unwrap())));
        match (&case["expected"]["text"], found) {
            (Value::String(expected), Ok(found)) => {
                assert_eq!(&found, expected, "{name}");
                texts += 1;
            }
            (Value::Null, Err(_)) => errors += 1,
            (expected, found) => panic!("{name}: expected {expected}, got {found:?}"),
        }
    }
    assert!(texts >= 40 && errors >= 8, "{texts} texts, {errors} errors");
}

fn error_of(source: &str, messages: &[ChatMessage]) -> (ErrorKind, String) {
    let template = ChatTemplate::new(source, [("bos_token", "<s>")]);
    let e = template.and_then(|t| t.apply(messages, &ChatOptions::default())).unwrap_err();
    (e.kind(), e.to_string())
}

#[test]
fn errors_say_what_refuses_what() {
    let user = [ChatMessage::user("Hi")];
    let (kind, message) = error_of("{{ raise_exception('Roles must alternate') }}", &user);
    assert_eq!(kind, ErrorKind::InvalidArgument);
    assert_eq!(message, "the chat template refuses this conversation: Roles must alternate");
    let (kind, message) =
        error_of("{% macro m() %}{{ raise_exception('inner') }}{% endmacro %}{{ m() }}", &user);
    assert!(kind == ErrorKind::InvalidArgument && message.ends_with(": inner"), "{message}");
    let (kind, message) = error_of("a\n{{ 'x' | nope }}", &user);
    assert!(
        kind == ErrorKind::InvalidFile && message.contains("line 2") && message.contains("nope"),
        "{message}"
    );
    let (kind, message) = error_of("{% for x in %}", &user);
    assert!(kind == ErrorKind::InvalidFile && message.contains("line 1"), "{message}");
    let (kind, message) = error_of("x", &[]);
    assert!(kind == ErrorKind::InvalidArgument && message.contains("at least one message"), "{message}");
}

#[test]
fn what_a_template_may_compute_has_an_end() {
    let user = [ChatMessage::user("Hi")];
    for endless in [
        "{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(x='abcdefgh') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{{ range(99999999999) | list }}",
        "{{ 'x' * 99999999999 }}",
        "{{ 'x'.ljust(99999999999) }}",
    ] {
        let (kind, message) = error_of(endless, &user);
        assert_eq!(kind, ErrorKind::InvalidFile, "{message}");
    }
}

#[test]
fn a_model_may_have_several_templates() {
    let folder = std::env::temp_dir().join(format!("rlx-chat-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("additional_chat_templates")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let user = [ChatMessage::user("Hi")];
    let apply =
        |options: &ChatOptions| ChatTemplate::from_folder(&folder).and_then(|t| t.apply(&user, options));
    let plain = ChatOptions::default();

    let e = ChatTemplate::from_folder(&folder).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.to_string().contains("chat_template.jinja"), "{e}");

    write("chat_template.json", r#"{"chat_template": "old"}"#);
    assert_eq!(apply(&plain).unwrap(), "old");

    write(
        "tokenizer_config.json",
        r#"{"eos_token": {"content": "</s>"}, "chat_template": [
            {"name": "default", "template": "{{ eos_token }}{{ bos_token }}"},
            {"name": "tool_use", "template": "{{ tools | length }} tools"},
            {"name": "rag", "template": "{% broken"}]}"#,
    );
    assert_eq!(apply(&plain).unwrap(), "</s>");
    let tools = ChatOptions { tools: vec![serde_json::json!({"name": "t"})], ..plain.clone() };
    assert_eq!(apply(&tools).unwrap(), "1 tools");
    let named = |name: &str| ChatOptions { template: Some(name.into()), ..plain.clone() };
    assert_eq!(
        apply(&named("rag")).unwrap_err().kind(),
        ErrorKind::InvalidFile,
        "broken, but only where it is asked for"
    );
    let e = apply(&named("other")).unwrap_err();
    assert!(
        e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("default, tool_use, rag"),
        "{e}"
    );

    write("chat_template.jinja", "file {{ messages[0].content }}\n");
    write("additional_chat_templates/extra.jinja", "more");
    assert_eq!(apply(&plain).unwrap(), "file Hi");
    assert_eq!(apply(&named("extra")).unwrap(), "more");
    let template = ChatTemplate::from_folder(&folder).unwrap();
    assert_eq!(template.names().collect::<Vec<_>>(), ["default", "extra"]);
    std::fs::remove_dir_all(&folder).unwrap();
}
