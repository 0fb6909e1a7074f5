package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// uploadRecord is the uploads of an attempt, as they are on disk.
type uploadRecord struct {
	Version   int
	Job       roost.JobID
	Task      int
	Number    uint32 // of the attempt
	Attempt   string // as the metadata of its objects has it
	Owner     string
	Host      string // the submit node
	Uploads   []objectUpload
	Restarted bool // the object store had lost uploads
}

// objectUpload is an upload to an object store. It is no secret.
type objectUpload struct {
	Store, Bucket, Key string
	ID                 string
	SHA256             string // of the whole, when all parts are there
}

const (
	uploadRecordVersion = 1
	uploadsDir          = "uploads"
	uploadSuffix        = ".json"
	maxUploadRecord     = 16 << 20 // bytes
)

// errDamagedRecord says that a record of uploads cannot be read.
var errDamagedRecord = errors.New("it is damaged, or of another version")

func newUploadRecord(a roost.AttemptID, owner, host string) *uploadRecord {
	return &uploadRecord{Version: uploadRecordVersion, Job: a.Task.Job, Task: a.Task.Index, Number: uint32(a.Attempt),
		Attempt: fmt.Sprintf("%s[%d].%d", a.Task.Job, a.Task.Index, a.Attempt), Owner: owner, Host: host}
}

// attemptID returns whose uploads they are.
func (r *uploadRecord) attemptID() roost.AttemptID {
	return roost.AttemptID{Task: roost.TaskID{Job: r.Job, Index: r.Task}, Attempt: roost.AttemptNumber(r.Number)}
}

// find returns the upload of an object, an empty one if none was begun.
func (r *uploadRecord) find(store string, u jobad.ObjectURL) objectUpload {
	for _, o := range r.Uploads {
		if o.Store == store && o.Bucket == u.Bucket && o.Key == u.Key {
			return o
		}
	}
	return objectUpload{Store: store, Bucket: u.Bucket, Key: u.Key}
}

func (s *objectStores) uploadDir() string { return filepath.Join(s.transfers.stateDir, uploadsDir) }

func (s *objectStores) recordPath(a roost.AttemptID) string {
	return filepath.Join(s.uploadDir(), fmt.Sprintf("%d.%d.%d%s", a.Task.Job.Seq, a.Task.Index, a.Attempt,
		uploadSuffix))
}

// writeRecord has the uploads of an attempt on disk.
func (s *objectStores) writeRecord(r *uploadRecord) error {
	if err := os.MkdirAll(s.uploadDir(), 0o700); err != nil {
		return fmt.Errorf("uploads: %w", err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.WriteDurable(s.recordPath(r.attemptID()), filesum.AppendChecksum(append(data, '\n')), 0o600)
}

// readRecord returns the uploads of an attempt, nil if it has begun none.
func (s *objectStores) readRecord(a roost.AttemptID) (*uploadRecord, error) {
	r, err := readUploadRecord(s.recordPath(a))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, errDamagedRecord):
		s.transfers.log.Warn("a record of uploads is damaged; the object store has to abort them", "attempt", a,
			"error", err)
		return nil, nil
	}
	return r, err
}

func readUploadRecord(path string) (*uploadRecord, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxUploadRecord {
		return nil, fmt.Errorf("%s: %w: it has %d bytes", path, errDamagedRecord, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &uploadRecord{}
	if data, err = filesum.VerifyChecksum(data); err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil || r.Version != uploadRecordVersion {
		return nil, fmt.Errorf("%s: %w: version %d: %v", path, errDamagedRecord, r.Version, err)
	}
	return r, nil
}

func (s *objectStores) removeRecord(r *uploadRecord) error {
	if err := os.Remove(s.recordPath(r.attemptID())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("uploads: %w", err)
	}
	return nil
}

// abortTimeout bounds how long the uploads of an attempt are aborted at one go.
const abortTimeout = 5 * time.Minute

// abortUploads aborts the uploads of an attempt, and forgets them when none is left.
func (s *objectStores) abortUploads(ctx context.Context, r *uploadRecord) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, abortTimeout)
	defer cancel()
	for _, o := range r.Uploads {
		if o.ID == "" {
			continue
		}
		store := config.FindObjectStore(s.settings, o.Bucket)
		if store == nil || store.Name != o.Store {
			continue // an administrator has taken it away
		}
		account, err := s.account(ctx, objectUser{r.Owner, r.Host, o.Store}, store)
		if err == nil {
			err = account.Abort(ctx, o.Bucket, o.Key, o.ID)
		}
		if err == nil && s.metrics != nil {
			s.metrics.UploadsAborted.Inc()
		}
		var refused objectError
		if errors.As(err, &refused) || errors.Is(err, roost.PermissionDenied) {
			continue // whose keys are gone; the object store aborts it when it is old
		}
		if err != nil {
			s.transfers.log.Warn("an upload is not aborted", "attempt", r.Attempt, "bucket", o.Bucket, "key", o.Key,
				"error", err)
			return // later
		}
	}
	if err := s.removeRecord(r); err != nil {
		s.transfers.log.Warn("uploads stay on record", "attempt", r.Attempt, "error", err)
	}
}

// abortDelay is how long after a transfer was stopped its attempt is looked at.
const abortDelay = 5 * time.Second

// abortIfOver aborts the uploads of an attempt whose transfer was stopped, unless another
// transfer follows.
func (s *objectStores) abortIfOver(r *uploadRecord) {
	ctx := s.transfers.daemonContext
	if r == nil {
		return
	}
	select {
	case <-time.After(abortDelay):
	case <-ctx.Done():
		return
	}
	if s.isOver(ctx, r.attemptID()) {
		s.abortUploads(ctx, r)
	}
}

// uploadSweep is how often uploads of lost attempts are looked for.
const uploadSweep = 10 * time.Minute

// sweepUploads aborts uploads of attempts that are no longer under way, at once and from
// time to time.
func (s *objectStores) sweepUploads(ctx context.Context) {
	for {
		list, err := os.ReadDir(s.uploadDir())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.transfers.log.Warn("uploads cannot be listed", "error", err)
		}
		for _, e := range list {
			if !strings.HasSuffix(e.Name(), uploadSuffix) {
				continue
			}
			r, err := readUploadRecord(filepath.Join(s.uploadDir(), e.Name()))
			if err != nil {
				s.transfers.log.Warn("a record of uploads cannot be read", "error", err)
				continue
			}
			if s.isOver(ctx, r.attemptID()) {
				s.abortUploads(ctx, r)
			}
		}
		select {
		case <-time.After(uploadSweep):
		case <-ctx.Done():
			return
		}
	}
}

// AttemptQuery asks the loop whether an attempt is under way.
type AttemptQuery struct {
	attempt roost.AttemptID
	answer  chan bool // has room for the answer
}

// OnAttemptQuery answers.
func OnAttemptQuery(t *FileTransfers, q AttemptQuery) { q.answer <- t.queue.IsLive(q.attempt) }

// isOver reports whether an attempt is no longer under way.
func (s *objectStores) isOver(ctx context.Context, a roost.AttemptID) bool {
	q := AttemptQuery{a, make(chan bool, 1)}
	if !s.transfers.loop.PostEvent(ctx, q) {
		return false
	}
	select {
	case live := <-q.answer:
		return !live
	case <-ctx.Done():
		return false
	}
}
