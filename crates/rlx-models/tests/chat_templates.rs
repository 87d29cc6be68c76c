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

fn renders(source: &str) -> String {
    let template = ChatTemplate::new(source, [("bos_token", "<s>")]).unwrap();
    template.apply(&[ChatMessage::user("Hi")], &ChatOptions::default()).unwrap()
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

/// `step` sixty times, with `ns.x` a list at first.
fn doubled(step: &str, end: &str) -> String {
    format!("{{% set ns = namespace(x=['a']) %}}{{% for i in range(60) %}}{step}{{% endfor %}}{end}")
}

#[test]
fn values_do_not_grow_without_a_bound() {
    let user = [ChatMessage::user("Hi")];
    for (what, source) in [
        ("lists that are added", doubled("{% set ns.x = ns.x + ns.x %}", "{{ ns.x }}")),
        ("lists that are added and measured", doubled("{% set ns.x = ns.x + ns.x %}", "{{ ns.x | length }}")),
        (
            "lists without a loop",
            format!("{{% set x = [1] %}}{}{{{{ x }}}}", "{% set x = x + x %}".repeat(60)),
        ),
        ("lists that are summed", doubled("{% set ns.x = [ns.x, ns.x] | sum(start=[]) %}", "{{ ns.x }}")),
        ("lists that are repeated", "{{ [1] * 100000000 }}".to_owned()),
        ("lists that are repeated and joined", "{{ ([1] * 100000000) ~ 'a' }}".to_owned()),
        ("lists that are repeated over and over", doubled("{% set ns.x = ns.x * 1000 %}", "")),
        ("trees of lists", doubled("{% set ns.x = [ns.x, ns.x] %}", "{{ ns.x }}")),
        ("trees of lists as JSON", doubled("{% set ns.x = [ns.x, ns.x] %}", "{{ ns.x | tojson }}")),
        ("trees of tuples", doubled("{% set ns.x = (ns.x, ns.x) %}", "{{ ns.x }}")),
        ("trees of dicts", doubled("{% set ns.x = {'a': ns.x, 'b': ns.x} %}", "{{ ns.x }}")),
        ("trees of dicts by name", doubled("{% set ns.x = dict(a=ns.x, b=ns.x) %}", "{{ ns.x }}")),
        ("trees of namespaces", doubled("{% set ns.x = namespace(a=ns.x, b=ns.x) %}", "{{ ns.x }}")),
        ("joined texts", "{% set x = 'a' * 100000 %}{{ range(10000) | join(x) }}".to_owned()),
        (
            "joined texts of a method",
            "{% set x = 'a' * 100000 %}{{ x.join(range(10000) | map('string')) }}".to_owned(),
        ),
        ("replaced texts", "{% set x = 'a' * 100000 %}{{ x | replace('a', x) }}".to_owned()),
        ("replaced texts of a method", "{% set x = 'a' * 100000 %}{{ x.replace('a', x) }}".to_owned()),
        ("indents of JSON", "{{ [[[1]]] | tojson(indent='a' * 10000000) }}".to_owned()),
        ("widths", "{{ '{:>4000000000}'.format(1) }}".to_owned()),
        ("precisions", "{{ '{:.4000000000f}'.format(1.5) }}".to_owned()),
        ("widths of a key", "{{ '{0[a]:>4000000000}'.format({'a': 1}) }}".to_owned()),
        ("widths with flags", "{{ '{:#<+4000000000,.1f}'.format(1.5) }}".to_owned()),
        ("widths by name", "{{ '%(a)-4000000000d' | format(a=1) }}".to_owned()),
        ("widths of a filling brace", "{{ '{:}>4000000000}'.format(1) }}".to_owned()),
        ("many widths", format!("{{{{ '{}'.format(1) }}}}", "{0:9999}".repeat(50_000))),
        ("widths of the filter", "{{ '%4000000000d' | format(1) }}".to_owned()),
        ("widths from arguments", "{{ '%*d' | format(4000000000, 1) }}".to_owned()),
        (
            "arguments over and over",
            format!("{{% set x = 'a' * 1000000 %}}{{{{ '{}'.format(x) }}}}", "{0}".repeat(9999)),
        ),
    ] {
        let (kind, message) = error_of(&source, &user);
        assert_eq!(kind, ErrorKind::InvalidFile, "{what}: {message}");
    }
}

#[test]
fn values_do_not_nest_deeper_than_the_stack() {
    let user = [ChatMessage::user("Hi")];
    let often = |step: &str| {
        format!(
            "{{% set ns = namespace(x=['a']) %}}{{% for i in range(100000) %}}{step}{{% endfor %}}{{{{ ns.x }}}}"
        )
    };
    for source in [
        often("{% set ns.x = [ns.x] %}"),
        often("{% set ns.x = {'a': ns.x} %}"),
        often("{% set ns.x = ns.x | batch(1) | list %}"),
        often("{% set ns.x = ns.x | slice(1) | list %}"),
        often("{% set ns.x = namespace(x=ns.x) %}"),
        often("{% set ns.x = dict(a=ns.x) %}"),
        format!("{{% set x = [1] %}}{}", "{%set x=[x]%}".repeat(50_000)),
        "{% macro m(x) %}{{ m([[[[[[[[x]]]]]]]]) }}{% endmacro %}{{ m(1) }}".to_owned(),
        "{% set a = namespace() %}{% set a.x = [a] %}{{ a }}".to_owned(),
    ] {
        let (kind, message) = error_of(&source, &user);
        assert_eq!(kind, ErrorKind::InvalidFile, "{message}");
    }
    // What is lazy is computed where it is kept.
    let reversed = often("{% set ns.x = ns.x | reverse %}").replace("{{ ns.x }}", "{{ ns.x[0] }}");
    assert_eq!(renders(&reversed), "a");
    let itself =
        "{% set a = namespace() %}{% set a.x = a %}{% set b = namespace() %}{% set b.x = b %}{{ a == b }}";
    assert_eq!(error_of(itself, &user).0, ErrorKind::InvalidFile);
}

#[test]
fn templates_do_not_nest_deeper_than_the_stack() {
    let user = [ChatMessage::user("Hi")];
    for source in [
        format!("{{{{ {}1 }}}}", "-".repeat(100_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(100_000)),
        format!("{{{{ 1{} }}}}", "|upper".repeat(100_000)),
        format!("{{{{ a{} }}}}", ".b".repeat(100_000)),
        format!("{{{{ a{} }}}}", "[0]".repeat(100_000)),
        format!("{{{{ a{} }}}}", "()".repeat(100_000)),
        format!("{{{{ {}1 }}}}", "1+".repeat(100_000)),
        format!("{{{{ {}1 }}}}", "1 if x else ".repeat(50_000)),
        format!("{{{{ {}{} }}}}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(50_000)),
        format!("{}{}", "{% if x %}".repeat(50_000), "{% endif %}".repeat(50_000)),
        format!("{{% filter {}upper %}}{{% endfilter %}}", "upper|".repeat(100_000)),
        " ".repeat((1 << 20) + 1),
    ] {
        let (kind, message) = error_of(&source, &user);
        assert_eq!(kind, ErrorKind::InvalidFile, "{message}");
        assert!(message.len() < 300, "{message}");
    }
    assert_eq!(
        renders(&format!("{{{{ '<'{} + 'end' }}}}", " + 'a'".repeat(300))),
        format!("<{}end", "a".repeat(300))
    );
    assert_eq!(renders(&"{% if messages %}a{% elif x %}b{% endif %}".repeat(5000)), "a".repeat(5000));
}

#[test]
fn values_that_are_joined_to_texts_are_written_as_python_writes_them() {
    let source =
        "{% set x = 1e-7 %}{{ x ~ '|' ~ 2e16 ~ '|' ~ [1, 'a'] ~ '|' ~ {'k': none} ~ '|' ~ 3 ~ true }}";
    assert_eq!(renders(source), "1e-07|2e+16|[1, 'a']|{'k': None}|3True");
    assert_eq!(renders("{{ 'at 10:30, 20231201: {:>4}{}'.format(7, 'x') }}"), "at 10:30, 20231201:    7x");
    assert_eq!(renders("{{ '%5.1f%% of %s' | format(2.25, 'x') }}"), "  2.2% of x");
}

#[test]
fn long_conversations_are_rendered() {
    let source = "{% set ns = namespace(all=[], text='') %}{% for m in messages %}\
                  {% set ns.all = ns.all + [{'role': m.role, 'text': m.content | trim}] %}\
                  {% set ns.text = ns.text + m.content %}{% endfor %}\
                  {% for m in ns.all[1:] %}<{{ m.role }}>{{ m.text }}{% endfor %}{{ ns.all | length }}";
    let messages: Vec<ChatMessage> = (0..2000).map(|i| ChatMessage::user(format!("message {i} "))).collect();
    let template = ChatTemplate::new(source, [("bos_token", "<s>")]).unwrap();
    let text = template.apply(&messages, &ChatOptions::default()).unwrap();
    assert!(
        text.starts_with("<user>message 1<user>message 2<") && text.ends_with("message 19992000"),
        "{text}"
    );
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
