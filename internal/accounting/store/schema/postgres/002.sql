-- Digests of rows that no source can give again: a flipped bit in a page shows nowhere else.
-- kind: 1 a rate, 2 an adjustment, 3 a budget, 4 a closed month.
CREATE TABLE row_digest (
	kind   bigint NOT NULL,
	id     bigint NOT NULL,
	digest bytea  NOT NULL,
	PRIMARY KEY (kind, id)
);
