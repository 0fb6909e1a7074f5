package view

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/lazyregexp"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/translate"
	"github.com/roost-batch/roost/internal/web/jobtext"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// JobFile is a job file that makes a job again.
type JobFile struct {
	Version int      `json:"v"`
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Notes   []string `json:"notes"` // what the job has and the file has not, as sentences
}

// ShowJobFile shows the job file of a job.
func (s Submitter) ShowJobFile(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	return s.jobFile(c, id)
}

// ShowClone shows the page for a new job with the job file of another.
func (s Submitter) ShowClone(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	file, err := s.jobFile(c, id)
	f := newSubmitForm()
	f.Clone, f.Request.Text, f.Notes = file.ID, file.Text, file.Notes
	return f, err
}

var taskOfJob = lazyregexp.New(`\[[0-9]+\]`)

// jobFile writes the job file of a job; that of a task is the one of its job. It reads
// the file as a submission would, and notes in what it does not make the same job.
func (s Submitter) jobFile(c *route.Call, id string) (f JobFile, err error) {
	id = taskOfJob().ReplaceAllString(id, "")
	row, err := findRow(c, id, &wire.QueryRequest{Ads: true, Columns: true})
	if err != nil {
		return f, err
	}
	if row.GetDiscreet() {
		return f, fmt.Errorf("job %s: %w: only its owner and administrators see what it runs", id,
			roost.PermissionDenied)
	}
	ad, err := classad.Parse(row.GetAd())
	if err != nil {
		return f, fmt.Errorf("job %s: %w: its ad cannot be read: %w", id, roost.Internal, err)
	}
	job := translate.QueuedJob{Ad: ad, Count: int(row.GetTasks()), Array: row.GetArray(), Depends: row.GetDepends()}
	for _, col := range row.GetColumns() {
		job.Columns = append(job.Columns, jobspec.TaskColumn{Name: col.GetName(), Values: col.GetValues()})
	}
	file, err := translate.WriteJob(job)
	if err != nil {
		return f, fmt.Errorf("job %s: %w", id, err)
	}
	if len(file.Text) > jobtext.MaxText {
		return f, fmt.Errorf("job %s: %w: its job file would have %v, and a form can have %v: submit the file again",
			id, roost.Exhausted, roost.Bytes(len(file.Text)), roost.Bytes(jobtext.MaxText))
	}
	notes, err := s.compareJobFile(c.Context(), c.Session.User, job, file)
	return JobFile{Version: document.Version, ID: row.GetId(), Text: file.Text, Notes: notes}, err
}

// compareJobFile returns the notes about a job file, with those on what it would make
// that is not the job.
func (s Submitter) compareJobFile(ctx context.Context, user string, job translate.QueuedJob,
	file translate.JobFile) (notes []string, err error) {
	notes = append([]string{}, file.Notes...)
	r, err := s.Parser.Parse(ctx, jobtext.Source{Text: file.Text, Format: "hcl", User: user, Home: "/", Dir: "/",
		Now: time.Now()})
	if err != nil {
		return nil, err
	}
	if len(r.Jobs) != 1 {
		summary := "it is not one job"
		if len(r.Diagnostics) > 0 {
			summary = r.Diagnostics[0].Summary
		}
		return append(notes, fmt.Sprintf("This text is refused as it is: %s.", summary)), nil
	}
	ad, err := classad.Parse(r.Jobs[0].Ad)
	if err != nil {
		return nil, fmt.Errorf("job file: %w: %w", roost.Internal, err)
	}
	again := translate.QueuedJob{Ad: ad, Count: r.Jobs[0].Count}
	for _, col := range r.Jobs[0].Columns {
		again.Columns = append(again.Columns, jobspec.TaskColumn{Name: col.Name, Values: col.Values})
	}
	if names := translate.Differences(job, again); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("A new job would not be the same in %s.", strings.Join(names, ", ")))
	}
	return notes, nil
}
