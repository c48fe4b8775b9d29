"""PDF as text, whatever a file tries."""

import io
import os

import anyio
import pytest

from dragoman import Attachment, SystemClock
from dragoman.testing import VirtualClock
from dragoman_files import pdf
from dragoman_files.config import FilesConfig
from dragoman_files.reader import FileTexts

pytestmark = pytest.mark.anyio
FILE = Attachment("F", "document", "x", "application/octet-stream")
PATIENT = {"pdf_seconds": 60.0}


@pytest.fixture
def text_of(tmp_path):
    """Read a file as the extension does."""

    async def text_of(data, attachment=FILE, clock=None, **changes):
        path = tmp_path / "1.1"
        path.write_bytes(data)
        reader = FileTexts(FilesConfig(**{**PATIENT, **changes}), clock or SystemClock())
        return await reader.dragoman_file_text(path, attachment)

    return text_of


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Put another program in the worker's place."""

    def replace(program):
        path = tmp_path / "worker.py"
        path.write_text(program)
        monkeypatch.setattr(pdf, "WORKER", path)

    return replace


async def test_c8_pages_come_with_their_numbers(text_of, pdfs):
    """C8: a page without text is passed over."""
    assert await text_of(pdfs.of("Hello there", "", "The end")) == (
        "[page 1]\nHello there\n\n[page 3]\nThe end"
    )


async def test_what_is_a_pdf_its_content_says(text_of, pdfs):
    data = pdfs.of("Hello")
    text = Attachment("F", "document", "notes.txt", "text/plain")
    named = Attachment("F", "document", "a.PDF")
    assert "Hello" in await text_of(data, text)
    assert "Hello" in await text_of(b"\xef\xbb\xbf\n" + data, text)
    assert "Hello" in await text_of(b"From: a scanner\n" + data, named)
    assert await text_of(b"about %PDF- files", text) == "about %PDF- files"
    assert await text_of(b"\x89PNG\0\0\0", named) is None


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
@pytest.mark.parametrize(("password", "told"), [("", "[page 1]\nHello"), ("x", pdf.ENCRYPTED)])
async def test_only_a_password_that_readers_need_is_in_the_way(
    text_of, pdfs, algorithm, password, told
):
    from pypdf import PdfReader, PdfWriter

    writer, out = PdfWriter(PdfReader(io.BytesIO(pdfs.of("Hello")))), io.BytesIO()
    writer.encrypt(password, "owner", algorithm=algorithm)
    writer.write(out)
    assert await text_of(out.getvalue()) == told


async def test_limits_of_pages_and_characters_are_said(text_of, pdfs):
    assert await text_of(pdfs.of("a", "b", "c"), pdf_pages=2) == (
        "[page 1]\na\n\n[page 2]\nb\n[it goes on: only the first 2 pages were read]"
    )
    assert await text_of(pdfs.of("Hello", "b"), characters=12) == (
        "[page 1]\nHel\n[it goes on: cut here]"
    )


async def test_ten_thousand_pages_end_at_the_limit(text_of, pdfs):
    text = await text_of(pdfs.of(*["x"] * 10_000), pdf_pages=3)
    assert text.count("[page ") == 3
    assert text.endswith("[it goes on: only the first 3 pages were read]")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("truncated", pdf.DAMAGED),
        ("wrong table", "[page 1]\nHello"),
        ("nothing", pdf.DAMAGED),
        ("no pages", pdf.NO_TEXT),
        ("endless tree", pdf.DAMAGED),
        ("endless forms", "[page 1]\nbefore"),
        ("bomb", f"[page 2]\nafter\n{pdf.DAMAGED}"),
    ],
)
async def test_hostile_files_end_in_words(text_of, pdfs, name, told):
    """Invariant 11: no error, no end of memory, no waiting."""
    data = {
        "truncated": pdfs.of("Hello")[:-400],
        "wrong table": pdfs.of("Hello").replace(b"startxref\n", b"startxref\n9"),
        "nothing": b"%PDF-1.7\n",
        "no pages": pdfs.of(),
        "endless tree": pdfs.endless_tree(),
        "endless forms": pdfs.endless_forms(),
        "bomb": pdfs.bomb(500_000_000),
    }[name]
    assert await text_of(data, pdf_seconds=30.0) == told


@pytest.mark.parametrize(
    "program",
    [
        "bytearray(3_000_000_000)",
        "import os; os.abort()",
    ],
)
async def test_a_worker_that_dies_takes_nothing_with_it(text_of, pdfs, worker, program):
    source = await anyio.Path(pdf.WORKER).read_text()
    start = "    _limit(seconds, memory)\n"
    worker(source.replace(start, f"{start}    print('begun', flush=True)\n    {program}\n"))
    assert await text_of(pdfs.of("Hello")) == f"begun\n{pdf.DAMAGED}"


async def test_what_takes_too_long_is_given_up_and_what_is_there_kept(
    text_of, pdfs, worker, tmp_path
):
    worker(
        "import os, pathlib\n"
        "print('begun', flush=True)\n"
        "(pathlib.Path(__file__).parent / f'begun-{os.getpid()}').touch()\n"
        "while True: pass\n"
    )
    clock, told = VirtualClock(), []

    async def read():
        told.append(await text_of(pdfs.of("Hello"), clock=clock))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        with anyio.fail_after(30):
            while not begun(tmp_path):
                await anyio.lowlevel.checkpoint()
        await clock.advance(61)
    assert told == [f"begun\n{pdf.TOO_LONG}"]
    with pytest.raises(ProcessLookupError):
        os.kill(begun(tmp_path)[0], 0)


async def test_a_worker_that_says_too_much_is_ended(text_of, pdfs, worker):
    worker("while True: print('x' * 1000)")
    assert await text_of(pdfs.of("Hello"), characters=5) == "xxxxx\n[it goes on: cut here]"


async def test_the_worker_gets_no_secret(text_of, pdfs, worker, monkeypatch):
    """Invariant 12: a file that takes the worker over finds no token there."""
    monkeypatch.setenv("BOT_TOKEN", "canary")
    worker("import os; print(*os.environ)")
    assert set((await text_of(pdfs.of("Hello"))).split()) <= {"PYTHONPATH", "LANG", "LC_CTYPE"}


async def test_two_are_read_at_once_and_none_outlives_its_turn(text_of, pdfs, worker, tmp_path):
    """Invariants 9, 10: a flood of files makes no flood of processes."""
    worker(
        "import os, pathlib\n"
        "(pathlib.Path(__file__).parent / f'begun-{os.getpid()}').touch()\n"
        "while True: pass\n"
    )
    path = tmp_path / "1.1"
    path.write_bytes(pdfs.of("Hello"))
    reader = FileTexts(FilesConfig(), VirtualClock())
    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(reader.dragoman_file_text, path, FILE)
        with anyio.fail_after(30):
            while reader._pdfs.statistics().tasks_waiting < 4 or len(begun(tmp_path)) < 2:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    processes = begun(tmp_path)
    assert len(processes) == 2
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def begun(folder):
    return [int(path.name.split("-")[1]) for path in folder.glob("begun-*")]
