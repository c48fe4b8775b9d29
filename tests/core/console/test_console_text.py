"""What a terminal writes of a text that changed: it cannot take anything back."""

import pytest

from dragoman.console.platform import Console
from dragoman.messages import Address, Outbound
from dragoman.testing import VirtualClock

pytestmark = pytest.mark.anyio


class Paper:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text


@pytest.mark.parametrize(
    ("texts", "paper"),
    [
        (["It", "It grows"], "It grows\n"),
        (["It", "It"], "It\n"),
        (["I look.\n\n(search …)", "I look."], "I look.\n\n(search …)\n"),
        (["I look.\n\n(search …)", "I look.", "I look.\n\n42"], "I look.\n\n(search …)\n\n42\n"),
        (["I look.\n\n(search …)", "I look.\n\n42"], "I look.\n\n(search …)\n42\n"),
        (["A draft", "An answer"], "A draft\nAn answer\n"),
        (["kept\nA draft", "kept\nAn answer"], "kept\nA draft\nAn answer\n"),
        (["A draft", "A"], "A draft\nA\n"),
    ],
)
async def test_lines_that_changed_are_written_below(texts, paper):
    """C5."""
    page = Paper()
    console = Console("me", "console", VirtualClock(), page)
    address = Address("console", "me")
    for number, text in enumerate(texts):
        message = Outbound("d", text, final=number == len(texts) - 1)
        if number == 0:
            receipt = await console.send(address, message)
        else:
            await console.edit(address, receipt.native_id, message)
    assert page.text == paper
