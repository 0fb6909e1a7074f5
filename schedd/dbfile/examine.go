package dbfile

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

// Kind says what a file holds.
type Kind struct {
	What    string   // for people, as in "job log"
	Buckets []string // that it has
	Map     int      // bytes that are mapped from the start

	// Name names records for people, by their keys: the one with key from, or those up to and without to. nil: they have no names.
	Name func(d *Damage) string
	// Convert changes a record of a file of format 1 into one of now, with which it calls put. nil: it stays as it is.
	Convert func(bucket string, key, value []byte, put func(bucket string, key, value []byte)) error
}

// DamageError says what of a file is damaged.
type DamageError struct {
	Path    string
	Kind    Kind
	Damages []Damage
}

// shownDamages is how many damaged places a message names.
const shownDamages = 4

// Error names what is damaged, and what mends it.
func (e *DamageError) Error() string {
	names := e.Names()
	more := ""
	if n := len(names) - shownDamages; n > 0 {
		names, more = names[:shownDamages], fmt.Sprintf("; and %d more places", n)
	}
	rest := "all else in it is whole"
	if e.unbounded() {
		rest = "what else is missing cannot be told"
	}
	return fmt.Sprintf("%s %s: %v: the file is damaged: %s%s; %s: to see what would be taken out: roost doctor --repair --dry-run; to take it out: roost doctor --repair",
		e.Kind.What, e.Path, roost.BadConfig, strings.Join(names, "; "), more, rest)
}

// unbounded reports whether more may be damaged than can be named: the file as a whole, or records of which nobody knows which they are.
func (e *DamageError) unbounded() bool {
	return slices.ContainsFunc(e.Damages, func(d Damage) bool { return d.Bucket == "" || d.Some && d.From == nil && d.To == nil })
}

// Unwrap is the kind of the error.
func (e *DamageError) Unwrap() error { return roost.BadConfig }

// Names names each damaged place.
func (e *DamageError) Names() (all []string) {
	for i := range e.Damages {
		all = append(all, e.Kind.name(&e.Damages[i]))
	}
	return slices.Compact(all)
}

func (k *Kind) name(d *Damage) string {
	where := d.Bucket
	if k.Name != nil && d.Bucket != "" && !own(d.Bucket) {
		if name := k.Name(d); name != "" {
			where = name
		}
	}
	switch {
	case where == "":
		return d.What
	case own(where):
		where = "the seal of its contents"
	}
	return where + ": " + d.What
}

// contents is what a reading of a file has found.
type contents struct {
	txid    uint64
	seal    *seal // nil: its records have no checksums
	format  uint64
	damages []Damage
}

// examine reads all of a file. The record function, if there is one, gets each record that is whole, with its checksum taken off.
func examine(path string, k *Kind, record func(bucket string, key, value []byte)) (*contents, error) {
	f, b, err := mapped(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer syscall.Munmap(b)
	var c *contents
	err = Guard(func() error {
		c = read(b, k, record)
		return nil
	})
	return c, err
}

// mapped locks a file against whoever writes to it, and maps it.
func mapped(path string) (*os.File, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	for late := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
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

// read reads the bytes of a file. The first reading finds the seal: without one no record has a checksum.
func read(b []byte, k *Kind, record func(bucket string, key, value []byte)) *contents {
	c, found := &contents{}, map[string]tally{}
	if record == nil {
		record = func(string, []byte, []byte) {}
	}
	var sealRaw []byte
	r := &reader{b: b, record: func(string, []byte, []byte) {}}
	h, ok := r.heads()
	if ok {
		top := &reader{b: b, size: int(h.size), high: h.high, used: map[uint64]bool{}}
		top.record = func(bucket string, key, raw []byte) {
			switch {
			case bucket == string(bucketSeal) && bytes.Equal(key, keySeal):
				sealRaw = raw
			case bucket == string(bucketMeta) && bytes.Equal(key, keyFormat):
				c.format = formatOf(raw)
			}
		}
		top.only = own
		top.page("", h.root, nil, nil, 0)
	}
	r.damages = nil
	switch {
	case sealRaw != nil:
		var err error
		c.seal, err = decodeSeal(sealRaw)
		if _, v, found := corrected(string(bucketSeal), keySeal, sealRaw); err != nil && found {
			r.damages = append(r.damages, Damage{Bucket: string(bucketSeal), What: "one bit of it has flipped", Corrected: true})
			c.seal, err = decodeSeal(sealed(string(bucketSeal), keySeal, v))
		}
		if err != nil {
			r.damages = append(r.damages, Damage{What: err.Error()})
		}
	case ok && anySealed(b, h):
		c.seal = &seal{}
		r.damages = append(r.damages, Damage{What: "the seal of its contents is gone"})
	}
	r.record = func(bucket string, key, raw []byte) {
		if own(bucket) && (bucket == string(bucketSeal) || bytes.Equal(key, keyFormat)) {
			return
		}
		value := raw
		if c.seal != nil {
			t := found[bucket]
			t.add(raw)
			found[bucket] = t
			var whole bool
			if value, whole = unsealed(bucket, key, raw); !whole {
				r.damages = append(r.damages, damagedRecord(bucket, key, value, raw))
				return
			}
		}
		if c.seal != nil || k.Convert == nil {
			record(bucket, key, value)
		} else if err := k.Convert(bucket, key, value, record); err != nil {
			r.damages = append(r.damages, Damage{Bucket: bucket, From: bytes.Clone(key), What: err.Error()})
		}
	}
	r.walk()
	c.txid, c.damages = r.txid, r.damages
	c.compare(k, found)
	return c
}

// damagedRecord is the damage of a record whose checksum is wrong.
func damagedRecord(bucket string, key, value, raw []byte) Damage {
	if k, v, found := corrected(bucket, key, raw); found {
		return Damage{Bucket: bucket, From: k, What: "one bit of it has flipped", Raw: v, Corrected: true}
	}
	return Damage{Bucket: bucket, From: bytes.Clone(key), What: "its checksum is wrong", Raw: bytes.Clone(value)}
}

// compare holds what was found against what the seal says.
func (c *contents) compare(k *Kind, found map[string]tally) {
	switch {
	case c.seal == nil && c.format >= format:
		c.damages = append(c.damages, Damage{What: "the seal of its contents is gone"})
		return
	case c.seal == nil || c.seal.buckets == nil:
		return
	case c.format != format:
		c.damages = append(c.damages, Damage{What: fmt.Sprintf("its format is %d, and should be %d", c.format, format)})
	}
	for _, name := range k.Buckets {
		want, known := c.seal.buckets[name]
		got := found[name]
		named := slices.ContainsFunc(c.damages, func(d Damage) bool { return d.Bucket == name })
		switch {
		case !known && got.n == 0, got == want:
		case got.n < want.n:
			c.damages = append(c.damages, Damage{Bucket: name, Some: true, What: fmt.Sprintf("%d of %d records are not found", want.n-got.n, want.n)})
		case !named:
			c.damages = append(c.damages, Damage{Bucket: name, Some: true, What: "some of its records are not those that were written last, and which cannot be told"})
		}
	}
}

// anySealed reports whether any record of a file has its checksum: then all of them must, whatever the file says of its format.
func anySealed(b []byte, h head) (any bool) {
	r := &reader{b: b, size: int(h.size), high: h.high, used: map[uint64]bool{}}
	r.only = func(bucket string) bool { return !any && !own(bucket) }
	r.record = func(bucket string, key, raw []byte) {
		if !any {
			_, any = unsealed(bucket, key, raw)
		}
	}
	r.page("", h.root, nil, nil, 0)
	return any
}
