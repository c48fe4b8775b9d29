"""What plugins that are runtimes have in common. Nothing in core uses it."""

from dragoman.runtimes.context import Attach as Attach
from dragoman.runtimes.context import Fetch as Fetch
from dragoman.runtimes.context import Read as Read
from dragoman.runtimes.context import Suggest as Suggest
from dragoman.runtimes.context import TurnContext as TurnContext
from dragoman.runtimes.failures import chain as chain
from dragoman.runtimes.failures import place as place
from dragoman.runtimes.feed import Feed as Feed
from dragoman.runtimes.own_tools import read_file as read_file
from dragoman.runtimes.own_tools import recall as recall
from dragoman.runtimes.own_tools import remember as remember
from dragoman.runtimes.references import ReferenceProblem as ReferenceProblem
from dragoman.runtimes.references import is_reference as is_reference
from dragoman.runtimes.references import resolve as resolve
from dragoman.runtimes.tables import McpTable as McpTable
from dragoman.runtimes.tables import Values as Values
from dragoman.runtimes.tables import described as described
from dragoman.runtimes.tables import has_names as has_names
from dragoman.runtimes.tables import is_discreet as is_discreet
from dragoman.runtimes.tables import is_server as is_server
from dragoman.runtimes.tables import is_time_zone as is_time_zone
from dragoman.runtimes.words import UNKNOWN as UNKNOWN
from dragoman.runtimes.words import refusal as refusal
from dragoman.runtimes.words import told as told
from dragoman.runtimes.words import well_formed as well_formed
