"""What is text, and in which encoding."""

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_files.plain import plain_text

TEXT = "Gr\u00fc\u00dfe,\n\u03b1\u03b2, \U0001f600\n"
ORDINARY = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn", "Co")), min_size=1)
COUNTED = b"".join(number.to_bytes(4, "little") for number in range(500))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_c8_a_mark_or_utf_8_tells_the_encoding(encoding):
    """C8: also where the mark is missing, and UTF-8 is what it is."""
    assert plain_text(TEXT.encode(encoding), cut=False) == TEXT


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        ("\ufeffgr\u00fcn".encode("utf-16-be"), "grün"),
        ("plain words".encode("utf-16-le"), "plain words"),
        ("plain words".encode("utf-16-be"), "plain words"),
        ("\u20ac 5, gr\u00fcn".encode("cp1252"), "€ 5, grün"),
        ("gr\u00fcn \x81".encode("latin-1"), "grün \x81"),
        (b"\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"),
        (b"page one" * 20 + b"\x0c\x01", "page one" * 20 + "\x0c"),
    ],
)
def test_other_encodings(data, text):
    assert plain_text(data, cut=False) == text


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x01\xf4\x08\x02",
        b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(range(256)),
        gzip.compress(TEXT.encode() * 50, mtime=0),
        random.Random(1).randbytes(2000),
        bytes(byte or 1 for byte in random.Random(2).randbytes(2000)),
        b"\xff\xfe" + random.Random(3).randbytes(2000),
        COUNTED,
        b"\0" * 100,
        b"\x01\x02\x03",
    ],
)
def test_what_is_no_text_is_refused(data):
    assert plain_text(data, cut=False) is None


def test_a_few_wrong_bytes_are_still_text():
    data = TEXT.encode("utf-16") * 10 + b"\x00\xd8a\0"
    assert plain_text(data, cut=False).endswith("\n\ufffda")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_a_character_that_the_limit_cuts_is_left_out(encoding):
    for length in range(6, len(TEXT.encode(encoding))):
        text = plain_text(TEXT.encode(encoding)[:length], cut=True)
        assert TEXT.startswith(text)


@given(ORDINARY, st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]))
def test_every_text_is_itself_again(text, encoding):
    if encoding == "utf-8" and text.startswith("\ufeff"):
        text = text[1:]
    assert plain_text(text.encode(encoding), cut=False) == text


@given(st.binary(), st.booleans())
def test_no_bytes_raise(data, cut):
    text = plain_text(data, cut=cut)
    assert text is None or text.isascii() or text.encode()
