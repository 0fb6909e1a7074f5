package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/roost-batch/roost/internal/accounting"
)

// digestSum is a digest of records in any order: the sum of their hashes.
type digestSum struct {
	count int64
	sum   [4]uint64
}

func (d *digestSum) add(record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	d.addHash(sha256.Sum256(text))
	return nil
}

// addHash adds the hash of a record.
func (d *digestSum) addHash(hash [sha256.Size]byte) {
	for i := range d.sum {
		d.sum[i] += binary.BigEndian.Uint64(hash[8*i:])
	}
	d.count++
}

// addSum adds the records of another digest.
func (d *digestSum) addSum(other digestSum) {
	for i := range d.sum {
		d.sum[i] += other.sum[i]
	}
	d.count += other.count
}

// addRecords adds what an iterator returns.
func addRecords[T any](d *digestSum, records iter.Seq2[T, error]) error {
	for record, err := range records {
		if err != nil {
			return err
		}
		if err := d.add(record); err != nil {
			return err
		}
	}
	return nil
}

func (d *digestSum) String() string {
	return fmt.Sprintf("%d %016x%016x%016x%016x", d.count, d.sum[0], d.sum[1], d.sum[2], d.sum[3])
}

// The tables whose rows are hashed with names in place of ids. What sums to nothing is
// left out, because it depends on how often charges were corrected.
const (
	digestUsage = `SELECT owner, grp, project, queue, step, whole, at, band, started, ended, failed, wall, suspended, held_cpu,
 used_cpu, held_gpu, held_mem, peak_mem, lost_cpu, charged_cpu, waits, wait_sum FROM rollup`
	digestEnds     = `SELECT owner, step, at, cause, attempts, held_cpu, lost_cpu, saved_cpu FROM rollup_end`
	digestWaits    = `SELECT queue, step, at, band, bucket, attempts, wait_sum FROM rollup_wait`
	digestSizes    = `SELECT step, at, band, bucket, attempts, wall, held_cpu, waits, wait_sum FROM rollup_size`
	digestCapacity = `SELECT class, step, at, total, owner, drained, held, used, desktop, total_gpu, held_gpu, attempts
FROM rollup_capacity`
	digestCharges = `SELECT owner, grp, project, queue, statement, ran, band, cpu, amount FROM charge_sum
WHERE cpu <> 0 OR amount <> 0`
)

// digestTable is a table of the digest; the first columns are ids of names.
type digestTable struct {
	name, text     string
	names, columns int
}

func digestTables() []digestTable {
	return []digestTable{
		{"usage sums", digestUsage, 4, 22}, {"end sums", digestEnds, 1, 8}, {"wait sums", digestWaits, 1, 7},
		{"size sums", digestSizes, 0, 9}, {"capacity sums", digestCapacity, 1, 12}, {"charges", digestCharges, 4, 9},
	}
}

// Digest returns a line for each kind of records with their number and a hash. Stores
// with the same records have the same digest, in whatever order these came.
func (s *Store) Digest(ctx context.Context) ([]string, error) {
	all := accounting.Selection{By: accounting.BySubmit}
	r := reader{ctx, s}
	var lines []string
	add := func(name string, f func(*digestSum) error) error {
		var d digestSum
		err := f(&d)
		lines = append(lines, name+" "+d.String())
		if err != nil {
			return fmt.Errorf("digest of %s: %w", name, s.engine.explain(err))
		}
		return nil
	}
	for _, part := range []struct {
		name string
		f    func(*digestSum) error
	}{
		{"jobs", func(d *digestSum) error { return addRecords(d, r.Jobs(all)) }},
		{"attempts", func(d *digestSum) error { return addRecords(d, r.Attempts(all)) }},
		{"actions", func(d *digestSum) error { return addRecords(d, r.Actions(accounting.TimeRange{})) }},
		{"usage", func(d *digestSum) error { return addRecords(d, r.Usage(accounting.TimeRange{})) }},
		{"machines", func(d *digestSum) error { return addRecords(d, r.Machines(accounting.TimeRange{})) }},
	} {
		if err := add(part.name, part.f); err != nil {
			return lines, err
		}
	}
	for _, t := range digestTables() {
		if err := add(t.name, func(d *digestSum) error { return s.addTable(ctx, d, t) }); err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// addTable adds the rows of a table.
func (s *Store) addTable(ctx context.Context, d *digestSum, t digestTable) error {
	values := make([]int64, t.columns)
	targets := make([]any, t.columns)
	for i := range values {
		targets[i] = &values[i]
	}
	return queryAll(ctx, s.engine.reader(), func(rows *sql.Rows) error {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		record := make([]any, t.columns)
		for i, v := range values {
			record[i] = v
			if i < t.names {
				record[i] = s.names.text(v)
			}
		}
		return d.add(record)
	}, t.text)
}
