-- Names, sources, marks, roll-ups and charges. Times are milliseconds since 1970 in UTC.

CREATE TABLE source (
	id        bigint NOT NULL PRIMARY KEY,
	source    bytea    NOT NULL UNIQUE,
	host      text    NOT NULL,
	next      bigint NOT NULL, -- number of the entry that comes next
	watermark bigint NOT NULL,
	skew      bigint NOT NULL
);

CREATE TABLE gap (
	source bigint NOT NULL,
	first  bigint NOT NULL, -- the first number that did not come
	next   bigint NOT NULL, -- the first that came
	noted  bigint NOT NULL,
	PRIMARY KEY (source, first)
);

CREATE TABLE name (
	id   bigint NOT NULL PRIMARY KEY,
	kind bigint NOT NULL,
	text text    NOT NULL,
	UNIQUE (kind, text)
);

CREATE TABLE month (
	month  bigint NOT NULL PRIMARY KEY,
	closed bigint NOT NULL, -- when; 0: open
	closer text    NOT NULL,
	rates  bigint NOT NULL  -- id of the last rate when it was closed: its grants are of those
);

-- Counters: mark is the last mark, rolled the time up to which hours are marked.
CREATE TABLE counter (
	name  text    NOT NULL PRIMARY KEY,
	value bigint NOT NULL
);

-- Hours that have to be computed again. A roll-up removes only the mark that it read.
CREATE TABLE dirty (
	hour bigint NOT NULL PRIMARY KEY,
	mark bigint NOT NULL
);

-- Attempts whose charges have to be computed again.
CREATE TABLE due (
	month   bigint NOT NULL,
	source  bigint NOT NULL,
	seq     bigint NOT NULL,
	idx     bigint NOT NULL,
	attempt bigint NOT NULL,
	mark    bigint NOT NULL,
	PRIMARY KEY (month, source, seq, idx, attempt)
);

CREATE TABLE machine (
	node   bigint NOT NULL,
	at     bigint NOT NULL,
	what   bigint NOT NULL,
	cpu    bigint NOT NULL,
	mem    bigint NOT NULL,
	disk   bigint NOT NULL,
	gpus   bigint NOT NULL,
	class  bigint NOT NULL,
	reason text    NOT NULL,
	person bigint NOT NULL,
	PRIMARY KEY (node, at, what)
);
CREATE INDEX machine_at ON machine (at);

-- step: 1 an hour, 2 a day. whole: 1 counts attempts as a whole when they end.
CREATE TABLE rollup (
	step        bigint NOT NULL,
	whole       bigint NOT NULL,
	at          bigint NOT NULL,
	owner       bigint NOT NULL,
	grp         bigint NOT NULL,
	project     bigint NOT NULL,
	queue       bigint NOT NULL,
	band        bigint NOT NULL,
	started     bigint NOT NULL,
	ended       bigint NOT NULL,
	failed      bigint NOT NULL,
	wall        bigint NOT NULL,
	suspended   bigint NOT NULL,
	held_cpu    bigint NOT NULL,
	used_cpu    bigint NOT NULL,
	held_gpu    bigint NOT NULL,
	held_mem    bigint NOT NULL,
	peak_mem    bigint NOT NULL,
	lost_cpu    bigint NOT NULL,
	charged_cpu bigint NOT NULL,
	waits       bigint NOT NULL,
	wait_sum    bigint NOT NULL,
	PRIMARY KEY (step, whole, at, owner, grp, project, queue, band)
);

CREATE TABLE rollup_end (
	step      bigint NOT NULL,
	at        bigint NOT NULL,
	owner     bigint NOT NULL,
	cause     bigint NOT NULL,
	attempts  bigint NOT NULL,
	held_cpu  bigint NOT NULL,
	lost_cpu  bigint NOT NULL,
	saved_cpu bigint NOT NULL,
	PRIMARY KEY (step, at, owner, cause)
);

CREATE TABLE rollup_wait (
	step     bigint NOT NULL,
	at       bigint NOT NULL,
	band     bigint NOT NULL,
	queue    bigint NOT NULL,
	bucket   bigint NOT NULL,
	attempts bigint NOT NULL,
	wait_sum bigint NOT NULL,
	PRIMARY KEY (step, at, band, queue, bucket)
);

CREATE TABLE rollup_size (
	step     bigint NOT NULL,
	at       bigint NOT NULL,
	band     bigint NOT NULL,
	bucket   bigint NOT NULL,
	attempts bigint NOT NULL,
	wall     bigint NOT NULL,
	held_cpu bigint NOT NULL,
	waits    bigint NOT NULL,
	wait_sum bigint NOT NULL,
	PRIMARY KEY (step, at, band, bucket)
);

CREATE TABLE rollup_capacity (
	step      bigint NOT NULL,
	at        bigint NOT NULL,
	class     bigint NOT NULL,
	total     bigint NOT NULL,
	owner     bigint NOT NULL,
	drained   bigint NOT NULL,
	held      bigint NOT NULL,
	used      bigint NOT NULL,
	desktop   bigint NOT NULL,
	total_gpu bigint NOT NULL,
	held_gpu  bigint NOT NULL,
	attempts  bigint NOT NULL,
	PRIMARY KEY (step, at, class)
);

CREATE TABLE rate (
	id       bigint NOT NULL PRIMARY KEY,
	grp      text    NOT NULL,
	start    bigint NOT NULL,
	document text    NOT NULL, -- accounting.Rate as JSON
	UNIQUE (grp, start)
);

-- Append-only: a new version adds its difference to the versions before it.
CREATE TABLE charge (
	month     bigint NOT NULL, -- of the job's submission
	source    bigint NOT NULL,
	seq       bigint NOT NULL,
	idx       bigint NOT NULL,
	attempt   bigint NOT NULL,
	version   bigint NOT NULL,
	part      bigint NOT NULL,
	ran       bigint NOT NULL, -- month in which it ran
	statement bigint NOT NULL,
	rate      bigint NOT NULL,
	owner     bigint NOT NULL,
	grp       bigint NOT NULL,
	project   bigint NOT NULL,
	queue     bigint NOT NULL,
	band      bigint NOT NULL,
	wall      bigint NOT NULL,
	cpu       bigint NOT NULL,
	amount    bigint NOT NULL,
	made      bigint NOT NULL,
	PRIMARY KEY (month, source, seq, idx, attempt, version, part)
);

-- Sums of charge, added to in the transaction that inserts into it.
CREATE TABLE charge_sum (
	statement bigint NOT NULL,
	ran       bigint NOT NULL,
	owner     bigint NOT NULL,
	grp       bigint NOT NULL,
	project   bigint NOT NULL,
	queue     bigint NOT NULL,
	band      bigint NOT NULL,
	cpu       bigint NOT NULL,
	amount    bigint NOT NULL,
	PRIMARY KEY (statement, ran, owner, grp, project, queue, band)
);

CREATE TABLE adjustment (
	id      bigint NOT NULL PRIMARY KEY,
	request text    NOT NULL UNIQUE, -- chosen by who asked, so that asking twice adds once
	month   bigint NOT NULL,
	project text    NOT NULL,
	grp     text    NOT NULL,
	owner   text    NOT NULL,
	amount  bigint NOT NULL,
	reason  text    NOT NULL,
	person  text    NOT NULL,
	made    bigint NOT NULL
);
CREATE INDEX adjustment_month ON adjustment (month);

CREATE TABLE budget (
	id      bigint NOT NULL PRIMARY KEY,
	project text    NOT NULL,
	grp     text    NOT NULL,
	owner   text    NOT NULL,
	first   bigint NOT NULL,
	last    bigint NOT NULL,
	amount  bigint NOT NULL,
	hard    bigint NOT NULL,
	person  text    NOT NULL,
	made    bigint NOT NULL
);

CREATE TABLE reconciliation (
	day     bigint NOT NULL PRIMARY KEY,
	ledger  bigint NOT NULL,
	held    bigint NOT NULL,
	charged bigint NOT NULL,
	made    bigint NOT NULL
);

-- The jobs, and what belongs to them, divided by the month of submission.

CREATE TABLE job (
	month      bigint NOT NULL,
	source     bigint NOT NULL,
	seq        bigint NOT NULL,
	number     bigint NOT NULL, -- of the feed's entry
	name       text    NOT NULL,
	owner      bigint NOT NULL,
	uid        bigint NOT NULL,
	gid        bigint NOT NULL,
	unix_group bigint NOT NULL,
	grp        bigint NOT NULL,
	project    bigint NOT NULL,
	band       bigint NOT NULL,
	queue      bigint NOT NULL,
	is_array   bigint NOT NULL,
	tasks      bigint NOT NULL,
	cpu        bigint NOT NULL,
	mem        bigint NOT NULL,
	disk       bigint NOT NULL,
	gpus       bigint NOT NULL,
	gpu_mem    bigint NOT NULL,
	walltime   bigint NOT NULL,
	argument   text    NOT NULL,
	work_dir   text    NOT NULL,
	submitted  bigint NOT NULL,
	eligible   bigint NOT NULL,
	ended      bigint NOT NULL,
	removed    bigint NOT NULL,
	PRIMARY KEY (month, source, seq)
) PARTITION BY LIST (month);
CREATE INDEX job_owner ON job (owner, submitted);
CREATE INDEX job_submitted ON job (submitted);
CREATE INDEX job_eligible ON job (eligible);
CREATE INDEX job_ended ON job (ended);

-- span: the length of the attempt as log2 of its hours, rounded up; -1: it runs. What ran
-- in an hour is found by a probe for each span, at a start that is at most so far back.
CREATE TABLE attempt (
	month        bigint NOT NULL,
	source       bigint NOT NULL,
	seq          bigint NOT NULL,
	idx          bigint NOT NULL,
	attempt      bigint NOT NULL,
	number       bigint NOT NULL,
	owner        bigint NOT NULL, -- of the job; 0: the job is not known yet
	node         bigint NOT NULL,
	class        bigint NOT NULL,
	assigned     bigint NOT NULL,
	started      bigint NOT NULL,
	ended        bigint NOT NULL,
	cpu          bigint NOT NULL,
	mem          bigint NOT NULL,
	disk         bigint NOT NULL,
	gpus         bigint NOT NULL,
	gpu_mem      bigint NOT NULL,
	wall         bigint NOT NULL,
	user_cpu     bigint NOT NULL,
	system_cpu   bigint NOT NULL,
	suspended    bigint NOT NULL,
	useful       bigint NOT NULL,
	peak_mem     bigint NOT NULL,
	peak_disk    bigint NOT NULL,
	peak_gpu_mem bigint NOT NULL,
	read         bigint NOT NULL,
	written      bigint NOT NULL,
	cause        bigint NOT NULL,
	exit_code    bigint NOT NULL,
	signal       bigint NOT NULL,
	reason       text    NOT NULL,
	segments     bytea,             -- packed
	span         bigint NOT NULL,
	begins       bigint NOT NULL, -- where the attempt is placed: accounting.AttemptEntry.Span
	PRIMARY KEY (month, source, seq, idx, attempt)
) PARTITION BY LIST (month);
CREATE INDEX attempt_started ON attempt (started);
CREATE INDEX attempt_ended ON attempt (ended);
CREATE INDEX attempt_owner ON attempt (owner, ended);
CREATE INDEX attempt_node ON attempt (node, ended);
CREATE INDEX attempt_span ON attempt (span, begins);

CREATE TABLE action (
	month  bigint NOT NULL,
	source bigint NOT NULL,
	seq    bigint NOT NULL,
	at     bigint NOT NULL,
	idx    bigint NOT NULL,
	what   bigint NOT NULL,
	person bigint NOT NULL,
	number bigint NOT NULL,
	reason text    NOT NULL,
	PRIMARY KEY (month, source, seq, at, idx, what, person)
) PARTITION BY LIST (month);
CREATE INDEX action_at ON action (at);

CREATE TABLE usage (
	month   bigint NOT NULL,
	source  bigint NOT NULL,
	seq     bigint NOT NULL,
	idx     bigint NOT NULL,
	attempt bigint NOT NULL,
	hour    bigint NOT NULL,
	number  bigint NOT NULL,
	windows bytea    NOT NULL, -- packed
	PRIMARY KEY (month, source, seq, idx, attempt, hour)
) PARTITION BY LIST (month);
CREATE INDEX usage_hour ON usage (hour);

-- add_month makes the partitions of a month.
CREATE FUNCTION add_month(m bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE part text;
BEGIN
	FOREACH part IN ARRAY ARRAY['job', 'attempt', 'action', 'usage'] LOOP
		EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF %I FOR VALUES IN (%s)', part || '_' || m, part, m);
	END LOOP;
END $$;

-- drop_month removes the rows of a month.
CREATE FUNCTION drop_month(m bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE part text;
BEGIN
	FOREACH part IN ARRAY ARRAY['job', 'attempt', 'action', 'usage'] LOOP
		EXECUTE format('DROP TABLE IF EXISTS %I', part || '_' || m);
	END LOOP;
END $$;
