package schedd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// Jobs that are final stay in the queue for a moment, where asking for them is cheapest,
// and then move to the history: first they are written there, then they leave the queue.
// A crash in between writes them there again.

// archiveDelay is how long a final job stays in the queue.
const archiveDelay = 2 * time.Second

// checkpointRetention is how long a final job with a checkpoint stays in the queue.
// Meanwhile its owner can have it resume: a task that its walltime ended.
const checkpointRetention = 24 * time.Hour

// maxArchiveBatch bounds how many jobs move at once.
const maxArchiveBatch = 10_000

// jobArchive moves final jobs from the queue to the history, and forgets old ones there.
// What is below the line belongs to the loop.
type jobArchive struct {
	node     *config.Node
	stateDir string
	log      *slog.Logger
	history  *history.History
	// removeHistory removes jobs from it, and from its copies on other hosts
	removeHistory func(seqs ...uint64) error
	journal       *journal.Journal
	service       *api.Service
	transfers     *transfer.FileTransfers
	loop          loopAdapter
	effects       effectRunner
	isCellQueue   bool // its queue is that of the cell

	// ---- owned by the loop ----
	queue         *queue.Queue
	archivingJobs map[uint64]bool // final jobs that are not in the history yet
	archiving     bool            // some of them are on their way
	archivedAt    time.Time       // when jobs last began to move
}

// archiveEnded begins to move final jobs to the history.
func (j *jobArchive) archiveEnded(now time.Time) {
	for _, seq := range j.queue.TakeFinal() {
		j.archivingJobs[seq] = true
	}
	if j.archiving || len(j.archivingJobs) == 0 || now.Sub(j.archivedAt) < archiveDelay {
		return
	}
	j.archivedAt = now // the log is read once for all of them
	var seqs []uint64
	for _, seq := range slices.Sorted(maps.Keys(j.archivingJobs)) {
		st, ok := j.queue.Status(seq)
		final := st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks
		switch {
		case !ok || !final: // purged, or run again
			delete(j.archivingJobs, seq)
		case j.queue.HasImages(seq) && now.Sub(time.Unix(0, st.Ended)) < checkpointRetention:
		case now.Sub(time.Unix(0, st.Ended)) >= archiveDelay && len(seqs) < maxArchiveBatch:
			seqs = append(seqs, seq)
			delete(j.archivingJobs, seq)
		}
	}
	if len(seqs) == 0 {
		return
	}
	records := make([]history.JobRecord, 0, len(seqs))
	for _, seq := range seqs {
		if snapshot, ok := j.queue.Snapshot(seq); ok {
			key, _ := j.queue.SubmitKey(seq)
			records = append(records, history.JobRecord{Seq: seq, Key: key, Ended: now, Snapshot: snapshot,
				Row: j.service.HistoryRow(j.queue, seq)})
		}
	}
	j.archiving = true
	changed := j.queue.JobChangeCounts(seqs)
	j.loop.AfterNextCommit(func() { j.effects.archive(records, changed) }) // when all that happened to them is on disk
}

// removeArchived has jobs leave the queue that are in the history now, unless something
// happened to them meanwhile.
func (j *jobArchive) removeArchived(now time.Time, records []history.JobRecord, before map[uint64]int, err error) {
	j.archiving = false
	if err != nil {
		j.log.Error("jobs cannot be moved to the history", "error", err)
	}
	for i := range records {
		seq := records[i].Seq
		if err != nil || j.queue.JobChangeCounts([]uint64{seq})[seq] != before[seq] {
			j.archivingJobs[seq] = true
			continue
		}
		if e, ok := j.queue.PurgeJob(now, seq); ok {
			j.loop.CommitInBackground(e)
		}
	}
}

// writeHistory adds to each record what happened to its job, and writes them.
func (j *jobArchive) writeHistory(records []history.JobRecord) error {
	seqs := make([]uint64, len(records))
	for i := range records {
		seqs[i] = records[i].Seq
	}
	events, err := j.journal.Events(seqs...)
	if err != nil {
		return err
	}
	for i := range records {
		if records[i].Events, err = j.history.CompleteEvents(records[i].Seq, events[records[i].Seq]); err != nil {
			return err
		}
	}
	return j.history.Add(records)
}

// checkpointBytes is how much the log must grow at least before it is checkpointed, in
// bytes. It must also grow by twice the size of the snapshots of the last checkpoint.
// So the cost of checkpoints stays in proportion to what happens.
const checkpointBytes = 4 << 20

// checkpointBytesWithFaults is the same in a build with failpoints, so that a test passes
// those of a checkpoint often.
const checkpointBytesWithFaults = 16 << 10

// maybeCheckpoint adds a checkpoint of the present state to the batch if it is time for
// one. Events that are added to the batch later are not part of it.
func (s *Schedd) maybeCheckpoint() {
	least := checkpointBytes
	if failpoint.Enabled {
		least = checkpointBytesWithFaults
	}
	if int(s.logSize.Load()) < least+2*s.snapshotBytes || s.checkpointing.Load() {
		return
	}
	c := &journal.QueueCheckpoint{Jobs: make(map[uint64][]byte), LastSeq: s.queue.LastSeq()}
	s.snapshotBytes = 0
	for _, seq := range s.queue.TakeUnsaved() {
		snapshot, _ := s.queue.Snapshot(seq)
		c.Jobs[seq] = snapshot
		s.snapshotBytes += len(snapshot)
	}
	s.checkpointing.Store(true)
	s.pending.checkpoint, s.pending.covered = c, len(s.pending.events)
	s.pending.urgent = true
	s.logSize.Store(0)
}

// submitLimits are what a submit is held against.
func (s *Schedd) submitLimits() queue.SubmitLimits {
	maxLog := 0
	if s.replicated != nil {
		maxLog = journal.MaxSubmission
	}
	limits := queue.SubmitLimits{
		MaxLog:    maxLog,
		NewSecret: newImageSecret, MaxQueued: s.node.Schedd.MaxQueued, MaxPerUser: s.node.Schedd.MaxOfUser,
		Domain: s.node.FileSystemDomain, LastSeq: s.lastHistorySeq,
		JobsByKey: func(key string) (ids []roost.JobID) {
			seqs, err := s.history.JobsByKey(key)
			if err != nil {
				s.log.Error("the history cannot be read", "error", err)
			}
			for _, seq := range seqs {
				ids = append(ids, roost.JobID{Seq: seq, Host: s.node.Name})
			}
			return ids
		},
		PastJob: func(seq uint64) (ended, succeeded, known bool) {
			past, _, err := s.history.Job(seq)
			if err != nil {
				return false, false, false
			}
			st, _ := past.Status(seq)
			return true, st.Counts[roost.Completed] == st.Tasks && st.Failed == 0, true
		},
	}
	if s.pastJobs != nil {
		s.pastJobs(&limits)
	}
	return limits
}

// newImageSecret makes that of the keys of a job's images.
func newImageSecret() []byte {
	secret := make([]byte, queue.SecretSize)
	rand.Read(secret) // it never fails: crypto/rand ends the program instead
	return secret
}

// sweepEvery is how often old jobs are looked for.
const sweepEvery = time.Hour

// runHistorySweeper forgets old jobs, at the start and from time to time, until ctx ends.
func (j *jobArchive) runHistorySweeper(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := j.sweepHistory(time.Now()); err != nil {
			j.log.Error("old jobs cannot be forgotten", "error", err)
		}
		if err := j.sweepScripts(ctx, time.Now()); err != nil && ctx.Err() == nil {
			j.log.Error("old scripts cannot be removed", "error", err)
		}
		if err := j.sweepServiceLogs(ctx, time.Now()); err != nil && ctx.Err() == nil {
			j.log.Error("old output of services cannot be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweepServiceLogs removes output of earlier attempts of services that is too old. What
// is too much goes as output comes.
func (j *jobArchive) sweepServiceLogs(ctx context.Context, now time.Time) error {
	var services map[uint64]queue.LogSpec
	err := j.loop.CallLoop(ctx, func(time.Time) { services = j.queue.ServiceLogs() })
	for seq, bounds := range services {
		if e := j.transfers.SpoolFiles.ExpireLogs(seq, -1, bounds, now); err == nil {
			err = e
		}
	}
	return err
}

// sweepHistory forgets jobs that are older than the schedd is to remember, and their
// spooled output.
func (j *jobArchive) sweepHistory(now time.Time) error {
	if j.node.Schedd.KeepHistory <= 0 {
		return nil
	}
	for {
		old, err := j.history.EndedBefore(now.Add(-j.node.Schedd.KeepHistory), maxArchiveBatch)
		if err != nil || len(old) == 0 {
			return err
		}
		for _, seq := range old {
			if err := j.transfers.SpoolFiles.RemoveJob(seq); err != nil {
				return fmt.Errorf("spool: %w", err)
			}
		}
		if err := j.removeHistory(old...); err != nil {
			return err
		}
	}
}

// pinBlobs has the checkpoint server keep the container images and packages of the jobs
// of the queue.
func (j *jobArchive) pinBlobs(ctx context.Context) error {
	if j.node.ImageServer == "" {
		return nil
	}
	var used []string
	if err := j.loop.CallLoop(ctx, func(time.Time) { used = queue.UsedBlobs(j.queue) }); err != nil {
		return err
	}
	return transfer.PinBlobs(ctx, j.transfers, used, j.isCellQueue)
}

// sweepScripts removes the scripts that no job names any more. It has the checkpoint
// server keep the scripts and the stored files of the jobs of the queue.
func (j *jobArchive) sweepScripts(ctx context.Context, now time.Time) error {
	inUse := func() (used []queue.UserScript, err error) {
		err = j.loop.CallLoop(ctx, func(time.Time) { used = j.queue.UserScripts() })
		return used, err
	}
	stored := func() (used []queue.UserScript, err error) {
		err = j.loop.CallLoop(ctx, func(time.Time) {
			used = append(j.queue.UserScripts(), queue.StoredFiles(j.queue)...)
		})
		return used, err
	}
	err := errors.Join(j.transfers.Scripts.Sweep(now, inUse), j.pinBlobs(ctx))
	if j.node.CellQueue == nil { // of its own users a schedd has the scripts here
		return err
	}
	used, uerr := stored()
	if uerr == nil {
		uerr = j.transfers.RetainScripts(ctx, used)
	}
	return errors.Join(err, uerr)
}
