-- Sums of months are rows of rollup with step 3, whose at is the month's begin.
ALTER TABLE rollup ADD COLUMN days bigint NOT NULL DEFAULT 0; -- step 3: how many days have the row's key

-- Months that have their sums. Of others days are read.
CREATE TABLE summed_month (
	month bigint NOT NULL PRIMARY KEY
);
