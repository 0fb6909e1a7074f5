package export

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
)

// PBSRecords are the records of a PBS accounting log, each iterator in the order of the
// time that is named. A nil iterator has no records.
type PBSRecords struct {
	Jobs    iter.Seq2[accounting.JobEntry, error]      // by Submitted: Q
	Started iter.Seq2[accounting.AttemptRecord, error] // by Started: S
	Ended   iter.Seq2[accounting.AttemptRecord, error] // by Ended: E and R
	Actions iter.Seq2[accounting.JobAction, error]     // by Time: D, A, C, T, z and r

	// FindJob returns the job of an action. Without it actions are left out.
	FindJob func(accounting.JobKey) (*accounting.JobEntry, error)
}

// WritePBSDays writes a log for each day, as PBS does. open makes a file; its name is
// YYYYMMDD in the zone. It returns the number of records.
func WritePBSDays(open func(name string) (io.WriteCloser, error), records PBSRecords, zone *time.Location) (int64,
	error,
) {
	d := dayFiles{open: open, zone: zone}
	n, err := mergePBS(records, zone, d.write)
	if closed := d.closeFile(); err == nil {
		err = closed
	}
	return n, err
}

// WritePBS writes one log of all days. Times are in the zone. It returns the number of
// records.
func WritePBS(w io.Writer, records PBSRecords, zone *time.Location) (int64, error) {
	out := bufio.NewWriter(w)
	n, err := mergePBS(records, zone, func(_ accounting.Millis, line []byte) error {
		_, err := out.Write(line)
		return err
	})
	return n, errors.Join(err, out.Flush())
}

// dayFiles writes lines to the file of their day.
type dayFiles struct {
	open func(name string) (io.WriteCloser, error)
	zone *time.Location
	file io.WriteCloser // nil: there is none yet
	out  *bufio.Writer
	end  accounting.Millis // of the day of file
}

func (d *dayFiles) write(at accounting.Millis, line []byte) error {
	if d.file == nil || at >= d.end {
		if err := d.closeFile(); err != nil {
			return err
		}
		day := time.UnixMilli(int64(at)).In(d.zone)
		file, err := d.open(day.Format("20060102"))
		if err != nil {
			return err
		}
		d.file, d.out = file, bufio.NewWriterSize(file, 64<<10)
		year, month, date := day.Date()
		d.end = accounting.Millis(time.Date(year, month, date+1, 0, 0, 0, 0, d.zone).UnixMilli())
	}
	_, err := d.out.Write(line)
	return err
}

func (d *dayFiles) closeFile() error {
	if d.file == nil {
		return nil
	}
	err := d.out.Flush()
	if closed := d.file.Close(); err == nil {
		err = closed
	}
	d.file = nil
	return err
}

// pbsSource is one of the streams of a log.
type pbsSource struct {
	at      *accounting.Millis
	live    *bool
	advance func() error
	format  func() error // writes the head into the line; nothing if it has no record
}

// mergePBS calls write for each line, in the order of time.
func mergePBS(records PBSRecords, zone *time.Location, write func(accounting.Millis, []byte) error) (n int64,
	err error,
) {
	p := newPBSWriter(zone)
	if records.FindJob == nil {
		records.Actions = nil
	}
	jobs := openStream("jobs by submission", records.Jobs,
		func(j *accounting.JobEntry) accounting.Millis { return j.Submitted })
	defer jobs.stop()
	started := openStream("attempts by start", records.Started,
		func(a *accounting.AttemptRecord) accounting.Millis { return a.Started })
	defer started.stop()
	actions := openStream("actions", records.Actions, func(a *accounting.JobAction) accounting.Millis { return a.Time })
	defer actions.stop()
	ended := openStream("attempts by end", records.Ended,
		func(a *accounting.AttemptRecord) accounting.Millis { return a.Ended })
	defer ended.stop()
	sources := []pbsSource{
		{&jobs.at, &jobs.live, jobs.advance, func() error { p.queued(&jobs.head); return nil }},
		{&started.at, &started.live, started.advance, func() error { p.started(&started.head); return nil }},
		{&actions.at, &actions.live, actions.advance, func() error {
			job, err := records.FindJob(actions.head.JobKey)
			if err == nil {
				p.acted(job, &actions.head)
			}
			return err
		}},
		{&ended.at, &ended.live, ended.advance, func() error { p.ended(&ended.head); return nil }},
	}
	for i := range sources {
		if err := sources[i].advance(); err != nil {
			return n, err
		}
	}
	for first := firstSource(sources); first != nil; first = firstSource(sources) {
		p.line = p.line[:0]
		if err := first.format(); err != nil {
			return n, err
		}
		if len(p.line) > 0 {
			if err := write(*first.at, p.line); err != nil {
				return n, err
			}
			n++
		}
		if err := first.advance(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// firstSource returns the stream with the earliest record. Of equal times the first
// stream wins, so that a job is queued before it starts, and starts before it ends.
func firstSource(sources []pbsSource) (first *pbsSource) {
	for i := range sources {
		if s := &sources[i]; *s.live && (first == nil || *s.at < *first.at) {
			first = s
		}
	}
	return first
}
