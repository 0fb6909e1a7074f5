package dag

import (
	"testing"

	"github.com/roost-batch/roost/schedd/flow"
)

// TestDefinition runs a DAG file. Its parts end with the codes of the table.
func TestDefinition(t *testing.T) {
	f := parseGood(t, textFiles{"x.dag": `
JOB a a.sub
JOB b b.sub
JOB c c.sub
JOB d d.sub NOOP
FINAL end end.sub
PARENT a CHILD b c
PARENT b c CHILD d
SCRIPT PRE a check
SCRIPT POST c look
PRE_SKIP a 4
RETRY b 2 UNLESS-EXIT 7
ABORT-DAG-ON c 9 RETURN 3
CATEGORY ALL_NODES heavy
MAXJOBS heavy 1
`})
	for _, test := range []struct {
		codes  map[string]int // by "NODE PART ATTEMPT"
		want   string
		status flow.FlowStatus
		code   int
	}{
		{nil, "a pre, a job, b job, c job, c post, end job", flow.StatusOK, 0},
		{map[string]int{"a pre 0": 4, "b job 0": 1}, "a pre, b job, b job, c job, c post, end job", flow.StatusOK, 0},
		{map[string]int{"b job 0": 7, "end job 0": 1}, "a pre, a job, b job, c job, c post, end job",
			flow.StatusNodeFailed, 1},
		{map[string]int{"c post 0": 9}, "a pre, a job, b job, c job, c post, end job", flow.StatusAborted, 3},
	} {
		r, got := flow.New(f.Definition(), flow.Limits{}), ""
		for e := r.Next(); e != nil; e = r.Next() {
			r.Apply(e)
			if b, ok := e.(flow.PartBegun); ok {
				name := f.Graph.Name(b.Node) + " " + b.Part.String()
				if got != "" {
					got += ", "
				}
				got += name
				r.Apply(flow.PartEnded{Node: b.Node, Attempt: b.Attempt, Part: b.Part,
					Code: test.codes[name+" "+string(rune('0'+b.Attempt))]})
			}
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if status, code := r.Status(); got != test.want || status != test.status || code != test.code ||
			r.Phase() != flow.Ended {
			t.Errorf("%v: got %s; %v, status %d, code %d", test.codes, got, r.Phase(), status, code)
		}
	}
}
