"""A gateway with one live program: real client, real program; it says ``up`` and waits for its end.

Arguments: the runtime's directory, the model server, and what to say.
"""

import sys
from pathlib import Path

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from dragoman_claude.home import Homes, bundled_program


async def main(root: str, model: str, words: str) -> None:
    homes = Homes(Path(root), bundled_program())
    home = homes.home("ses_1")
    options = ClaudeAgentOptions(
        cli_path=home.cli,
        cwd=home.workspace,
        env=home.environment({"ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": model}),
        tools=["Bash"],
        allowed_tools=["Bash"],
        setting_sources=[],
        strict_mcp_config=True,
        verbatim_prompts=True,
        model="claude-sonnet-5",
    )
    async with ClaudeSDKClient(options) as client:
        await client.query(words)
        print("up", flush=True)
        async for _ in client.receive_messages():
            pass


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
