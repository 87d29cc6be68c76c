//! Replays the corpus: small `tokenizer.json` files that are sound or hostile; what fuzzing finds joins them.
#![allow(clippy::unwrap_used)]

mod exercise;

use std::path::Path;

#[test]
fn every_tokenizer_of_the_corpus_is_refused_or_usable() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let (mut accepted, mut refused) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let sound = exercise::exercise(&std::fs::read(&path).unwrap());
        assert_eq!(name.starts_with("sound-"), sound, "{name}");
        *(if sound { &mut accepted } else { &mut refused }) += 1;
    }
    assert!(accepted >= 5 && refused >= 15, "{accepted} accepted, {refused} refused");
}

#[test]
fn deep_pieces_and_sections_do_not_exhaust_the_stack() {
    let piece = "a".repeat(1 << 20);
    let unigram = format!(r#"{{"model":{{"type":"Unigram","unk_id":0,"vocab":[["{piece}",0.0]]}}}}"#);
    assert!(!exercise::exercise(unigram.as_bytes()));
    for (open, close) in
        [(r#"{"type":"Sequence","decoders":["#, "]}"), (r#"{"decoders":["#, "]}"), ("[", "]")]
    {
        for levels in [20, 60, 100_000] {
            let json = format!(
                r#"{{"decoder":{}1{},"model":{{"type":"WordLevel","vocab":{{"a":0}},"unk_token":"a"}}}}"#,
                open.repeat(levels),
                close.repeat(levels)
            );
            assert!(!exercise::exercise(json.as_bytes()), "{levels} of {open}");
        }
    }
}
