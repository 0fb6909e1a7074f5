package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// SubmitJobs submits jobs to the schedd. Its answer may be lost; then the same key asks
// again, and the schedd makes no second set of jobs. Of a large submission, sent is
// called with the bytes of each part; it may be nil.
func SubmitJobs(c *frame.Invocation, jobs []jobspec.Job, key string,
	sent func(bytes int)) (*scheddapi.SubmitReply, error) {
	return SubmitTo(c, DefaultQueue, jobs, key, sent)
}

// The queues that a submission can name, as the schedd knows them.
const (
	DefaultQueue = ""  // that of the jobs, or of the node file
	CellQueue    = "@" // that of the cell: the schedd passes the jobs on
	HostQueue    = "." // that of the schedd itself
)

// SubmitTo is SubmitJobs to a queue.
func SubmitTo(c *frame.Invocation, queue string, jobs []jobspec.Job, key string,
	sent func(bytes int)) (reply *scheddapi.SubmitReply, err error) {
	if key == "" {
		key = rand.Text()
	}
	req := &scheddapi.SubmitRequest{Key: key, Schedd: queue}
	pins := newNamePins()
	for _, j := range jobs {
		if err := pins.pin(c, &j); err != nil {
			return nil, err
		}
		if err := uploadScript(c, &j, sent); err != nil {
			return nil, err
		}
		spec := &scheddapi.JobSpec{Ad: j.Ad.String(), Count: uint32(j.Count)}
		for _, col := range j.Columns {
			spec.Columns = append(spec.Columns, &scheddapi.Column{Name: col.Name, Values: col.Values})
		}
		req.Jobs = append(req.Jobs, spec)
	}
	s, err := c.ConnectSchedd()
	if err != nil {
		return nil, err
	}
	err = c.Retry(frame.SubmitTimeout, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		reply, err = s.SendSubmission(ctx, req, sent)
		return frame.DecodeError(err)
	})
	return reply, err
}

// Pins finds out what the names in jobs mean, each one once, and uploads their scripts.
type Pins struct{ names *namePins }

// NewPins returns pins that know nothing yet.
func NewPins() Pins { return Pins{newNamePins()} }

// Prepare makes a job ready to be sent: its images and packages are pinned, and a long
// script is uploaded.
func (p Pins) Prepare(c *frame.Invocation, job *jobspec.Job) error {
	if err := p.names.pin(c, job); err != nil {
		return err
	}
	return uploadScript(c, job, nil)
}

// UploadSize estimates how many bytes SubmitJobs sends, without what all jobs have.
func UploadSize(jobs []jobspec.Job) (bytes int64) {
	for i := range jobs {
		text, _ := jobs[i].Ad.Str(roost.AttrScript)
		bytes += int64(len(text))
		for _, col := range jobs[i].Columns {
			for _, v := range col.Values {
				bytes += int64(len(v)) + 2 // with its tag and its length
			}
		}
	}
	return bytes
}

// ReadInput reads a whole file of the user's, or standard input.
func ReadInput(c *frame.Invocation, file string) ([]byte, error) {
	var src []byte
	var err error
	if file == "-" {
		src, err = frame.ReadLimited(c.Stdin, "standard input", roost.MaxJobFileBytes)
	} else {
		src, err = frame.UserFiles{}.Read(c.AbsolutePath(file), roost.MaxJobFileBytes)
	}
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, frame.KindErrorf(roost.NoInput, "%s: %v", file, path.Err)
	case err != nil:
		return nil, frame.KindErrorf(roost.Invalid, "%v", err)
	}
	return src, nil
}
