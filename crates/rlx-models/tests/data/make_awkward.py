"""Makes awkward.json: 200 texts that break tokenizers, and the token ids that the reference tokenizers of real models give.

    pip install tokenizers llama-cpp-python && python make_awkward.py MODELS

MODELS is the folder that scripts/fetch-test-models fills. WordPiece ids come from `tokenizers`, the others from llama.cpp.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n \n", " \n", "\t", "\t\t ", "\r\n", "\r", "\u000b\f", "\u0085", "\u2028\u2029", "\u00a0", "\u3000", "\u200b",
    "a", " a", "a ", "  a", "a  b", "a   b", "a\n\n\nb", "a \n b", "a\r\nb", "a\tb", " \ta", "\u00a0a\u00a0", "a\u3000b", "a\u200bb", "a\u00adb", "\ufeffa", "a\ufeff",
    "Hello world", "Hello, world!", "hello WORLD", "HELLO", "hElLo", "The quick brown fox jumps over the lazy dog.", "camelCaseIdentifier", "snake_case_name", "SCREAMING_SNAKE", "kebab-case-name", "dotted.path.name",
    "don't", "DON'T", "Don’t", "I'll we've they're it's you'd I'm", "I'LL WE'VE", "'tis", "rock'n'roll", "l'été", "d’accord", "o'clock''s", "'s", "' s", "''", "``x''",
    "1", "12", "123", "1234", "12345", "1234567890", "1,234,567.89", "3.14159", "-42", "+1", "1e-5", "0x1F", "1st 2nd", "٣٤٥", "१२३", "Ⅷ ⅷ", "½ ¼", "①②", "x²", "10km", "2024-03-01T12:00:00Z", "(555) 123-4567",
    "!", "!!!", "?!", "...", "…", "--", "—", "a-b", "a—b", "(a)", "[b]", "{c}", "<d>", "\"e\"", "«f»", "„g“", "a/b\\c", "a&b", "a@b.c", "#tag", "$5", "5%", "x=y", "x==y", "a+b", "a*b", "~/x", "^", "|", "`", "@#$%^&*()_+",
    "é", "e\u0301", "É", "ñ n\u0303", "å a\u030a", "Ünïcödé", "ÀÉÎÕÜ", "ß ẞ", "İstanbul ı", "ﬁ ﬂ", "ǅ", "Æsir œuvre", "Ω Ω Å Å", "a\u0301\u0302\u0303", "\u0301", "Zalgo: a\u0300\u0301\u0302\u0303\u0304b",
    "Привет, мир!", "Ёлка й и\u0306", "Γειά σου Κόσμε ς", "שלום עולם", "שָׁלוֹם", "مرحبا بالعالم", "مَرْحَبًا", "नमस्ते दुनिया", "ক্ষ", "தமிழ்", "สวัสดีชาวโลก", "ພາສາລາວ", "ខ្មែរ", "မြန်မာ", "ქართული", "հայերեն", "አማርኛ", "བོད་ཡིག", "ᏣᎳᎩ",
    "你好,世界", "你好，世界。", "日本語のテキスト", "カタカナ ｶﾀｶﾅ", "한국어 안녕하세요", "한\u1100\u1161", "漢字kanji混在", "𠮷野家", "㌀ ㍿", "１２３ＡＢＣ", "「引用」", "中 文 空 格",
    "😀", "😀😀", " 😀 ", "👍🏽", "👩‍👩‍👧", "🇩🇪🇫🇷", "❤️", "☺", "a😀b", "🤷‍♂️ ok", "🫠🫡", "\U0001f9ff\u200d", "♟️→⇒", "∀x∈ℝ: ⌈x⌉", "x̄ ± σ", "𝕳𝖊𝖑𝖑𝖔", "𝟘𝟙𝟚",
    "\u0000", "a\u0000b", "\u0001\u0002", "\u007f", "\ufffd", "\uffff", "\ue000", "\U0010ffff", "\u202eabc", "a\u034fb", "\u061c",
    "<s>", "</s>", "<unk>", "<pad>", "<bos>x<eos>", "<|im_start|>user\nHi<|im_end|>\n", "<|endoftext|>", "<start_of_turn>model\n", " <end_of_turn> ", "[CLS] [SEP] [MASK]", "[UNK]", "<mask>", "<0x41>", "<|unknown|>", "<unused0>", "##ing", "▁a▁", "Ġa", "Ċ",
    "def f(x):\n    return x + 1\n", "if (a && b) { c(); }\n\tx--;\n", "<div class=\"x\">&nbsp;</div>", "{\"k\": [1, 2.5, null]}", "SELECT * FROM t WHERE a='b';", "https://example.org/a?b=c&d=%20#e", "C:\\Users\\x\\y.txt", "user@example.org", "$\\frac{a}{b}$", "```rust\nfn main() {}\n```", "# Title\n\n- item\n- item\n", "a;b;c\n1;2;3\n",
    "a" * 40, "ab" * 60, "-" * 50, "=" * 33, " " * 20 + "x", "x" + " " * 19, "\n" * 12, "\t" * 9, "é" * 21, "中" * 17, "😀" * 7, "0" * 31, "!" * 16, "Aa" * 25, "supercalifragilisticexpialidocious", "antidisestablishmentarianism", "Donaudampfschifffahrtsgesellschaft", "pneumonoultramicroscopicsilicovolcanoconiosis " * 2, "x" * 120, "word " * 24,
    " leading", "trailing ", " both ", "two  spaces", "mixed \t\n \r\n end", "no-break\u00a0space", "thin\u2009space", "zero\u200dwidth", "soft\u00adhyphen", "line\u2028sep", "a.b.c...d", "wait... what?!", "e.g., i.e., etc.", "U.S.A.", "Mr. O'Neil-Smith's", "it’s “quoted” text", "¿Qué? ¡Sí!", "50€ £20 ¥100 ₹5", "©®™", "a\\nb", "\\u00e9", "%s %d {0}",
]


# llama.cpp takes every `</s>` for an end of text. In Gemma's vocabulary it is an ordinary token, a tag of HTML.
OTHERWISE = {("gemma3", "</s>"): [[212], [212]]}


def llama_ids(name, path):
    import llama_cpp

    model = llama_cpp.Llama(path, vocab_only=True, verbose=False)

    def ids(text, special):
        return model.tokenize(text.encode("utf-8"), add_bos=False, special=special)

    return [OTHERWISE.get((name, text)) or [ids(text, False), ids(text, True)] for text in TEXTS]


def wordpiece_ids(path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return [tokenizer.encode(text).ids for text in TEXTS]


if __name__ == "__main__":
    assert len(TEXTS) == len(set(TEXTS)) and len(TEXTS) >= 200, len(TEXTS)
    models = sys.argv[1]
    value = {
        "texts": TEXTS,
        "minilm": wordpiece_ids(os.path.join(models, "minilm/tokenizer.json")),
        "smollm2": llama_ids("smollm2", os.path.join(models, "SmolLM2-135M-Instruct.Q4_1.gguf")),
        "gemma3": llama_ids("gemma3", os.path.join(models, "gemma3-270m-q4_k_m.gguf")),
    }
    with open(os.path.join(HERE, "awkward.json"), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")
    print(len(TEXTS), "texts")
