"""The deployment of the end-to-end tests: an agent, a manifest, and what the model says."""

AGENT = '''
"""The agent of the end-to-end tests, as an operator would write it."""

from agents import Agent, function_tool


@function_tool(timeout=10)
async def get_weather(city: str) -> str:
    """Say what the weather is like in a city."""
    return f"It is 21 degrees in {city}."


assistant = Agent(name="assistant", instructions="Help.", tools=[get_weather])
'''

MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{api_url}"
poll_timeout = 5

[runtimes.assistant]
plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{model_url}"

[profiles.default]
runtime = "assistant"

[access]
users = ["telegram:700000001", "telegram:700000002"]
"""

STORY = " ".join(f"word{number}" for number in range(150))

FIXTURES = [
    {"match": {"userMessage": "hello"}, "response": {"content": "Hello from the model."}},
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {
            "content": "Let me look.",
            "toolCalls": [{"name": "get_weather", "arguments": {"city": "Paris"}}],
        },
    },
    {
        "match": {"userMessage": "weather", "hasToolResult": True},
        "response": {"content": "It is 21 degrees in Paris. " + STORY},
        "streamingProfile": {"ttft": 50, "tps": 15, "jitter": 0},
    },
    {
        "match": {"userMessage": "slow"},
        "response": {"content": "Slowly. " + STORY},
        "streamingProfile": {"ttft": 4000, "tps": 100, "jitter": 0},
    },
    {"match": {"userMessage": "remember"}, "response": {"content": "You asked about Paris."}},
    {"match": {"userMessage": "quick"}, "response": {"content": "Quickly."}},
    {
        "match": {"userMessage": "too big"},
        "response": {
            "error": {
                "message": "This model's maximum context length is 128000 tokens.",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            },
            "status": 400,
        },
    },
]
