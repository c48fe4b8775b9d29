"""What an operator has to do outside of dragoman, for ``dragoman init``."""

from typing import Final

SETUP: Final = """\
1. In Telegram, write /newbot to @BotFather and answer its two questions. It replies with a token:
   whoever has it is the bot. Put it into the environment variable that the manifest names.
2. Find your own id, a positive number: any id bot tells it. It goes into [access] owners as
   "telegram:<number>". A name such as @you is no substitute: names change hands.
3. For groups: add the bot, and put the group's negative id into [access] channels. It gets only
   commands, replies and, as an administrator, mentions. To let it see everything, write
   /setprivacy to @BotFather, choose Disable, and add the bot to the group again. Reactions
   arrive from groups where it is an administrator.
4. dragoman check --connect tells what is still missing.
"""
