#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the token ids that tests/unit/test_text.c compares with, in plain Python: unicodedata, and
the module regex for the character classes of GPT-2's pattern (Debian's python3-regex).

    tests/golden/tokens.py                      writes data/tokens, from its own vocabularies

Real vocabularies and texts, to compare by hand:

    tests/golden/tokens.py DIR --bert vocab.txt --gpt2 DIR2 --fuzz 10000 FILE...
    TRI_TOKENS=DIR build/tests/test_text

DIR receives copies of the vocabularies and cases.txt, one line per case: tokenizer, text as
hexadecimal digits, ids separated by commas; "-" if empty. Each file is a case as a whole and line
by line.

What the original tokenizers leave open: bytes that are not UTF-8 are dropped for BERT, and each is
a symbol for GPT-2; "control" characters of BERT are all those of the categories C.
"""
import argparse
import collections
import json
import os
import random
import shutil
import unicodedata

import regex

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "tokens")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# ---- BERT ----

CHINESE = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
           (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


def is_control(c):
    return c not in "\t\n\r" and unicodedata.category(c)[0] == "C"


def is_punctuation(c):
    symbol = c.isascii() and c.isprintable() and not c.isalnum() and c != " "
    return symbol or unicodedata.category(c)[0] == "P"


def spaced(c):
    if c in "\t\n\r" or unicodedata.category(c) == "Zs":
        return " "
    return f" {c} " if any(a <= ord(c) <= b for a, b in CHINESE) else c


def words_of(text, lower):
    text = "".join(spaced(c) for c in text if c not in "\0\ufffd" and not is_control(c))
    for word in text.split():
        if lower:
            word = unicodedata.normalize("NFD", word.lower())
            word = "".join(c for c in word if unicodedata.category(c) != "Mn")
        yield from "".join(f" {c} " if is_punctuation(c) else c for c in word).split()


class Bert:
    def __init__(self, tokens, lower):
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.lower = lower
        self.known = {}

    def pieces(self, word):
        if len(word) > 100:
            return ["[UNK]"]
        out, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    break
            else:
                return ["[UNK]"]
            out.append(piece)
            start = end
        return out

    def encode(self, data):
        out = []
        for word in words_of(data.decode("utf-8", "ignore"), self.lower):
            if word not in self.known:
                self.known[word] = [self.ids[p] for p in self.pieces(word)]
            out += self.known[word]
        return out


# ---- GPT-2 ----

PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| "
                        r"?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def alphabet():
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in visible]
    return {b: chr(b) for b in visible} | {b: chr(256 + i) for i, b in enumerate(hidden)}


ALPHABET = alphabet()


def written(data):
    return "".join(ALPHABET[b] for b in data)


def joined(parts, pair):
    out, i = [], 0
    while i < len(parts):
        both = tuple(parts[i:i + 2]) == pair
        out.append("".join(parts[i:i + 2]) if both else parts[i])
        i += 1 + both
    return out


class Gpt2:
    def __init__(self, ids, merges):
        self.ids = ids
        self.rank = {pair: i for i, pair in enumerate(merges)}
        self.known = {}

    def parts(self, word):
        parts = list(word)
        while True:
            pairs = [p for p in zip(parts, parts[1:]) if p in self.rank]
            if not pairs:
                return parts
            parts = joined(parts, min(pairs, key=self.rank.get))

    def encode(self, data):
        out = []
        for word in PATTERN.findall(data.decode("utf-8", "surrogateescape")):
            if word not in self.known:
                parts = self.parts(written(word.encode("utf-8", "surrogateescape")))
                self.known[word] = [self.ids[p] for p in parts]
            out += self.known[word]
        return out


# ---- its own vocabularies ----

SAMPLE = """The quick brown fox doesn't jump over the lazy dog, they're told; we'll see what he'd \
think.
Whatever the weather, the others gathered there together. In 2023 there were 1234567 of them in all.
    def f(x):\n        return x + 1\n\n\nÜber den Wolken, où naïve façade; Ελληνικά και πάλι, \
привет всем.
""" * 3

# By hand: a merge that produces the input of an earlier one, so that order matters where it would
# not after training.
FIRST_MERGES = [("qx", "q"), ("q", "x")]


def train_merges(n):
    words = collections.Counter(PATTERN.findall(SAMPLE))
    split = {w: list(written(w.encode())) for w in words}
    merges = list(FIRST_MERGES)
    while len(merges) < n:
        count = collections.Counter()
        for w, parts in split.items():
            for pair in zip(parts, parts[1:]):
                count[pair] += words[w]
        best = max(count, key=lambda pair: (count[pair], pair))
        merges.append(best)
        split = {w: joined(parts, best) for w, parts in split.items()}
    return merges


def small_gpt2():
    merges = train_merges(120)
    made = dict.fromkeys("".join(pair) for pair in merges)
    tokens = [*(ALPHABET[b] for b in range(256)), *made, "<|endoftext|>"]
    return {token: i for i, token in enumerate(tokens)}, merges


def small_bert():
    words = "the of and to in a is was un able aff do not don t s hello world token 20 19 über"
    words += " uber ναι οδος οδοσ istanbul ı i ß strasse ﬁ fi ｆｕｌｌ full"
    words += " 中 国 中国 日 本 한 국 한국 שלום مرحبا ए क ा"
    ends = "s ing ed able ation er un ly 0 1 2 9 world ς σ ü u е ё й и क ा ि"
    letters = "abcdefghijklmnopqrstuvwxyz" + "ABCDEFHIST" + "éÉñ"
    letters += ".,!?'\"-[]()`$+~^|<>" + "。«»¿—…"
    tokens = dict.fromkeys(SPECIAL + words.split() + list(letters) + ["The", "Éa", "\u1100",
                                                                      "\u200b", "😀"])
    tokens |= dict.fromkeys("##" + p for p in ends.split() + list(letters[:26]) +
                            ["\u1161", "\u11a8"])
    return list(tokens)


# ---- texts ----

def awkward():
    yield from """
The quick brown fox; don't, can't, I'll, we've, they're, he'd, I'm, it's, 'tis, '', 's't'lls
Hello   world  \t tabs\t\tand\r\nlines\n\n\n   and blanks at the end
unable affable unaffable unaffaböe [UNK] [SEP] [CLS]the [MASK]s ##ing <|endoftext|>
İstanbul I ı i İ İİ ISTANBUL ıI
ΟΔΟΣ ΟΔΟΣ. ΟΔΟΣ' ΟΔΟΣ'Α Σ ΣΣ ΑΣ ΑΣ\u0301 ΑΣ\u0301Α \u0345Σ Α\u0345Σ ʰΣ ⅠΣ Α.Σ.
straße STRASSE ẞ ﬁ ﬂ ｆｕｌｌ Ｆｕｌｌ １２３ ＡＢＣ　全角
é e\u0301 É E\u0301 ḗ e\u0304\u0301 e\u0301\u0304 q\u0323\u0307 q\u0307\u0323 \
a\u0315\u0300\u05ae\u0300b
中国hello日本 中 国。「日本」 豈 丽 \U00020000\U0002a6e0 한국어 한국 \u1112\u1161\u11ab ｶﾞ カ\u3099
שלום עולם ש\u05b8 مرحبا بالعالم م\u064eر \u200fabc\u200e नमस्ते क्ष \u0915\u093f क\u093c क़ \
\u1b05\u1b35
😀 😀😀 👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 ☃️ ☃
a\u00a0b\u2003c\u2028d\u2029e\u200bf\ufeffg\u00adh\u180ei\u3000j\u1680k\u202fl\u205fm
\x00a\x00b\x01c\x07d\x0be\x0cf\x1cg\x1dh\x1ei\x1fj\x7fk\x80l\x85m\x9fn
\ufffd a\ufffdb \ufffe \uffff \ufdd0 \ue000 \U000f0000 \U0010ffff \U0001f9ff
x² ½ Ⅷ ①②③ ٣٤ ३४ 12345 1,234.56 3.14e-10 0x1F
$100 a+b=c ~x ^y |z| `code` a<b>c €5 £6 ¥7 © ® ™ § ¶ • … — – ‐ ‑ ¿¡ «» ‹›
foo_bar-baz.qux@quux.com https://example.com/?a=1&b=2#c C:\\dir\\file
ａ' s 's  't ' s\u2019s don\u2019t a'sb 'S 'LL 'Re ''s 's' \u00a0's
\u0301 \u0301a  \u0301 a \u0301\u0301\u0301 \u20dd \u3099 \u302e가 가\u302e\u302a \
a\u302e\u0323\u302e\u0301
qxqx qxq qxqxqxq xqxq qqxxq aqxqb qxqxqx
""".strip("\n").split("\n")
    yield from ["", " ", "  ", "\n", "a", " a", "a ", "  a", "a  ", " \n a", "\n\n", "\t", "\u00a0",
                "\u3000\u3000x"]
    yield from ["a" * n for n in (2, 99, 100, 101, 1000)] + ["é" * 100, "e\u0301" * 100, "中" * 300,
                                                             " " * 300 + "x"]
    yield from ["the" * 33 + "x", "the" * 33 + "xy", "'" * 50, "ab" * 500, "1" * 500,
                "\u0301\u0323" * 200 + "a"]
    yield SAMPLE


INVALID = [b"\xff", b"\x80", b"a\xc3", b"\xc3a", b"\xe4\xb8", b"a\xe4\xb8b", b"\xed\xa0\x80",
           b"x\xed\xb0\x80y",
           b"\xed\xa0\xbd\xed\xb8\x80", b"\xf0\x9f\x98", b"\xf0\x9f\x98a", b"\xc0\x80",
           b"\xe0\x80\x80", b"\xf4\x90\x80\x80",
           b"\xf8\x88\x80\x80\x80", b"a \xff b", b" \xff\xfe", b"the\xffthe", b"\xc3\xa9\xc3",
           b"\xe2\x80\xa8\xe2\x80"]


def fuzzed(n):
    rng = random.Random(1)
    every = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    marks = [c for c in every if unicodedata.category(c)[0] == "M"]
    cased = [c for c in every if c.lower() != c or c.upper() != c]
    spaces = [c for c in every if c.isspace()]
    pools = [every, every[:0x3000], marks, cased, spaces, " \n'.", "abcdefgh ", "ΣσςαΑ'.\u0301",
             "'sdtmrevl "]
    for _ in range(n):
        some = rng.sample(pools, rng.randint(1, 3))
        text = "".join(rng.choice(rng.choice(some)) for _ in range(rng.randint(1, 40))).encode()
        if rng.random() < 0.2:
            text = bytearray(text)
            for _ in range(rng.randint(1, 3)):
                text[rng.randrange(len(text))] = rng.randrange(256)
        # Characters of a later Unicode version than Python's are left to Python.
        if "Cn" not in map(unicodedata.category, text.decode("utf-8", "ignore")):
            yield bytes(text)


# Every character, in places that show its class: within a word, before and after a sigma.
def each_character():
    for c in range(0x110000):
        c = chr(c)
        if unicodedata.category(c) not in ("Cn", "Cs"):
            yield f"a{c}b {c}a ΑΣ{c} Α{c}Σ Α{c}Σ{c}Α".encode()


def texts(files, fuzz):
    yield from (t.encode() for t in awkward())
    yield from INVALID
    for name in files:
        with open(name, "rb") as f:
            data = f.read()
        yield data
        yield from data.split(b"\n")
    if fuzz:
        yield from fuzzed(fuzz)
        yield from each_character()


# ---- files ----

def put_vocabularies(out, bert, gpt2):
    if bert:
        shutil.copyfile(bert, os.path.join(out, "vocab.txt"))
    else:
        with open(os.path.join(out, "vocab.txt"), "w") as f:
            f.writelines(token + "\n" for token in small_bert())
    if gpt2:
        names = ["vocab.json", "merges.txt"]
        if not os.path.exists(os.path.join(gpt2, names[0])):
            names = ["encoder.json", "vocab.bpe"]
        for name, to in zip(names, ["vocab.json", "merges.txt"]):
            shutil.copyfile(os.path.join(gpt2, name), os.path.join(out, to))
    else:
        ids, merges = small_gpt2()
        with open(os.path.join(out, "vocab.json"), "w") as f:
            json.dump(ids, f, indent=0)
            f.write("\n")
        with open(os.path.join(out, "merges.txt"), "w") as f:
            f.write("#version: 0.2\n")
            f.writelines(f"{a} {b}\n" for a, b in merges)


def read_vocabularies(out):
    with open(os.path.join(out, "vocab.txt"), newline="\n") as f:
        tokens = f.read().removesuffix("\n").split("\n")
    with open(os.path.join(out, "vocab.json")) as f:
        ids = json.load(f)
    with open(os.path.join(out, "merges.txt"), newline="\n") as f:
        merges = [tuple(line.split(" ")) for line in f.read().split("\n")[1:-1]]
    return {"bert": Bert(tokens, True), "bert-cased": Bert(tokens, False),
            "gpt2": Gpt2(ids, merges)}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("out", nargs="?", default=HERE)
    args.add_argument("--bert")
    args.add_argument("--gpt2")
    args.add_argument("--fuzz", type=int, default=0)
    args.add_argument("files", nargs="*")
    args = args.parse_intermixed_args()
    os.makedirs(args.out, exist_ok=True)
    put_vocabularies(args.out, args.bert, args.gpt2)
    tokenizers = read_vocabularies(args.out)
    with open(os.path.join(args.out, "cases.txt"), "w") as f:
        for text in texts(args.files, args.fuzz):
            for name, tokenizer in tokenizers.items():
                ids = ",".join(map(str, tokenizer.encode(text)))
                f.write(f"{name} {text.hex() or '-'} {ids or '-'}\n")


main()
