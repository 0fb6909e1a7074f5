package userlog

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/schedd/flow/jobstate"
	"github.com/roost-batch/roost/schedd/queue"
)

// The bounds of a writer.
const (
	maxPending   = 64 << 20 // bytes of records that wait, of all users
	maxOfUser    = 16 << 20 // of one user
	writers      = 4        // files that are written at a time
	writeTimeout = 30 * time.Second
	tailSize     = 4 << 20 // bytes of the end of a file that are compared after a restart
	maxTries     = 5       // to write records before they are dropped
	retryWait    = 2 * time.Second
)

// Agents has agents with the rights of users.
type Agents interface {
	Agent(uid, gid uint32) (*userfiles.Agent, error)
	DropAgent(uid, gid uint32) // which has failed
}

// Writer appends records to the files of users. Its zero value is not usable.
type Writer struct {
	agents Agents
	log    *slog.Logger

	mu     sync.Mutex
	rows   map[logFile]*fileRow
	ready  []logFile // rows with records that nobody writes
	size   int       // bytes of all rows
	byUser map[uint32]int
	lines  map[uint64]int // of jobstate logs, by flow: those that need not be written any more
	wake   chan struct{}
}

// logFile is a file of a user.
type logFile struct {
	uid, gid uint32
	path     string
	flow     uint64 // whose jobstate log it is; 0: it is a user log
}

// fileRow are the records for one file, in the order of their events.
type fileRow struct {
	records []Record
	check   bool // the end of the file may have some of them
	busy    bool
	tries   int
	next    time.Time // not before then
}

// NewWriter returns a writer that writes nothing before Run.
func NewWriter(agents Agents, log *slog.Logger) *Writer {
	return &Writer{agents: agents, log: log, rows: map[logFile]*fileRow{}, byUser: map[uint32]int{},
		lines: map[uint64]int{},
		wake:  make(chan struct{}, 1)}
}

// Enqueue takes records to be appended to a file. With check those that the file has are
// left out.
func (w *Writer) Enqueue(e queue.UserLogEntry, records []Record, check bool) {
	if len(records) == 0 || !filepath.IsAbs(e.Path) {
		return
	}
	file := logFile{uid: e.UID, gid: e.GID, path: filepath.Clean(e.Path)}
	if len(e.Lines) > 0 {
		file.flow = e.Job.Seq
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes := 0
	for _, r := range records {
		bytes += len(r.Text)
	}
	if w.size+bytes > maxPending || w.byUser[e.UID]+bytes > maxOfUser {
		w.log.Warn("records of a user log are dropped: too many wait", "file", file.path, "uid", e.UID,
			"records", len(records))
		w.countLines(file, len(records))
		return
	}
	row := w.rows[file]
	if row == nil {
		row = &fileRow{}
		w.rows[file] = row
	}
	if len(row.records) == 0 && !row.busy {
		w.ready = append(w.ready, file)
	}
	row.records, row.check = append(row.records, records...), row.check || check
	w.size += bytes
	w.byUser[e.UID] += bytes
	w.signal()
}

// countLines notes that lines of a jobstate log need not be written any more.
func (w *Writer) countLines(file logFile, n int) {
	if file.flow != 0 {
		w.lines[file.flow] += n
	}
}

// TakeWritten returns how many lines of the jobstate log of a flow were written since the
// last call. They were taken in the order of Enqueue.
func (w *Writer) TakeWritten(flow uint64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.lines[flow]
	delete(w.lines, flow)
	return n
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	var all sync.WaitGroup
	free := make(chan struct{}, writers)
	tick := time.NewTicker(retryWait)
	defer tick.Stop()
	for {
		for {
			file, row, ok := w.take(time.Now())
			if !ok {
				break
			}
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				all.Wait()
				return
			}
			all.Go(func() {
				w.write(ctx, file, row)
				<-free
				w.signal()
			})
		}
		select {
		case <-w.wake:
		case <-tick.C:
		case <-ctx.Done():
			all.Wait()
			return
		}
	}
}

// takenRow is what of a row is being written.
type takenRow struct {
	records []Record
	check   bool
}

// take returns the records for the next file.
func (w *Writer) take(now time.Time) (file logFile, taken takenRow, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, f := range w.ready {
		row := w.rows[f]
		if now.Before(row.next) {
			continue
		}
		w.ready = append(w.ready[:i:i], w.ready[i+1:]...)
		row.busy = true
		return f, takenRow{row.records, row.check}, true
	}
	return file, taken, false
}

// write appends records to a file, and takes them out of its row, unless that is to be
// tried again.
func (w *Writer) write(ctx context.Context, file logFile, taken takenRow) {
	err := w.appendRecords(ctx, file, taken)
	w.mu.Lock()
	defer w.mu.Unlock()
	row := w.rows[file]
	row.busy = false
	if err != nil && ctx.Err() == nil {
		row.tries++
		row.check = true // some of them may be there
		if row.tries < maxTries {
			row.next = time.Now().Add(retryWait << row.tries)
			w.ready = append(w.ready, file)
			return
		}
		w.log.Warn("records of a user log are dropped: the file cannot be written", "file", file.path,
			"uid", file.uid, "records", len(taken.records), "error", err)
	}
	for _, r := range row.records[:len(taken.records)] {
		w.size -= len(r.Text)
		w.byUser[file.uid] -= len(r.Text)
	}
	if w.byUser[file.uid] == 0 {
		delete(w.byUser, file.uid)
	}
	w.countLines(file, len(taken.records))
	row.records, row.check, row.tries = row.records[len(taken.records):], false, 0
	if len(row.records) == 0 {
		delete(w.rows, file)
	} else {
		w.ready = append(w.ready, file)
	}
}

// appendRecords appends what the file has not yet.
func (w *Writer) appendRecords(ctx context.Context, file logFile, taken takenRow) (err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	a, err := w.agents.Agent(file.uid, file.gid)
	if err != nil {
		return err
	}
	defer func() {
		if errors.Is(err, roost.Unavailable) || errors.Is(err, context.DeadlineExceeded) {
			w.agents.DropAgent(file.uid, file.gid)
		}
	}()
	base, name := filepath.Split(file.path)
	records := taken.records
	if taken.check {
		var end string
		if end, err = readEnd(ctx, a, base, name); err != nil {
			return err
		}
		if file.flow != 0 {
			return appendMissing(ctx, a, base, name, end, records)
		}
		records = Missing(end, records)
	}
	for len(records) > 0 {
		var text strings.Builder
		n := 0
		for n < len(records) && (n == 0 || text.Len()+len(records[n].Text) <= userfiles.ChunkSize) {
			text.WriteString(records[n].Text)
			n++
		}
		if err = appendText(ctx, a, base, name, text.String()); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// appendMissing appends the lines of a jobstate log that the end of its file lacks.
func appendMissing(ctx context.Context, a *userfiles.Agent, base, name, end string, records []Record) error {
	lines := make([]string, len(records))
	for i, r := range records {
		lines[i] = r.Head
	}
	for text := jobstate.Missing(end, lines); text != ""; {
		n := min(len(text), userfiles.ChunkSize)
		if err := appendText(ctx, a, base, name, text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// appendText appends to a file, which is made if there is none.
func appendText(ctx context.Context, a *userfiles.Agent, base, name, text string) error {
	err := a.Append(ctx, base, name, []byte(text))
	if err == nil {
		return nil
	}
	if _, serr := a.Stat(ctx, base, name); !errors.Is(serr, roost.NoInput) {
		return err // it is there, and is none that can be appended to
	}
	f, err := a.Create(ctx, base, name, userfiles.CreateOptions{})
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		return err
	}
	return f.Commit()
}

// readEnd returns the end of a file; nothing if there is none.
func readEnd(ctx context.Context, a *userfiles.Agent, base, name string) (string, error) {
	info, err := a.Stat(ctx, base, name)
	if errors.Is(err, roost.NoInput) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	var end strings.Builder
	for offset := max(info.Size-tailSize, 0); offset < info.Size; {
		data, _, err := a.ReadAt(ctx, base, name, offset)
		if err != nil {
			return "", err
		}
		if len(data) == 0 {
			break
		}
		end.Write(data)
		offset += int64(len(data))
	}
	return end.String(), nil
}
