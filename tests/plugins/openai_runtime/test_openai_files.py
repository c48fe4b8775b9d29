"""Files that people send: what a model is told of them, and how an agent reads them."""

import pytest

from dragoman import Attachment

pytestmark = pytest.mark.anyio

REPORT = Attachment("F1", "document", "report.pdf", "application/pdf", 5)


def offered(desk):
    """The tools that the model was offered, call by call."""
    calls = [entry["body"].get("tools") or [] for entry in desk.model.journal()]
    return [[tool["function"]["name"] for tool in tools] for tools in calls]


async def test_c8_an_agent_reads_a_file_by_its_reference(desk, blocks):
    """C8: the tool changes nothing, so that the turn may be repeated."""
    desk.host.files = {"0.1": "All about tea."}
    async with desk.open() as runtime:
        events = await desk.say(runtime, "read my report", files=[REPORT])
    assert blocks(events) == ["It is about tea."]
    first, second = desk.model.inputs()
    assert first[-1]["content"] == (
        "read my report\n[document 0.1: report.pdf, application/pdf, 5 bytes]"
    )
    assert second[-1]["content"] == "All about tea."
    assert [entry[:4:3] for entry in desk.host.journal if entry[0] == "begun"] == [
        ("begun", "read")
    ]


@pytest.mark.parametrize(
    ("text", "files", "told"),
    [
        (
            "read the other",
            {},
            "The file cannot be read: there is no such file in this conversation.",
        ),
        ("read my report", {"0.1": " \n"}, "There is no text in the file."),
        ("read my report", {"0.1": "a\ud800b"}, "a\ufffdb"),
    ],
)
async def test_what_cannot_be_read_is_told_to_the_model(desk, text, files, told):
    """FC-ATT-01: the run goes on."""
    desk.host.files = files
    async with desk.open() as runtime:
        events = await desk.say(runtime, text, files=[REPORT])
    assert type(events[-1]).__name__ == "Finished"
    assert desk.model.inputs()[-1][-1]["content"] == told


async def test_the_tool_is_offered_where_the_model_sees_a_file(desk):
    """C8: also in later turns, as long as the history tells of it."""
    async with desk.open(history_items=3) as runtime:
        await desk.say(runtime, "say hello")
        await desk.say(runtime, "[photo 0.1]", files=[Attachment("F", "photo")])
        await desk.say(runtime, "say hello")
        await desk.say(runtime, "say hello")
    assert ["read_file" in names for names in offered(desk)] == [False, True, True, False]


async def test_tools_of_the_agent_get_files_and_suggest_answers(desk, blocks):
    desk.host.files = {"0.1": "All about tea."}
    async with desk.open("looking") as runtime:
        assert blocks(await desk.say(runtime, "look into it", files=[REPORT])) == ["Seen."]
    assert desk.model.inputs()[-1][-1]["content"] == "a.txt has 14 bytes: All a"
    assert desk.host.suggested == ["Keep it", "Drop it"]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_fc_men_02_what_has_no_words_has_content_all_the_same(desk, blocks, api):
    """FC-MEN-02, FC-ATT-03: no empty part, and no picture that a service could refuse for ever."""
    kinds = [
        Attachment("P", "photo"),
        Attachment("S", "sticker", mime="image/webp"),
        Attachment("V", "voice", mime="audio/ogg"),
    ]
    said = []
    async with desk.open(api=api) as runtime:
        for kind in kinds:
            said += blocks(await desk.say(runtime, "", files=[kind]))
        said += blocks(await desk.say(runtime, ""))
        said += blocks(await desk.say(runtime, "say hello"))
    assert said[:-1] == ["A photo.", "A sticker.", "A voice.", "Yes?"]
    assert said[-1].startswith("Hello")
    contents = [one["content"] for call in desk.model.inputs() for one in call]
    assert all(isinstance(content, str) and content.strip() for content in contents)
    assert [item["content"] for item in desk.host.items() if item.get("role") == "user"] == [
        "[photo 0.1]",
        "[sticker 0.1: image/webp]",
        "[voice 0.1: audio/ogg]",
        "[an empty message]",
        "say hello",
    ]
