-- Samples of the negotiator's ledger that wait for their comparison with the accounts, and
-- the comparisons. Amounts are core-milliseconds that a dominant share of the pool is
-- worth. The table reconciliation of step 1 is not used.
CREATE TABLE ledger_sample (
	at INTEGER NOT NULL PRIMARY KEY
) STRICT;

CREATE TABLE ledger_use (
	at    INTEGER NOT NULL,
	owner INTEGER NOT NULL,
	grp   INTEGER NOT NULL,
	used  INTEGER NOT NULL, -- since ever
	PRIMARY KEY (at, owner, grp)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger_comparison (
	start  INTEGER NOT NULL, -- times of two samples
	until  INTEGER NOT NULL,
	owner  INTEGER NOT NULL,
	grp    INTEGER NOT NULL,
	ledger INTEGER NOT NULL,
	held   INTEGER NOT NULL,
	made   INTEGER NOT NULL,
	PRIMARY KEY (start, owner, grp)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 4;
