package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
)

// startReclaimPool starts a pool on one machine of 512 MiB that offers what its tasks
// leave. It does so a second after their start.
func startReclaimPool(t *testing.T) *Pool {
	t.Helper()
	if h, err := cgroup.Open("/roost/test"); err != nil || os.Geteuid() != 0 || !h.Enforcement().Memory {
		t.Skipf("SKIPPED: nothing holds tasks to their memory here (%v)", err)
	}
	p := unitPool(t, config.StartdSettings{
		Resources: roost.Resources{CPU: 4000, Memory: 512 * roost.MiB, Disk: roost.GiB},
		Limits:    config.LimitSettings{Reclaim: roost.ReclaimAggressive, ReclaimAfter: time.Second},
	})
	t.Cleanup(func() {
		if t.Failed() { // what the machine measured
			for _, args := range [][]string{{"nodes", "--json"}, {"ads", "--json"}, {"jobs", "--json"}} {
				stdout, stderr, _ := p.Command(context.Background(), args...)
				t.Logf("%s:\n%s%s", args[0], stdout, stderr)
			}
		}
	})
	return p
}

// submitTask submits a job of one task and returns its id.
func (p *Pool) submitTask(t *testing.T, band string, mib int, script string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(p.Dir), band+".hcl")
	text := fmt.Sprintf("job %q {\n  band = %q\n  memory = \"%dMiB\"\n  script = <<EOT\n%s\nEOT\n}\n", band, band,
		mib, script)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := p.Command(t.Context(), "submit", "--json", path)
	var reply struct{ Jobs []struct{ ID string } }
	if code != 0 || json.Unmarshal([]byte(stdout), &reply) != nil || len(reply.Jobs) != 1 {
		t.Fatalf("submit: %d\n%s%s", code, stdout, stderr)
	}
	return reply.Jobs[0].ID
}

func (p *Pool) shownTasks(t *testing.T, id string) taskRecord {
	var shown struct{ Job taskRecord }
	stdout, _, _ := p.mustQuery(t, "show", "--json", id)
	json.Unmarshal([]byte(stdout), &shown)
	return shown.Job
}

// awaitTask waits until a task satisfies a condition.
func (p *Pool) awaitTask(t *testing.T, what, id string, is func(taskRecord) bool) taskRecord {
	t.Helper()
	var now taskRecord
	if pollUntil(t.Context(), 3*awaitTimeout, func() bool { now = p.shownTasks(t, id); return is(now) }) {
		return now
	}
	why, _, _ := p.Command(t.Context(), "why", id)
	t.Fatalf("%s: it is %+v; %s", what, now, why)
	return now
}

// TestReclaimedTask checks that batch work starts in reclaimed resources and leaves when
// production needs them. Its user gets the reason, and it resumes when there is room
// again. Production is never disturbed.
func TestReclaimedTask(t *testing.T) {
	t.Parallel()
	p := startReclaimPool(t)
	dir := openDir(t)
	grow, shrink := filepath.Join(dir, "grow"), filepath.Join(dir, "shrink")
	prod := p.submitTask(t, "production", 400, fmt.Sprintf(`
until [ -e %s ]; do sleep 0.1; done
dd if=/dev/zero bs=300M count=1 2>/dev/null | until [ -e %s ]; do sleep 0.1; done
sleep 1000`, grow, shrink))
	p.awaitTask(t, "production starts", prod, func(k taskRecord) bool { return k.State == "running" })
	// it uses its memory: where its estimate falls to nothing, it does not have to leave
	batch := p.submitTask(t, "batch", 256, "dd if=/dev/zero bs=200M count=1 2>/dev/null | sleep 1000")
	p.awaitTask(t, "batch starts in what production leaves", batch, func(k taskRecord) bool {
		return k.State == "running" && k.Attempt == 1
	})
	if err := os.WriteFile(grow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.awaitTask(t, "batch makes room", batch, func(k taskRecord) bool { return k.State != "running" })
	who := fmt.Sprintf("its memory was reclaimed by %s", strings.Replace(prod, ".", "[0].", 1))
	p.awaitOutput(t, who, "show", batch)
	if err := os.WriteFile(shrink, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// production may have needed a second attempt's memory, too, before it gave some back
	p.awaitTask(t, "batch starts again", batch, func(k taskRecord) bool {
		return k.State == "running" && k.Attempt >= 2
	})
	if k := p.shownTasks(t, prod); k.State != "running" || k.Attempt != 1 {
		t.Errorf("production is %+v", k)
	}
	for _, id := range []string{batch, prod} {
		if _, stderr, code := p.Command(t.Context(), "rm", id); code != 0 {
			t.Errorf("rm %s: %s", id, stderr)
		}
	}
}
