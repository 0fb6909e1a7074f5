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
	"github.com/hashicorp/raft-wal/metadb"

	"github.com/roost-batch/roost"
)

const (
	segmentSize   = 4 << 20 // bytes, allocated ahead: a personal pool has one too
	keepSnapshots = 2
)

// store is what a replica has on disk: the log, the term and vote, and snapshots. Each is durable when a call that writes it returns.
//
// Raft goes on as a follower when its log cannot be written, and panics when its term cannot. Here both end the daemon: its master starts
// it again from what is on disk, and where the disk is at fault somebody is told.
type store struct {
	*wal.WAL
	lock      *os.File
	snapshots snapshots
	breaks    func(error)
	guarded   atomic.Bool // what raft is told to call comes from its own goroutines
}

func openStore(dir string, log *slog.Logger, breaks func(error)) (*store, error) {
	path := filepath.Join(dir, "log")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	meta := &metadb.BoltMetaDB{} // which an Open that fails leaves open, and locked
	w, err := wal.Open(path, wal.WithSegmentSize(segmentSize), wal.WithLogger(newLogger(log)), wal.WithMetaStore(meta))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("log in %s: %w", path, err), meta.Close(), lock.Close())
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, newLogger(log))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("snapshots in %s: %w", dir, err), w.Close(), lock.Close())
	}
	return &store{WAL: w, lock: lock, snapshots: snapshots{snaps, breaks}, breaks: breaks}, nil
}

// empty reports whether nothing was ever stored: no entry and no snapshot. A term and a vote alone count for nothing.
func (s *store) empty() (bool, error) {
	last, err := s.LastIndex()
	if err != nil {
		return false, err
	}
	list, err := s.snapshots.List()
	return last == 0 && len(list) == 0, err
}

func (s *store) guard() { s.guarded.Store(true) }

func (s *store) close() {
	s.WAL.Close()
	s.lock.Close()
}

// lockDir keeps a second process out of a replica's directory, where bbolt would wait for the first one without a word.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w: another process has this replica open: stop the negotiator of this node first", dir, roost.Conflict)
	}
	return f, nil
}

// watch reports the failure of a write.
func (s *store) watch(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
		s.breaks(err)
	}
	return err
}

// stop reports the failure of something without which raft panics, and ends the goroutine of raft's that called; Run then ends the others.
func (s *store) stop(what string, err error) error {
	if s.watch(what, err) != nil && s.guarded.Load() {
		runtime.Goexit()
	}
	return err
}

func (s *store) GetLog(index uint64, log *raft.Log) error {
	err := s.WAL.GetLog(index, log)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	return s.stop("read the log", err)
}

func (s *store) StoreLog(log *raft.Log) error { return s.watch("write the log", s.WAL.StoreLog(log)) }

func (s *store) StoreLogs(logs []*raft.Log) error {
	return s.watch("write the log", s.WAL.StoreLogs(logs))
}

func (s *store) DeleteRange(first, last uint64) error {
	return s.watch("cut the log", s.WAL.DeleteRange(first, last))
}

func (s *store) Set(key, value []byte) error {
	return s.stop("write the vote", s.WAL.Set(key, value))
}

func (s *store) SetUint64(key []byte, value uint64) error {
	return s.stop("write the term", s.WAL.SetUint64(key, value))
}

// snapshots are kept in files; the write of one that fails is as bad as that of the log.
type snapshots struct {
	raft.SnapshotStore
	breaks func(error)
}

func (s snapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(v, index, term, c, ci, t)
	if err != nil {
		s.breaks(fmt.Errorf("write a snapshot: %w", err))
		return nil, err
	}
	return watchedSink{sink, s.breaks}, nil
}

type watchedSink struct {
	raft.SnapshotSink
	breaks func(error)
}

func (w watchedSink) Write(p []byte) (int, error) {
	n, err := w.SnapshotSink.Write(p)
	if err != nil {
		w.breaks(fmt.Errorf("write a snapshot: %w", err))
	}
	return n, err
}

func (w watchedSink) Close() error {
	err := w.SnapshotSink.Close()
	if err != nil {
		w.breaks(fmt.Errorf("write a snapshot: %w", err))
	}
	return err
}

// machine gives raft the state machine. One that cannot be written or read ends the daemon too.
type machine struct {
	StateMachine
	breaks func(error)
}

func (m machine) Apply(entry *raft.Log) any { return m.StateMachine.Apply(entry.Index, entry.Data) }

func (m machine) Snapshot() (raft.FSMSnapshot, error) {
	write, err := m.StateMachine.Snapshot()
	if err != nil {
		m.breaks(fmt.Errorf("take a snapshot: %w", err))
	}
	return snapshot{write, m.breaks}, err
}

func (m machine) Restore(from io.ReadCloser) error {
	defer from.Close()
	err := m.StateMachine.Restore(from)
	if err != nil {
		m.breaks(fmt.Errorf("restore a snapshot: %w", err))
	}
	return err
}

type snapshot struct {
	write  func(io.Writer) error
	breaks func(error)
}

func (s snapshot) Release() {}

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.write(sink); err != nil {
		s.breaks(fmt.Errorf("write a snapshot: %w", err))
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}
