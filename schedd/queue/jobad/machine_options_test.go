package jobad

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// TestMachineOptions: what a job wants of its machine is in the ad of its request. It
// tells the request from those of other jobs.
func TestMachineOptions(t *testing.T) {
	plain, err := ReadSpec(parseAd(t, `Cmd = "x"; CpuSlack = true; MemorySlack = false`))
	if err != nil {
		t.Fatal(err)
	}
	if text := plain.RequestAd("ada", 1000, roost.JobID{}); strings.Contains(text, "Slack") ||
		strings.Contains(text, "Numa") || strings.Contains(text, "DiskIo") {
		t.Errorf("a job without wishes: %s", text)
	}
	keys := map[string]string{plain.RequestKey("ada", 1, 1, roost.JobID{}): "none"}
	for src, want := range map[string]string{
		"CpuSlack = false":                   "CpuSlack = false",
		"MemorySlack = true":                 "MemorySlack = true",
		"WholeCores = true":                  `int(MY.RequestCpus) % TARGET.ThreadsPerCore == 0`,
		"WholeCores = true; CoreThreads = 1": "CoreThreads = 1",
		"OneNumaNode = true":                 `TARGET.NumaNodeCpus >= MY.RequestCpus`,
		"RequestDiskIo = 5":                  "RequestDiskIo = 5",
		"RequestNetwork = 7":                 "RequestNetwork = 7",
	} {
		p, err := ReadSpec(parseAd(t, `Cmd = "x"; `+src))
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		text := p.RequestAd("ada", 1000, roost.JobID{})
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", src, text)
		}
		if _, err := classad.Parse(text); err != nil {
			t.Errorf("%s: %v", src, err)
		}
		key := p.RequestKey("ada", 1, 1, roost.JobID{})
		if other := keys[key]; other != "" {
			t.Errorf("%s and %s have the same request", src, other)
		}
		keys[key] = src
	}
}

// TestWholeCoresFit: the requirements hold on machines that have the cores, only.
func TestWholeCoresFit(t *testing.T) {
	p, err := ReadSpec(parseAd(t, `Cmd = "x"; RequestCpus = 6; WholeCores = true; OneNumaNode = true`))
	if err != nil {
		t.Fatal(err)
	}
	request, err := classad.Parse(p.RequestAd("ada", 1000, roost.JobID{}))
	if err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[string]bool{
		`ThreadsPerCore = 2; PhysicalCores = 8; NumaNodeCpus = 8; Enforces = {"cpu", "cpuset"}`: true,
		`ThreadsPerCore = 1; PhysicalCores = 8; NumaNodeCpus = 8; Enforces = {"cpuset"}`:        true,
		`ThreadsPerCore = 4; PhysicalCores = 8; NumaNodeCpus = 32; Enforces = {"cpuset"}`:       false,
		`ThreadsPerCore = 2; PhysicalCores = 2; NumaNodeCpus = 4; Enforces = {"cpuset"}`:        false,
		`ThreadsPerCore = 2; PhysicalCores = 8; NumaNodeCpus = 4; Enforces = {"cpuset"}`:        false,
		`ThreadsPerCore = 2; PhysicalCores = 8; NumaNodeCpus = 8; Enforces = {"memory", "cpu"}`: false,
		`PhysicalCores = 8; NumaNodeCpus = 8; Enforces = {"cpuset"}`:                            false,
		`Name = "of the release before"`:                                                        false,
	} {
		if got := classad.Match(request, parseAd(t, machine), nil).Left.IsTrue(); got != want {
			t.Errorf("%s: got %v, want %v", machine, got, want)
		}
	}
}
