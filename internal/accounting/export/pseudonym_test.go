package export

import (
	"bytes"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
)

// one is a sequence of one value.
func one[T any](v T) iter.Seq2[T, error] { return func(yield func(T, error) bool) { yield(v, nil) } }

// TestPseudonyms writes records with pseudonyms in each format. No name of a person, a
// job or a machine is in them, and the same key gives the same pseudonyms.
func TestPseudonyms(t *testing.T) {
	const secret = "zebra"
	job := accounting.JobEntry{Host: secret + "host", Name: secret + "name", Owner: secret, UID: 4711, GID: 4712,
		UnixGroup: secret + "unix", Group: secret + "phys." + secret + "atlas", Project: secret + "project",
		Queue: "long", Arguments: secret + "cmd", WorkDir: "/home/" + secret, Submitted: 1000}
	job.Seq, job.Tasks = 7, 1
	attempt := accounting.AttemptRecord{Job: &job}
	attempt.Node, attempt.Reason, attempt.Started, attempt.Ended = secret+"node", secret+" has no file", 2000, 3000
	attempt.Cause, attempt.JobKey = accounting.EndedExit, job.JobKey
	machine := accounting.MachineEvent{Node: secret + "node", Time: 500, By: secret, Reason: secret}
	write := func(key string) string {
		p, err := NewPseudonyms([]byte(key))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := Attempts().WriteCSV(&b, p.Attempts(one(attempt))); err != nil {
			t.Fatal(err)
		}
		if _, err := Jobs().WriteJSONLines(&b, p.Jobs(one(job))); err != nil {
			t.Fatal(err)
		}
		if _, err := Machines().WriteCSV(&b, p.Machines(one(machine))); err != nil {
			t.Fatal(err)
		}
		if n, err := WritePBS(&b, PBSRecords{Jobs: p.Jobs(one(job)), Started: p.Attempts(one(attempt)),
			Ended: p.Attempts(one(attempt))}, time.UTC); err != nil || n != 3 {
			t.Fatalf("%d records of PBS, %v", n, err)
		}
		return b.String()
	}
	const key = "0123456789abcdef"
	text := write(key)
	for _, hidden := range []string{secret, "4711", "4712"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%s is in what leaves the site:\n%s", hidden, text)
		}
	}
	if again := write(key); again != text {
		t.Errorf("the same key gives other pseudonyms:\n%s\n%s", text, again)
	}
	if other := write(key + "x"); other == text {
		t.Error("another key gives the same pseudonyms")
	}
	if _, err := NewPseudonyms([]byte("short")); err == nil {
		t.Error("a key of 5 bytes is accepted")
	}
	if attempt.Job.Owner != secret || attempt.Node != secret+"node" {
		t.Error("the records themselves were changed")
	}
	user := (&Pseudonyms{[]byte(key)}).hash().of("user", secret)
	if strings.Count(text, user) < 4 {
		t.Errorf("the pseudonym %s is not the same everywhere:\n%s", user, text)
	}
}
