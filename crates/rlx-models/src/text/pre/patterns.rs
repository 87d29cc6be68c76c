//! The table of pre-tokenizers: names, patterns and what follows from the name.
//!
//! The patterns are those of the models' own `tokenizer.json` files, less the look-ahead that [`Run`] does.

use super::split::{Run, Stage};

/// One way to cut words, under all names that it has.
pub(super) struct Entry {
    pub(super) names: &'static [&'static str],
    pub(super) stages: &'static [Stage],
    pub(super) ignore_merges: bool,
    pub(super) add_bos: bool,
    pub(super) always_bos: bool,
    pub(super) by_char: bool,
}

const fn entry(names: &'static [&'static str], stages: &'static [Stage]) -> Entry {
    Entry { names, stages, ignore_merges: false, add_bos: false, always_bos: false, by_char: false }
}

const fn stage(pattern: &'static str) -> Stage {
    Stage { pattern, run: Run::Whole }
}

pub(super) const TABLE: &[Entry] = &[
    entry(&["default"], &[stage(r"[\p{P}\$\+<=>\^~\|]+"), GPT_2, stage(r"\p{N}+"), stage("[0-9][0-9][0-9]")]),
    entry(
        &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "exaone4",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
        ],
        &[GPT_2],
    ),
    entry(
        &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
        &[stage(r"\p{N}"), GPT_2],
    ),
    entry(&["falcon"], &[stage(r"[\p{P}\$\+<=>\^~\|`]+"), GPT_2, stage("[0-9][0-9][0-9]")]),
    Entry {
        ignore_merges: true,
        add_bos: true,
        ..entry(
            &[
                "llama3",
                "llama-v3",
                "llama-bpe",
                "falcon3",
                "falcon-h1",
                "pixtral",
                "midm-2.0",
                "lfm2",
                "jina-v5-nano",
            ],
            &[LLAMA_3],
        )
    },
    entry(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[LLAMA_3]),
    Entry { ignore_merges: true, ..entry(&["glm4", "glm5"], &[LLAMA_3]) },
    entry(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
        ],
        &[QWEN_2],
    ),
    entry(&["qwen35"], &[QWEN_35]),
    entry(&["seed-coder"], &[SEED_CODER]),
    entry(&["ufakzeka"], &[UFAKZEKA]),
    entry(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    entry(&["exaone-moe"], &[EXAONE_MOE]),
    entry(&["laguna"], &[LINES, QWEN_2]),
    Entry { ignore_merges: true, ..entry(&["minicpm5"], &[stage(r"\p{N}{1,3}"), MINICPM_5]) },
    entry(&["jais-2"], &[JAIS_2]),
    entry(
        &["deepseek-llm"],
        &[
            stage(r"[\r\n]"),
            stage(DEEPSEEK_LETTERS),
            stage(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
            stage(r"\s+$"),
            CJK_AND_HANGUL,
            stage(r"\p{N}+"),
        ],
    ),
    entry(
        &["deepseek-coder"],
        &[stage(r"[\r\n]"), stage(r"\s?\p{L}+"), stage(r"\s?\p{P}+"), CJK_AND_HANGUL, stage(r"\p{N}")],
    ),
    entry(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[stage(r"\p{N}{1,3}"), HAN_AND_KANA, DEEPSEEK_3],
    ),
    entry(&["spark2_5"], &[stage(r"\p{N}{1,3}"), HAN_AND_KANA, SPARK_2_5, stage(r"\p{N}")]),
    entry(
        &["afmoe"],
        &[
            Stage { pattern: r"\p{N}+", run: Run::Threes },
            stage(
                "[一-鿿㐀-䶿豈-\u{faff}぀-ゟ゠-ヿ･-ﾟ⼀-⿟\u{e00}-\u{e7f}\u{e80}-\u{eff}ក-\u{17ff}က-႟ꩠ-ꩿꧠ-\u{a9ff}가-\u{d7af}ᄀ-ᇿ]+",
            ),
            DEEPSEEK_3,
        ],
    ),
    Entry {
        ignore_merges: true,
        ..entry(
            &["youtu"],
            &[stage("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"), YOUTU],
        )
    },
    Entry { ignore_merges: true, add_bos: true, ..entry(&["tekken"], &[TEKKEN]) },
    entry(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], &[GPT_4O]),
    Entry { ignore_merges: true, ..entry(&["granite-embed-multi-97m"], &[GPT_4O]) },
    entry(&["tiny_aya", "cohere2moe"], &[Stage { pattern: r"\d+\b", run: Run::Threes }, GPT_4O]),
    entry(&["kimi-k2"], &[KIMI_K2]),
    entry(&["superbpe"], &[stage(r"\p{N}+"), Stage { pattern: r"\d+", run: Run::ThreesWithin }]),
    Entry {
        add_bos: true,
        ..entry(
            &["chameleon"],
            &[
                stage("<sentinel:[0-9]+>"),
                stage("IMGIMG[A-I]{1,4}Z"),
                stage("[\\t\\n]|    |  "),
                stage(r"\p{N}"),
                stage(r"[\p{P}!-/:-@\[-`{-~]"),
                GPT_2,
            ],
        )
    },
    Entry {
        add_bos: true,
        always_bos: true,
        by_char: true,
        ..entry(&["gemma4", "granite-embed-multi-311m"], &[LINES])
    },
    Entry { by_char: true, ..entry(&["sarvam-moe"], &[LINES]) },
    entry(&["poro-chat", "bloom", "gpt3-finnish"], &[BLOOM]),
    entry(&["viking"], &[BLOOM, stage(r"\p{N}")]),
];

const GPT_2: Stage = Stage {
    pattern: r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+",
    run: Run::LeaveLast,
};

const LLAMA_3: Stage = Stage {
    pattern: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    run: Run::LeaveLastUnlessBreak,
};

const QWEN_2: Stage = Stage {
    pattern: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    run: Run::LeaveLastUnlessBreak,
};

const QWEN_35: Stage = Stage {
    pattern: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    run: Run::LeaveLastUnlessBreak,
};

const SEED_CODER: Stage = Stage {
    pattern: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+",
    run: Run::LeaveLastUnlessBreak,
};

const DEEPSEEK_3: Stage = Stage {
    pattern: concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+"
    ),
    run: Run::LeaveLastUnlessBreak,
};

const SPARK_2_5: Stage = Stage {
    pattern: concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
        r"| ?[\p{P}\p{S}]+|[\r\n]|\s+"
    ),
    run: Run::LeaveLast,
};

const UFAKZEKA: Stage = Stage {
    pattern: r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    run: Run::LeaveLastUnlessBreak,
};

const BAILING: Stage = Stage {
    pattern: r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+",
    run: Run::LeaveLastUnlessBreak,
};

/// Words stay together with the single spaces between them.
const EXAONE_MOE: Stage = Stage {
    pattern: concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+"
    ),
    run: Run::LeaveLastUnlessBreak,
};

const MINICPM_5: Stage = Stage {
    pattern: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    run: Run::LeaveLastUnlessBreak,
};

const JAIS_2: Stage = Stage { pattern: LLAMA_3.pattern, run: Run::PowersOfTwo };

const LINES: Stage = stage(r"[^\n]+|\n+");

const TEKKEN: Stage = Stage {
    pattern: concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
    ),
    run: Run::LeaveLastUnlessBreak,
};

const GPT_4O: Stage = Stage {
    pattern: concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
    ),
    run: Run::LeaveLastUnlessBreak,
};

const YOUTU: Stage = Stage {
    pattern: concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
    ),
    run: Run::LeaveLastUnlessBreak,
};

/// As GPT-4o, but Han letters are words of their own.
const KIMI_K2: Stage = Stage {
    pattern: concat!(
        r"\p{Han}+",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
    ),
    run: Run::LeaveLastUnlessBreak,
};

const HAN_AND_KANA: Stage = stage("[一-龥぀-ゟ゠-ヿ]+");

const BLOOM: Stage = stage(r" ?[^(\s|.,!?…。，、।۔،)]+");

const CJK_AND_HANGUL: Stage = stage("[一-龥ࠀ-一가-퟿]+");

/// Letters with case, as DeepSeek's first tokenizer lists them.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    r"A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}",
    r"\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}",
    r"\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}",
    r"\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}",
    r"\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}",
    r"\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}",
    r"\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}",
    r"\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}",
    r"\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}",
    r"\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}",
    r"\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}",
    r"\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}",
    r"\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}",
    r"]+"
);
