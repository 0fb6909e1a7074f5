package replica

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
)

// damageError describes the damage on a replica's disk.
type damageError struct {
	dir     string
	damages []string
}

const maxShownDamages = 4

// Error names the damages, and the command that repairs them.
func (e *damageError) Error() string {
	names, more := e.damages, ""
	if n := len(names) - maxShownDamages; n > 0 {
		names, more = names[:maxShownDamages], fmt.Sprintf("; and %d more places", n)
	}
	return fmt.Sprintf("%v: what is on disk is damaged: %s%s; all else in %s is whole: to see what would be taken "+
		"out: roost doctor --repair --dry-run; to take it out: roost doctor --repair",
		roost.BadConfig, strings.Join(names, "; "), more, e.dir)
}

// Unwrap returns roost.BadConfig, the kind of the error.
func (e *damageError) Unwrap() error { return roost.BadConfig }

// damagesOf returns the damages in an error, or none if it is another error.
func damagesOf(err error) []string {
	var own *damageError
	var file *boltfile.DamageError
	switch {
	case errors.As(err, &own):
		return own.damages
	case errors.As(err, &file):
		return file.Names()
	}
	return nil
}

// checkAll reads all entries and snapshots.
func (s *diskStore) checkAll(dir string) error {
	damaged, err := s.snapshots.checkSnapshots()
	if err != nil {
		return err
	}
	found, err := s.checkLog()
	if err != nil {
		return err
	}
	if damaged = append(damaged, found.damages...); len(damaged) > 0 {
		return &damageError{dir, damaged}
	}
	if first := found.checksummedFrom; s.mark.lastWritten != found.last || s.mark.checksummedFrom != first ||
		!s.mark.existed {
		return s.mark.writeMark(found.last, first)
	}
	return nil
}

// logScan is the result of reading the log.
type logScan struct {
	first, last     uint64
	checksummedFrom uint64 // from this entry on all have checksums
	damages         []string
	damagedEntries  map[uint64]bool
}

func (s *diskStore) checkLog() (f logScan, err error) {
	f.damagedEntries = map[uint64]bool{}
	if f.first, err = s.FirstIndex(); err == nil {
		f.last, err = s.LastIndex()
	}
	if err != nil {
		return f, err
	}
	f.checksummedFrom = f.last + 1
	for index := f.first; index <= f.last && index > 0; index++ {
		summed, err := s.readEntry(index, new(raft.Log))
		switch {
		case err == nil && !summed && f.checksummedFrom <= f.last:
			err = fmt.Errorf("entry %d: %w: it is gone", index, errDamaged)
		case summed && f.checksummedFrom > f.last:
			f.checksummedFrom = index
		}
		if err != nil {
			f.damages, f.damagedEntries[index] = append(f.damages, err.Error()), true
		}
	}
	if s.mark.existed && s.mark.lastWritten > f.last {
		f.damages = append(f.damages, fmt.Sprintf("entries %d to %d are gone from the end of the log", f.last+1,
			s.mark.lastWritten))
	}
	list, err := s.snapshots.List()
	if err != nil {
		return f, err
	}
	newest := uint64(0)
	if len(list) > 0 {
		newest = list[0].Index
	}
	if f.first > newest+1 {
		f.damages = append(f.damages, fmt.Sprintf("entries %d to %d are neither in the log nor in a snapshot", newest+1,
			f.first-1))
	}
	return f, nil
}
