"""Every bound and default, with its reason. Relations between them are asserted here.

A limit is enforced before anything is stored. What a user may change stands in `config.py`; its
default stands here.
"""

from __future__ import annotations

from typing import Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

# The log. 512 KiB fits the default message limits of every engine a log may live on.
FRAME_BYTES_MAX: Final = 512 * 1024
# A batch is closed well before the frame is full, so that its envelope always fits.
BATCH_BYTES_MAX: Final = 384 * 1024
# One append, one apply: past some thousands the gain is flat and timers wait for the batch.
BATCH_ITEMS_MAX: Final = 4_096
SEGMENT_BYTES_MAX: Final = 64 * 1024 * 1024
# Bytes on the log behind the last checkpoint that cause the next: a restart reads them, in about a second.
CHECKPOINT_BYTES: Final = 64 * 1024 * 1024
# Kept below the checkpoint so that the near past can be read and replayed.
LOG_HISTORY_BYTES: Final = 256 * 1024 * 1024
# Free space kept back for finishing accepted work: below it, new work is refused.
DISK_RESERVE_BYTES: Final = 128 * 1024 * 1024

# What one intent may carry. The log is not a blob store.
PAYLOAD_BYTES_MAX: Final = 256 * 1024
RESULT_BYTES_MAX: Final = 256 * 1024
TERMS_BYTES_MAX: Final = 64 * 1024
ID_CHARS_MAX: Final = 128
NAME_CHARS_MAX: Final = 256
KEY_CHARS_MAX: Final = 256
# A lane is named by its kind and two names at the most.
LANE_CHARS_MAX: Final = 2 * NAME_CHARS_MAX + 16
URL_CHARS_MAX: Final = 2_048
TAGS_MAX: Final = 32
TAG_CHARS_MAX: Final = 256
AFTER_MAX: Final = 1_000
# One parent's list rides in its own row, so it must stay small.
DEPENDENTS_MAX: Final = 10_000
# A group's members stand in nobody's list; cancelling them all is one record, and takes about a second.
GROUP_MEMBERS_MAX: Final = 100_000
# What one cancel of a tree may reach.
TREE_MAX: Final = GROUP_MEMBERS_MAX + DEPENDENTS_MAX
ERROR_CHARS_MAX: Final = 2_000
# Older entries are dropped from the middle: the first and the newest tell the story.
HISTORY_ENTRIES_MAX: Final = 64
# A time later than this is a mistake of units, not a plan. About the year 2286.
TIME_MS_MAX: Final = 10**13
PRIORITY_MAX: Final = 7 * 24 * 3_600

# Order by expected duration: an intent stands back by so many times its expected time. The more, the more the
# short ones gain and the long ones wait: at two, long ones are at most half later in all mixes we measured
# (docs/predictions.md), and what comes later than that can never pass.
EXPECTED_FACTOR: Final = 2
EXPECTED_MS_MAX: Final = HOUR_MS

# Predicted durations. Below so many, a sketch says nothing.
PREDICT_ENOUGH: Final = 5
PREDICT_FUNCTIONS_MAX: Final = 1_000
# The newest of a lane, replayed in another order; and rows read at a start to know the functions again.
PREDICT_RECENT_MAX: Final = 2_000
PREDICT_REBUILD_ROWS: Final = 5_000
# The model: how long a submit waits for its answer, after how many late ones it is left alone and how long,
# and when a dead one is started again.
PREDICT_ANSWER_MS: Final = 10
# Many are asked for in slices. Each row that it has to answer gives it more time than a row takes.
PREDICT_SLICE: Final = 500
PREDICT_ROWS_PER_MS: Final = 5
PREDICT_LATE_MAX: Final = 20
PREDICT_REST_MS: Final = 30 * SECOND_MS
PREDICT_RESTART_MS: Final = 10 * SECOND_MS
PREDICT_RESTART_MS_MAX: Final = 10 * MINUTE_MS
# Its training: from so many finished intents on, of so many at the most; how often it looks whether there is
# something new, and how often it learns anew from little.
TRAIN_ROWS_MIN: Final = 200
TRAIN_ROWS_MAX: Final = 50_000
TRAIN_LOOK_MS: Final = 5 * SECOND_MS
TRAIN_EVERY_MS: Final = 15 * MINUTE_MS

# Autoscaling: within which time a backlog should be done, unless it is said otherwise; and a number of
# workers that is rather a mistake.
AUTOSCALE_TARGET_S: Final = 60
AUTOSCALE_TARGET_S_MAX: Final = 24 * 3_600
AUTOSCALE_WORKERS_MAX: Final = 10_000
# The risk of what is ready while no worker is there: a number, so that metrics and alerts can carry it.
AUTOSCALE_RISK_MAX: Final = 1_000.0

# The name of a share, such as a tenant's, and how much more than another's it may be.
FAIRNESS_KEY_CHARS_MAX: Final = 128
FAIRNESS_WEIGHT_MAX: Final = 1_000

# Limits of rate and concurrency on one intent, and the largest number in one.
LIMITS_MAX: Final = 8
RATE_MAX: Final = 1_000_000

# Schedules. All of them are in every checkpoint, so they are some thousands and small.
SCHEDULES_MAX: Final = 10_000
SCHEDULE_ID_CHARS_MAX: Final = 96
SCHEDULE_PAYLOAD_BYTES_MAX: Final = 16 * 1024
CRON_CHARS_MAX: Final = 256
# As often as a cron rule at the most: each tick is an intent on the log. What must run more often is a loop
# inside a function.
EVERY_MS_MIN: Final = SECOND_MS
CATCH_UP_MAX: Final = 100
# A tick later than this has missed its time.
MISFIRE_MS: Final = 5 * SECOND_MS
# How soon a tick is tried again whose intent could not be taken.
TICK_RETRY_MS: Final = SECOND_MS

# Deliveries without an outcome, called or not, which health looks at one by one.
HELD_BACK_MAX: Final = 10_000
# A delivery that runs longer than this is looked at while it runs; a shorter one, when it ends.
LONG_RUN_MS: Final = SECOND_MS
# The newest pauses of a lane that are told apart from lateness.
PAUSES_KEPT: Final = 8

# Retry.
ATTEMPTS_MAX: Final = 10_000
ATTEMPTS_DEFAULT: Final = 5
RETRY_INITIAL_MS: Final = 1_000
RETRY_MAX_MS: Final = 60_000
RETRY_MULTIPLIER: Final = 2
RETRY_DELAY_MS_MAX: Final = 365 * DAY_MS
TIMEOUT_MS: Final = 30_000
LEASE_MS: Final = 30_000

# Clocks. A difference between the wall clock and the monotonic one that is a step, not drift: far above what
# NTP slews between two records, far below any lease.
LEAP_MS: Final = 250
# A leap ahead is not believed by retention, keys and schedules until the clock has stood there for so long:
# longer than an operator or NTP takes to put it right, short beside every retention.
LEAP_BELIEVED_MS: Final = HOUR_MS
# A smaller leap does not begin that time again: a clock that is nudged all the time is believed, too.
LEAP_RENEWS_MS: Final = MINUTE_MS
# While workers hold leases, the engine looks so often whether its event loop stood still, and calls it that
# when a look comes this much too late.
PULSE_MS: Final = 500
STALL_MS: Final = 500
# After a longer stall connections may be broken: workers get a whole lease to come back.
STALL_RENEWS_MS: Final = 5 * SECOND_MS

# Tiers: lateness window, timer slot (a small part of the window), delivery permits.
TIER_NAMES: Final = ("ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY")
TIER_WINDOW_MS: Final = (10, 50, 100, 500, 1_000)
TIER_SLOT_MS: Final = (1, 1, 10, 50, 100)
TIER_PERMITS: Final = (200, 150, 50, 50, 50)
PERMITS_MAX: Final = 100_000
# Intents that one record wakes: some 20 ms of work. What is due beyond that follows with the next record, so
# that others have their turn in between; the tiers share a record.
WAKES_MAX: Final = 2_000
# Ready intents that one record looks at to hand them out: some 20 ms of work, and more than one batch makes
# ready. Most records see far fewer; it bounds the work of a million that are past their deadline, or early
# because the clock was set back. Lanes and tiers take turns of so many.
HANDS_MAX: Final = 5_000
HANDS_TURN: Final = 500

# Admission and retention defaults.
PENDING_MAX: Final = 10_000_000
LANE_PENDING_MAX: Final = 5_000_000
ENTITY_PENDING_MAX: Final = 10_000
ENTITIES_MAX: Final = 1_000_000
PAST_TOLERANCE_MS: Final = 5_000
KEY_WINDOW_MS: Final = DAY_MS
RETENTION_MS: Final = 7 * DAY_MS
DEAD_LETTER_RETENTION_MS: Final = 30 * DAY_MS
RETENTION_COUNT: Final = 10_000_000

# Intents that wake within the horizon are held in memory; the rest is on disk only.
HORIZON_MS: Final = 5 * MINUTE_MS
# Large payloads in memory: those of intents that are due soon, run, or are not in the store yet. At this many
# bytes no more large ones are taken, small ones are. Smaller payloads are bounded by the number of intents.
LARGE_PAYLOAD_BYTES: Final = 4 * 1024
LARGE_PAYLOADS_BYTES_MAX: Final = 512 * 1024 * 1024
# While they have half of that, intents come into memory only this long before they wake.
LARGE_HORIZON_MS: Final = 2 * SECOND_MS
# An ASYNC write reaches the medium within this time: what power loss may cost.
FLUSH_MS: Final = 1_000
BATCH_DEFERRED_MS: Final = 50

# A checkpoint comes early once it would free so many intents from memory.
CHECKPOINT_CHANGES: Final = 100_000
# Bytes of rows that it writes at once: they are in memory twice meanwhile, with SQLite's copy.
CHECKPOINT_WRITE_BYTES: Final = 8 * 1024 * 1024

# The server.
HTTP_PORT: Final = 7928
GRPC_PORT: Final = 7929
URL_DEFAULT: Final = f"http://localhost:{HTTP_PORT}"
# A batch create of thousands of usual intents fits; a single one always does.
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
# A request that is not about many: the largest intent fits, however it is written.
REQUEST_ONE_BYTES_MAX: Final = 1024 * 1024
REQUESTS_MAX: Final = 1_000
BATCH_CREATE_MAX: Final = 10_000
PAGE_MAX: Final = 500
PAGE_DEFAULT: Final = 50
# Bytes of one look for a page: intents may be large, and a page that nobody reads waits in memory.
PAGE_BYTES_MAX: Final = 8 * 1024 * 1024
# Transitions kept for listeners that come back, and their bytes. Bytes handed to one listener at a time: one
# that does not read costs no more than that. How long a watch over gRPC may leave them unread.
EVENTS_KEPT: Final = 10_000
EVENTS_BYTES_MAX: Final = 32 * 1024 * 1024
EVENTS_SENT_BYTES: Final = 64 * 1024
WATCH_UNREAD_MS: Final = 30 * SECOND_MS
# How often one request for a filtered page looks further, each time through some ten thousand rows: about two
# seconds of the archive's thread, which others use in between. A page that is not full then says so.
PAGE_LOOKS_MAX: Final = 40
# What a stranger may have of the server before it knows who asks: bytes of a request's head, time for the TLS
# handshake, for the first request's head and for a whole request, connections. Files are kept back for the
# log, the store and the calls out.
HEAD_BYTES_MAX: Final = 64 * 1024
HANDSHAKE_MS: Final = 10 * SECOND_MS
FIRST_REQUEST_MS: Final = 10 * SECOND_MS
REQUEST_MS: Final = MINUTE_MS
CONNECTIONS_MAX: Final = 20_000
FILES_RESERVED: Final = 1_024
# One remote address gets half of a listener's connections: a proxy in front is one address.
CONNECTIONS_PER_ADDRESS_SHARE: Final = 2
# Connections that wait to be accepted; how many are accepted before others have their turn; how long nothing
# is accepted when the process has no files; how long a TLS connection may take to say goodbye.
BACKLOG: Final = 2_048
ACCEPTED_AT_ONCE: Final = 32
ACCEPT_PAUSE_MS: Final = 100
CLOSE_MS: Final = 5 * SECOND_MS
# Bytes of requests that are held until they are answered; one address, or one token, gets half of them. What
# is more is refused while it comes in. At least four of the largest requests fit.
HELD_BYTES_MAX: Final = 128 * 1024 * 1024
HELD_REQUESTS_MIN: Final = 4
# A client that does not read its answers is cut: after this time, unless it has read this many bytes in it.
UNREAD_MS: Final = 30 * SECOND_MS
UNREAD_BYTES_MIN: Final = 64 * 1024
# Answers larger than this count until they are read. They go out in pieces: few, because each costs a pass of
# the loop.
ANSWER_COUNTED_BYTES: Final = 256 * 1024
ANSWER_PIECE_BYTES: Final = 1024 * 1024
# Bytes of counted answers that may wait to be read; one token gets half of them.
UNREAD_BYTES_MAX: Final = 256 * 1024 * 1024
# Of the requests under way, and of gRPC streams, one token may have three in four: a flood of one leaves
# room for the others.
REQUESTS_SHARE: Final = (3, 4)
# Refused connections: how long health shows the last one, and how often the log tells of them.
REFUSALS_SHOWN_MS: Final = 10 * SECOND_MS
REFUSALS_LOGGED_MS: Final = MINUTE_MS
# How long a stop waits for answers to be read and streams to end: what is under way out there needs the rest.
ANSWERS_MS: Final = 3 * SECOND_MS
# How long a request id keeps its answer.
REQUEST_ID_MS: Final = 15 * MINUTE_MS

# Webhooks. The callbacks of one host hold at most so many times the permits of a tier that are free: alone
# four fifths, so that however many hosts hang, something is left for the next one.
HOST_SHARE: Final = 4
CONNECTIONS_PER_HOST: Final = 100
CALLBACK_BATCH_MAX: Final = 200
CALLBACK_LINGER_MS: Final = (2, 5, 10, 50, 100)
RESPONSE_BYTES_MAX: Final = 256 * 1024
# Endpoints whose newest call failed, over all hosts; the one that failed longest ago is forgotten first.
ENDPOINTS_MAX: Final = 4_096

# gRPC. Calls and streams of one connection at a time; streams of transitions and deliveries of all of them.
GRPC_STREAMS_PER_CONNECTION: Final = 1_000
GRPC_STREAMS_MAX: Final = 10_000
# How long a gRPC connection may be without a call: strangers must not keep others out. Clients reconnect by
# themselves.
GRPC_IDLE_MS: Final = MINUTE_MS
# gRPC messages that are read at one time, and of them those of one token: each has up to request_bytes_max.
GRPC_READING_MAX: Final = 32
GRPC_READING_PER_TOKEN: Final = 8
# Of strangers, whose messages are small and come with the call: the next one takes the place of the oldest.
GRPC_READING_OPEN: Final = 8
# Calls whose message has not been read: each costs up to the window of its stream, 64 KiB.
GRPC_UNREAD_MAX: Final = 2_000
# Calls that need no token, at one time and of each kind (health, its watches, reflection).
GRPC_OPEN_CALLS_MAX: Final = 64
# Deliveries in one message, and their bytes: hundreds together cost little more than one alone, and a client
# takes 4 MiB unless it says otherwise.
DELIVERIES_MAX: Final = 500
DELIVERIES_BYTES_MAX: Final = 1024 * 1024
ACKS_MAX: Final = 10_000
# Credits of one connection together with what it holds: what a server may have to keep in mind for it.
CREDITS_MAX: Final = 10_000
# Streams and queues one connection may ask for.
SOURCES_MAX: Final = 100
# Earlier connections of a client whose deliveries it may still settle: it reconnects after each restart of
# the server, and a lease does not outlive more than a few of those.
EARLIER_NAMES_MAX: Final = 8
# How often open streams look whether their tokens still stand: a revoked one ends within this time.
REVOCATION_MS: Final = 1_000
HEARTBEAT_MS: Final = 10_000
# A worker's threads for plain functions follow its concurrency up to here: each costs memory and switches.
WORKER_THREADS_MAX: Final = 256
WORKER_CONCURRENCY: Final = 100
# What an attempt logs rides in its intent's row: the newest lines are kept.
ATTEMPT_LOG_LINES_MAX: Final = 200
ATTEMPT_LOG_BYTES_MAX: Final = 16 * 1024
# How often a worker says how far its functions are, of how many in one message, and how long a note may be.
PROGRESS_MS: Final = 500
PROGRESS_MAX: Final = 1_000
NOTE_CHARS_MAX: Final = 200
# Functions one worker may list, and the bytes of what is said about one of them.
FUNCTIONS_MAX: Final = 1_000
FUNCTION_BYTES_MAX: Final = 32 * 1024
# A function's schema, with what it refers to in its place: values in it, and how deep they are nested.
# Payloads are checked on the event loop, at about 15 ns for each pair of a value and a comparison.
SCHEMA_NODES_MAX: Final = 5_000
SCHEMA_DEPTH_MAX: Final = 64
# Comparisons for one payload: 15 ms. What may take more is not checked.
SCHEMA_COST_MAX: Final = 1_000_000
# Up to here it is also told what is wrong and where, which takes a thousand times as long as to find out.
SCHEMA_COST_TOLD_MAX: Final = 10_000
# What a pattern costs for each byte, and how large one may become: it is matched in linear time.
PATTERN_COST: Final = 16
PATTERN_BYTES_MAX: Final = 16 * 1024
# A server remembers so many, also of workers that left.
FUNCTIONS_KEPT: Final = 10_000

assert HANDS_MAX > BATCH_ITEMS_MAX, "what comes with every frame is handed out with it"
assert BATCH_BYTES_MAX + PAYLOAD_BYTES_MAX // 4 < FRAME_BYTES_MAX, "a full batch fits a frame"
assert PAYLOAD_BYTES_MAX + TERMS_BYTES_MAX + AFTER_MAX * (ID_CHARS_MAX + 3) + 16 * 1024 < FRAME_BYTES_MAX, (
    "one intent always fits a frame"
)
assert 2 * FRAME_BYTES_MAX <= REQUEST_ONE_BYTES_MAX <= REQUEST_BYTES_MAX, "one intent always fits a request"
assert DELIVERIES_BYTES_MAX + PAYLOAD_BYTES_MAX + TERMS_BYTES_MAX < 4 * 1024 * 1024, (
    "every client can read it"
)
assert 3 * HEARTBEAT_MS <= LEASE_MS, "two heartbeats may be lost"
assert SCHEDULE_ID_CHARS_MAX + 32 <= ID_CHARS_MAX, "a tick's id is its schedule's and a time"
assert FRAME_BYTES_MAX < SEGMENT_BYTES_MAX, "one frame always fits a segment"
assert len(TIER_NAMES) == len(TIER_WINDOW_MS) == len(TIER_SLOT_MS) == len(TIER_PERMITS)
assert all(8 * slot <= window for slot, window in zip(TIER_SLOT_MS, TIER_WINDOW_MS, strict=True)), (
    "waking at the end of a slot costs at most an eighth of the window"
)
