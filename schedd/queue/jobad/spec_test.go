package jobad

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

func parseAd(t *testing.T, src string) *classad.Ad {
	t.Helper()
	ad, err := classad.Parse("[" + src + "]")
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// TestReadSpecErrors checks that an error names the attribute that is wrong.
func TestReadSpecErrors(t *testing.T) {
	for src, attr := range map[string]string{
		`JobName = "none"`:              roost.AttrCmd,
		`Cmd = "x"; RequestCpus = 0`:    roost.AttrRequestCpus,
		`Cmd = "x"; Walltime = "long"`:  roost.AttrWalltime,
		`Cmd = "x"; AppClass = "other"`: roost.AttrAppClass,
		`Cmd = "x"; Transfer = "later"`: roost.AttrTransfer,
		`Cmd = "x"; CpuSlack = "no"`:    roost.AttrCPUSlack,
		`Cmd = "x"; CoreThreads = 1`:    roost.AttrCoreThreads,
		`Cmd = "x"; RequestDiskIo = -1`: roost.AttrRequestDiskIO,

		`Cmd = "x"; MemorySlack = true; Band = "production"`: roost.AttrMemorySlack,
		`Cmd = "x"; WholeCores = true; RequestCpus = 1.5`:    roost.AttrWholeCores,
		`Cmd = "x"; Prefer = {"TARGET.Speed >"}`:             roost.AttrPrefer,
		`Cmd = "x"; TransferCheckpoint = {"../out"}`:         roost.AttrCheckpointFiles,
	} {
		_, err := ReadSpec(parseAd(t, src))
		if !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), attr) {
			t.Errorf("%s: got %v, want an error about %s", src, err, attr)
		}
	}
}

// TestGPUNeeds checks that each different need for GPUs is listed once.
func TestGPUNeeds(t *testing.T) {
	s := SubmitSpec{Ad: parseAd(t, `Cmd = "x"; RequestGpuMemory = 1024`), Count: 4, Columns: []TaskColumn{
		{Name: roost.AttrRequestGpus, Values: []string{"1", "1", "0", "2"}}}}
	want := []GPUNeed{{0, roost.Resources{GPUs: 1, GPUMemory: roost.GiB}},
		{3, roost.Resources{GPUs: 2, GPUMemory: roost.GiB}}}
	if got := s.GPUs(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSubstituter checks that names are replaced, and that $$ is a dollar sign.
func TestSubstituter(t *testing.T) {
	m := AdSubstituter{Ad: parseAd(t, `Cmd = "a$(x)b$$$(y)$"`),
		Value: func(name string) string { return "<" + name + ">" }}
	if got, want := m.Text("Cmd"), "a<x>b$<y>$"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRequestNamesSubmitHost checks which requests name the submit node of their owner.
// Those are for ports that need a capability, in the queue of the cell only.
func TestRequestNamesSubmitHost(t *testing.T) {
	for _, test := range []struct{ ports, queue, want string }{
		{`{[Name = "a"; Host = "*"]}`, "pool", "n1"},
		{`{[Name = "a"; Host = "*"]}`, "n1", ""},
		{`{[Name = "a"]}`, "pool", ""},
	} {
		spec, err := ReadSpec(parseAd(t, `Cmd = "x"; SubmitHost = "n1"; Ports = `+test.ports))
		if err != nil {
			t.Fatal(err)
		}
		ad, err := classad.Parse(spec.RequestAd("ann", 7, roost.JobID{Seq: 1, Host: test.queue}))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := ad.Str(roost.AttrSubmitHost); got != test.want {
			t.Errorf("ports %s in the queue of %s: it names %q, want %q", test.ports, test.queue, got, test.want)
		}
	}
}
