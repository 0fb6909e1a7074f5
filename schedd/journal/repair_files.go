package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// readFiles reads the file at path and its log, and returns their damages, nil if there
// are none.
func (r *repairState) readFiles(path string) (*boltfile.DamageError, error) {
	kind := fileKind(r.host)
	damage, err := boltfile.InspectFile(path, kind, r.addRecord)
	if err != nil {
		return nil, err
	}
	dir := logDir(path)
	found := []boltfile.DamageFinding(nil)
	err = boltfile.CatchFaults(func() (err error) {
		found, err = r.readLog(dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case damage != nil:
		damage.Damages = append(damage.Damages, found...)
	case len(found) > 0:
		damage = &boltfile.DamageError{Path: dir, Kind: kind, Damages: found}
	}
	return damage, nil
}

// readLog reads the log in dir, and returns its damages.
func (r *repairState) readLog(dir string) (found []boltfile.DamageFinding, err error) {
	from, known := r.counters[string(keyNextBatch)]
	if r.logID == nil {
		empty, err := appendlog.IsEmpty(dir)
		if err != nil || empty {
			return nil, err // the file is of format 2, or there is nothing left of its log
		}
		found = foreignLog()
	}
	if !known {
		for i := range r.oldEvents { // the checkpoint includes the batches of its events
			if key := r.oldEvents[i].key; len(key) >= 16 {
				from = max(from, binary.BigEndian.Uint64(key[8:])+1)
			}
		}
	}
	next, findings, err := appendlog.Inspect(dir, r.logID, from, func(number uint64, data []byte) error {
		r.batches[number] = salvageBatch(cloneBytes(data))
		return nil
	})
	r.logNext = next
	return append(found, logDamages(findings)...), err
}

// logDamages describes the damages of a log as those of a bucket.
func logDamages(findings []appendlog.Finding) (all []boltfile.DamageFinding) {
	for _, f := range findings {
		d := boltfile.DamageFinding{Bucket: string(bucketLog), Reason: f.Reason, Raw: f.Data, Corrected: f.Corrected}
		switch {
		case f.Corrected && f.Data == nil: // no entry is damaged
		case f.First == f.Last:
			d.From = bigEndian(f.First)
		default:
			d.IsRange, d.From, d.To = true, bigEndian(f.First), bigEndian(f.Last+1)
		}
		all = append(all, d)
	}
	return all
}

// withLogDamages adds the damages of the log to an error that reports those of the file.
func withLogDamages(err error, dir, host string) error {
	path := filepath.Join(dir, FileName)
	var damage *boltfile.DamageError
	if !errors.As(err, &damage) || damage.Path != path {
		return err
	}
	r := newRepairState(host)
	if all, err := r.readFiles(path); err == nil && all != nil {
		return all
	}
	return err
}

// replaceFiles replaces the file at path and its log. Until the new file has its name, a
// crash leaves the damaged ones as they are. After that the prepared log is the one to
// which the file belongs, and the next Open puts it in place.
func (r *repairState) replaceFiles(path string, q *queue.Queue, held []queue.JobEvent,
	now time.Time) (aside string, err error) {
	next := max(r.counters[string(keyNextBatch)], r.logNext)
	for n := range r.batches {
		next = max(next, n+1)
	}
	next++ // the events that hold jobs are a batch of their own
	dir := logDir(path)
	if err := linkSegments(dir, boltfile.Aside(path, now)+".log"); err != nil {
		return "", err
	}
	if r.logID == nil {
		r.logID = new(appendlog.ID)
		rand.Read(r.logID[:])
	}
	if err := appendlog.Prepare(dir, *r.logID, next); err != nil {
		return "", err
	}
	return boltfile.ReplaceDamaged(path, fileKind(r.host), now, func(w *boltfile.ReplacementWriter) error {
		r.writeRemoved(w, q, now, boltfile.Aside(path, now))
		return r.writeLog(w, q, held, next, now)
	})
}

// linkSegments links the segments of the log in dir into another directory.
func linkSegments(dir, aside string) error {
	segments, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(segments) == 0 {
		return err
	}
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, path := range segments {
		if err := os.Link(path, filepath.Join(aside, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return atomicfile.SyncDir(aside)
}
