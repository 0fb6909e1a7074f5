package qalter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/script"
)

// TestAlterScripts runs the tables of qalter. "job ARGUMENT…" submits a job with these
// options of qsub, and "native [ATTRIBUTE = …]" is one of a job file. Then "qalter
// OPTION…" prints the changes or the refusal, and "running OPTION…" those for a running
// job. The job itself is not changed.
func TestAlterScripts(t *testing.T) {
	script.Run(t, "testdata/qalter/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		var job CurrentJob
		return func(s script.ScriptCommand) string {
			line := strings.Join(s.Args, " ")
			args, ok := qsub.SplitWords(line)
			if !ok {
				t.Fatalf("line %d: a quote is not closed", s.Line)
			}
			switch s.Command {
			case "job":
				r, err := qsub.ParseQsub(args, alterCaller())
				if err != nil {
					t.Fatalf("line %d: %v", s.Line, err)
				}
				job = CurrentJob{Ad: r.Job.Ad, Owner: "ann", Host: "srv", Tasks: r.Job.Count, Array: r.Job.Array}
				return "made"
			case "native":
				ad, err := classad.Parse(line)
				if err != nil {
					t.Fatalf("line %d: %v", s.Line, err)
				}
				job = CurrentJob{Ad: ad, Owner: "ann", Host: "srv", Tasks: 1}
				return "made"
			case "qalter", "running":
				j := job
				j.Runs = s.Command == "running"
				return alterationText(t, args, j)
			}
			t.Fatalf("line %d: there is no command %s", s.Line, s.Command)
			return ""
		}
	})
}

// alterationText describes what a command line changes of a job.
func alterationText(t *testing.T, args []string, j CurrentJob) string {
	who := alterCaller()
	who.Dir = "/data/ann/elsewhere"
	refusal := func(err error) string {
		var refused *qsub.RefusalError
		if !errors.As(err, &refused) {
			t.Fatalf("%q: %v is no *Error", args, err)
		}
		text, _, more := strings.Cut(refused.Text, "\n")
		if more {
			text += " …"
		}
		return fmt.Sprintf("%s\nexit %d", text, refused.ExitStatus)
	}
	a, err := ParseQalter(append(args, "7"), who)
	if err != nil {
		return refusal(err)
	}
	c, err := a.ChangeFor(j, "7")
	if err != nil {
		return refusal(err)
	}
	var lines []string
	for name, e := range c.Ad.All() {
		switch name {
		case roost.AttrEnvironment:
			was, _ := j.Ad.Strings(name)
			is, _ := c.Ad.Strings(name)
			for _, v := range is {
				if !slices.Contains(was, v) {
					name, value, _ := strings.Cut(v, "=")
					lines = append(lines, "env "+name+" = "+strconv.Quote(value))
				}
			}
			for _, v := range was {
				name, _, _ := strings.Cut(v, "=")
				if !slices.ContainsFunc(is, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
					lines = append(lines, "env "+name+" is not set")
				}
			}
		case roost.AttrPBS:
			was, _ := j.Ad.Sub(name)
			is, _ := c.Ad.Sub(name)
			for _, name := range differingAttributes(was, is) {
				if e, ok := is.Lookup(name); ok {
					lines = append(lines, "PBS "+name+" = "+e.String())
				} else {
					lines = append(lines, "PBS "+name+" is gone")
				}
			}
		default:
			lines = append(lines, name+" = "+e.String())
		}
	}
	if c.Count > 0 {
		lines = append(lines, fmt.Sprintf("%d tasks", c.Count))
	}
	if c.HoldAction != "" {
		lines = append(lines, c.HoldAction)
	}
	if len(lines) == 0 {
		return "as before"
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// FuzzQalter checks that an alteration changes only what it is about. One that states the
// present values changes nothing.
func FuzzQalter(f *testing.F) {
	f.Add("-lselect=2:ncpus=1\n-joe\nrun.sh", "-N\nx")
	f.Add("-J\n1-3\n-Wstagein=a@srv:b\n-", "-Wdepend=\n-lmem=1gb")
	f.Add("-koe\n-a\n203001010000", "-p\n3\n-eother\n-v\nA=1")
	f.Fuzz(func(t *testing.T, submitted, options string) {
		r, err := qsub.ParseQsub(strings.Split(submitted, "\n"), alterCaller())
		if err != nil || r.Job.Count > 1000 {
			return
		}
		j := CurrentJob{Ad: r.Job.Ad, Owner: "ann", Host: "srv", Tasks: r.Job.Count, Array: r.Job.Array}
		if r.Server != "" {
			j.Host = r.Server
		}
		nothing, err := ParseQalter([]string{"7"}, alterCaller())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := nothing.ChangeFor(j, "7"); err != nil || c.Ad.Len() > 0 || c.Count > 0 || c.HoldAction != "" {
			t.Fatalf("no options change %v, %v", c.Ad, err)
		}
		a, err := ParseQalter(append(strings.Split(options, "\n"), "7"), alterCaller())
		if err != nil {
			return
		}
		c, err := a.ChangeFor(j, "7")
		if err != nil {
			return
		}
		for name, e := range c.Ad.All() {
			if e.String() == "undefined" {
				j.Ad.Delete(name)
			} else {
				j.Ad.Insert(name, e)
			}
		}
		if c, err = a.ChangeFor(j, "7"); c.Count == 0 && (err != nil || c.Ad.Len() > 0) {
			t.Fatalf("the same again changes %v, %v", c.Ad, err)
		}
	})
}

// alterCaller is the caller whose home, script and environment the tests of qalter use.
func alterCaller() qsub.QsubCaller {
	const script = "#!/bin/sh\necho hello\n"
	return qsub.QsubCaller{
		Dir: "/data/ann", Home: "/home/ann", User: "ann", Group: "optics", Host: "srv",
		Now:      time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Environ:  []string{"PATH=/usr/bin", "SHELL=/bin/bash", "HOME=/home/ann", "COST=5$"},
		Read:     func(string) ([]byte, error) { return []byte(script), nil },
		Stdin:    func() ([]byte, error) { return []byte(script), nil },
		IsDir:    func(path string) bool { return path == "/data/ann/logs" },
		LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil },
	}
}
