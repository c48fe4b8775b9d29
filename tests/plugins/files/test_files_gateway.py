"""From a file in a chat to text in front of an agent."""

import anyio
import pytest

from dragoman import Attachment, FileUnavailable, Finished, SystemClock, TextBlock
from dragoman.testing import ScriptedRuntime, StubPlugin
from dragoman_files.config import FilesConfig
from dragoman_files.reader import FileTexts
from stage import can, gateway, table

pytestmark = pytest.mark.anyio


async def reading(request, host):
    """Answer with the text of every file."""
    for reference, _ in request.inputs[-1].files:
        try:
            text = await host.read(reference)
        except FileUnavailable as error:
            text = f"not available: {error}"
        yield TextBlock(reference, text)
    yield Finished()


async def test_c8_files_reach_the_agent_as_text(pdfs):
    """C8: several kinds in one message; what is of no known kind is said."""
    contents = {
        "pdf": pdfs.of("Hello there"),
        "csv": "name;price\r\nTee;5 €\r\n".encode("cp1252"),
        "empty": b"",
        "zip": b"PK\x03\x04\x14\0\0\0\x08\0",
    }
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(reading)})
    plugin.platform().capabilities = can(fetch=100_000)
    plugin.platform().contents = contents
    plugin.extensions = {"files": FileTexts(FilesConfig(pdf_seconds=60.0), SystemClock())}
    tables = [table("extensions", "files"), table("platforms", "stub")]
    async with gateway(plugin, components=tables) as stage:
        files = [Attachment(name, "document", f"a.{name}") for name in contents]
        await stage.platform.say("look", attachments=files)
        with anyio.fail_after(30):
            await stage.until_final()
        shown = "\n".join(stage.platform.shown())
    for text in ("Hello there", "Tee;5 €", "[the file is empty]", "nothing here can make text"):
        assert text in shown
