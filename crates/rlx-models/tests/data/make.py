"""Makes the small vocabularies in this folder, and the ids that the reference tokenizers give for awkward texts.

    pip install tokenizers sentencepiece protobuf && python make.py
"""

import json
import os
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
    "Numbers such as 12, 345 and 6789 are cut in more than one way.",
    "Ein Übermut tut selten gut; déjà vu, naïve café, coöperate.",
    "A tokenizer turns a text into tokens, and the tokens into a text again.",
    "    indented code:\n\tif (x == 1) { return x + 1; }\n\n",
    "Unbelievable! Unhappily, the unknown was unknowable, wasn't it?",
    "Привет, мир. 日本語 のテキスト。 안녕하세요",
] * 4
TEXTS = [
    "",
    " ",
    "a",
    "hello world",
    "The quick brown fox",
    "  two  spaces and a trailing one ",
    "don't DON'T it's I'LL we've",
    "123 4567 89",
    "line\nbreak\n\nand\r\nmore\n \n  x",
    "tab\tand\u00a0no-break\u3000wide",
    "Ünïcödé déjà vu e\u0301 \u0130stanbul ß",
    "日本語 のテキスト。한국어 안녕",
    "emoji 😀 👩‍👩‍👧 🇩🇪",
    "nul\u0000byte",
    "\ufffd replacement \u200b zero width \u00ad soft",
    "https://example.org/a?b=c&d=%20#e",
    "if (x == 1) { return x + 1; }",
    "x" * 120,
    "unbelievable" * 9,
    "<s> [CLS] <|end|> [MASK] </s> <0x41>",
    "▁under ▁ ##hash Ġ",
    "٣٤٥ ⅷ ½ ǅ ʰ",
]


def cases(encode, special=None):
    return [{"text": text, "ids": encode(text)} for text in TEXTS]


def write(name, value):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


def in_order(tokenizer):
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=vocab.get)


def byte_level():
    """Byte-level BPE as SmolLM2 and GPT-2 have it (digits apart), with two special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|end|>", "<|start|>"]
    tokenizer.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=420, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        ),
    )
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(8)
    text = json.loads(tokenizer.to_str())
    write("bpe_tokenizer.json", text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    merges = [" ".join(m) if isinstance(m, list) else m for m in text["model"]["merges"]]
    tokens = in_order(tokenizer)
    write(
        "bpe.json",
        {
            "model": "gpt2",
            "pre": "smollm",
            "tokens": tokens,
            "token_types": [3 if t in special else 1 for t in tokens],
            "merges": merges,
            "cases": cases(lambda t: tokenizer.encode(t, add_special_tokens=False).ids),
        },
    )


def wordpiece():
    """WordPiece as BERT has it: folded to lower case, without accents."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        SENTENCES, trainers.WordPieceTrainer(vocab_size=260, special_tokens=special, show_progress=False)
    )
    ids = {t: tokenizer.token_to_id(t) for t in special}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(12)
    write("wordpiece_tokenizer.json", json.loads(tokenizer.to_str()))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def marked(token):
        if token in special:
            return token
        return token[2:] if token.startswith("##") else "\u2581" + token

    tokens = in_order(tokenizer)
    write(
        "wordpiece.json",
        {
            "model": "bert",
            "tokens": [marked(t) for t in tokens],
            "token_types": [3 if t in special else 1 for t in tokens],
            "cases": cases(lambda t: tokenizer.encode(t).ids),
        },
    )


def unigram():
    """Unigram as XLM-RoBERTa has it."""
    tokenizer = Tokenizer(models.Unigram())
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    ids = {t: tokenizer.token_to_id(t) for t in special}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", ids["<s>"]), ("</s>", ids["</s>"])],
    )
    write("unigram_tokenizer.json", json.loads(tokenizer.to_str()))


def sentencepiece_bpe():
    """Sentencepiece BPE as Llama 2 has it (space prefix, bytes) and as Gemma has it (no prefix, user tokens)."""
    for name, options in [
        ("spm.json", dict(add_dummy_prefix=True, byte_fallback=True, vocab_size=520)),
        ("spm_plain.json", dict(add_dummy_prefix=False, byte_fallback=True, vocab_size=520, user_defined_symbols=["<|end|>", "\u2581\u2581", "\n\n"])),
        ("spm_no_bytes.json", dict(add_dummy_prefix=True, byte_fallback=False, vocab_size=260)),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(SENTENCES),
                model_prefix=os.path.join(folder, "m"),
                model_type="bpe",
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                character_coverage=1.0,
                hard_vocab_limit=False,
                minloglevel=2,
                **options,
            )
            sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "m.model"))
        n = sp.get_piece_size()

        def kind(i):
            if sp.is_unknown(i):
                return 2
            if sp.is_control(i):
                return 3
            if sp.is_byte(i):
                return 6
            return 4 if sp.id_to_piece(i) in options.get("user_defined_symbols", []) else 1

        types = [kind(i) for i in range(n)]
        pieces = [sp.id_to_piece(i) for i in range(n)]
        # GGUF stores user-defined tokens with their spaces as they are.
        pieces = [p.replace("\u2581", " ") if t == 4 else p for p, t in zip(pieces, types)]
        write(
            name,
            {
                "model": "llama",
                "tokens": pieces,
                "scores": [sp.get_score(i) for i in range(n)],
                "token_types": types,
                "bos": sp.bos_id(),
                "eos": sp.eos_id(),
                "add_space_prefix": options["add_dummy_prefix"],
                "cases": [{**c, "text_back": sp.decode(c["ids"])} for c in cases(sp.encode)],
            },
        )


def sentencepiece_unigram():
    """Sentencepiece's unigram model as T5 and XLM-RoBERTa have it: texts are rewritten, spaces merged."""
    rules = {"\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u200b": "", "\u00ad": "", "\ufb01": "fi", "e\u0301": "\u00e9", "\u0451": "\u0435", "\u2026": "..."}
    for name, options in [
        ("unigram.json", dict(vocab_size=300, byte_fallback=False, user_defined_symbols=["<mask>"])),
        ("unigram_bytes.json", dict(vocab_size=560, byte_fallback=True)),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "rules.tsv"), "w", encoding="utf-8") as f:
                for old, new in rules.items():
                    f.write(" ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new) + "\n")
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(SENTENCES),
                model_prefix=os.path.join(folder, "m"),
                model_type="unigram",
                normalization_rule_tsv=os.path.join(folder, "rules.tsv"),
                character_coverage=1.0,
                hard_vocab_limit=False,
                minloglevel=2,
                **options,
            )
            sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "m.model"))
            proto = sentencepiece_model_pb2.ModelProto()
            with open(os.path.join(folder, "m.model"), "rb") as f:
                proto.ParseFromString(f.read())
        n = sp.get_piece_size()
        kinds = {2: 2, 3: 3, 4: 4, 5: 5, 6: 6}
        write(
            name,
            {
                "model": "t5",
                "tokens": [sp.id_to_piece(i) for i in range(n)],
                "scores": [sp.get_score(i) for i in range(n)],
                "token_types": [kinds.get(p.type, 1) for p in proto.pieces],
                "bos": sp.bos_id(),
                "eos": sp.eos_id(),
                "add_space_prefix": True,
                "remove_extra_whitespaces": True,
                "precompiled_charsmap": list(proto.normalizer_spec.precompiled_charsmap),
                "cases": [{**c, "text_back": sp.decode(c["ids"])} for c in cases(sp.encode)],
            },
        )


byte_level()
wordpiece()
unigram()
sentencepiece_bpe()
sentencepiece_unigram()
