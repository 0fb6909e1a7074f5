package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestResourceBounds checks queue defaults and limits for resources that machines do not
// hand out. A job that moves on loses the defaults of its former queue.
func TestResourceBounds(t *testing.T) {
	p := &wire.Policy{
		All: &wire.JobQueue{Default: &wire.Extent{Others: map[string]int64{"cput": 60, "tapes": 1}},
			Most: &wire.Extent{Others: map[string]int64{"tapes": 2, "file": 1 << 30}}},
		Queues: []*wire.JobQueue{
			{Name: "small", Enabled: true, Default: &wire.Extent{Others: map[string]int64{"vmem": 1 << 20}},
				Most: &wire.Extent{Others: map[string]int64{"cput": 3600, "pmem": 1 << 21}}},
			{Name: "large", Enabled: true, Least: &wire.Extent{Others: map[string]int64{"cput": 3600, "matlab": 1}},
				Default: &wire.Extent{Others: map[string]int64{"cput": 7200, "matlab": 3}}},
		},
	}
	for _, c := range []struct{ queue, ad, want string }{
		{"small", "", `cput 60 file 1048576 pmem 2048 vmem 1024 takes tapes`},
		{"small", "CpuTimeLimit = 30; ProcessMemoryLimit = 7", `cput 30 file 1048576 pmem 7 vmem 1024 takes tapes`},
		{"small", "CpuTimeLimit = 3601",
			"queue small: limit reached: a task asks for 1h0m1s of cput, and 1h0m0s is the most here"},
		{"small", "ProcessMemoryLimit = 2049",
			"queue small: limit reached: a task asks for 2MiB of pmem, and 2MiB is the most here"},
		{"small", `ConcurrencyLimits = "tapes:2, ansys"`,
			`cput 60 file 1048576 pmem 2048 vmem 1024 takes tapes:2, ansys`},
		{"small", `ConcurrencyLimits = "tapes:3"`,
			"queue small: limit reached: a task asks for 3 of tapes, and 2 is the most here"},
		{"small", "GangSize = 3", `cput 60 file 1048576 pmem 2048 vmem 1024 takes `},
		{"large", "", `cput 7200 file 1048576 takes matlab:3, tapes`},
		{"large", `ConcurrencyLimits = "ansys"`, `cput 7200 file 1048576 takes ansys, matlab:3, tapes`},
		{"large", "CpuTimeLimit = 30",
			"queue large: limit reached: a task asks for 30s of cput, and 1h0m0s is the least here"},
		{"", "", `cput 60 file 1048576 takes tapes`},
	} {
		e := &QueueAdmission{Now: time.Now(), Policy: p, Submitter: queue.CallerIdentity{User: "ann", Host: "n1"},
			Groups: func() []string {
				return nil
			}, FullQueues: map[string]bool{}}
		spec := parseSpec(t, c.ad)
		before := spec.Ad.String()
		got := ""
		if err := e.enterQueue(spec, c.queue); err != nil {
			got = err.Error()
		} else {
			for _, b := range processBounds() {
				if n, ok := spec.Ad.Int(b.attribute); ok {
					got += fmt.Sprintf("%s %d ", b.name, n)
				}
			}
			text, _ := spec.Ad.Str(roost.AttrLimits)
			got += "takes " + text
			removeQueueDefaults(spec.Ad)
			if after := spec.Ad.String(); after != before {
				t.Errorf("%s with %s: it leaves %s", c.queue, c.ad, after)
			}
		}
		if got != c.want {
			t.Errorf("%s with %s:\ngot  %s\nwant %s", c.queue, c.ad, got, c.want)
		}
	}
}

// TestQueueRequirements checks that a queue adds its machine requirements to those of its
// jobs. It leaves out an attribute that the job's own Requirements mention.
func TestQueueRequirements(t *testing.T) {
	p := &wire.Policy{
		All: &wire.JobQueue{Default: &wire.Extent{Words: map[string]string{"fpga": "False", "Qlist": "any"}}},
		Queues: []*wire.JobQueue{
			{Name: "own", Enabled: true, Chunk: &wire.Extent{Words: map[string]string{"Qlist": "own \"x\""}}},
			{Name: "free", Enabled: true, Default: &wire.Extent{Words: map[string]string{"fpga": "True"}}},
		},
	}
	for _, c := range []struct{ queue, ad, want string }{
		{"own", "", `TARGET.Qlist == "own \"x\"" && TARGET.fpga isnt true`},
		{"free", "", `TARGET.Qlist == "any" && TARGET.fpga is true`},
		{"own", `Requirements = TARGET.qlist == "free"`, `TARGET.fpga isnt true`},
		{"own", `Requirements = TARGET.Qlists == "free" && TARGET.fpga`, `TARGET.Qlist == "own \"x\""`},
		{"", `Requirements = TARGET.fpga && TARGET.Qlist != "a"`, ""},
	} {
		e := &QueueAdmission{Now: time.Now(), Policy: p, Submitter: queue.CallerIdentity{User: "ann", Host: "n1"},
			Groups: func() []string {
				return nil
			}, FullQueues: map[string]bool{}}
		spec := parseSpec(t, c.ad)
		before := spec.Ad.String()
		if err := e.enterQueue(spec, c.queue); err != nil {
			t.Fatal(err)
		}
		got := ""
		if expr, ok := spec.Ad.Lookup(roost.AttrQueueRequires); ok {
			got = expr.String()
		}
		if got != c.want {
			t.Errorf("%s with %s: got %s, want %s", c.queue, c.ad, got, c.want)
		}
		if removeQueueDefaults(spec.Ad); spec.Ad.String() != before {
			t.Errorf("%s with %s: it leaves %v", c.queue, c.ad, spec.Ad)
		}
	}
}
