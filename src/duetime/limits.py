"""Every bound and default, with its reason. Relations between them are asserted here.

A limit is enforced before anything is stored. The settings that users can change are in `settings.py`, and
their defaults are here.
"""

from __future__ import annotations

from typing import Final

MS_NS: Final = 1_000_000
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

# The log. 512 KiB fits the default message limits of every system that can store a log.
FRAME_BYTES_MAX: Final = 512 * 1024
# A batch is closed well before the frame is full, so that the header always fits.
BATCH_BYTES_MAX: Final = 384 * 1024
# Larger batches gain nothing and delay the timers.
BATCH_ITEMS_MAX: Final = 4_096
SEGMENT_BYTES_MAX: Final = 64 * 1024 * 1024
# With this many bytes of log after the last checkpoint, the next one starts. A restart reads them in about a
# second.
CHECKPOINT_BYTES: Final = 64 * 1024 * 1024
# Log kept before the checkpoint, so that the recent past can be read and replayed.
LOG_HISTORY_BYTES: Final = 256 * 1024 * 1024
# Free disk space reserved for accepted work. With less, new work is refused.
DISK_RESERVE_BYTES: Final = 128 * 1024 * 1024
# With less free space, the disk counts as full: SQLite may fail to create its small files without reporting
# it.
DISK_FULL_BYTES: Final = 1024 * 1024
# How soon a full disk is checked again. How long a closing engine tries to write outcomes to it; deliveries
# without a written outcome are repeated later.
DISK_FULL_RETRY_S: Final = 0.5
CLOSE_FLUSH_MS_MAX: Final = 5 * SECOND_MS
# When a file of the log grows, each sync also writes its new length. Growing in large steps makes that rare.
ALLOCATE_BYTES: Final = 8 * 1024 * 1024
# Bytes of one read: large enough for few calls in a long read, small enough to save memory in a short one. A
# frame always fits.
LOG_READ_BYTES: Final = 4 * 1024 * 1024
BACKUP_READ_BYTES: Final = 4 * 1024 * 1024
# Attempts to copy, or to check, a log that its running engine trims in the meantime.
BACKUP_TRIES_MAX: Final = 5
AUDIT_TRIES_MAX: Final = 5
# Segments that an inspection holds open: the process needs other files, too.
INSPECTED_SEGMENTS_MAX: Final = 256
# Bytes read of the files `lock` and `id`. Both are shorter.
LOCK_NOTE_BYTES_MAX: Final = 4 * 1024
LOG_ID_BYTES_MAX: Final = 64
# How often a writer in doubt reads again before it gives up.
DOUBTS_MAX: Final = 3
# Bytes of the log that a recovery reads before the event loop gets a turn, so that a server can answer that
# it is not ready yet.
RECOVERY_TURN_BYTES: Final = 64 * 1024

# The size of one intent. The log is not a blob store.
PAYLOAD_BYTES_MAX: Final = 256 * 1024
RESULT_BYTES_MAX: Final = 256 * 1024
TERMS_BYTES_MAX: Final = 64 * 1024
# What the id of a webhook about an end has besides the id of the intent: `.end` and a number.
END_CALL_ID_CHARS: Final = 24
ID_CHARS_MAX: Final = 128
NAME_CHARS_MAX: Final = 256
KEY_CHARS_MAX: Final = 256
# The name of a lane consists of its kind and at most two names.
LANE_CHARS_MAX: Final = 2 * NAME_CHARS_MAX + 16
URL_CHARS_MAX: Final = 2_048
TAGS_MAX: Final = 32
TAG_CHARS_MAX: Final = 256
# Headers travel with an intent to the function that runs it. They are metadata, so they stay small.
INTENT_HEADERS_MAX: Final = 32
HEADER_NAME_CHARS_MAX: Final = 128
HEADER_CHARS_MAX: Final = 4_096
AFTER_MAX: Final = 1_000
# The list of dependents is part of the parent's row, so it must stay small.
DEPENDENTS_MAX: Final = 10_000
# The members of a group are in no list. Cancelling all of them is one record and takes about a second.
GROUP_MEMBERS_MAX: Final = 100_000
# Results for an intent are copied from its dependencies into its row when it is released, in one record.
HANDED_BYTES_MAX: Final = 512 * 1024
HANDED_PARENTS_MAX: Final = 10_000
# The number of intents that one cancel of a tree can reach.
TREE_MAX: Final = GROUP_MEMBERS_MAX + DEPENDENTS_MAX
ERROR_CHARS_MAX: Final = 2_000
ERROR_KIND_CHARS_MAX: Final = 64
# When the history is full, entries in the middle are dropped; the first and the newest are kept.
HISTORY_ENTRIES_MAX: Final = 64
# A later time is a mistake of units. About the year 2286.
TIME_MS_MAX: Final = 10**13
PRIORITY_MAX: Final = 7 * 24 * 3_600

# Order by expected duration: an intent is moved back by this multiple of its expected duration. A larger
# factor helps short intents and delays long ones. With 2, long intents took at most 1.5 times as long in all
# measured mixes (docs/predictions.md), and no intent that is due after this delay can overtake.
EXPECTED_FACTOR: Final = 2
EXPECTED_MS_MAX: Final = HOUR_MS

# Predicted durations. A sketch with fewer samples makes no prediction.
PREDICT_ENOUGH: Final = 5
# With this many samples, a sketch halves its counts, so that new samples have more weight.
SKETCH_SAMPLES_KEPT: Final = 8_192
PREDICT_FUNCTIONS_MAX: Final = 1_000
# Functions in the answer of /v1/predictions. The others are counted.
PREDICT_SHOWN_MAX: Final = 200
# Newest intents of a lane that are simulated in another order; rows read at startup to rebuild the sketches.
PREDICT_RECENT_MAX: Final = 2_000
PREDICT_REBUILD_ROWS: Final = 5_000
# The model: how long a submit waits for its prediction; the number of late predictions after which the model
# is paused, and for how long; the delay before a dead model process is restarted.
PREDICT_ANSWER_MS: Final = 10
# Large requests are sent in slices. The time limit grows with the number of rows, by more than a row needs.
PREDICT_SLICE: Final = 500
PREDICT_ROWS_PER_MS: Final = 5
PREDICT_LATE_MAX: Final = 20
PREDICT_REST_MS: Final = 30 * SECOND_MS
PREDICT_RESTART_MS: Final = 10 * SECOND_MS
PREDICT_RESTART_MS_MAX: Final = 10 * MINUTE_MS
# The longest line from the model's process: scores of some hundred functions. How long a stopped process may
# take to end.
PREDICT_LINE_BYTES_MAX: Final = 4 * 1024 * 1024
PREDICT_STOP_S: Final = 2.0
# Features of a payload: of a larger one only the size is used, because parsing it would cost too much. Beyond
# this depth, payloads count as equally deep.
FEATURES_PAYLOAD_BYTES_MAX: Final = 16 * 1024
FEATURES_DEPTH_MAX: Final = 8
# If more intents than this wait, the number ahead is estimated from the order of acceptance instead of
# counted.
ETA_COUNTED_MAX: Final = 20_000
# Training: minimum and maximum number of finished intents; how often to check for new ones, and how often to
# train again if there are only a few.
TRAIN_ROWS_MIN: Final = 200
TRAIN_ROWS_MAX: Final = 50_000
TRAIN_LOOK_MS: Final = 5 * SECOND_MS
TRAIN_EVERY_MS: Final = 15 * MINUTE_MS
# The number of names that the trees distinguish, and of names with a score of their own. All other names are
# one category.
TRAIN_NAMES_MAX: Final = 250
TRAIN_SCORES_MAX: Final = 200

# Autoscaling: the default and the maximum target time for a backlog; more workers than this is a mistake.
AUTOSCALE_TARGET_S: Final = 60
AUTOSCALE_TARGET_S_MAX: Final = 24 * 3_600
AUTOSCALE_WORKERS_MAX: Final = 10_000
# The risk if work is ready and there is no worker. A number, because metrics and alerts need one.
AUTOSCALE_RISK_MAX: Final = 1_000.0
# The assumed duration of a delivery while none was measured.
ASSUMED_MS: Final = 100.0
# The maximum rate of one engine in deliveries per second, regardless of permits.
ENGINE_RATE_MAX: Final = 10_000.0

# The length of a fairness key, such as the name of a tenant, and its maximum weight.
FAIRNESS_KEY_CHARS_MAX: Final = 128
FAIRNESS_WEIGHT_MAX: Final = 1_000

# Number of limits (rate and concurrency) of one intent, and the largest value in a limit.
LIMITS_MAX: Final = 8
RATE_MAX: Final = 1_000_000
# Parked intents that return at one wake-up. The rest follows with the next record.
PARKED_WAKES_MAX: Final = 1_000
# Names in one sentence of a reason. The data has all of them.
REASON_NAMES_MAX: Final = 5

# Schedules. Every checkpoint contains all of them, so they must be few and small.
SCHEDULES_MAX: Final = 10_000
SCHEDULE_ID_CHARS_MAX: Final = 96
SCHEDULE_PAYLOAD_BYTES_MAX: Final = 16 * 1024
CRON_CHARS_MAX: Final = 256
# Dates that a schedule leaves out: the holidays of some years.
SKIP_DATES_MAX: Final = 400
# Ticks of one backfill: they are written together.
BACKFILL_TICKS_MAX: Final = 1_000
# The name of a program, which is part of the source of its schedules.
PROGRAM_CHARS_MAX: Final = 28
# Each tick is an intent on the log. For a shorter interval, use a loop inside a function.
EVERY_MS_MIN: Final = SECOND_MS
CATCH_UP_MAX: Final = 100
# A tick that is later than this is a misfire.
MISFIRE_MS: Final = 5 * SECOND_MS
# The delay before a tick is retried if its intent was refused.
TICK_RETRY_MS: Final = SECOND_MS
# A rule without a tick in this time has none at all: the 29th of February on a given day of the week comes
# again after at most 40 years.
CALENDAR_DAYS_MAX: Final = 41 * 366
# Ticks that are computed one by one, to find those that were missed.
CALENDAR_TICKS_MAX: Final = 3 * CATCH_UP_MAX
# Next ticks in one answer, by default and at most.
NEXT_TICKS_DEFAULT: Final = 5
NEXT_TICKS_MAX: Final = 100
# The number of ticks from which the interval of a cron rule is estimated, and the number of cached rules.
CRON_TICKS: Final = 5
CRONS_KEPT: Final = 4_096

# Running deliveries that the health check inspects one by one.
HELD_BACK_MAX: Final = 10_000
# A delivery that runs longer than this is measured while it runs; a shorter one when it ends.
LONG_RUN_MS: Final = SECOND_MS
# Starts of deliveries that are remembered to measure them. Beyond this number, the oldest are dropped.
METERED_STARTS_MAX: Final = 200_000
# "Now" in metrics is the last few minutes: long enough to be steady, short enough to be current.
METER_SLICE_MS: Final = 10 * SECOND_MS
METER_SLICES_KEPT: Final = 18
METER_RECENT_MS: Final = METER_SLICES_KEPT * METER_SLICE_MS
# Lanes that are listed one by one: those with the most work. The rest is summed up.
LANES_SHOWN_MAX: Final = 100
# Current deliveries that are examined to count borrowed permits.
BORROWED_COUNTED_MAX: Final = 20_000
# Slots of a timeline: the maximum is more than a screen has columns.
TIMELINE_SLOTS_DEFAULT: Final = 60
TIMELINE_SLOTS_MAX: Final = 500
# Intents with a status that only their history shows. Beyond this number, the rest counts as due.
OPEN_COUNTED_MAX: Final = 200_000
# Intents in memory that one search compares. A larger search passes over the memory several times.
SEARCH_MAX: Final = 10_000
# Rows that are examined for one answer: some tens of milliseconds of SQLite's time, none of the event loop's.
ARCHIVE_ROWS_MAX: Final = 50_000
# The number of pauses of a lane that are remembered, because they do not count as lateness.
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

# Clocks. A difference between wall clock and monotonic clock that counts as a step and not as drift: far more
# than NTP adjusts between two records, far less than any lease.
LEAP_MS: Final = 250
# Retention, keys and schedules ignore a leap ahead until the clock has kept the new time for this long:
# longer than an operator or NTP needs to correct a mistake, shorter than every retention.
LEAP_BELIEVED_MS: Final = HOUR_MS
# A smaller leap does not restart that time, so frequent small corrections of the clock do no harm.
LEAP_RENEWS_MS: Final = MINUTE_MS
# The longest sleep of the alarm. After a change of the wall clock that the system does not report, the alarm
# is late by at most this much.
ALARM_CHECK_S: Final = 30.0
# While workers hold leases, the engine checks at this interval whether its event loop was blocked; a check
# that is late by this much shows that it was.
PULSE_MS: Final = 500
STALL_MS: Final = 500
# After a longer stall, connections may be broken: leases start again, so that workers can reconnect.
STALL_RENEWS_MS: Final = 5 * SECOND_MS

# Tiers: lateness window, timer slot (a small part of the window), delivery permits.
TIER_NAMES: Final = ("ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY")
TIER_WINDOW_MS: Final = (10, 50, 100, 500, 1_000)
TIER_SLOT_MS: Final = (1, 1, 10, 50, 100)
TIER_PERMITS: Final = (200, 150, 50, 50, 50)
PERMITS_MAX: Final = 100_000
# Intents that one record wakes: about 20 ms of work. The next record wakes the rest, and other commands run
# in between. The tiers share this number.
WAKES_MAX: Final = 2_000
# Ready intents that one record checks for delivery: about 20 ms of work, and more than one batch makes ready.
# Most records check far fewer. The bound matters when a million intents are past their deadline, or early
# because the clock was set back. Lanes and tiers take turns of HANDS_TURN.
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
# Request ids that are remembered per intent: enough for callers that repeat requests concurrently.
REQUEST_IDS_KEPT: Final = 8
# Parts of a submit: the items and bytes of one record. Other records can be written between two parts.
CHUNK_ITEMS_MAX: Final = 1_000
CHUNK_BYTES_MAX: Final = BATCH_BYTES_MAX // 2

# Caches. Terms that many intents share: their number, and their bytes, because some contain the whole body of
# a callback. A full cache is cleared.
TERMS_KEPT: Final = 4_096
TERMS_KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
# Terms with a longer JSON text are encoded each time.
TERMS_JSON_BYTES_MAX: Final = 4 * 1024
# Terms that one connection of a worker remembers, at both ends.
CONNECTION_TERMS_KEPT: Final = 1_024
# Keys that are known to be absent from the store.
ABSENT_KEYS_KEPT: Final = 4_096

# Intents that wake within the horizon are in memory; the others are only on disk.
HORIZON_MS: Final = 5 * MINUTE_MS
# Intents that are loaded before the event loop gets a turn: a few milliseconds of work, then a rest of equal
# length.
HORIZON_ROWS_MAX: Final = 250
HORIZON_REST_S: Final = 0.002
# Payloads of at least LARGE_PAYLOAD_BYTES in memory: of intents that are due soon, running, or not in the
# store yet. Beyond LARGE_PAYLOADS_BYTES_MAX in total, new large payloads are refused. Small payloads are
# bounded by the number of intents.
LARGE_PAYLOAD_BYTES: Final = 4 * 1024
LARGE_PAYLOADS_BYTES_MAX: Final = 512 * 1024 * 1024
# While large payloads use half of that, the horizon is only this long.
LARGE_HORIZON_MS: Final = 2 * SECOND_MS
# An ASYNC write is synced within this time. Power loss may lose this much.
FLUSH_MS: Final = 1_000
BATCH_DEFERRED_MS: Final = 50

# With this many changed intents, a checkpoint starts early to free memory.
CHECKPOINT_CHANGES: Final = 100_000
# Bytes of rows that a checkpoint writes at once. They are in memory twice, with SQLite's copy.
CHECKPOINT_WRITE_BYTES: Final = 8 * 1024 * 1024
# During a large backlog: how often a checkpoint may be postponed, because a restart has to read the log after
# it; and how many ended intents may wait in memory, in multiples of CHECKPOINT_CHANGES.
CHECKPOINT_DELAYS_MAX: Final = 5
CHECKPOINT_ENDED_FACTOR_MAX: Final = 10
# Slices of a checkpoint in one turn of the event loop when memory is full: with one slice, the checkpoint
# would fall further and further behind.
CHECKPOINT_SLICES_MAX: Final = 8
# Rows that are deleted per checkpoint, at least, if there are as many to delete.
PURGE_ROWS_MIN: Final = 100_000

# Bounds that several settings share. A time beyond a hundred years is a mistake of units.
SETTING_MS_MAX: Final = 100 * 365 * DAY_MS
SETTING_BYTES_MAX: Final = 2**50
SETTING_COUNT_MAX: Final = 10**12

# The server.
HTTP_PORT: Final = 7928
GRPC_PORT: Final = 7929
URL_DEFAULT: Final = f"http://localhost:{HTTP_PORT}"
# A batch of thousands of typical intents fits; a single intent always fits.
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
# Requests that are not batches. The largest intent fits in any JSON notation.
REQUEST_ONE_BYTES_MAX: Final = 1024 * 1024
REQUESTS_MAX: Final = 1_000
BATCH_CREATE_MAX: Final = 10_000
# Decoding of a batch: up to this size all at once; otherwise one by one, with a turn for other tasks after so
# many items or bytes, some milliseconds of work.
BATCH_DECODE_BYTES_MAX: Final = 1024 * 1024
BATCH_TURN_ITEMS: Final = 200
BATCH_TURN_BYTES: Final = 128 * 1024
# Intents of a batch for which the nearest name of an unknown field is searched.
SUGGESTIONS_MAX: Final = 20
# Refused members of a group that are listed in a response.
REFUSED_SHOWN_MAX: Final = 100
# Intents that a bulk operation changes at the same time: enough to fill a batch.
BULK_TOGETHER_MAX: Final = 500
# The delay that a temporary error suggests, unless it knows a better one.
RETRY_AFTER_DEFAULT_MS: Final = SECOND_MS
# Cached values of the header `Host`.
HOST_HEADERS_KEPT: Final = 1_000
# Intents of one request that cancels, revives or purges by a filter: some frames, a fraction of a second.
BULK_SLICE: Final = 1_000
PAGE_MAX: Final = 500
# Frames of the log that replay reads for one change: those of the same millisecond, and those in between if
# the clock was set back.
REPLAY_FRAMES_MAX: Final = 1_000
PAGE_DEFAULT: Final = 50
# Bytes of one page: intents may be large, and a page that the client does not read stays in memory.
PAGE_BYTES_MAX: Final = 8 * 1024 * 1024
# Events: transitions kept for clients that reconnect, and their bytes; bytes sent to one client at a time,
# which is the cost of a client that does not read; how long a gRPC watch may leave events unread.
EVENTS_KEPT: Final = 10_000
EVENTS_BYTES_MAX: Final = 32 * 1024 * 1024
EVENTS_SENT_BYTES: Final = 64 * 1024
WATCH_UNREAD_MS: Final = 30 * SECOND_MS
# How long recording continues without a listener; the interval of keep-alive comments on an idle stream; how
# long an idle gRPC watch waits before it checks whether its call has ended.
EVENTS_LINGER_S: Final = 15 * 60
EVENTS_COMMENT_S: Final = 15.0
WATCH_CHECK_S: Final = 60.0
# Calls of on_failure and on_dead_letter that wait in an app; the rest is dropped and counted. How long a stop
# of the app waits for them.
LISTENER_CALLS_MAX: Final = 10_000
LISTENER_STOP_MS: Final = 5 * SECOND_MS
# Functions that metrics show one by one. The names come from callers; the rest is shown as `other`.
FUNCTION_LABELS_MAX: Final = 100
# How long a scrape waits for the event loop of an embedded app.
SCRAPE_MS: Final = 5 * SECOND_MS
# Scans for one filtered page, each of about ten thousand rows: two seconds in total in the archive's thread,
# which other requests use in between. A page that is not full then has a cursor.
PAGE_LOOKS_MAX: Final = 40
# Scans while nothing is found: a page is empty only after twenty seconds, before clients give up (60 s).
PAGE_EMPTY_LOOKS_MAX: Final = 400
# Pages that one request of a bulk operation reads: those of the largest request, and some that are not full.
BULK_PAGES_MAX: Final = BATCH_CREATE_MAX // PAGE_MAX + 4
# Limits for clients that are not authenticated yet: bytes and headers of the request head; time for the TLS
# handshake, for the head of the first request, for a whole request and between two requests; connections.
# File descriptors are reserved for the log, the store and outgoing calls.
HEAD_BYTES_MAX: Final = 64 * 1024
HEADERS_MAX: Final = 200
HANDSHAKE_MS: Final = 10 * SECOND_MS
FIRST_REQUEST_MS: Final = 10 * SECOND_MS
REQUEST_MS: Final = MINUTE_MS
IDLE_MS: Final = 75 * SECOND_MS
CONNECTIONS_MAX: Final = 20_000
FILES_RESERVED: Final = 1_024
# One remote address gets at most half of a listener's connections. A proxy is one address.
CONNECTIONS_PER_ADDRESS_SHARE: Final = 2
# The backlog of the listening socket; connections accepted in one turn of the event loop; the pause after the
# process ran out of file descriptors; the time limit for closing a TLS connection.
BACKLOG: Final = 2_048
ACCEPTED_AT_ONCE: Final = 32
ACCEPT_PAUSE_MS: Final = 100
CLOSE_MS: Final = 5 * SECOND_MS
# Bytes of all unanswered requests in memory. One address, or one token, gets half of them. Requests beyond
# that are refused while they arrive. At least HELD_REQUESTS_MIN of the largest requests fit.
HELD_BYTES_MAX: Final = 128 * 1024 * 1024
HELD_REQUESTS_MIN: Final = 4
# Bytes of a body that a handler has not read yet; beyond that, nothing more is received.
BODY_UNREAD_BYTES: Final = 64 * 1024
# A client that does not read its responses is disconnected after this time, unless it has read this many
# bytes.
UNREAD_MS: Final = 30 * SECOND_MS
UNREAD_BYTES_MIN: Final = 64 * 1024
# Responses larger than this are counted until the client has read them. They are sent in pieces, each when
# the client has read most of the one before.
ANSWER_COUNTED_BYTES: Final = 256 * 1024
ANSWER_PIECE_BYTES: Final = 1024 * 1024
# Bytes of counted responses that wait to be read. One token gets half of them.
UNREAD_BYTES_MAX: Final = 256 * 1024 * 1024
# One token gets at most three quarters of the concurrent requests and of the gRPC streams, so that the others
# can still work.
REQUESTS_SHARE: Final = (3, 4)
# Refused connections: how long health shows the last one, and how often they are logged.
REFUSALS_SHOWN_MS: Final = 10 * SECOND_MS
REFUSALS_LOGGED_MS: Final = MINUTE_MS
# How long a shutdown waits until responses are read and streams end. Running deliveries need the rest of its
# time.
ANSWERS_MS: Final = 3 * SECOND_MS
# How long the response of a request id is kept; the number of kept responses, and their bytes.
REQUEST_ID_MS: Final = 15 * MINUTE_MS
ANSWERS_KEPT: Final = 20_000
ANSWERS_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024

# Webhooks. The callbacks of one host use at most this many times the free permits of a tier: four fifths for
# a single host. So some permits stay free for other hosts, even if many hosts hang.
HOST_SHARE: Final = 4
CONNECTIONS_PER_HOST: Final = 100
CALLBACK_BATCH_MAX: Final = 200
CALLBACK_LINGER_MS: Final = (2, 5, 10, 50, 100)
RESPONSE_BYTES_MAX: Final = 256 * 1024
# Characters of a response's body in the message of its error.
EXCERPT_CHARS_MAX: Final = 200
# Remembered endpoints with a failed newest call, of all hosts. The one with the oldest failure is dropped
# first.
ENDPOINTS_MAX: Final = 4_096
# Cached plans of calls, and cached hosts. Both are made again when they are needed.
CALL_PLANS_KEPT: Final = 1_024
HOSTS_KEPT: Final = 1_024
# An endpoint with its full share in flight that has not answered for this long gets no more calls until it
# answers. A call that waits for its endpoint's share is checked again after HOST_CHECK_S at the latest.
ENDPOINT_SILENT_S: Final = 1.0
HOST_CHECK_S: Final = 1.0
# How long a host counts as called at several endpoints after a call to a different endpoint than the last.
HOST_SEVERAL_S: Final = 60.0
# A delivery that is held back repeatedly waits longer each time, up to this many times the first wait: a
# million intents for a dead host must not keep the log busy. Waiting costs no attempt.
HELD_BACK_FACTOR_MAX: Final = 5
# After each failed probe the breaker stays open longer, up to this many times the first wait. Other calls
# wait this long while one probes.
BREAKER_FACTOR_MAX: Final = 12
BREAKER_PROBE_S: Final = 1.0
# A longer Retry-After is most likely a mistake.
RETRY_AFTER_MS_MAX: Final = DAY_MS
# Names are resolved in separate threads, so that a name server that does not answer blocks nothing else. How
# long an address is cached.
NAME_LOOKUPS_MAX: Final = 16
NAMES_KEPT_S: Final = 10
# Below the five seconds after which many servers close an idle connection: Duetime closes it first.
WEBHOOK_KEEPALIVE_S: Final = 4.0
# The key length that Standard Webhooks require.
SIGNING_KEY_BYTES_MIN: Final = 24
SIGNING_KEY_BYTES_NEW: Final = 32
SIGNING_KEY_BYTES_MAX: Final = 64
# Secrets of an endpoint that are valid at the same time: the new one, and the one that it replaces.
SIGNING_SECRETS_MAX: Final = 2
# Endpoints with their own secrets, and endpoints whose signer is remembered.
SIGNING_ENDPOINTS_MAX: Final = 10_000
# How often a server checks the file with the secrets of endpoints for changes.
SIGNING_LOOK_MS: Final = SECOND_MS
# How long a cancelled call or function may take to end when its channel closes.
CHANNEL_CLOSE_S: Final = 5.0

# gRPC. Concurrent calls and streams of one connection; streams of events and deliveries of all connections.
GRPC_STREAMS_PER_CONNECTION: Final = 1_000
GRPC_STREAMS_MAX: Final = 10_000
# How long a gRPC connection may be idle, so that unused connections do not block others. Clients reconnect.
GRPC_IDLE_MS: Final = MINUTE_MS
# gRPC messages that are read at the same time, in total and per token. Each has up to request_bytes_max.
GRPC_READING_MAX: Final = 32
GRPC_READING_PER_TOKEN: Final = 8
# The same for clients without a token. Their messages are small; a new one replaces the oldest.
GRPC_READING_OPEN: Final = 8
# Calls with an unread message. Each costs up to the window of its stream, 64 KiB.
GRPC_UNREAD_MAX: Final = 2_000
# Concurrent calls without a token, of each kind (health, its watches, reflection).
GRPC_OPEN_CALLS_MAX: Final = 64
# A connection that is silent for this long gets a keepalive ping, and has this long to answer. Server and
# workers do the same.
GRPC_KEEPALIVE_MS: Final = 20 * SECOND_MS
GRPC_KEEPALIVE_TIMEOUT_MS: Final = 10 * SECOND_MS
# How long a shutdown waits for running calls, and how long a client may take to read its last message.
GRPC_GRACE_S: Final = 1.0
LAST_MESSAGE_MS: Final = 2 * SECOND_MS
# With this many unwritten answers on a stream, nothing more is read from it.
GRPC_ANSWERS_MAX: Final = 64
# The parts of a smaller message are not counted: they need at most some ten megabytes.
GRPC_UNCOUNTED_BYTES_MAX: Final = 256 * 1024
# All trailers share 8 KiB. A problem that would not fit is sent without its details, and its text is cut.
GRPC_PROBLEM_BYTES_MAX: Final = 4 * 1024
GRPC_ERROR_CHARS_MAX: Final = 1_000
# Deliveries in one message, and their bytes. Hundreds together cost little more than one, and a gRPC client
# accepts 4 MiB by default.
DELIVERIES_MAX: Final = 500
DELIVERIES_BYTES_MAX: Final = 1024 * 1024
ACKS_MAX: Final = 10_000
# Fields of one message: its parts, and some others.
GRPC_FIELDS_MAX: Final = max(ACKS_MAX, BATCH_CREATE_MAX) + 100
# The name that a worker or client gives itself.
CONSUMER_CHARS_MAX: Final = 100
# Credits plus held deliveries of one connection: the server keeps a record of each.
CREDITS_MAX: Final = 10_000
# Streams and queues of one connection.
SOURCES_MAX: Final = 100
# Claims over HTTP that wait or hold deliveries: the server keeps a record of each.
CLAIMS_MAX: Final = 10_000
# How long a claim waits. Proxies and clients often give up after a minute.
CLAIM_WAIT_MS_MAX: Final = 30_000
# Bytes of the deliveries in the response to a claim; the first delivery always fits.
CLAIM_BYTES_MAX: Final = 4 * 1024 * 1024
# Outcomes or deliveries in one request to settle or extend: some milliseconds of work.
SETTLE_MAX: Final = 1_000
# How soon to check again whether a claimed delivery that waits for the disk has arrived.
CLAIM_ARRIVAL_S: Final = 1.0
# Earlier connections of a client, whose deliveries it can still settle. A client reconnects after each
# restart of the server, and a lease lasts for few restarts.
EARLIER_NAMES_MAX: Final = 8
# How often the tokens of open streams are checked: a stream ends within this time after its token was
# revoked.
REVOCATION_MS: Final = 1_000
HEARTBEAT_MS: Final = 10_000
# A message that is only a heartbeat is recorded this often. A worker without a heartbeat for WORKER_SILENT_MS
# is shown as silent: a heartbeat may be a little late.
HEARTBEAT_RECORDED_S: Final = 1.0
WORKER_SILENT_MS: Final = HEARTBEAT_MS + 2 * SECOND_MS
# The delay before the end of a connection is recorded again if the log was full.
LEAVE_RETRY_S: Final = 1.0
# A worker has as many threads for plain functions as its concurrency, up to this number: each thread costs
# memory and context switches.
WORKER_THREADS_MAX: Final = 256
WORKER_CONCURRENCY: Final = 100
# Outcomes in one message of a worker, and their bytes: well below the limits of a server.
WORKER_ACKS_MAX: Final = 1_000
WORKER_ACKS_BYTES_MAX: Final = 1024 * 1024
# How long a server may take to send Welcome; the delay before a worker reconnects, which doubles up to the
# maximum.
WELCOME_S: Final = 30.0
WORKER_RECONNECT_S: Final = 0.1
WORKER_RECONNECT_S_MAX: Final = 5.0
# A worker that cannot connect: how long it checks HTTP of the server, and how often it repeats the same log
# line.
WORKER_HTTP_CHECK_S: Final = 2.0
WORKER_UNREACHABLE_LOGGED_S: Final = 60.0
# How long a delivery that cannot start is kept before it is returned, so that another worker can take it.
SURPLUS_S: Final = 1.0
# A stopping worker: how long sending the last messages may take, and how long to wait, after the drain time,
# for an event loop that is blocked by a function.
WORKER_LEAVE_S: Final = 3.0
WORKER_BLOCKED_S: Final = 1.0
# How often a worker returns one intent with an unknown function, and the delay, which doubles up to the
# maximum: about five minutes in total, for a rolling update.
UNKNOWN_RETURNS_MAX: Final = 10
UNKNOWN_DELAY_MS: Final = SECOND_MS
UNKNOWN_DELAY_MS_MAX: Final = MINUTE_MS
# Such intents that a worker remembers.
UNKNOWN_KEPT: Final = 10_000
# The delay before a dead worker process is restarted. It doubles while processes die before WORKER_YOUNG_S.
WORKER_RESTART_S: Final = 0.5
WORKER_RESTART_S_MAX: Final = 30.0
WORKER_YOUNG_S: Final = 10.0
# How long a replaced process for functions may take to end, before it is killed.
CHILD_EXIT_S: Final = 5.0
# The log lines of an attempt are part of the intent's row: only the newest are kept.
ATTEMPT_LOG_LINES_MAX: Final = 200
ATTEMPT_LOG_BYTES_MAX: Final = 16 * 1024
# The bytes of the lines alone: the rest is for the note that some were dropped.
ATTEMPT_LOG_LINES_BYTES_MAX: Final = ATTEMPT_LOG_BYTES_MAX - 64
# Deliveries of a worker with log lines in memory.
ATTEMPT_LOGS_KEPT: Final = 1_000
# How often a worker reports progress; reports in one message; characters of a note.
PROGRESS_MS: Final = 500
PROGRESS_MAX: Final = 1_000
NOTE_CHARS_MAX: Final = 200
# Tasks of duetime.contrib.celery. How often a worker may die while it runs a task: then the task fails, so
# that it does not kill workers for ever. The head start of one step of Celery's priorities (0 to 9), in
# seconds: 9 is about HIGH.
CELERY_LOSSES_MAX: Final = 5
CELERY_PRIORITY_S: Final = 30
# The width of a note, so that a progress bar fits on a terminal with 80 columns.
NOTE_COLUMNS_MAX: Final = 32
# Functions that one worker can announce, and the bytes of one announcement.
FUNCTIONS_MAX: Final = 1_000
FUNCTION_BYTES_MAX: Final = 32 * 1024
SIGNATURE_CHARS_MAX: Final = 500
# The schema of a function with its references resolved: number of values, and depth. Payloads are checked on
# the event loop, at about 15 ns for each comparison of a value.
SCHEMA_NODES_MAX: Final = 5_000
SCHEMA_DEPTH_MAX: Final = 64
# Comparisons for one payload: 15 ms. Payloads that may need more are not checked.
SCHEMA_COST_MAX: Final = 1_000_000
# Up to this cost, the error names the wrong field, which takes a thousand times as long as the check.
SCHEMA_COST_TOLD_MAX: Final = 10_000
SCHEMA_ERROR_CHARS_MAX: Final = 300
# Names of messages in one error: an entity type rarely has more.
MESSAGE_NAMES_SHOWN_MAX: Final = 20
# The cost of a pattern for each byte, and its maximum compiled size: it is matched in linear time.
PATTERN_COST: Final = 16
PATTERN_BYTES_MAX: Final = 16 * 1024
# Functions that a server remembers, including those of disconnected workers.
FUNCTIONS_KEPT: Final = 10_000

# The HTTP client. Sockets of one client; further requests wait for a free one.
CLIENT_CONNECTIONS_MAX: Final = 64
CLIENT_CONNECT_S: Final = 10.0
# How long one address of a name is tried before the next one is tried in parallel.
CLIENT_NEXT_ADDRESS_S: Final = 0.25
# The longest line of a stream of events.
CLIENT_LINE_BYTES_MAX: Final = 1024 * 1024
# The delay before the first retry; it doubles up to the maximum. If the server asks for a longer delay than
# CLIENT_RETRY_AFTER_S_MAX, the error is raised instead.
CLIENT_RETRY_S: Final = 0.1
CLIENT_RETRY_S_MAX: Final = 2.0
CLIENT_RETRY_AFTER_S_MAX: Final = 5.0
# A live server sends an event or a keep-alive comment more often than this. How long a lost stream of events
# tries to reconnect.
CLIENT_SILENCE_S: Final = 60.0
CLIENT_RECONNECT_S: Final = 60.0
# Characters that are shown of a response that is not a problem document.
CLIENT_TEXT_CHARS_MAX: Final = 200
# An App on a server: how long its start waits for the server. If the server is down, the app looks for it
# again after a delay, which doubles up to the maximum.
APP_START_S: Final = 2.0
APP_RETRY_S: Final = 0.2
APP_RETRY_S_MAX: Final = 5.0
# An App on a server: the items and bytes of one batch request, well below the limits of a server; concurrent
# requests with gathered intents; terms with cached JSON, of which a program has some dozens.
SUBMIT_ITEMS_MAX: Final = 2_000
SUBMIT_BYTES_MAX: Final = 2 * 1024 * 1024
SUBMIT_REQUESTS_MAX: Final = 4
SUBMIT_TERMS_KEPT: Final = 256
# Options that name arguments, such as a limit by tenant: the values with prepared terms, for each function.
TEMPLATE_VALUES_KEPT: Final = 1_024
# Up to this number of waits, each has its own stream of events; more waits share a connection.
OWN_STREAMS_MAX: Final = 8
# Different call signatures that are remembered for a function.
CALL_SIGNATURES_KEPT: Final = 64

# The relay of an outbox: rows of one batch, by default and at most; how often it polls for rows that other
# processes wrote (each poll is one small query); the delay after a failure, which doubles up to the maximum.
RELAY_BATCH: Final = 500
RELAY_BATCH_MAX: Final = 10_000
RELAY_POLL_S: Final = 1.0
RELAY_RETRY_S: Final = 0.2
RELAY_RETRY_S_MAX: Final = 5.0

# The command line. A person waits, so an unreachable server is reported soon. Ids that completion remembers.
CLI_TRIES_MAX: Final = 3
SHOWN_IDS_KEPT: Final = 500
# The demos fail if they have not ended this long after their last intent was due; the server of a demo has
# this long to start and to stop.
DEMO_PATIENCE_S: Final = 30.0
DEMO_SERVER_PATIENCE_S: Final = 20.0
DEMO_START_S: Final = 30.0
DEMO_STOP_S: Final = 40.0

assert HANDS_MAX > BATCH_ITEMS_MAX, "the items of one frame can be delivered by its records"
assert BATCH_BYTES_MAX + PAYLOAD_BYTES_MAX // 4 < FRAME_BYTES_MAX, "a full batch fits a frame"
assert PAYLOAD_BYTES_MAX + TERMS_BYTES_MAX + AFTER_MAX * (ID_CHARS_MAX + 3) + 16 * 1024 < FRAME_BYTES_MAX, (
    "one intent always fits a frame"
)
assert 2 * FRAME_BYTES_MAX <= REQUEST_ONE_BYTES_MAX <= REQUEST_BYTES_MAX, "one intent always fits a request"
assert DELIVERIES_BYTES_MAX + PAYLOAD_BYTES_MAX + HANDED_BYTES_MAX + TERMS_BYTES_MAX < 4 * 1024 * 1024, (
    "every client can read it"
)
assert RESULT_BYTES_MAX < HANDED_BYTES_MAX, "every result can be handed over"
assert 3 * HEARTBEAT_MS <= LEASE_MS, "two heartbeats may be lost"
assert WORKER_ACKS_MAX <= ACKS_MAX and SUBMIT_ITEMS_MAX <= BATCH_CREATE_MAX, "a server accepts them"
assert SUBMIT_BYTES_MAX + REQUEST_ONE_BYTES_MAX <= REQUEST_BYTES_MAX, "a server accepts the largest request"
assert EVENTS_COMMENT_S < CLIENT_SILENCE_S, "an idle stream is not taken for a dead one"
assert FRAME_BYTES_MAX < LOG_READ_BYTES, "one read has a whole frame"
assert SCHEDULE_ID_CHARS_MAX + 32 <= ID_CHARS_MAX, "the id of a tick consists of its schedule's id and a time"
assert FRAME_BYTES_MAX < SEGMENT_BYTES_MAX, "one frame always fits a segment"
assert len(TIER_NAMES) == len(TIER_WINDOW_MS) == len(TIER_SLOT_MS) == len(TIER_PERMITS)
assert all(8 * slot <= window for slot, window in zip(TIER_SLOT_MS, TIER_WINDOW_MS, strict=True)), (
    "waking at the end of a slot costs at most an eighth of the window"
)
