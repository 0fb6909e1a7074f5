package replica

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/types"

	"github.com/roost-batch/roost"
)

const (
	segmentSize       = 4 << 20 // bytes, allocated ahead; small, because personal pools have one, too
	retainedSnapshots = 2
)

// diskStore is a replica's state on disk: the log, the term and vote, and snapshots. Each
// is durable when the call that writes it returns.
//
// Raft continues as a follower if its log cannot be written, and panics if its term
// cannot. Here both end the daemon: its master restarts it from the disk, and the error
// is logged.
type diskStore struct {
	*wal.WAL
	lock          *os.File
	mark          *logMark
	snapshots     snapshotStore
	onFailure     func(error)
	hadNoEntry    bool        // when it was opened: an earlier process made it, and wrote no entry
	panicsGuarded atomic.Bool // raft calls this store from its own goroutines, whose panics must be caught
}

func openStore(dir string, log *slog.Logger, breaks func(error)) (*diskStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	return openLocked(dir, lock, log, breaks)
}

// openLocked opens a store whose directory is already locked. The lock is released with
// the store, or on an error.
func openLocked(dir string, lock *os.File, log *slog.Logger, breaks func(error)) (*diskStore, error) {
	s := &diskStore{lock: lock, onFailure: breaks}
	path := filepath.Join(dir, "log")
	_, missing := os.Stat(path)
	err := os.MkdirAll(path, 0o700)
	if err == nil {
		err = s.openFiles(dir, path, log)
	}
	if err == nil {
		s.hadNoEntry = missing == nil && s.mark.existed && s.mark.lastWritten == 0
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func (s *diskStore) openFiles(dir, path string, log *slog.Logger) (err error) {
	if s.mark, err = openMark(dir); err != nil {
		return fmt.Errorf("log in %s: %w", path, err)
	}
	meta := &metaStore{} // an Open that fails leaves it open and locked
	err = recoverPanic(func() (err error) {
		s.WAL, err = wal.Open(path, wal.WithSegmentSize(segmentSize), wal.WithLogger(newLogger(log)),
			wal.WithMetaStore(meta))
		return err
	})
	if err != nil {
		if errors.Is(err, types.ErrCorrupt) {
			err = &damageError{dir, []string{"the log: " + err.Error()}}
		}
		return errors.Join(fmt.Errorf("log in %s: %w", path, err), meta.Close(), s.mark.close())
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, retainedSnapshots, newLogger(log))
	if err == nil {
		s.snapshots = snapshotStore{snaps, dir, s.onFailure}
		err = s.checkAll(dir)
	} else {
		err = fmt.Errorf("snapshots in %s: %w", dir, err)
	}
	if err != nil {
		return errors.Join(err, s.WAL.Close(), s.mark.close())
	}
	return nil
}

// isEmpty reports whether there is no entry and no snapshot. A term and a vote alone do
// not count.
func (s *diskStore) isEmpty() (bool, error) {
	last, err := s.LastIndex()
	if err != nil {
		return false, err
	}
	list, err := s.snapshots.List()
	return last == 0 && len(list) == 0, err
}

func (s *diskStore) setGuarded() { s.panicsGuarded.Store(true) }

func (s *diskStore) close() {
	s.WAL.Close()
	s.mark.close()
	s.lock.Close()
}

// lockDir excludes a second process from a replica's directory, where bbolt would
// silently wait for the first one.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w: another process has this replica open: stop the negotiator of this node first",
			dir, roost.Conflict)
	}
	return f, nil
}

// reportFailure reports the failure of a write.
func (s *diskStore) reportFailure(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
		s.onFailure(err)
	}
	return err
}

// reportFatal reports a failure after which raft would panic, and ends the calling
// goroutine of raft. Run then ends the others.
func (s *diskStore) reportFatal(what string, err error) error {
	if s.reportFailure(what, err) != nil && s.panicsGuarded.Load() {
		runtime.Goexit()
	}
	return err
}

func (s *diskStore) GetLog(index uint64, log *raft.Log) error {
	_, err := s.readEntry(index, log)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	return s.reportFatal("read the log", err)
}

// readEntry reads an entry and verifies its checksum.
func (s *diskStore) readEntry(index uint64, log *raft.Log) (summed bool, err error) {
	if err := recoverPanic(func() error { return s.WAL.GetLog(index, log) }); err != nil {
		return false, err
	}
	summed, err = checkEntry(index, log)
	if err == nil && !summed && index >= s.mark.checksummedFrom && s.mark.checksummedFrom > 0 {
		err = fmt.Errorf("entry %d: %w: it is gone", index, errDamaged)
	}
	return summed, err
}

// recoverPanic turns a panic into an error, because the decoder of entries trusts their
// lengths.
func recoverPanic(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", types.ErrCorrupt, r)
		}
	}()
	return f()
}

func (s *diskStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

func (s *diskStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	on := make([]*raft.Log, len(logs))
	for i, l := range logs {
		on[i] = withChecksum(l)
	}
	err := s.WAL.StoreLogs(on)
	if err == nil {
		err = s.mark.raiseLast(logs[len(logs)-1].Index)
	}
	return s.reportFailure("write the log", err)
}

func (s *diskStore) DeleteRange(first, last uint64) error {
	from, err := s.FirstIndex()
	var to uint64
	if err == nil {
		to, err = s.LastIndex()
	}
	if err == nil && last >= to { // the end of the range, or of the log
		left := first - 1
		if first <= from {
			left = 0
		}
		err = s.mark.lowerLast(left)
	}
	if err == nil {
		err = s.WAL.DeleteRange(first, last)
	}
	return s.reportFailure("cut the log", err)
}

func (s *diskStore) Set(key, value []byte) error {
	return s.reportFatal("write the vote", s.WAL.Set(key, value))
}

func (s *diskStore) SetUint64(key []byte, value uint64) error {
	return s.reportFatal("write the term", s.WAL.SetUint64(key, value))
}

// raftFSM adapts the state machine to raft. A failure to write or read its snapshots ends
// the daemon, too.
type raftFSM struct {
	StateMachine
	onFailure func(error)
}

func (m raftFSM) Apply(entry *raft.Log) any { return m.StateMachine.Apply(entry.Index, entry.Data) }

func (m raftFSM) Snapshot() (raft.FSMSnapshot, error) {
	write, err := m.StateMachine.Snapshot()
	if err != nil {
		m.onFailure(fmt.Errorf("take a snapshot: %w", err))
	}
	return storedSnapshot{write, m.onFailure}, err
}

func (m raftFSM) Restore(from io.ReadCloser) error {
	defer from.Close()
	err := m.StateMachine.Restore(from)
	if err != nil {
		m.onFailure(fmt.Errorf("restore a snapshot: %w", err))
	}
	return err
}

type storedSnapshot struct {
	write     func(io.Writer) error
	onFailure func(error)
}

func (s storedSnapshot) Release() {}

func (s storedSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.write(sink); err != nil {
		s.onFailure(fmt.Errorf("write a snapshot: %w", err))
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}
