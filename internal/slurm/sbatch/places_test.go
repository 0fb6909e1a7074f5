package sbatch

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// TestPlaces checks the condition for machines at the submission, and after changes of
// what the job asks for. Each word of a change is NAME=VALUE of the record.
func TestPlaces(t *testing.T) {
	is := func(host string) string {
		return `(Machine is "` + host + `" || substr(Machine,0,3) is "` + host + `.")`
	}
	for _, c := range []struct{ line, submitted, change, changed string }{
		{"", "", "Features=big", "((big is true))"},
		{"-C big -x n2", `((big is true)) &&  !` + is("n2"), "Features= ExcNodeList=n3", ` !` + is("n3")},
		{"-w n1", "(" + is("n1") + ")", "ReqNodeList=n4", "(" + is("n4") + ")"},
		{"-w n1 -C a|b", "((a is true) || (b is true)) && (" + is("n1") + ")", "ReqNodeList= Features=", ""},
		{"--gres=gpu:a100:1 -x n2", `regexp("a100",join(",",GpuModels),"i") &&  !` + is("n2"), "ExcNodeList=",
			`regexp("a100",join(",",GpuModels),"i")`},
	} {
		r, err := parse("#!/bin/sh\n", nil, append(strings.Fields(c.line), "job.sh")...)
		if err != nil {
			t.Fatalf("%q: %v", c.line, err)
		}
		if got := requirementsOf(r.Job.Ad); got != c.submitted {
			t.Errorf("%q: %s, want %s", c.line, got, c.submitted)
		}
		record, _ := r.Job.Ad.Sub(roost.AttrSlurm)
		for _, word := range strings.Fields(c.change) {
			name, value, _ := strings.Cut(word, "=")
			if record.Delete(name); value != "" {
				record.SetString(name, value)
			}
		}
		changes := classad.New()
		if ok, err := ReplacePlaces(changes, record); !ok || err != nil {
			t.Errorf("%q, %s: %v, %v", c.line, c.change, ok, err)
		}
		if got := requirementsOf(changes); got != c.changed {
			t.Errorf("%q, %s: %s, want %s", c.line, c.change, got, c.changed)
		}
	}
	r, err := parse("#!/bin/sh\n", nil, "-w", "n[1-2]", "job.sh")
	if err != nil {
		t.Fatal(err)
	}
	record, _ := r.Job.Ad.Sub(roost.AttrSlurm)
	if ok, err := ReplacePlaces(classad.New(), record); ok || err != nil {
		t.Errorf("machines that are chunks of their own can be replaced: %v", err)
	}
}

// requirementsOf is the text of the Requirements; empty: there are none.
func requirementsOf(ad *classad.Ad) string {
	e, ok := ad.Lookup(roost.AttrRequirements)
	if !ok || e.String() == "undefined" {
		return ""
	}
	return e.String()
}

// TestArrayMaximum checks that indexes from MaxArraySize on are refused.
func TestArrayMaximum(t *testing.T) {
	for indexes, isTaken := range map[string]bool{"4000000": true, "4000001": false, "0-4000000:1000000": true,
		"0-4000001": false, "1,99999999999999999999": false} {
		_, err := parse("#!/bin/sh\n", nil, "-a", indexes, "job.sh")
		if (err == nil) != isTaken {
			t.Errorf("-a %s: %v", indexes, err)
		}
	}
}
