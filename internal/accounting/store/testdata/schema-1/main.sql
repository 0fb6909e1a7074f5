-- Names, sources, marks, roll-ups and charges. Times are milliseconds since 1970 in UTC.

CREATE TABLE source (
	id        INTEGER NOT NULL PRIMARY KEY,
	source    BLOB    NOT NULL UNIQUE,
	host      TEXT    NOT NULL,
	next      INTEGER NOT NULL, -- number of the entry that comes next
	watermark INTEGER NOT NULL,
	skew      INTEGER NOT NULL
) STRICT;

CREATE TABLE gap (
	source INTEGER NOT NULL,
	first  INTEGER NOT NULL, -- the first number that did not come
	next   INTEGER NOT NULL, -- the first that came
	noted  INTEGER NOT NULL,
	PRIMARY KEY (source, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE name (
	id   INTEGER NOT NULL PRIMARY KEY,
	kind INTEGER NOT NULL,
	text TEXT    NOT NULL,
	UNIQUE (kind, text)
) STRICT;

CREATE TABLE month (
	month  INTEGER NOT NULL PRIMARY KEY,
	closed INTEGER NOT NULL, -- when; 0: open
	closer TEXT    NOT NULL,
	rates  INTEGER NOT NULL  -- id of the last rate when it was closed: its grants are of those
) STRICT;

-- Counters: mark is the last mark, rolled the time up to which hours are marked.
CREATE TABLE counter (
	name  TEXT    NOT NULL PRIMARY KEY,
	value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Hours that have to be computed again. A roll-up removes only the mark that it read.
CREATE TABLE dirty (
	hour INTEGER NOT NULL PRIMARY KEY,
	mark INTEGER NOT NULL
) STRICT;

-- Attempts whose charges have to be computed again.
CREATE TABLE due (
	month   INTEGER NOT NULL,
	source  INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	idx     INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	mark    INTEGER NOT NULL,
	PRIMARY KEY (month, source, seq, idx, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE machine (
	node   INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	what   INTEGER NOT NULL,
	cpu    INTEGER NOT NULL,
	mem    INTEGER NOT NULL,
	disk   INTEGER NOT NULL,
	gpus   INTEGER NOT NULL,
	class  INTEGER NOT NULL,
	reason TEXT    NOT NULL,
	person INTEGER NOT NULL,
	PRIMARY KEY (node, at, what)
) STRICT, WITHOUT ROWID;
CREATE INDEX machine_at ON machine (at);

-- step: 1 an hour, 2 a day. whole: 1 counts attempts as a whole when they end.
CREATE TABLE rollup (
	step        INTEGER NOT NULL,
	whole       INTEGER NOT NULL,
	at          INTEGER NOT NULL,
	owner       INTEGER NOT NULL,
	grp         INTEGER NOT NULL,
	project     INTEGER NOT NULL,
	queue       INTEGER NOT NULL,
	band        INTEGER NOT NULL,
	started     INTEGER NOT NULL,
	ended       INTEGER NOT NULL,
	failed      INTEGER NOT NULL,
	wall        INTEGER NOT NULL,
	suspended   INTEGER NOT NULL,
	held_cpu    INTEGER NOT NULL,
	used_cpu    INTEGER NOT NULL,
	held_gpu    INTEGER NOT NULL,
	held_mem    INTEGER NOT NULL,
	peak_mem    INTEGER NOT NULL,
	lost_cpu    INTEGER NOT NULL,
	charged_cpu INTEGER NOT NULL,
	waits       INTEGER NOT NULL,
	wait_sum    INTEGER NOT NULL,
	PRIMARY KEY (step, whole, at, owner, grp, project, queue, band)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_end (
	step      INTEGER NOT NULL,
	at        INTEGER NOT NULL,
	owner     INTEGER NOT NULL,
	cause     INTEGER NOT NULL,
	attempts  INTEGER NOT NULL,
	held_cpu  INTEGER NOT NULL,
	lost_cpu  INTEGER NOT NULL,
	saved_cpu INTEGER NOT NULL,
	PRIMARY KEY (step, at, owner, cause)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_wait (
	step     INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	band     INTEGER NOT NULL,
	queue    INTEGER NOT NULL,
	bucket   INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	wait_sum INTEGER NOT NULL,
	PRIMARY KEY (step, at, band, queue, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_size (
	step     INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	band     INTEGER NOT NULL,
	bucket   INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	wall     INTEGER NOT NULL,
	held_cpu INTEGER NOT NULL,
	waits    INTEGER NOT NULL,
	wait_sum INTEGER NOT NULL,
	PRIMARY KEY (step, at, band, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_capacity (
	step      INTEGER NOT NULL,
	at        INTEGER NOT NULL,
	class     INTEGER NOT NULL,
	total     INTEGER NOT NULL,
	owner     INTEGER NOT NULL,
	drained   INTEGER NOT NULL,
	held      INTEGER NOT NULL,
	used      INTEGER NOT NULL,
	desktop   INTEGER NOT NULL,
	total_gpu INTEGER NOT NULL,
	held_gpu  INTEGER NOT NULL,
	attempts  INTEGER NOT NULL,
	PRIMARY KEY (step, at, class)
) STRICT, WITHOUT ROWID;

CREATE TABLE rate (
	id       INTEGER NOT NULL PRIMARY KEY,
	grp      TEXT    NOT NULL,
	start    INTEGER NOT NULL,
	document TEXT    NOT NULL, -- accounting.Rate as JSON
	UNIQUE (grp, start)
) STRICT;

-- Append-only: a new version adds its difference to the versions before it.
CREATE TABLE charge (
	month     INTEGER NOT NULL, -- of the job's submission
	source    INTEGER NOT NULL,
	seq       INTEGER NOT NULL,
	idx       INTEGER NOT NULL,
	attempt   INTEGER NOT NULL,
	version   INTEGER NOT NULL,
	part      INTEGER NOT NULL,
	ran       INTEGER NOT NULL, -- month in which it ran
	statement INTEGER NOT NULL,
	rate      INTEGER NOT NULL,
	owner     INTEGER NOT NULL,
	grp       INTEGER NOT NULL,
	project   INTEGER NOT NULL,
	queue     INTEGER NOT NULL,
	band      INTEGER NOT NULL,
	wall      INTEGER NOT NULL,
	cpu       INTEGER NOT NULL,
	amount    INTEGER NOT NULL,
	made      INTEGER NOT NULL,
	PRIMARY KEY (month, source, seq, idx, attempt, version, part)
) STRICT, WITHOUT ROWID;

-- Sums of charge, added to in the transaction that inserts into it.
CREATE TABLE charge_sum (
	statement INTEGER NOT NULL,
	ran       INTEGER NOT NULL,
	owner     INTEGER NOT NULL,
	grp       INTEGER NOT NULL,
	project   INTEGER NOT NULL,
	queue     INTEGER NOT NULL,
	band      INTEGER NOT NULL,
	cpu       INTEGER NOT NULL,
	amount    INTEGER NOT NULL,
	PRIMARY KEY (statement, ran, owner, grp, project, queue, band)
) STRICT, WITHOUT ROWID;

CREATE TABLE adjustment (
	id      INTEGER NOT NULL PRIMARY KEY,
	request TEXT    NOT NULL UNIQUE, -- chosen by who asked, so that asking twice adds once
	month   INTEGER NOT NULL,
	project TEXT    NOT NULL,
	grp     TEXT    NOT NULL,
	owner   TEXT    NOT NULL,
	amount  INTEGER NOT NULL,
	reason  TEXT    NOT NULL,
	person  TEXT    NOT NULL,
	made    INTEGER NOT NULL
) STRICT;
CREATE INDEX adjustment_month ON adjustment (month);

CREATE TABLE budget (
	id      INTEGER NOT NULL PRIMARY KEY,
	project TEXT    NOT NULL,
	grp     TEXT    NOT NULL,
	owner   TEXT    NOT NULL,
	first   INTEGER NOT NULL,
	last    INTEGER NOT NULL,
	amount  INTEGER NOT NULL,
	hard    INTEGER NOT NULL,
	person  TEXT    NOT NULL,
	made    INTEGER NOT NULL
) STRICT;

CREATE TABLE reconciliation (
	day     INTEGER NOT NULL PRIMARY KEY,
	ledger  INTEGER NOT NULL,
	held    INTEGER NOT NULL,
	charged INTEGER NOT NULL,
	made    INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 1;
