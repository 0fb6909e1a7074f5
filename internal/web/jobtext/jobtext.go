// Package jobtext reads job files that come over the network. The parser is bounded by
// itself, but a mistake in it must not stop the web daemon for all users, so it runs in a
// child of little memory and time, which has no files, no environment and no network.
package jobtext

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/translate"
)

// MaxText is the most bytes of a job file over the network.
const MaxText = 1 << 20

// Source is a job file and who submits it.
type Source struct {
	Text   string            `json:"text"`
	Format string            `json:"format"` // "hcl", "auto", or a dialect of roost translate
	Vars   map[string]string `json:"vars"`
	User   string            `json:"user"`
	Home   string            `json:"home"`
	Dir    string            `json:"dir"` // working directory of the jobs
	Now    time.Time         `json:"now"`
}

// Column is what differs between the tasks of a job.
type Column struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Job is a job, ready to be submitted.
type Job struct {
	Name    string   `json:"name"`
	Ad      string   `json:"ad"`
	Count   int      `json:"count"`
	Columns []Column `json:"columns,omitempty"`
}

// Diagnostic is one mistake and its place. Lines and columns begin at 1; 0: no place.
type Diagnostic struct {
	Summary   string `json:"summary"`
	Detail    string `json:"detail"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
}

// Result is what was read: jobs, or mistakes.
type Result struct {
	Jobs        []Job        `json:"jobs,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	Text        string       `json:"text,omitempty"` // the mistakes as roost submit prints them, with carets
	// the job file in HCL that another format was translated to; notes in its comments
	// say what was not carried over
	Translated string `json:"translated,omitempty"`
}

// screenWidth is the width of the text about mistakes, in columns.
const screenWidth = 100

// Parse reads a job file. It is called in the child.
func Parse(s Source) Result {
	var r Result
	src := []byte(s.Text)
	if s.Format != "hcl" {
		from := translate.Dialect(s.Format)
		if s.Format == "auto" {
			from = ""
		}
		t, err := translate.TranslateFile(src, translate.SourceOptions{From: from})
		if err != nil {
			return Result{Diagnostics: []Diagnostic{{Summary: "this cannot be translated", Detail: err.Error()}},
				Text: err.Error()}
		}
		r.Translated, src = t.Text, []byte(t.Text)
	}
	jobs, diags := submit.ParseFile(src, submit.ParseOptions{Filename: "job file", Vars: s.Vars, Dir: s.Dir,
		Home: s.Home, User: s.User, Now: s.Now, RefuseFiles: true})
	if diags.HasErrors() {
		r.Text = submit.Format(diags, src, screenWidth, false)
		for _, d := range diags {
			r.Diagnostics = append(r.Diagnostics, diagnosticOf(d))
		}
		return r
	}
	if len(jobs) == 0 {
		r.Diagnostics = []Diagnostic{{Summary: "there is no job in it", Detail: "Begin with: job \"NAME\" { … }"}}
		r.Text = r.Diagnostics[0].Summary
	}
	for _, j := range jobs {
		one := Job{Name: j.Name, Ad: j.Ad.String(), Count: j.Count}
		for _, c := range j.Columns {
			one.Columns = append(one.Columns, Column{c.Name, c.Values})
		}
		r.Jobs = append(r.Jobs, one)
	}
	return r
}

func diagnosticOf(d *hcl.Diagnostic) Diagnostic {
	one := Diagnostic{Summary: d.Summary, Detail: d.Detail}
	if at := d.Subject; at != nil {
		one.Line, one.Column, one.EndLine, one.EndColumn = at.Start.Line, at.Start.Column, at.End.Line, at.End.Column
	}
	return one
}

// check returns what is wrong with a source before it is parsed.
func (s *Source) check() error {
	if len(s.Text) > MaxText {
		return fmt.Errorf("job file: %w: it has more than %v", roost.Exhausted, roost.Bytes(MaxText))
	}
	if s.Format == "" {
		s.Format = "hcl"
	}
	return nil
}
