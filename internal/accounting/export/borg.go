package export

import (
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"iter"
	"math"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// BorgTrace writes the tables of the Borg traces of 2019, version 3 of Google's format.
// Each is compressed CSV, with the names of the fields of its protocol buffer in the
// head. It hashes names with a key, so that who has the trace alone cannot find out who
// used the pool; with the same key, two traces have the same names.
type BorgTrace struct {
	options BorgOptions
	mac     hash.Hash
	sum     []byte
	ids     map[string]int64 // of machines; cleared when it has maxBorgIDs
}

// BorgOptions says what a trace is of.
type BorgOptions struct {
	Key    []byte // of the hash of names: 16 bytes or more
	Window accounting.TimeRange
	CPU    roost.MilliCPU // of the largest machine, which is 1 in the trace
	Memory roost.Bytes    // of the largest machine
}

const (
	minBorgKey = 16
	maxBorgIDs = 1 << 17

	borgStart = 600_000_000   // begin of the window, in microseconds: 0 is all before it
	borgAfter = math.MaxInt64 // an event after the window
)

// NewBorgTrace returns a trace of a window of time.
func NewBorgTrace(o BorgOptions) (*BorgTrace, error) {
	switch {
	case len(o.Key) < minBorgKey:
		return nil, fmt.Errorf("key of names: %w: it has %d bytes; take %d random ones or more", roost.Invalid,
			len(o.Key), minBorgKey)
	case o.Window.From <= 0 || o.Window.To != 0 && o.Window.To <= o.Window.From:
		return nil, fmt.Errorf("window: %w: it has no begin, or ends before it", roost.Invalid)
	case o.CPU <= 0 || o.Memory <= 0:
		return nil, fmt.Errorf("largest machine: %w: its CPUs and memory are not known; amounts are shares of them",
			roost.Invalid)
	}
	return &BorgTrace{options: o, mac: hmac.New(sha256.New, o.Key), ids: map[string]int64{}}, nil
}

// digest hashes a name of a kind. It is valid until the next call.
func (t *BorgTrace) digest(kind, name string) []byte {
	t.mac.Reset()
	io.WriteString(t.mac, kind)
	t.mac.Write([]byte{0})
	io.WriteString(t.mac, name)
	t.sum = t.mac.Sum(t.sum[:0])
	return t.sum
}

// name returns the hashed form of a name; nothing stays nothing.
func (t *BorgTrace) name(kind, name string) string {
	if name == "" {
		return ""
	}
	return hex.EncodeToString(t.digest(kind, name)[:16])
}

// id returns a number above 0 for a name.
func (t *BorgTrace) id(kind, name string) int64 {
	return int64(binary.BigEndian.Uint64(t.digest(kind, name))>>1 | 1)
}

// machine returns the id of a machine; 0 is no machine.
func (t *BorgTrace) machine(node string) int64 {
	if node == "" {
		return 0
	}
	id, known := t.ids[node]
	if !known {
		if len(t.ids) >= maxBorgIDs {
			clear(t.ids)
		}
		id = t.id("machine", node)
		t.ids[node] = id
	}
	return id
}

func (t *BorgTrace) collection(key *accounting.JobKey) int64 {
	return t.id("collection", string(key.Source[:])+strconv.FormatUint(key.Seq, 10))
}

// time returns microseconds of the trace.
func (t *BorgTrace) time(at accounting.Millis) int64 {
	switch w := t.options.Window; {
	case at < w.From:
		return 0
	case w.To != 0 && at >= w.To:
		return borgAfter
	default:
		return int64(at-w.From)*1000 + borgStart
	}
}

func (t *BorgTrace) cpus(n roost.MilliCPU) cell { return floatOf(float64(n) / float64(t.options.CPU)) }

func (t *BorgTrace) memory(n roost.Bytes) cell {
	return floatOf(float64(n) / float64(t.options.Memory))
}

// borgTable writes a table into compressed CSV.
type borgTable[T any] struct {
	*csvWriter[T]
	packed *gzip.Writer
}

func newBorgTable[T any](t *Table[T], w io.Writer) borgTable[T] {
	packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
	return borgTable[T]{newCSVWriter(t, packed), packed}
}

// finish ends the file.
func (t *borgTable[T]) finish() error {
	if err := t.Flush(); err != nil {
		return err
	}
	return t.packed.Close()
}

// writeBorg writes records of one table.
func writeBorg[T any](t *Table[T], w io.Writer, records iter.Seq2[T, error]) (n int64, err error) {
	out := newBorgTable(t, w)
	for r, err := range records {
		if err == nil {
			err = out.write(&r)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, out.finish()
}

// noValue is a column of the format that Roost has no value for.
func noValue[T any](name string) Column[T] {
	return Column[T]{name, "empty", func(*T) cell { return cell{} }}
}

// constant is a column that is the same in all records.
func constant[T any](name, about string, n int64) Column[T] {
	return Column[T]{name, about, func(*T) cell { return integerOf(n) }}
}
