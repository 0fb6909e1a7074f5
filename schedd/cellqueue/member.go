package cellqueue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// Config configures a member.
type Config struct {
	Dir     string         // of the queue's files
	Name    string         // of the queue: the host in the ids of its jobs
	Replica replica.Config // of the replicated log; its Dir is another one
	Log     *slog.Logger

	// CheckpointBytes is how much the journal grows at least between two checkpoints, in
	// bytes; 0: 4 MiB.
	CheckpointBytes int
}

// defaultCheckpointBytes is that of a schedd.
const defaultCheckpointBytes = 4 << 20

// snapshotEntries is how many batches are applied between two snapshots of the replicated
// log. A snapshot writes the whole queue, so they are rare.
const snapshotEntries = 50_000

// Member is one of the central managers' replicas of the queue.
type Member struct {
	config  Config
	replica *replica.Replica // nil while a lost majority is recovered from
	onError func(error)      // called with what ends Run
	log     *slog.Logger
	ctx     context.Context // of Run

	history  *history.History // a leader's schedd has it too
	gapNoted chan struct{}    // the history has a gap

	exports sync.RWMutex // held for reading while the journal is exported; taken under mu

	mu       sync.Mutex
	changed  sync.Cond // that journal has changed, or closed
	closed   bool
	journal  *journal.Journal // nil: it is changing hands
	follower *follower        // nil: a schedd has the journal
}

// follower is what a member that does not lead has beside its journal.
type follower struct {
	queue         *queue.Queue
	snapshotBytes int // of the last checkpoint
}

// Open opens the queue as a member that follows, and starts nothing.
func Open(c Config) (*Member, error) {
	m, stored, err := openFiles(c)
	if err != nil {
		return nil, err
	}
	c.Replica.StoresState = stored
	if c.Replica.Snapshots.Entries == 0 {
		c.Replica.Snapshots.Entries = snapshotEntries
	}
	if m.replica, err = replica.Open(c.Replica, m); err != nil {
		return nil, errors.Join(err, m.close(), m.history.Close())
	}
	m.onError = m.replica.Fail
	return m, nil
}

// openFiles opens the queue and its history, without a replica. Stored is as in
// openStored.
func openFiles(c Config) (m *Member, stored bool, err error) {
	if c.CheckpointBytes == 0 {
		c.CheckpointBytes = defaultCheckpointBytes
	}
	m = &Member{config: c, log: c.Log, ctx: context.Background(), gapNoted: make(chan struct{}, 1)}
	m.changed.L = &m.mu
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, false, err
	}
	if m.history, err = history.Open(c.Dir, c.Name); err != nil {
		return nil, false, err
	}
	if stored, err = m.openStored(); err != nil {
		return nil, false, errors.Join(err, m.history.Close())
	}
	return m, stored, nil
}

// Replica returns the replica of the log below the queue.
func (m *Member) Replica() *replica.Replica { return m.replica }

// History returns the history, which the leader's schedd uses and does not close.
func (m *Member) History() *history.History { return m.history }

// Run keeps the replica running until ctx ends or a disk fails.
func (m *Member) Run(ctx context.Context) error {
	m.ctx = ctx
	stop := context.AfterFunc(ctx, func() { // Apply may wait for the journal
		m.mu.Lock()
		defer m.mu.Unlock()
		m.closed = true
		m.changed.Broadcast()
	})
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	filling := make(chan struct{})
	go func() { defer close(filling); m.fillGaps(ctx) }()
	err := m.replica.Run(ctx)
	cancel()
	<-filling
	return errors.Join(err, m.close(), m.history.Close())
}

func (m *Member) close() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.follower != nil {
		err = m.closeJournal()
	}
	m.changed.Broadcast()
	return err
}

// closeJournal closes the journal after an export of it has ended. The lock is held.
func (m *Member) closeJournal() error {
	m.exports.Lock()
	defer m.exports.Unlock()
	err := errors.Join(m.journal.Flush(), m.journal.Close())
	m.journal, m.follower = nil, nil
	return err
}

// importMark is a file that is there while the journal is replaced.
const importMark = "replacing"

func (m *Member) markPath() string { return filepath.Join(m.config.Dir, importMark) }

// openStored opens the journal. Stored is false if it was not there, incomplete or
// damaged: then it is empty, and raft restores its last snapshot.
func (m *Member) openStored() (stored bool, err error) {
	_, err = os.Stat(m.markPath())
	switch {
	case err == nil:
		m.log.Warn("the job log was being replaced, and is read from the other files of the replica")
		err = journal.RemoveFiles(m.config.Dir)
	case errors.Is(err, fs.ErrNotExist):
		stored, err = journal.Exists(m.config.Dir)
	}
	if err != nil {
		return false, err
	}
	err = m.follow()
	var damage *boltfile.DamageError
	if errors.As(err, &damage) {
		m.log.Warn("the job log is damaged, and is read from the other files of the replica", "error", err)
		if err = m.setAside(); err == nil {
			stored, err = false, m.follow()
		}
	}
	return stored, err
}

// setAside renames the files of a damaged journal.
func (m *Member) setAside() error {
	files, err := filepath.Glob(filepath.Join(m.config.Dir, journal.FileName+"*"))
	for _, file := range files {
		err = errors.Join(err, os.Rename(file, boltfile.Aside(file, time.Now())))
	}
	return err
}

// follow opens the journal as a member that does not lead.
func (m *Member) follow() error {
	j, q, err := journal.OpenReplicated(m.config.Dir, m.config.Name, nil, nil)
	if err != nil {
		return err
	}
	m.journal, m.follower = j, &follower{queue: q}
	m.changed.Broadcast()
	return nil
}

// StepUp closes the journal of a member that follows. The leader's schedd opens it:
// OpenJournal. StepDown ends that.
func (m *Member) StepUp() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.follower == nil {
		return fmt.Errorf("%w: the queue has no member that follows", roost.Conflict)
	}
	return m.closeJournal()
}

// OpenJournal opens the journal for the leader's schedd. The schedd does not close it.
func (m *Member) OpenJournal(o journal.Observer) (*journal.Journal, *queue.Queue, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, q, err := journal.OpenReplicated(m.config.Dir, m.config.Name, o, m.propose)
	if err != nil {
		return nil, nil, err
	}
	m.journal = j
	m.changed.Broadcast()
	return j, q, nil
}

// StepDown follows again. The schedd has ended.
func (m *Member) StepDown() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.journal != nil {
		err = m.closeJournal()
	}
	if err == nil && !m.closed {
		err = m.follow()
	}
	return err
}

// propose has a batch committed by the members.
func (m *Member) propose(number uint64, batch []byte) error {
	return m.proposeEntry(appendEntry(nil, number, batch))
}

// RemoveHistory removes jobs from the histories of all members. Jobs that are not there
// are skipped.
func (m *Member) RemoveHistory(seqs ...uint64) error {
	return m.proposeEntry(appendRemoval(nil, seqs))
}

// proposeEntry returns when this member has applied the entry.
func (m *Member) proposeEntry(entry []byte) error {
	answer := make(chan error, 1)
	m.replica.Propose(entry, func(result any, err error) {
		if refused, _ := result.(error); err == nil {
			err = refused
		}
		answer <- err
	})
	return <-answer
}

// Apply implements replica.StateMachine.
func (m *Member) Apply(_ uint64, entry []byte) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.awaitJournal() {
		return roost.Unavailable
	}
	removed, found, err := parseRemoval(entry)
	if err == nil && found {
		err = m.retryWhenFull(func() error { return m.history.Remove(removed...) })
	}
	if err != nil || found {
		return m.failed(err)
	}
	number, batch, err := parseEntry(entry)
	if err != nil {
		return m.failed(err)
	}
	if m.follower != nil && number == m.journal.NextBatch() {
		if err := m.archivePurged(batch); err != nil {
			return m.failed(err)
		}
	}
	switch err := m.retryWhenFull(func() error { return m.journal.AddBatch(number, batch) }); {
	case errors.Is(err, journal.ErrStale):
		if number > m.journal.NextBatch() {
			err = errors.Join(err, os.WriteFile(m.markPath(), nil, 0o600))
			m.failed(fmt.Errorf("%w; at the next start it is replaced by the last snapshot", err))
		}
		return err
	case err != nil:
		return m.failed(err)
	}
	if m.follower != nil {
		return m.failed(m.applyToCopy(batch))
	}
	return nil
}

// awaitJournal waits until somebody has the journal open, and reports whether it is.
func (m *Member) awaitJournal() bool {
	for m.journal == nil && !m.closed {
		m.changed.Wait()
	}
	return m.journal != nil
}

// applyToCopy applies a batch to the copy of the queue, and makes a checkpoint when the
// journal has grown.
func (m *Member) applyToCopy(batch []byte) error {
	f := m.follower
	if err := m.journal.ApplyBatch(f.queue, batch); err != nil {
		return err
	}
	f.discardEffects()
	if m.journal.Size() < m.config.CheckpointBytes+2*f.snapshotBytes {
		return nil
	}
	c := &journal.QueueCheckpoint{Jobs: make(map[uint64][]byte), LastSeq: f.queue.LastSeq()}
	f.snapshotBytes = 0
	for _, seq := range f.queue.TakeUnsaved() {
		snapshot, _ := f.queue.Snapshot(seq)
		c.Jobs[seq] = snapshot
		f.snapshotBytes += len(snapshot)
	}
	if err := m.retryWhenFull(func() error { return m.journal.AddedCheckpoint(c) }); err != nil {
		return err
	}
	return m.retryWhenFull(func() error { return m.journal.WriteCheckpoint(c) })
}

// Snapshot implements replica.StateMachine. What it writes may be newer than the entry
// that was applied last: the batches have numbers.
func (m *Member) Snapshot() (func(io.Writer) error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.awaitJournal() {
		return nil, roost.Unavailable
	}
	if err := m.journal.Flush(); err != nil { // the entries of these batches may go
		return nil, err
	}
	return func(w io.Writer) error {
		m.mu.Lock()
		if !m.awaitJournal() {
			m.mu.Unlock()
			return roost.Unavailable
		}
		j := m.journal
		m.exports.RLock()
		defer m.exports.RUnlock()
		m.mu.Unlock()
		return j.Export(w)
	}, nil
}

// Restore implements replica.StateMachine. A schedd that led before ends first.
func (m *Member) Restore(r io.Reader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.follower == nil && !m.closed {
		m.changed.Wait()
	}
	if m.follower == nil {
		return roost.Unavailable
	}
	err := errors.Join(m.noteGap(), m.closeJournal())
	if err == nil {
		err = os.WriteFile(m.markPath(), nil, 0o600)
	}
	if err == nil {
		err = journal.Import(m.config.Dir, m.config.Name, r)
	}
	if err == nil {
		err = os.Remove(m.markPath())
	}
	if err != nil {
		return err
	}
	m.log.Info("the job log was replaced by a snapshot of the leader")
	select {
	case m.gapNoted <- struct{}{}:
	default:
	}
	return m.follow()
}

// failed returns its error, which ends Run if it is one. The result is nil without an
// error, as an any too. The lock is held.
func (m *Member) failed(err error) any {
	if err == nil {
		return nil
	}
	m.onError(fmt.Errorf("the queue of %s: %w", m.config.Name, err))
	return err
}

// retryWhenFull runs write until the disk has room for it, or the member ends. A member
// that leads hands over to another one: the queue would wait for this disk.
func (m *Member) retryWhenFull(write func() error) error {
	for logged := false; ; logged = true {
		err := write()
		if !journal.IsDiskFull(err) || m.closed {
			return err
		}
		if !logged {
			m.log.Error("the disk of the queue is full; it goes on when there is room", "dir", m.config.Dir,
				"error", err)
		}
		m.mu.Unlock()
		if m.replica != nil {
			if err := m.replica.TransferLeadership(); err == nil {
				m.log.Warn("another member leads, because the disk of the queue is full here", "dir", m.config.Dir)
			}
		}
		select {
		case <-m.ctx.Done():
		case <-time.After(time.Second):
		}
		m.mu.Lock()
		if m.journal == nil { // it could not be opened again meanwhile
			return roost.Unavailable
		}
	}
}
