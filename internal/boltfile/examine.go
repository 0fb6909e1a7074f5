package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/roost-batch/roost"
)

// ContentKind describes the contents of a file.
type ContentKind struct {
	Description string   // for messages, such as "job log"
	Buckets     []string // buckets of the file
	InitialMap  int      // bytes to map from the start
	Format      uint64   // the newest known format of the contents; 0: 2

	// Name describes damaged records by their keys, in messages: the record with key
	// From, or those from From to before To. nil: records have no names.
	Name func(d *DamageFinding) string
	// Convert converts a record of format 1 to the present format and calls put with the
	// result. nil: it stays as it is.
	Convert func(bucket string, key, value []byte, put func(bucket string, key, value []byte)) error
}

// DamageError describes the damage of a file.
type DamageError struct {
	Path    string
	Kind    ContentKind
	Damages []DamageFinding
}

// maxShownDamages bounds the damages in a message.
const maxShownDamages = 4

func (k *ContentKind) newestFormat() uint64 { return max(k.Format, formatVersion) }

// checkFormat refuses a file of a later format.
func (k *ContentKind) checkFormat(c *fileContents) error {
	if c == nil || c.checksum == nil || c.checksum.format <= k.newestFormat() {
		return nil
	}
	return fmt.Errorf("its format is %d, and this program knows %d: a newer version of Roost wrote it, and is needed "+
		"to read it", c.checksum.format, k.newestFormat())
}

// Error names the damages, and the command that repairs them.
func (e *DamageError) Error() string {
	names := e.Names()
	more := ""
	if n := len(names) - maxShownDamages; n > 0 {
		names, more = names[:maxShownDamages], fmt.Sprintf("; and %d more places", n)
	}
	rest := "all else in it is whole"
	if e.isUnbounded() {
		rest = "what else is missing is unknown"
	}
	return fmt.Sprintf("%s %s: %v: the file is damaged: %s%s; %s: to see what would be taken out: roost doctor "+
		"--repair --dry-run; to take it out: roost doctor --repair",
		e.Kind.Description, e.Path, roost.BadConfig, strings.Join(names, "; "), more, rest)
}

// isUnbounded reports whether more may be damaged than is named: the file as a whole, or
// unknown records.
func (e *DamageError) isUnbounded() bool {
	return slices.ContainsFunc(e.Damages, func(d DamageFinding) bool {
		return d.Bucket == "" || d.IsRange && d.From == nil && d.To == nil
	})
}

// Unwrap returns roost.BadConfig, the kind of the error.
func (e *DamageError) Unwrap() error { return roost.BadConfig }

// Names describes each damage.
func (e *DamageError) Names() (all []string) {
	for i := range e.Damages {
		all = append(all, e.Kind.displayName(&e.Damages[i]))
	}
	return slices.Compact(all)
}

func (k *ContentKind) displayName(d *DamageFinding) string {
	where := d.Bucket
	if k.Name != nil && d.Bucket != "" && !isInternalBucket(d.Bucket) {
		if name := k.Name(d); name != "" {
			where = name
		}
	}
	switch {
	case where == "":
		return d.Reason
	case isInternalBucket(where):
		where = "the seal of its contents"
	}
	return where + ": " + d.Reason
}

// fileContents is the result of reading a file.
type fileContents struct {
	txid     uint64
	checksum *contentChecksum // nil: its records have no checksums
	format   uint64
	damages  []DamageFinding
}

// examineFile reads all of a file. If record is not nil, it is called with each intact
// record, without its checksum.
func examineFile(path string, k *ContentKind, record func(bucket string, key, value []byte)) (*fileContents, error) {
	f, b, err := mapLocked(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer syscall.Munmap(b)
	var c *fileContents
	err = CatchFaults(func() error {
		c = readContents(b, k, record)
		return nil
	})
	return c, err
}

// mapLocked locks a file against writers, and maps it.
func mapLocked(path string) (*os.File, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	for late := time.Now().Add(lockTimeout); ; time.Sleep(50 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		if err = bolterrors.ErrTimeout; time.Now().After(late) {
			break
		}
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	var b []byte
	if err == nil && info.Size() > 0 {
		b, err = syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, b, nil
}

// readContents reads the bytes of a file. A first pass finds the seal: without one no
// record has a checksum.
func readContents(b []byte, k *ContentKind, record func(bucket string, key, value []byte)) *fileContents {
	c, found := &fileContents{}, map[string]bucketChecksum{}
	if record == nil {
		record = func(string, []byte, []byte) {}
	}
	var sealRaw []byte
	r := &pageReader{bytes: b, record: func(string, []byte, []byte) {}}
	h, ok := r.newestMeta()
	if ok {
		top := &pageReader{bytes: b, size: int(h.size), pageCount: h.pageCount, used: map[uint64]bool{}}
		top.record = func(bucket string, key, raw []byte) {
			switch {
			case bucket == string(bucketChecksums) && bytes.Equal(key, keyChecksum):
				sealRaw = raw
			case bucket == string(bucketMeta) && bytes.Equal(key, keyFormat):
				c.format = fileFormat(raw)
			}
		}
		top.includeBucket = isInternalBucket
		top.readPage("", h.root, nil, nil, 0)
	}
	r.damages = nil
	switch {
	case sealRaw != nil:
		var err error
		c.checksum, err = decodeContentChecksum(sealRaw)
		if _, v, found := correctFlippedBit(string(bucketChecksums), keyChecksum, sealRaw); err != nil && found {
			r.damages = append(r.damages, DamageFinding{Bucket: string(bucketChecksums),
				Reason: "one bit of it has flipped", Corrected: true})
			c.checksum, err = decodeContentChecksum(appendChecksum(string(bucketChecksums), keyChecksum, v))
		}
		if err != nil {
			r.damages = append(r.damages, DamageFinding{Reason: err.Error()})
		}
	case ok && hasChecksums(b, h):
		c.checksum = &contentChecksum{format: formatVersion}
		r.damages = append(r.damages, DamageFinding{Reason: "the seal of its contents is gone"})
	}
	r.record = func(bucket string, key, raw []byte) {
		if isInternalBucket(bucket) && (bucket == string(bucketChecksums) || bytes.Equal(key, keyFormat)) {
			return
		}
		value := raw
		if c.checksum != nil {
			t := found[bucket]
			t.add(raw)
			found[bucket] = t
			var whole bool
			if value, whole = verifyChecksum(bucket, key, raw); !whole {
				r.damages = append(r.damages, damagedRecord(bucket, key, value, raw))
				return
			}
		}
		if c.checksum != nil || k.Convert == nil {
			record(bucket, key, value)
		} else if err := k.Convert(bucket, key, value, record); err != nil {
			r.damages = append(r.damages, DamageFinding{Bucket: bucket, From: bytes.Clone(key), Reason: err.Error()})
		}
	}
	r.readAll()
	c.txid, c.damages = r.txid, r.damages
	c.compareChecksum(k, found)
	return c
}

// damagedRecord returns the damage of a record with a wrong checksum.
func damagedRecord(bucket string, key, value, raw []byte) DamageFinding {
	if k, v, found := correctFlippedBit(bucket, key, raw); found {
		return DamageFinding{Bucket: bucket, From: k, Reason: "one bit of it has flipped", Raw: v, Corrected: true}
	}
	return DamageFinding{Bucket: bucket, From: bytes.Clone(key), Reason: "its checksum is wrong",
		Raw: bytes.Clone(value)}
}

// compareChecksum compares what was found with the seal.
func (c *fileContents) compareChecksum(k *ContentKind, found map[string]bucketChecksum) {
	switch {
	case c.checksum == nil && c.format >= formatVersion:
		c.damages = append(c.damages, DamageFinding{Reason: "the seal of its contents is gone"})
		return
	case c.checksum == nil || c.checksum.buckets == nil:
		return
	case c.format != c.checksum.format:
		c.damages = append(c.damages,
			DamageFinding{Reason: fmt.Sprintf("its format is %d, and should be %d", c.format, c.checksum.format)})
	}
	for _, name := range k.Buckets {
		want, known := c.checksum.buckets[name]
		got := found[name]
		named := slices.ContainsFunc(c.damages, func(d DamageFinding) bool { return d.Bucket == name })
		switch {
		case !known && got.count == 0, got == want:
		case got.count < want.count:
			c.damages = append(c.damages, DamageFinding{Bucket: name, IsRange: true,
				Reason: fmt.Sprintf("%d of %d records are not found", want.count-got.count, want.count)})
		case !named:
			c.damages = append(c.damages, DamageFinding{Bucket: name, IsRange: true,
				Reason: "some of its records are not those that were written last, and which ones is unknown"})
		}
	}
}

// hasChecksums reports whether any record of a file has its checksum. Then all must have
// one, whatever format the file states.
func hasChecksums(b []byte, h metaPage) (any bool) {
	r := &pageReader{bytes: b, size: int(h.size), pageCount: h.pageCount, used: map[uint64]bool{}}
	r.includeBucket = func(bucket string) bool { return !any && !isInternalBucket(bucket) }
	r.record = func(bucket string, key, raw []byte) {
		if !any {
			_, any = verifyChecksum(bucket, key, raw)
		}
	}
	r.readPage("", h.root, nil, nil, 0)
	return any
}
