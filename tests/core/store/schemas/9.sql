PRAGMA user_version = 9;
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
    , attempt INTEGER NOT NULL DEFAULT 1, saved TEXT) WITHOUT ROWID;
INSERT INTO "agent_runs" VALUES('turn_1','sess_1','succeeded',1,'old',100.0,1.0,2.0,NULL,'',1,NULL);
INSERT INTO "agent_runs" VALUES('turn_2','sess_1','running',1,'old',100.0,2.0,NULL,NULL,'',1,NULL);
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
    , card TEXT NOT NULL DEFAULT '', live INTEGER NOT NULL DEFAULT 0, event_id INTEGER) WITHOUT ROWID;
INSERT INTO "approvals" VALUES('0123abcd','turn_1',0,'call_1','look','{}','approved',1.0,3.0,2.0,'stub:7','','',0,NULL);
CREATE TABLE channel_moves (
        platform TEXT NOT NULL,
        workspace TEXT NOT NULL,
        old TEXT NOT NULL,
        new TEXT NOT NULL,
        PRIMARY KEY (platform, workspace, old)
    ) WITHOUT ROWID;
INSERT INTO "channel_moves" VALUES('stub','','8','9');
CREATE TABLE component_values (
        component TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (component, name)
    ) WITHOUT ROWID;
INSERT INTO "component_values" VALUES('memories.notes','a','1');
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
INSERT INTO "conversation_keys" VALUES('stub','','1','','','conv_1');
CREATE TABLE conversations (
        id TEXT NOT NULL PRIMARY KEY,
        created_at REAL NOT NULL
    ) WITHOUT ROWID;
INSERT INTO "conversations" VALUES('conv_1',1.0);
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
    , place INTEGER, file TEXT, buttons TEXT);
INSERT INTO "deliveries" VALUES(1,'shown','turn_1',0,'["stub","","1",""]','{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"}','','delivered','one','one','41',0,'',1.0,1.0,1,NULL,NULL);
INSERT INTO "deliveries" VALUES(2,'streaming','turn_2',0,'["stub","","1",""]','{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"}','','sending',NULL,'so f','42',0,'',1.0,NULL,NULL,NULL,NULL);
INSERT INTO "deliveries" VALUES(3,'later',NULL,0,'["stub","","1",""]','{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"}','','pending','second',NULL,'',0,'',1.0,20.0,4,'{"id":"file_1","name":"a.txt","mime":"text/plain","kind":"file","size":1}',NULL);
INSERT INTO "deliveries" VALUES(4,'sooner',NULL,0,'["stub","","1",""]','{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"}','','pending','first',NULL,'',0,'',1.0,10.0,2,NULL,NULL);
INSERT INTO "deliveries" VALUES(5,'sooner too',NULL,0,'["stub","","1",""]','{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"}','','uncertain','first again',NULL,'',0,'',1.0,10.0,3,NULL,NULL);
CREATE TABLE grants (
        conversation_id TEXT NOT NULL REFERENCES conversations (id),
        profile TEXT NOT NULL,
        tool TEXT NOT NULL,
        granted_at REAL NOT NULL,
        granted_by TEXT NOT NULL,
        PRIMARY KEY (conversation_id, profile, tool)
    ) WITHOUT ROWID;
INSERT INTO "grants" VALUES('conv_1','default','look',2.0,'stub:7');
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
        item TEXT, message_id TEXT,
        UNIQUE (platform, native_id)
    );
INSERT INTO "inbound_events" VALUES(1,'stub','1','["stub","","1",""]','answered',1.0,'{"native_id":"1","address":{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"},"sender":{"id":"7","name":"Ada","bot":false},"text":"message 1","sent_at":"2026-01-01T00:00:00+00:00","message_id":"1","addressed":true}','owners','','sess_1','turn_1','transcript',NULL,'1');
INSERT INTO "inbound_events" VALUES(2,'stub','2','["stub","","1",""]','adopted',2.0,'{"native_id":"2","address":{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"},"sender":{"id":"7","name":"Ada","bot":false},"text":"message 2","sent_at":"2026-01-01T00:00:00+00:00","message_id":"2","addressed":true}','owners','','sess_1','turn_2','transcript','"item 2"','2');
INSERT INTO "inbound_events" VALUES(3,'stub','3','["stub","","1",""]','queued',3.0,'{"native_id":"3","address":{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"},"sender":{"id":"7","name":"Ada","bot":false},"text":"message 3","sent_at":"2026-01-01T00:00:00+00:00","message_id":"3","addressed":true}','owners','','sess_1',NULL,'transcript','"item 3"','3');
INSERT INTO "inbound_events" VALUES(4,'stub','4','["stub","","1",""]','received',4.0,'{"native_id":"4","address":{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"},"sender":{"id":"7","name":"Ada","bot":false},"text":"message 4","sent_at":"2026-01-01T00:00:00+00:00","message_id":"4","addressed":true}','','',NULL,NULL,'',NULL,'4');
INSERT INTO "inbound_events" VALUES(5,'stub','5','["stub","","1",""]','ignored',5.0,'{"native_id":"5","address":{"platform":"stub","workspace":"","channel":"1","thread":"","place":"dm"},"sender":{"id":"7","name":"Ada","bot":false},"text":"message 5","sent_at":"2026-01-01T00:00:00+00:00","message_id":"5","addressed":true}','','not addressed',NULL,NULL,'',NULL,'5');
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
INSERT INTO "model_calls" VALUES(1,'call_1','sess_1','turn_1','large',1.0,2.0,'completed','','','[[0,0]]');
CREATE TABLE model_pieces (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES platform_sessions (id),
        number INTEGER NOT NULL,
        hash TEXT NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (session_id, number),
        UNIQUE (session_id, hash)
    );
INSERT INTO "model_pieces" VALUES(1,'sess_1',0,'hash','[]');
CREATE TABLE platform_sessions (
        id TEXT NOT NULL PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations (id),
        profile TEXT NOT NULL,
        runtime TEXT NOT NULL,
        created_at REAL NOT NULL,
        UNIQUE (conversation_id, profile, runtime)
    ) WITHOUT ROWID;
INSERT INTO "platform_sessions" VALUES('sess_1','conv_1','default','echo',1.0);
CREATE TABLE records (
        session_id TEXT NOT NULL REFERENCES platform_sessions (id),
        namespace TEXT NOT NULL,
        generation INTEGER NOT NULL,
        number INTEGER NOT NULL,
        batch TEXT NOT NULL,
        item TEXT, turn_id TEXT,
        PRIMARY KEY (session_id, namespace, generation, number)
    ) WITHOUT ROWID;
INSERT INTO "records" VALUES('sess_1','transcript',1,1,'input:0','"forgotten"',NULL);
INSERT INTO "records" VALUES('sess_1','transcript',2,0,'clear',NULL,NULL);
INSERT INTO "records" VALUES('sess_1','transcript',2,1,'input:1','"item 1"','turn_1');
INSERT INTO "records" VALUES('sess_1','transcript',2,2,'answer:1','"answer 1"',NULL);
INSERT INTO "records" VALUES('sess_1','transcript',2,3,'input:2','"item 2"','turn_2');
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
INSERT INTO "tool_calls" VALUES('effect_1','turn_1','call_1','look',1,1,'"seen"',1.0,2.0);
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
INSERT INTO "turn_usage" VALUES('turn_1','',1,10,0,20,0,NULL);
CREATE INDEX events_queued ON inbound_events (session_id, id) WHERE state = 'queued';
CREATE INDEX events_of_turn ON inbound_events (turn_id) WHERE turn_id IS NOT NULL;
CREATE UNIQUE INDEX one_turn_per_session ON agent_runs (session_id)
        WHERE state IN ('running', 'waiting');
CREATE INDEX runs_open ON agent_runs (owner) WHERE state = 'running';
CREATE VIEW turn_inputs AS
        SELECT turn_id, id AS event_id FROM inbound_events WHERE turn_id IS NOT NULL;
CREATE INDEX deliveries_of_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX records_of_batch ON records (batch);
CREATE INDEX deliveries_open ON deliveries (lane, place)
        WHERE state IN ('pending', 'sending', 'uncertain');
CREATE INDEX events_waiting ON inbound_events (id) WHERE state = 'queued';
CREATE INDEX events_received ON inbound_events (platform, id)
        WHERE state IN ('received', 'held');
CREATE INDEX events_of_lane ON inbound_events (lane) WHERE state IN ('held', 'queued');
CREATE INDEX events_refused ON inbound_events (reason) WHERE state = 'refused';
CREATE INDEX records_of_turn ON records (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX calls_of_turn ON tool_calls (turn_id);
CREATE INDEX events_of_message ON inbound_events (message_id, lane)
        WHERE message_id IS NOT NULL;
CREATE INDEX events_noted ON inbound_events (session_id, id) WHERE state = 'noted';
CREATE INDEX deliveries_by_name ON deliveries (native_id, lane) WHERE native_id <> '';
CREATE INDEX runs_waiting ON agent_runs (id) WHERE state = 'waiting';
CREATE INDEX approvals_open ON approvals (expires_at) WHERE verdict = 'open';
CREATE INDEX approvals_of_turn ON approvals (turn_id, number);
CREATE INDEX model_calls_of_turn ON model_calls (turn_id);
CREATE INDEX calls_kept ON model_calls (session_id, turn_id) WHERE pieces IS NOT NULL;
CREATE INDEX approvals_live ON approvals (verdict) WHERE live = 1;
CREATE INDEX approvals_decided ON approvals (event_id) WHERE event_id IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('inbound_events',5);
INSERT INTO "sqlite_sequence" VALUES('deliveries',5);
