// Package spool stores batches of values on disk until each of them is delivered, so that
// a restart delivers what is left.
//
//	Write: a file, on disk before it returns
//	  ──▶ the values are delivered, in any order
//	  ──▶ Delivered for each: the file is deleted after the last
//
// A value is delivered at least once. Whoever dies between a delivery and the deletion of
// its file delivers the batch again.
package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/filesum"
)

// Spool is a directory with a file for each batch that is not delivered. The numbers of
// the files give the order in which they were written.
type Spool[T any] struct {
	dir  string
	last uint64
}

// Entry is one value in a spool.
type Entry[T any] struct {
	Value     T
	path      string
	remaining *atomic.Int64 // values of the file that are not delivered
}

// Open opens a directory, and makes it if it is missing. It returns what is left there,
// in the order of writing. An error with a spool names files that were damaged and are
// gone; without one the directory cannot be used.
func Open[T any](dir string) (*Spool[T], []*Entry[T], error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	s := &Spool[T]{dir: dir}
	var numbers []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		n, err := strconv.ParseUint(name, 10, 64)
		if !ok || err != nil {
			os.Remove(filepath.Join(dir, e.Name())) // left by an interrupted write
			continue
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var all []*Entry[T]
	var bad error
	for _, n := range numbers {
		s.last = n
		text, err := os.ReadFile(s.Path(n))
		var values []T
		if err == nil {
			text, err = filesum.VerifyChecksum(text)
		}
		if err == nil {
			err = json.Unmarshal(text, &values)
		}
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", s.Path(n), err))
			os.Remove(s.Path(n))
			continue
		}
		all = append(all, s.entries(n, values)...)
	}
	return s, all, bad
}

// Write writes values to a new file and syncs it to disk. Only one goroutine may call it.
func (s *Spool[T]) Write(values []T) ([]*Entry[T], error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	n := s.last + 1
	if err := atomicfile.WriteDurable(s.Path(n), filesum.AppendChecksum(text), 0o600); err != nil {
		return nil, err
	}
	s.last = n
	return s.entries(n, values), nil
}

// Path returns the file of a batch.
func (s *Spool[T]) Path(n uint64) string { return filepath.Join(s.dir, fmt.Sprintf("%020d.json", n)) }

func (s *Spool[T]) entries(n uint64, values []T) []*Entry[T] {
	left := new(atomic.Int64)
	left.Store(int64(len(values)))
	all := make([]*Entry[T], len(values))
	for i, v := range values {
		all[i] = &Entry[T]{v, s.Path(n), left}
	}
	return all
}

// Delivered notes that the value need not be delivered again. It may be called by several
// goroutines, once for each entry.
func (e *Entry[T]) Delivered() {
	if e.remaining.Add(-1) == 0 {
		os.Remove(e.path)
	}
}
