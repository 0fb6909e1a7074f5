-- Samples of the negotiator's ledger that wait for their comparison with the accounts, and
-- the comparisons. Amounts are core-milliseconds that a dominant share of the pool is
-- worth. The table reconciliation of step 1 is not used.
CREATE TABLE ledger_sample (
	at bigint NOT NULL PRIMARY KEY
);

CREATE TABLE ledger_use (
	at    bigint NOT NULL,
	owner bigint NOT NULL,
	grp   bigint NOT NULL,
	used  bigint NOT NULL, -- since ever
	PRIMARY KEY (at, owner, grp)
);

CREATE TABLE ledger_comparison (
	start  bigint NOT NULL, -- times of two samples
	until  bigint NOT NULL,
	owner  bigint NOT NULL,
	grp    bigint NOT NULL,
	ledger bigint NOT NULL,
	held   bigint NOT NULL,
	made   bigint NOT NULL,
	PRIMARY KEY (start, owner, grp)
);
