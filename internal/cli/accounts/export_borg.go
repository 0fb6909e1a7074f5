package accounts

import (
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/progressbar"
)

// traceKeyBytes is the length of the key of a trace that is given none.
const traceKeyBytes = 32

// exportBorg writes the tables of a Borg trace into a directory. They are about the jobs
// that were submitted in a time, what became of them, and the machines.
func exportBorg(c *frame.Invocation, q *query.Query, meter *progressbar.WorkMeter) (err error) {
	if q.Job != 0 {
		return frame.UsageErrorf("--export borg is of a time, not of a job")
	}
	key, err := traceKey(c)
	if err != nil {
		return err
	}
	machines := *q
	machines.Report = query.Machines
	options := export.BorgOptions{Key: key, Window: accounting.TimeRange{From: q.From, To: q.To}}
	for m, err := range machineEvents(c, &machines) {
		if err != nil {
			return err
		}
		options.CPU, options.Memory = max(options.CPU, m.Capacity.CPU), max(options.Memory, m.Capacity.Memory)
	}
	if options.CPU == 0 {
		return frame.KindErrorf(roost.NotFound, "the accounts have no machine in that time, and amounts of a trace "+
			"are shares of the largest one")
	}
	trace, err := export.NewBorgTrace(options)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(c.StringFlag("to"))
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "--to: %v", err)
	}
	defer dir.Close()
	t := traceFiles{dir: dir}
	defer func() { err = errors.Join(err, t.close()) }()
	jobs, attempts, hours := *q, *q, *q
	jobs.Report, attempts.Time, hours.Report = query.Jobs, query.BySubmit, query.Hours
	if err := trace.WriteEvents(t.file("collection_events"), t.file("instance_events"), jobRecords(c, &jobs),
		measured(attemptRecords(c, &attempts), meter)); err != nil {
		return err
	}
	if _, err := trace.WriteUsage(t.file("instance_usage"), usageWindows(c, &hours)); err != nil {
		return err
	}
	if _, err := trace.WriteMachineEvents(t.file("machine_events"), machineEvents(c, &machines)); err != nil {
		return err
	}
	_, err = trace.WriteMachineAttributes(t.file("machine_attributes"), machineEvents(c, &machines))
	return errors.Join(err, t.close())
}

// traceKey returns the key of the hashes of names: that of a file, or a random one.
func traceKey(c *frame.Invocation) ([]byte, error) {
	file := c.StringFlag("key")
	if file == "" {
		key := make([]byte, traceKeyBytes)
		_, err := rand.Read(key)
		return key, err
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, frame.KindErrorf(roost.NoInput, "--key: %v", err)
	}
	return key, nil
}

// traceFiles makes the files of a trace. None of them is one that was there.
type traceFiles struct {
	dir  *os.Root
	open []*os.File
}

// file returns a writer of a table. An error of its file is one of its first write.
func (t *traceFiles) file(table string) io.Writer {
	f, err := t.dir.OpenFile(table+".csv.gz", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		err = frame.WithHint(frame.KindErrorf(roost.NoOutput, "%v", err), "write into an empty directory")
		return failedWriter{err}
	}
	t.open = append(t.open, f)
	return f
}

func (t *traceFiles) close() (err error) {
	for _, f := range t.open {
		err = errors.Join(err, f.Close())
	}
	t.open = nil
	return err
}

// failedWriter fails with the same error again and again.
type failedWriter struct{ err error }

func (w failedWriter) Write([]byte) (int, error) { return 0, w.err }

// machineEvents are the changes of machines as they come.
func machineEvents(c *frame.Invocation, q *query.Query) iter.Seq2[accounting.MachineEvent, error] {
	return answerLines(c, q, "changes of machines", func(l *accounting.MachineEvent) accounting.MachineEvent {
		return *l
	})
}

// usageWindows are the windows of attempts as they come.
func usageWindows(c *frame.Invocation, q *query.Query) iter.Seq2[export.UsageWindow, error] {
	var hours []accounting.UsageHour // of the last attempt
	attempts := answerLines(c, q, "attempts", func(l *query.HoursLine) accounting.AttemptRecord {
		hours = l.Hours
		return accounting.AttemptRecord{AttemptEntry: l.Attempt, Job: &l.Job}
	})
	return export.UsageOf(attempts, func(accounting.AttemptKey) iter.Seq2[accounting.UsageHour, error] {
		return func(yield func(accounting.UsageHour, error) bool) {
			for _, h := range hours {
				if !yield(h, nil) {
					return
				}
			}
		}
	})
}

// answerLines are the lines of an answer as they come. More than an answer can have are
// an error, so that an export is never cut off without a word.
func answerLines[L, T any](c *frame.Invocation, q *query.Query, what string, record func(*L) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		err := ask(c, q, func(l *L) error {
			if n++; !yield(record(l), nil) {
				return errEnough
			}
			return nil
		})
		if err == nil && n == query.MaxLimit {
			err = frame.KindErrorf(roost.Exhausted, "there are %d %s or more: export shorter ranges of time", n, what)
		}
		if err != nil && !errors.Is(err, errEnough) {
			var none T
			yield(none, err)
		}
	}
}
