-- The jobs that were submitted in one month, and what belongs to them. Names and sources
-- are ids of the file main.db.

CREATE TABLE job (
	month      INTEGER NOT NULL,
	source     INTEGER NOT NULL,
	seq        INTEGER NOT NULL,
	number     INTEGER NOT NULL, -- of the feed's entry
	name       TEXT    NOT NULL,
	owner      INTEGER NOT NULL,
	uid        INTEGER NOT NULL,
	gid        INTEGER NOT NULL,
	unix_group INTEGER NOT NULL,
	grp        INTEGER NOT NULL,
	project    INTEGER NOT NULL,
	band       INTEGER NOT NULL,
	queue      INTEGER NOT NULL,
	is_array   INTEGER NOT NULL,
	tasks      INTEGER NOT NULL,
	cpu        INTEGER NOT NULL,
	mem        INTEGER NOT NULL,
	disk       INTEGER NOT NULL,
	gpus       INTEGER NOT NULL,
	gpu_mem    INTEGER NOT NULL,
	walltime   INTEGER NOT NULL,
	argument   TEXT    NOT NULL,
	work_dir   TEXT    NOT NULL,
	submitted  INTEGER NOT NULL,
	eligible   INTEGER NOT NULL,
	ended      INTEGER NOT NULL,
	removed    INTEGER NOT NULL,
	PRIMARY KEY (month, source, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_owner ON job (owner, submitted);
CREATE INDEX job_submitted ON job (submitted);
CREATE INDEX job_eligible ON job (eligible);
CREATE INDEX job_ended ON job (ended);

-- span: the length of the attempt as log2 of its hours, rounded up; -1: it runs. What ran
-- in an hour is found by a probe for each span, at a start that is at most so far back.
CREATE TABLE attempt (
	month        INTEGER NOT NULL,
	source       INTEGER NOT NULL,
	seq          INTEGER NOT NULL,
	idx          INTEGER NOT NULL,
	attempt      INTEGER NOT NULL,
	number       INTEGER NOT NULL,
	owner        INTEGER NOT NULL, -- of the job; 0: the job is not known yet
	node         INTEGER NOT NULL,
	class        INTEGER NOT NULL,
	assigned     INTEGER NOT NULL,
	started      INTEGER NOT NULL,
	ended        INTEGER NOT NULL,
	cpu          INTEGER NOT NULL,
	mem          INTEGER NOT NULL,
	disk         INTEGER NOT NULL,
	gpus         INTEGER NOT NULL,
	gpu_mem      INTEGER NOT NULL,
	wall         INTEGER NOT NULL,
	user_cpu     INTEGER NOT NULL,
	system_cpu   INTEGER NOT NULL,
	suspended    INTEGER NOT NULL,
	useful       INTEGER NOT NULL,
	peak_mem     INTEGER NOT NULL,
	peak_disk    INTEGER NOT NULL,
	peak_gpu_mem INTEGER NOT NULL,
	read         INTEGER NOT NULL,
	written      INTEGER NOT NULL,
	cause        INTEGER NOT NULL,
	exit_code    INTEGER NOT NULL,
	signal       INTEGER NOT NULL,
	reason       TEXT    NOT NULL,
	segments     BLOB,             -- packed
	span         INTEGER NOT NULL,
	begins       INTEGER NOT NULL, -- where the attempt is placed: accounting.AttemptEntry.Span
	PRIMARY KEY (month, source, seq, idx, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempt_started ON attempt (started);
CREATE INDEX attempt_ended ON attempt (ended);
CREATE INDEX attempt_owner ON attempt (owner, ended);
CREATE INDEX attempt_node ON attempt (node, ended);
CREATE INDEX attempt_span ON attempt (span, begins);

CREATE TABLE action (
	month  INTEGER NOT NULL,
	source INTEGER NOT NULL,
	seq    INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	idx    INTEGER NOT NULL,
	what   INTEGER NOT NULL,
	person INTEGER NOT NULL,
	number INTEGER NOT NULL,
	reason TEXT    NOT NULL,
	PRIMARY KEY (month, source, seq, at, idx, what, person)
) STRICT, WITHOUT ROWID;
CREATE INDEX action_at ON action (at);

CREATE TABLE usage (
	month   INTEGER NOT NULL,
	source  INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	idx     INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	hour    INTEGER NOT NULL,
	number  INTEGER NOT NULL,
	windows BLOB    NOT NULL, -- packed
	PRIMARY KEY (month, source, seq, idx, attempt, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_hour ON usage (hour);

PRAGMA user_version = 1;
