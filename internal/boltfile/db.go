package boltfile

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	bolt "go.etcd.io/bbolt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/logmark"
)

// DB is an open file. Its methods are safe for concurrent use.
type DB struct {
	bolt       *bolt.DB
	path       string
	commitMark *logmark.File // closed with the file

	mu       sync.Mutex       // held by the writer
	checksum *contentChecksum // as of the last transaction
	written  int              // bytes of records, since the pages were released
}

// releasedBytes is after how many written bytes the pages of a file are released.
const releasedBytes = 2 << 20

// Close closes the file.
func (db *DB) Close() (err error) {
	if db.bolt != nil {
		err = db.bolt.Close()
	}
	if db.commitMark != nil {
		err = errors.Join(err, db.commitMark.Close())
	}
	return err
}

// ReleasePages takes the pages of the file out of this process's memory, where all that
// was read of it counts. The system retains them in its cache, and reads them again when
// they are needed.
func (db *DB) ReleasePages() error {
	return db.bolt.View(func(tx *bolt.Tx) error { // which holds the mapping
		_, _, failed := syscall.Syscall(syscall.SYS_MADVISE, db.bolt.Info().Data, uintptr(tx.Size()),
			syscall.MADV_DONTNEED)
		if failed != 0 {
			return fmt.Errorf("%s: release its pages: %w", db.path, failed)
		}
		return nil
	})
}

// Format returns the format of the file's contents. It is 2 for a new file.
func (db *DB) Format() uint64 {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.checksum.format
}

// Update runs f in a read-write transaction. When it returns nil, what f wrote is on
// disk.
func (db *DB) Update(f func(*Tx) error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	next := commitMark{id: db.checksum.id}
	tx := &Tx{db: db, checksum: db.checksum.clone()}
	err := db.bolt.Update(func(raw *bolt.Tx) error {
		tx.tx, next.txid = raw, uint64(raw.ID())
		err := f(tx)
		if err = errors.Join(tx.damage, err); err != nil {
			return err
		}
		return tx.writeChecksum()
	})
	if err != nil {
		return err
	}
	db.checksum = tx.checksum
	if db.written >= releasedBytes {
		db.written = 0
		err = db.ReleasePages()
	}
	return errors.Join(db.commitMark.Write(next.encode()), err)
}

// View runs f in a read-only transaction. If f met a record that was damaged after the
// file was opened, the error names it.
func (db *DB) View(f func(*Tx) error) error {
	return db.bolt.View(func(raw *bolt.Tx) error {
		tx := &Tx{db: db, tx: raw}
		err := f(tx)
		return errors.Join(tx.damage, err)
	})
}

// Tx is a transaction.
type Tx struct {
	db       *DB
	tx       *bolt.Tx
	checksum *contentChecksum
	damage   error
}

// writeChecksum writes the seal.
func (tx *Tx) writeChecksum() error {
	meta, err := tx.tx.CreateBucketIfNotExists(bucketMeta)
	if err == nil && fileFormat(meta.Get(keyFormat)) != tx.checksum.format {
		err = meta.Put(keyFormat, bigEndian(tx.checksum.format))
	}
	var b *bolt.Bucket
	if err == nil {
		b, err = tx.tx.CreateBucketIfNotExists(bucketChecksums)
	}
	if err != nil {
		return err
	}
	return b.Put(keyChecksum, tx.checksum.encode())
}

// SetFormat raises the format of the file. Programs that do not know it refuse the file.
func (tx *Tx) SetFormat(format uint64) { tx.checksum.format = format }

// Bucket returns a bucket, which must exist.
func (tx *Tx) Bucket(name []byte) *Bucket { return &Bucket{tx.tx.Bucket(name), tx, string(name)} }

// CreateBucketIfNotExists creates a bucket if there is none.
func (tx *Tx) CreateBucketIfNotExists(name []byte) (*Bucket, error) {
	b, err := tx.tx.CreateBucketIfNotExists(name)
	return &Bucket{b, tx, string(name)}, err
}

// EmptyBucket deletes all records of a bucket.
func (tx *Tx) EmptyBucket(name []byte) error {
	if err := tx.tx.DeleteBucket(name); err != nil {
		return err
	}
	tx.checksum.buckets[string(name)] = bucketChecksum{}
	_, err := tx.tx.CreateBucket(name)
	return err
}

// verifiedValue returns a value without its checksum. A damaged record makes the
// transaction fail when its function returns.
func (tx *Tx) verifiedValue(bucket string, key, raw []byte) []byte {
	if key == nil || raw == nil {
		return nil
	}
	value, ok := verifyChecksum(bucket, key, raw)
	if !ok {
		if tx.damage == nil {
			tx.damage = fmt.Errorf("%s: %w: record %x of %s has been damaged on disk; restart the daemon, which "+
				"then says what to do", tx.db.path, roost.BadConfig, key, bucket)
		}
		return nil
	}
	return value
}

// Bucket is one of a file's buckets.
type Bucket struct {
	b    *bolt.Bucket
	tx   *Tx
	name string
}

// FillEnd tells bbolt that keys are only ever appended.
func (b *Bucket) FillEnd() { b.b.FillPercent = 0.95 }

// Get returns the value of a key, nil if there is none. The value is valid until the
// transaction ends.
func (b *Bucket) Get(key []byte) []byte { return b.tx.verifiedValue(b.name, key, b.b.Get(key)) }

// Len returns the number of records.
func (b *Bucket) Len() int { return b.b.Stats().KeyN }

// Put writes a record.
func (b *Bucket) Put(key, value []byte) error {
	t := b.tx.checksum.buckets[b.name]
	if old := b.b.Get(key); old != nil {
		t.remove(old)
	}
	raw := appendChecksum(b.name, key, value)
	t.add(raw)
	b.tx.db.written += len(raw)
	b.tx.checksum.buckets[b.name] = t
	return b.b.Put(key, raw)
}

// Delete deletes a record, if it exists.
func (b *Bucket) Delete(key []byte) error {
	if old := b.b.Get(key); old != nil {
		t := b.tx.checksum.buckets[b.name]
		t.remove(old)
		b.tx.checksum.buckets[b.name] = t
	}
	return b.b.Delete(key)
}

// ForEach calls f with each record, in the order of keys.
func (b *Bucket) ForEach(f func(key, value []byte) error) error {
	return b.b.ForEach(func(k, raw []byte) error {
		v := b.tx.verifiedValue(b.name, k, raw)
		if v == nil {
			return b.tx.damage
		}
		return f(k, v)
	})
}

// Cursor returns a cursor, which moves over the records in the order of keys. After the
// last record, keys are nil.
func (b *Bucket) Cursor() *Cursor { return &Cursor{b.b.Cursor(), b} }

// Cursor is a position in a bucket.
type Cursor struct {
	c *bolt.Cursor
	b *Bucket
}

func (c *Cursor) record(key, raw []byte) (k, v []byte) {
	return key, c.b.tx.verifiedValue(c.b.name, key, raw)
}

// First moves to the first record.
func (c *Cursor) First() (k, v []byte) { return c.record(c.c.First()) }

// Last moves to the last record.
func (c *Cursor) Last() (k, v []byte) { return c.record(c.c.Last()) }

// Next moves to the next record.
func (c *Cursor) Next() (k, v []byte) { return c.record(c.c.Next()) }

// Prev moves to the record before.
func (c *Cursor) Prev() (k, v []byte) { return c.record(c.c.Prev()) }

// Seek moves to the first record whose key is at least key.
func (c *Cursor) Seek(key []byte) (k, v []byte) { return c.record(c.c.Seek(key)) }

// Delete deletes a record at which the cursor is.
func (c *Cursor) Delete(key []byte) error { return c.b.Delete(key) }
