package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// sampleNegotiation is the log of a negotiator. It had nothing to do, then matched three
// of four jobs, and then continues.
const sampleNegotiation = `11/22/26 17:20:01.003 ---------- Started Negotiation Cycle ----------
11/22/26 17:20:01.010 (D_ALWAYS) Phase 1:  Obtaining ads from collector ...
11/22/26 17:20:01.103 ---------- Finished Negotiation Cycle ----------
11/22/26 23:59:59.250 ---------- Started Negotiation Cycle ----------
11/22/26 23:59:59.300 Phase 4.1:  Negotiating with schedds ...
11/22/26 23:59:59.400       Successfully matched with slot1@m1
11/22/26 23:59:59.500       Successfully matched with slot2@m1
a line of something else
11/23/26 00:00:00.100       Rejected 3.0 bench@peers <127.0.0.1:9618>: no match found
11/23/26 00:00:00.200       Successfully matched with slot3@m1
11/23/26 00:00:00.750 ---------- Finished Negotiation Cycle ----------
11/23/26 00:00:03.000 ---------- Started Negotiation Cycle ----------
11/23/26 00:00:03.100       Successfully matched with slot4@m1
`

func TestLastCycle(t *testing.T) {
	got, err := lastNegotiationCycle(sampleNegotiation)
	if err != nil || got.matched != 3 || got.rejected != 1 || got.duration < 1.4999 || got.duration > 1.5001 {
		t.Errorf("got %+v, %v; want 1.5 s over midnight, 3 matched, 1 rejected", got, err)
	}
	for _, cut := range []string{"", "junk", strings.SplitAfter(sampleNegotiation, "\n")[0],
		"11/22/26 17:20:01.5 Finished Negotiation Cycle\n"} {
		if got, err := lastNegotiationCycle(cut); err != nil || got != (negotiationCycle{}) {
			t.Errorf("%q: got %+v, %v", cut, got, err)
		}
	}
}

func TestDispatching(t *testing.T) {
	log := "11/22/2026|schedu|peers|P|PROF: job dispatching took 1.250 s (20 fast, 0 comp)\nmore\nx|PROF: " +
		"job dispatching took 0.500 s\nPROF: job dispatching took . s\n"
	if got := dispatchTime(log); got != 1.75 {
		t.Errorf("got %v", got)
	}
}

func TestGroups(t *testing.T) {
	for _, machines := range []int{1, 6, 500, 10_000} {
		total := 0
		for _, n := range machineGroups(machines) {
			total += n
		}
		if total != machines {
			t.Errorf("%d machines: got %d", machines, total)
		}
	}
	text := cloudNodes(14)
	if !strings.HasPrefix(text, "NodeName=m[00000-00001] CPUs=1 RealMemory=2048 State=CLOUD\n") ||
		!strings.Contains(text, "NodeName=m[00010-00013] CPUs=1 RealMemory=65536 ") ||
		!strings.HasSuffix(text, "State=DOWN\n") {
		t.Errorf("got %s", text)
	}
	if text := cloudNodes(1); strings.Count(text, "NodeName") != 1 {
		t.Errorf("got %s", text)
	}
	if text := (namespaceConfig{Cell: 300}).hostsFile(); !strings.Contains(text, "\n10.98.1.43 m00299\n") ||
		strings.Count(text, "\n") != 302 {
		t.Errorf("got %s", text)
	}
}

func TestParse(t *testing.T) {
	opt, err := parseOptions([]string{"-quick", "-systems", "roost,slurm", "-only", "batch", "-queued", "5,60",
		"-limit", "1m"})
	if err != nil || opt.rounds != 1 || opt.sizes.Batch != quickSizes.Batch ||
		!reflect.DeepEqual(opt.sizes.Queued, []int{5, 60}) ||
		!reflect.DeepEqual(opt.systems, []string{"roost", "slurm"}) ||
		!reflect.DeepEqual(opt.measures, []string{"batch"}) || opt.limit != time.Minute {
		t.Errorf("got %+v, %v", opt, err)
	}
	if quickSizes.Queued[0] == 5 {
		t.Error("the flag has changed the sizes themselves")
	}
	if opt, err := parseOptions(nil); err != nil || opt.rounds != 3 || opt.measures != nil || len(opt.systems) != 4 ||
		opt.sizes.Machines != 10_000 {
		t.Errorf("got %+v, %v", opt, err)
	}
	for _, bad := range [][]string{{"-systems", "pbs"}, {"-only", "batch,all"}, {"-queued", "1000,"}, {"-queued", "-3"},
		{"more"}} {
		if opt, err := parseOptions(bad); err == nil {
			t.Errorf("%v: got %+v", bad, opt)
		}
	}
}

// TestSettings checks that HTCondor's and Slurm's settings have no comment after a value,
// which would become part of it.
func TestSettings(t *testing.T) {
	for _, name := range []string{"htcondor.conf", "htcondor-fast.conf", "htcondor-match.conf", "slurm.conf",
		"slurm-fast.conf", "slurm-node.conf", "slurm-match.conf"} {
		for line := range strings.Lines(configText(name)) {
			if !strings.HasPrefix(line, "#") && strings.Contains(line, "#") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestCPUCgroupPath(t *testing.T) {
	for text, want := range map[string]string{
		"5:memory:/a\n3:cpu,cpuacct:/box/x\n0::/user\n": "/c/cpu/box/x",
		"2:cpuacct:/\n0::/user.slice\n":                 "/c/user.slice",
		"0::/\n":                                        "/c",
		"":                                              "/c",
		"junk\n":                                        "/c",
	} {
		if got := cpuCgroupPath(text, "/c"); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestMeasures checks that every figure of every measurement has a key and a name of its
// own.
func TestMeasures(t *testing.T) {
	seen := map[string]bool{}
	r := &comparisonReport{Sizes: fullSizes}
	r.addLines(nil)
	for _, l := range r.Lines {
		if l.Label == "" || l.Unit == "" || seen[l.Figure] || seen[l.Title] {
			t.Errorf("got %+v", l)
		}
		seen[l.Figure], seen[l.Title] = true, true
	}
	if len(r.Lines) != 14 {
		t.Errorf("there are %d", len(r.Lines))
	}
}
