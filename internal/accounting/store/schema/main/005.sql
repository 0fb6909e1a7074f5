-- The class of each machine over time: what the events of machines say of it, without those
-- that change nothing.
CREATE TABLE machine_class (
	node  INTEGER NOT NULL,
	since INTEGER NOT NULL,
	class INTEGER NOT NULL,
	PRIMARY KEY (node, since)
) STRICT, WITHOUT ROWID;

INSERT INTO machine_class (node, since, class)
SELECT node, at, class FROM (
	SELECT node, at, class, lag(class) OVER (PARTITION BY node ORDER BY at) AS earlier
	FROM machine m WHERE what = 2 OR what = 1 AND NOT EXISTS (
		SELECT 1 FROM machine n WHERE n.node = m.node AND n.at = m.at AND n.what = 2)
) AS c WHERE earlier IS NULL OR earlier <> class;

PRAGMA user_version = 5;
