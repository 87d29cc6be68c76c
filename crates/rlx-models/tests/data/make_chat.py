"""Makes chat_templates.json: small chat templates, each with features that templates of real models use, and what
transformers makes of them.

    pip install "transformers>=5" jinja2 && TZ=UTC python make_chat.py
"""

import datetime
import json
import os

from transformers.utils import chat_template_utils
from transformers.tokenization_utils_base import _normalize_chat_messages

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = 1_709_294_400  # Noon of 1 March 2024 in UTC.

PLAIN = [
    {"role": "system", "content": "  Be brief. "},
    {"role": "user", "content": "What is <b>2 + 2</b>?\n"},
    {"role": "assistant", "content": "It's \"4\" & no more."},
    {"role": "user", "content": "Ünd 日本語 😀?"},
]
SHORT = [{"role": "user", "content": "Hi"}]
PARTS = [
    {"role": "system", "content": [{"type": "text", "text": "Look closely."}]},
    {
        "role": "user",
        "content": [
            {"type": "image", "url": "x.png"},
            {"type": "text", "text": "What is it?"},
            {"type": "text", "text": " And why?"},
        ],
    },
]
THINKING = [
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nBecause."},
    {"role": "user", "content": "Really?"},
    {"role": "assistant", "reasoning_content": "Let me see.\n", "content": "Yes."},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a \"place\", <now>.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Ort, z. B. Köln"},
                "days": {"type": "integer", "minimum": 1, "default": 1},
                "units": {"type": "string", "enum": ["c", "f"]},
                "exact": {"type": "boolean", "default": False},
                "share": {"type": "number", "default": 0.5},
                "any": {"type": ["string", "null"], "default": None},
            },
            "required": ["place"],
        },
    },
}
CALLS = [
    {"role": "system", "content": "Use tools."},
    {"role": "user", "content": "How is the weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "arguments": {"place": "Köln \"Süd\"", "days": 3, "exact": True, "share": 1e-05, "any": None, "list": [1, 2.0]},
                },
            },
            {"id": "c2", "type": "function", "function": {"name": "get_weather", "arguments": {}}},
        ],
    },
    {"role": "tool", "name": "get_weather", "tool_call_id": "c1", "content": "{\"sun\": true}"},
    {"role": "tool", "name": "get_weather", "tool_call_id": "c2", "content": "rain"},
    {"role": "assistant", "content": "Sun."},
]
DOCUMENTS = [{"title": "One", "text": "First."}, {"title": "Two", "text": "Second."}]

CASES = []


def case(name, template, messages=PLAIN, **options):
    CASES.append({"name": name, "template": template, "messages": messages, **options})


# Frames
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
case("chatml", CHATML)
case("chatml without the prompt", CHATML, end="nothing")
case("chatml continued", CHATML, messages=PLAIN[:3], end="continue")
case("continued and trimmed", "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}[/]{% endfor %}", messages=PLAIN[:2], end="continue")
case("continued parts", "{% for m in messages %}{{ m.role }}:{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %};{% endfor %}", messages=PARTS, end="continue")
case("a left-out message cannot be continued", "{% for m in messages %}{{ m.content if m.role == 'system' }}{% endfor %}", end="continue")

# White space
case(
    "blocks are trimmed",
    """{# a comment #}
{% for message in messages %}
    {% if message.role == 'user' %}
User: {{ message.content }}
    {%- else %}
  Other: {{ message.content -}}
    {% endif %}
  {%+ if loop.last %}  end {% endif %}
{% endfor %}
  {%- set x = 1 -%}  

  {{ x }}
""",
)
case("carriage returns", "{% for m in messages %}\r\n{{ m.role }}\r\n{% endfor %}\r\nend\r\n", messages=SHORT)
case("raw blocks and comments", "{% raw %}{{ messages }}{% endraw %}{# {{ nothing }} #}{{ '{% generation %}' }}\n\n", messages=SHORT)

# Control
case(
    "loop variables",
    "{% for m in messages %}{{ loop.index0 }}/{{ loop.length }}:{{ loop.first }},{{ loop.last }},{{ loop.revindex }}"
    "{{ ' prev ' ~ loop.previtem.role if loop.previtem is defined else ' none' }}"
    "{{ ' next ' ~ loop.nextitem.role if loop.nextitem is defined }}{{ loop.cycle('a', 'b') }}{{ loop.changed(m.role) }}\n{% endfor %}",
)
case(
    "break and continue",
    "{% for m in messages %}{% if m.role == 'assistant' %}{% continue %}{% endif %}{% if loop.index > 3 %}{% break %}{% endif %}{{ m.role }} {% else %}none{% endfor %}",
)
case("loops with conditions and else", "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content }};{% endfor %}{% for t in [] %}x{% else %}nothing{% endfor %}{% for k, v in {'a': 1, 'b': none}.items() %}{{ k }}={{ v }},{% endfor %}")
case(
    "namespaces",
    "{% set ns = namespace(found=false, count=0, text='') %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.found = true %}{% set ns.count = ns.count + 1 %}"
    "{% set ns.text = ns.text ~ m.content | length %}{% endif %}{% set scoped = 1 %}{% endfor %}{{ ns.found }} {{ ns.count }} {{ ns.text }} {{ scoped is defined }}",
)
case(
    "macros",
    """{%- macro field(name, value, sep=', ') -%}{{ name }}={{ value }}{{ sep }}{%- endmacro -%}
{%- macro tree(node, depth=0) -%}{%- for key, value in node.items() -%}{{ '  ' * depth }}{{ key }}:{%- if value is mapping %}
{{ tree(value, depth + 1) }}{%- else %} {{ value }}
{% endif -%}{%- endfor -%}{%- endmacro -%}
{%- macro twice() -%}{{ caller(1) }}{{ caller(2) }}{%- endmacro -%}
{{ field('a', 1) }}{{ field('b', value=none, sep=';') }}
{{ tree({'x': {'y': 1, 'z': {'q': true}}, 'w': 2.5}) }}{% call(x) twice() %}<{{ x }}>{% endcall %}""",
)
case("set blocks, with and filter blocks", "{% set text %}  a {{ messages[0].role }} {% endset %}[{{ text | trim }}]{% with x = 1, y = 2 %}{{ x + y }}{% endwith %}{% filter upper %}{{ messages[0].role }}{% endfilter %}")
case(
    "the generation tag",
    "{% for m in messages %}{% if m.role == 'assistant' %}{%- generation -%}{% set inner = 'x' %} {{ m.content }} {%- endgeneration -%}{{ inner is defined }}{% else %}{{ m.content }}{% endif %}{% endfor %}",
)
case("refusals", "{% if messages[0].role != 'user' %}{{ raise_exception('Conversation roles must alternate user/assistant: ' + messages[0].role) }}{% endif %}")
case("no refusal", "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{{ m.content }}{% endfor %}", messages=SHORT)

# Values
case("printing", "{{ true }} {{ false }} {{ none }} {{ 1 }} {{ 1.0 }} {{ 0.1 + 0.2 }} {{ 10 / 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1e3 }} {{ 12345678901234567890 }}", messages=SHORT)
case("printing containers", "{{ ['a', \"it's\", 1, none, true, 1.5] }} {{ {'k': ['v'], 'n': {}} }} {{ (1, 'x') }} {{ (1,) }} {{ [] }} {{ messages[0] }}", messages=SHORT)
case("concatenation", "{{ 'a' ~ true ~ none ~ 1.5 ~ ['x'] ~ {'y': none} ~ undefined_thing ~ 3 }}", messages=SHORT)
case(
    "undefined",
    "[{{ nothing }}][{{ nothing is defined }}][{{ nothing is none }}][{{ not nothing }}][{{ nothing == 1 }}][{{ messages[0].nothing }}][{{ messages[0]['no'] is undefined }}]"
    "[{{ nothing | default('d') }}][{{ '' | default('e', true) }}][{{ none | default('n') }}][{{ nothing | length }}][{{ nothing or 'x' }}]"
    "[{% for x in nothing %}y{% endfor %}][{{ 'a' in nothing }}][{{ nothing | trim }}][{{ nothing | join(',') }}]",
    messages=SHORT,
)
case("attributes of nothing fail", "{{ nothing.attribute }}", messages=SHORT)
case("sums with nothing fail", "{{ 'x' + nothing }}", messages=SHORT)
case("sums of texts and numbers fail", "{{ 'x' + 1 }}", messages=SHORT)
case("unknown filters fail", "{{ 'x' | no_such_filter }}", messages=SHORT)
case("syntax errors fail", "{% if %}", messages=SHORT)
case(
    "tests",
    "{% for v in ['s', 1, 1.5, true, none, [1], {'a': 1}, (1, 2), ''] %}{{ v is string }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is boolean }}{{ v is none }}"
    "{{ v is sequence }}{{ v is mapping }}{{ v is iterable }}{{ v is true }}{{ v is false }}|{% endfor %}{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 'a' is in ['a'] }}{{ 1 is eq 1 }}{{ 'x' is sameas 'x' }}{{ 'AB' is upper }}{{ 2 is gt 1 }}{{ messages is not string }}",
    messages=SHORT,
)
case("operators", "{{ 1 < 2 < 3 }}{{ not (1 == 2) and 'a' in 'cat' }}{{ 'x' not in ['y'] }}{{ 'b' in {'b': 1} }}{{ 'yes' if messages | length > 1 else 'no' }}{{ 'a' * 3 }}{{ [1] + [2] }}{{ 1 == 1.0 }}{{ 'a' < 'b' }}{{ [1, 2] == [1, 2] }}{{ none == false }}", messages=PLAIN)
case("slices", "{{ messages[1:] | length }}{{ messages[-1].role }}{{ messages[::-1][0].role }}{{ messages[:-1][-1].role }}{{ 'abcdef'[1:4] }}{{ 'abcdef'[::-2] }}{{ 'äöü'[-2:] }}{{ 'abc'[0] }}{{ 'abc'[-1] }}{{ [1, 2, 3, 4][1:3] }}{{ [1, 2, 3][::-1] }}{{ 'abc'[5:] }}{{ (1, 2, 3)[1:] }}")

# Texts
case(
    "methods of texts",
    "{{ '  a b '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'a,b,c'.split(',') }}|{{ 'a b  c'.split() }}|{{ 'a-b-c'.split('-', 1) }}|{{ 'a-b-c'.rsplit('-', 1) }}|"
    "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'bc')) }}|{{ 'aXbX'.replace('X', 'y') }}{{ 'aXbX'.replace('X', 'y', 1) }}|{{ 'aB'.upper() }}{{ 'aB'.lower() }}{{ 'ab cd'.title() }}{{ 'aB'.capitalize() }}|"
    "{{ ','.join(['a', 'b']) }}|{{ 'abcb'.find('b') }}{{ 'abcb'.rfind('b') }}{{ 'abc'.find('z') }}{{ 'abcb'.count('b') }}|{{ 'a\\nb\\n'.splitlines() }}|{{ '12'.isdigit() }}{{ 'a1'.isalnum() }}{{ 'a'.isalpha() }}{{ ' '.isspace() }}|"
    "{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.py'.removesuffix('.py') }}|{{ 'a:b'.partition(':') }}{{ 'a:b:c'.rpartition(':') }}|{{ '7'.zfill(3) }}{{ 'a'.ljust(3, '.') }}{{ 'a'.rjust(3) }}{{ 'a'.center(4, '*') }}{{ '{} {}'.format('a', 1) }}",
    messages=SHORT,
)
case("thinking is cut out", "{% for m in messages %}{% set content = m.content %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}{{ m.role }}: {{ content }}{% if m.reasoning_content is defined and m.reasoning_content is not none %}({{ m.reasoning_content.strip() }}|{{ m.thinking }}){% endif %}\n{% endfor %}", messages=THINKING)
case(
    "filters of texts",
    "{{ ' a ' | trim }}|{{ 'xax' | trim('x') }}|{{ 'aB' | upper }}{{ 'aB' | lower }}{{ 'ab cd' | title }}{{ 'aB c' | capitalize }}|{{ 'a\\nb\\n\\nc' | indent(2) }}|{{ 'a\\nb' | indent(4, true) }}|{{ 'abc' | replace('b', 'x') }}|"
    "{{ 'abc' | first }}{{ 'abc' | last }}|{{ 'abc' | length }}|{{ 'cab' | list }}|{{ 'abc' | reverse }}|{{ 5 | string + 'x' }}|{{ '3' | int + 1 }}{{ 'x' | int }}{{ '1.5' | float }}|{{ 3.14159 | round(2) }}{{ 2.5 | round | int }}|{{ -3 | abs }}|{{ '%s=%s' | format('a', 1) }}|{{ 'a<b' | escape }}{{ 'a<b' | safe }}",
    messages=SHORT,
)

# Lists and dicts
case(
    "filters of lists",
    "{{ [3, 1, 2] | sort }}{{ [3, 1, 2] | sort(reverse=true) }}{{ [1, 1, 2] | unique | list }}{{ [1, 2] | sum }}{{ [1, 5, 2] | max }}{{ [4, 2] | min }}|{{ messages | map(attribute='role') | join(', ') }}|"
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list }}|{{ messages | selectattr('name', 'defined') | list }}|{{ [1, 2, 3, 4] | select('even') | list }}{{ [0, 1, ''] | select | list }}{{ [0, 1] | reject('odd') | list }}|"
    "{{ ['a', 'b'] | map('upper') | list }}|{% for g in messages | groupby('role') %}{{ g.grouper }}{{ g.list | length }}{% endfor %}|{{ [1, 2, 3] | batch(2) | list }}|{{ (messages | first).role }}{{ (messages | last).role }}|{{ range(3) | list }}{{ range(1, 10, 4) | list }}|{{ [1, 2, 3] | reverse | list }}",
)
case(
    "dicts",
    "{% set d = {'b': 1, 'a': {'x': none}} %}{{ d.get('b') }}{{ d.get('z') }}{{ d.get('z', 'q') }}{{ d['a']['x'] }}{{ d.a.x is none }}|{{ d.keys() | list }}{{ d.values() | list }}{% for k, v in d.items() %}{{ k }}{% endfor %}|{{ d | items | list }}|{{ d | dictsort }}|{{ d | length }}{{ 'b' in d }}|{{ dict(a=1, b='x') }}|{{ d | list }}",
    messages=SHORT,
)

# JSON
case("tojson", "{{ tools | tojson }}\n{{ tools[0] | tojson(indent=2) }}\n{{ messages | tojson }}\n{{ 'ü</script>\\u2028' | tojson }} {{ 'ü' | tojson(ensure_ascii=True) }} {{ [1, 1.0, 1e-05, 1e20, none, true] | tojson }} {{ {} | tojson(indent=2) }}{{ [] | tojson }}", tools=[TOOL])
case("tojson, compact and sorted", "{{ {'b': [1, 2], 'a': 'x'} | tojson(separators=(',', ':'), sort_keys=true) }}{{ {'b': {'c': []}} | tojson(indent=4, separators=(',', ' : ')) }}{{ {1: 'a', true: none} | tojson }}", messages=SHORT)
case("tojson of nothing fails", "{{ nothing | tojson }}", messages=SHORT)

# Tools
case(
    "tools as llama 3 has them",
    """{{- bos_token }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- for call in message.tool_calls %}
            {%- set tool_call = call.function %}
            {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
            {{- '{"name": "' + tool_call.name + '", ' }}
            {{- '"parameters": ' }}
            {{- tool_call.arguments | tojson }}
            {{- "}" }}
            {{- "<|eot_id|>" }}
        {%- endfor %}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- endif %}
    {%- endif %}
{%- endfor %}""",
    messages=CALLS,
    tools=[TOOL],
)
case(
    "arguments as tags",
    """{%- macro render(value) -%}{{ value if value is string else (value | tojson) }}{%- endmacro -%}
{%- for m in messages if m.tool_calls -%}
{%- for call in m.tool_calls -%}
{%- if call.function is defined %}{% set call = call.function %}{% endif -%}
<call={{ call.name }}>
{% for name, value in call.arguments|items -%}
<{{ name }}>{{ render(value) }}|{{ value }}|{{ value | string }}</{{ name }}>
{% endfor -%}
</call>
{%- endfor %}{% endfor -%}""",
    messages=CALLS,
)
case(
    "schemas",
    "{% for tool in tools %}{% set f = tool.function %}{{ f.name }}({% for n, p in f.parameters.properties.items() %}{{ n }}: {{ p.type if p.type is string else p.type | join(' | ') }}"
    "{% if p.enum %} of {{ p.enum | tojson }}{% endif %}{% if 'default' in p %} = {{ p.default }}{% endif %}{% if n in f.parameters.required %}!{% endif %}{{ ', ' if not loop.last }}{% endfor %}){% endfor %}",
    messages=SHORT,
    tools=[TOOL],
)
case("no tools and no documents", "{{ tools is none }}{{ documents is none }}{{ tools is defined and tools }}{{ 'x' if not documents }}", messages=SHORT)
case("documents", "{% for d in documents %}{{ loop.index }}. {{ d['title'] }}: {{ d.text }}\n{% endfor %}", documents=DOCUMENTS)
case("parts of contents", "{% for m in messages %}{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'image' or 'image' in p %}<img>{% elif p['type'] == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}", messages=PARTS)

# Variables
case("special tokens and variables", "{{ bos_token }}{{ eos_token | default('none') }}{{ pad_token is defined }}{{ enable_thinking is defined and enable_thinking is false }}{{ level }}{{ nested.a[1] }}", variables={"enable_thinking": False, "level": 3, "nested": {"a": [1, None]}})
case("variables go before tokens", "{{ bos_token }}{{ add_generation_prompt }}", variables={"bos_token": "[B]"})
case("dates", "{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('%B %-d, %Y') }} {{ strftime_now('%A %j %y') }}{% if strftime_now is defined %} known{% endif %}", messages=SHORT)
case("system messages are taken out", "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% endif %}{% for m in loop_messages %}{% if loop.index0 == 0 and system_message is defined %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + m['content'] %}{% else %}{% set content = m['content'] %}{% endif %}{{ '[INST] ' + content.strip() + ' [/INST]' if m.role == 'user' else ' ' + content | trim + ' ' + eos_token }}{% endfor %}")
case("the last user message is found from behind", "{% set ns = namespace(last=messages | length - 1, multi=true) %}{% for m in messages[::-1] %}{% set index = (messages | length - 1) - loop.index0 %}{% if ns.multi and m.role == 'user' and m.content is string and not (m.content.startswith('<tool>') and m.content.endswith('</tool>')) %}{% set ns.multi = false %}{% set ns.last = index %}{% endif %}{% endfor %}{{ ns.last }}{{ ns.multi }}")


def render(c):
    end = c.get("end", "prompt")
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            conversations=[_normalize_chat_messages(c["messages"])],
            tools=c.get("tools"),
            documents=c.get("documents"),
            chat_template=c["template"],
            continue_final_message=end == "continue",
            add_generation_prompt=end == "prompt",
            **{**tokens, **c.get("variables", {})},
        )
        return {"text": rendered[0]}
    except Exception as e:  # noqa: BLE001: whatever it is, it is the expected failure.
        return {"error": f"{type(e).__name__}: {e}"}


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)


if __name__ == "__main__":
    chat_template_utils.datetime = Fixed
    result = {"now": NOW, "tokens": {"bos_token": "<s>", "eos_token": "</s>"}, "cases": [{**c, "expected": render(c)} for c in CASES]}
    with open(os.path.join(HERE, "chat_templates.json"), "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=True, indent=1)
        f.write("\n")
    for c in result["cases"]:
        if "error" in c["expected"]:
            print(c["name"], "->", c["expected"]["error"][:150])
    print(len(result["cases"]), "cases")
