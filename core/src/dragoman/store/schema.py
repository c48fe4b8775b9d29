"""The schema, as a list of steps forward: a fresh file takes all of them, an older one the rest.

Texts are UTF-8, times of day are seconds since the epoch in UTC, leases are seconds of boot time.
Empty strings stand for "none" wherever a column takes part in a uniqueness, since NULLs are
distinct there.
"""

from __future__ import annotations

from typing import Final

STEPS: Final[tuple[str, ...]] = (
    # 1: conversations, sessions, events, turns, deliveries, records
    """
    CREATE TABLE conversations (
        id TEXT NOT NULL PRIMARY KEY,
        created_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE conversation_keys (
        platform TEXT NOT NULL,
        workspace TEXT NOT NULL,
        channel TEXT NOT NULL,
        thread TEXT NOT NULL,
        user TEXT NOT NULL,
        conversation_id TEXT NOT NULL REFERENCES conversations (id)
            DEFERRABLE INITIALLY DEFERRED,
        PRIMARY KEY (platform, workspace, channel, thread, user)
    ) WITHOUT ROWID;
    CREATE TABLE platform_sessions (
        id TEXT NOT NULL PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations (id),
        profile TEXT NOT NULL,
        runtime TEXT NOT NULL,
        created_at REAL NOT NULL,
        UNIQUE (conversation_id, profile, runtime)
    ) WITHOUT ROWID;
    CREATE TABLE inbound_events (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        platform TEXT NOT NULL,
        native_id TEXT NOT NULL,
        lane TEXT NOT NULL,
        state TEXT NOT NULL,
        received_at REAL NOT NULL,
        event TEXT NOT NULL,
        rule TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        session_id TEXT REFERENCES platform_sessions (id),
        turn_id TEXT,
        namespace TEXT NOT NULL DEFAULT '',
        item TEXT,
        UNIQUE (platform, native_id)
    );
    CREATE INDEX events_received ON inbound_events (platform, id) WHERE state = 'received';
    CREATE INDEX events_queued ON inbound_events (session_id, id) WHERE state = 'queued';
    CREATE INDEX events_of_turn ON inbound_events (turn_id) WHERE turn_id IS NOT NULL;
    CREATE TABLE agent_runs (
        id TEXT NOT NULL PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES platform_sessions (id),
        state TEXT NOT NULL,
        fence INTEGER NOT NULL,
        owner TEXT NOT NULL,
        lease_until REAL NOT NULL,
        started_at REAL NOT NULL,
        ended_at REAL,
        failure TEXT,
        detail TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX one_turn_per_session ON agent_runs (session_id)
        WHERE state IN ('running', 'waiting');
    CREATE INDEX runs_open ON agent_runs (owner) WHERE state = 'running';
    CREATE VIEW turn_inputs AS
        SELECT turn_id, id AS event_id FROM inbound_events WHERE turn_id IS NOT NULL;
    CREATE TABLE deliveries (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        turn_id TEXT,
        part INTEGER NOT NULL,
        lane TEXT NOT NULL,
        address TEXT NOT NULL,
        reply_to TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL,
        text TEXT,
        shown TEXT,
        native_id TEXT NOT NULL DEFAULT '',
        attempts INTEGER NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '',
        created_at REAL NOT NULL,
        ready_at REAL
    );
    CREATE INDEX deliveries_of_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;
    CREATE INDEX deliveries_open ON deliveries (lane, ready_at, number)
        WHERE state IN ('pending', 'sending', 'uncertain');
    CREATE TABLE records (
        session_id TEXT NOT NULL REFERENCES platform_sessions (id),
        namespace TEXT NOT NULL,
        generation INTEGER NOT NULL,
        number INTEGER NOT NULL,
        batch TEXT NOT NULL,
        item TEXT,
        PRIMARY KEY (session_id, namespace, generation, number)
    ) WITHOUT ROWID;
    CREATE INDEX records_of_batch ON records (batch);
    CREATE TABLE component_values (
        component TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (component, name)
    ) WITHOUT ROWID;
    """,
    # 2: what a run used, by the provider's counts
    """
    ALTER TABLE agent_runs ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE agent_runs ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE agent_runs ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
    """,
    # 3: the order of owed parts without a clock, and of waiting events without a search
    """
    ALTER TABLE deliveries ADD COLUMN place INTEGER;
    UPDATE deliveries SET place = ranked.place FROM (
        SELECT number, row_number() OVER (PARTITION BY lane ORDER BY ready_at, number) AS place
        FROM deliveries WHERE ready_at IS NOT NULL
    ) AS ranked WHERE deliveries.number = ranked.number;
    DROP INDEX deliveries_open;
    CREATE INDEX deliveries_open ON deliveries (lane, place)
        WHERE state IN ('pending', 'sending', 'uncertain');
    CREATE INDEX events_waiting ON inbound_events (id) WHERE state = 'queued';
    """,
    # 4: held events, further attempts of a turn, and the journal of calls with effects
    """
    DROP INDEX events_received;
    CREATE INDEX events_received ON inbound_events (platform, id)
        WHERE state IN ('received', 'held');
    CREATE INDEX events_of_lane ON inbound_events (lane) WHERE state IN ('held', 'queued');
    CREATE INDEX events_refused ON inbound_events (reason) WHERE state = 'refused';
    ALTER TABLE agent_runs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE records ADD COLUMN turn_id TEXT;
    UPDATE records SET turn_id = (
        SELECT e.turn_id FROM inbound_events AS e WHERE e.id = CAST(substr(records.batch, 7) AS INTEGER)
    ) WHERE batch GLOB 'input:*';
    CREATE INDEX records_of_turn ON records (turn_id) WHERE turn_id IS NOT NULL;
    CREATE TABLE tool_calls (
        effect_key TEXT NOT NULL PRIMARY KEY,
        turn_id TEXT NOT NULL,
        call_key TEXT NOT NULL,
        tool TEXT NOT NULL,
        read_only INTEGER NOT NULL,
        fence INTEGER NOT NULL,
        result TEXT,
        begun_at REAL NOT NULL,
        ended_at REAL
    ) WITHOUT ROWID;
    CREATE INDEX calls_of_turn ON tool_calls (turn_id);
    """,
    # 5: files on their way out
    """
    ALTER TABLE deliveries ADD COLUMN file TEXT;
    """,
    # 6: messages by the platform's own ids, what sessions are still to be told, channels that moved, buttons
    """
    ALTER TABLE inbound_events ADD COLUMN message_id TEXT;
    UPDATE inbound_events SET message_id = nullif(event ->> '$.message_id', '')
    WHERE json_valid(event) AND coalesce(event ->> '$.kind', 'message') = 'message'
      AND NOT coalesce(event ->> '$.edits', 0);
    CREATE INDEX events_of_message ON inbound_events (message_id, lane)
        WHERE message_id IS NOT NULL;
    CREATE INDEX events_noted ON inbound_events (session_id, id) WHERE state = 'noted';
    CREATE INDEX deliveries_by_name ON deliveries (native_id, lane) WHERE native_id <> '';
    CREATE TABLE channel_moves (
        platform TEXT NOT NULL,
        workspace TEXT NOT NULL,
        old TEXT NOT NULL,
        new TEXT NOT NULL,
        PRIMARY KEY (platform, workspace, old)
    ) WITHOUT ROWID;
    ALTER TABLE deliveries ADD COLUMN buttons TEXT;
    """,
    # 7: turns that wait for a person, what they wait for, and what need not be asked any more
    """
    ALTER TABLE agent_runs ADD COLUMN saved TEXT;
    CREATE INDEX runs_waiting ON agent_runs (id) WHERE state = 'waiting';
    CREATE TABLE approvals (
        id TEXT NOT NULL PRIMARY KEY,
        turn_id TEXT NOT NULL REFERENCES agent_runs (id),
        number INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        arguments TEXT NOT NULL,
        verdict TEXT NOT NULL DEFAULT 'open',
        asked_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        decided_at REAL,
        decided_by TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE INDEX approvals_open ON approvals (expires_at) WHERE verdict = 'open';
    CREATE INDEX approvals_of_turn ON approvals (turn_id, number);
    CREATE INDEX approvals_decided ON approvals (decided_by, decided_at) WHERE decided_by <> '';
    CREATE TABLE grants (
        conversation_id TEXT NOT NULL REFERENCES conversations (id),
        profile TEXT NOT NULL,
        tool TEXT NOT NULL,
        granted_at REAL NOT NULL,
        granted_by TEXT NOT NULL,
        PRIMARY KEY (conversation_id, profile, tool)
    ) WITHOUT ROWID;
    """,
    # 8: what turns used by model, and what was sent to models
    """
    CREATE TABLE turn_usage (
        turn_id TEXT NOT NULL,
        model TEXT NOT NULL,
        requests INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        reasoning_tokens INTEGER NOT NULL,
        cost REAL,
        PRIMARY KEY (turn_id, model)
    ) WITHOUT ROWID;
    INSERT INTO turn_usage SELECT id, '', requests, input_tokens, 0, output_tokens, 0, NULL
    FROM agent_runs WHERE requests + input_tokens + output_tokens > 0;
    ALTER TABLE agent_runs DROP COLUMN requests;
    ALTER TABLE agent_runs DROP COLUMN input_tokens;
    ALTER TABLE agent_runs DROP COLUMN output_tokens;
    CREATE TABLE model_calls (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL REFERENCES platform_sessions (id),
        turn_id TEXT NOT NULL,
        model TEXT NOT NULL,
        begun_at REAL NOT NULL,
        ended_at REAL NOT NULL,
        outcome TEXT NOT NULL,
        request_id TEXT NOT NULL,
        response_id TEXT NOT NULL,
        pieces TEXT
    );
    CREATE INDEX model_calls_of_turn ON model_calls (turn_id);
    CREATE INDEX calls_kept ON model_calls (session_id, turn_id) WHERE pieces IS NOT NULL;
    CREATE TABLE model_pieces (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES platform_sessions (id),
        number INTEGER NOT NULL,
        hash TEXT NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (session_id, number),
        UNIQUE (session_id, hash)
    );
    """,
    # 9: questions whose message has buttons, and by which event they were decided
    """
    ALTER TABLE approvals ADD COLUMN card TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN live INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE approvals ADD COLUMN event_id INTEGER;
    CREATE INDEX approvals_live ON approvals (verdict) WHERE live = 1;
    DROP INDEX approvals_decided;
    CREATE INDEX approvals_decided ON approvals (event_id) WHERE event_id IS NOT NULL;
    """,
    # 10: accounts of people and what they may, one-time codes, sessions that are set aside, and
    # what a session is told of questions that are taken back
    """
    CREATE TABLE identities (
        identity TEXT NOT NULL PRIMARY KEY,
        person TEXT NOT NULL,
        role TEXT NOT NULL DEFAULT '',
        label TEXT NOT NULL DEFAULT '',
        changed_by TEXT NOT NULL,
        changed_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX identities_of_person ON identities (person);
    CREATE TABLE codes (
        selector TEXT NOT NULL PRIMARY KEY,
        purpose TEXT NOT NULL,
        identity TEXT NOT NULL,
        address TEXT NOT NULL,
        salt TEXT NOT NULL,
        hash TEXT NOT NULL,
        label TEXT NOT NULL DEFAULT '',
        asked INTEGER NOT NULL DEFAULT 1,
        misses INTEGER NOT NULL DEFAULT 0,
        made_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        UNIQUE (purpose, identity)
    ) WITHOUT ROWID;
    CREATE INDEX codes_by_age ON codes (expires_at);
    CREATE TABLE attempts (
        actor TEXT NOT NULL PRIMARY KEY,
        failures INTEGER NOT NULL,
        since REAL NOT NULL,
        locked_until REAL NOT NULL DEFAULT 0,
        latest TEXT NOT NULL,
        found TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE sessions_with_titles (
        id TEXT NOT NULL PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations (id),
        profile TEXT NOT NULL,
        runtime TEXT NOT NULL,
        created_at REAL NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        current INTEGER NOT NULL DEFAULT 1,
        made_by INTEGER
    ) WITHOUT ROWID;
    INSERT INTO sessions_with_titles (id, conversation_id, profile, runtime, created_at)
    SELECT id, conversation_id, profile, runtime, created_at FROM platform_sessions;
    DROP TABLE platform_sessions;
    ALTER TABLE sessions_with_titles RENAME TO platform_sessions;
    CREATE UNIQUE INDEX current_session ON platform_sessions (conversation_id, profile, runtime)
        WHERE current = 1;
    CREATE INDEX sessions_of_conversation ON platform_sessions (conversation_id, profile, runtime);
    CREATE INDEX sessions_made_by ON platform_sessions (made_by) WHERE made_by IS NOT NULL;
    ALTER TABLE agent_runs ADD COLUMN withdrawn TEXT;
    CREATE INDEX runs_of_session ON agent_runs (session_id);
    ALTER TABLE agent_runs ADD COLUMN undone_by INTEGER;
    CREATE INDEX runs_undone ON agent_runs (undone_by) WHERE undone_by IS NOT NULL;
    """,
)

VERSION: Final = len(STEPS)
"""The schema that this dragoman writes; kept in the file as ``user_version``."""

OLDEST_SQLITE: Final = (3, 38, 0)
"""``->>`` on JSON, and ``RETURNING``."""
