package schedd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSubmitFilter checks that the site's filter can change and refuse jobs, and refuse
// alterations. A repeated submission gets its answer again.
func TestSubmitFilter(t *testing.T) {
	p := newPool(t)
	p.stop()
	filter := filepath.Join(p.node.Dir, "filter")
	if err := os.WriteFile(filter, []byte(`#!/bin/sh
document=$(cat)
case $1,$document in
*'"Cmd":"/bin/false"'*) echo "no /bin/false here" >&2; exit 1 ;;
alter,*'"changes":{"JobPrio":9}'*) echo "priority 9 is for deadlines"; exit 1 ;;
submit,*'"RequestMemory":'*) ;;
submit,*) echo '{"version": 1, "jobs": [{"index": 0, "changes": {"RequestMemory": 3072}}]}' ;;
esac
`), 0o755); err != nil {
		t.Fatal(err)
	}
	p.node.Schedd.Filter = config.SubmitFilter{Program: filter, Timeout: 30 * time.Second, User: "nobody"}
	p.start()

	first := p.submit("k1", 1, "HoldOnSubmit = true").GetIds()
	p.submit("k2", 1, "HoldOnSubmit = true; RequestMemory = 1024")
	for seq, want := range map[uint64]roost.Bytes{1: 3 * roost.GiB, 2: roost.GiB} {
		if st, _ := p.recoveredQueue().Status(seq); st.Resources.Memory != want {
			t.Errorf("job %d asks for %v, want %v", seq, st.Resources.Memory, want)
		}
	}
	_, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: "k3", Jobs: []*wire.JobSpec{
		{Ad: `[Cmd = "/bin/true"]`, Count: 1}, {Ad: `[Cmd = "/bin/false"]`, Count: 1}}})
	err = rpc.FromStatus(err)
	if rpc.KindOf(err) != roost.PermissionDenied || !strings.Contains(err.Error(), "no /bin/false here") {
		t.Errorf("a job that it refuses: %v", err)
	}
	if _, found := p.recoveredQueue().Status(3); found {
		t.Error("one of two jobs that were refused together is in the queue")
	}

	alter := func(changes string) *wire.ActReply_Result {
		return p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ALTER,
			Selection:  &wire.Selection{Selectors: []string{first[0]}},
			Alteration: &wire.Alteration{Changes: changes, Basis: -1}})
	}
	if r := alter("[JobPrio = 9]"); roost.ErrorKind(r.GetKind()) != roost.PermissionDenied ||
		!strings.Contains(r.GetError(), "priority 9 is for deadlines") {
		t.Errorf("an alteration that it refuses: %v", r)
	}
	if r := alter("[JobPrio = 5]"); r.GetError() != "" {
		t.Errorf("another alteration: %v", r)
	}
	if st, _ := p.recoveredQueue().Status(1); st.Priority != 5 {
		t.Errorf("the priority is %d, want 5", st.Priority)
	}

	if err := os.WriteFile(filter, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if again := p.submit("k1", 1, "HoldOnSubmit = true"); !again.GetRepeatedKey() || again.GetIds()[0] != first[0] {
		t.Errorf("the same submission again, with a filter that fails: %v", again)
	}
	_, err = p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: "k4", Jobs: []*wire.JobSpec{
		{Ad: `[Cmd = "/bin/true"]`, Count: 1}}})
	if err = rpc.FromStatus(err); rpc.KindOf(err) != roost.Unavailable {
		t.Errorf("a filter that fails: %v", err)
	}
}
