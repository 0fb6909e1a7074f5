package schedd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// A schedd that cannot write its log any more ends at once, whatever else is decided by then: its master starts it again. Nothing of what it has acknowledged is
// lost.
func TestFullDiskEndsIt(t *testing.T) {
	p := newPool(t)
	p.stop()
	dir := filepath.Join(p.node.Dir, "schedd")
	if err := syscall.Mount("roost-test", dir, "tmpfs", 0, "size=4m,mode=711"); err != nil {
		t.Skipf("SKIPPED: no file system can be mounted here: %v; full disks are not tested", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	conn, err := rpc.Dial(p.node.Schedd.Socket, nil, auth.Schedd)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.client = wire.NewScheddClient(conn)
	var mu sync.Mutex
	var acknowledged []string
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, p.node, nil) }()
		if _, err := p.client.Health(p.ctx(), &wire.HealthRequest{}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
		for _, id := range acknowledged {
			if rows := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}}); len(rows) != 1 {
				t.Fatalf("P1: %s was acknowledged, and there are %d of it", id, len(rows))
			}
		}
		var users sync.WaitGroup
		for u := range 200 {
			users.Go(func() {
				for n := 0; ; n++ {
					ad := fmt.Sprintf("[Cmd = \"/bin/true\"; Iwd = %q; HoldOnSubmit = true]", p.node.Dir)
					reply, err := p.client.Submit(ctx, &wire.SubmitRequest{Key: fmt.Sprint(round, u, n), Jobs: []*wire.JobSpec{{Ad: ad, Count: 1}}})
					if err != nil {
						return
					}
					mu.Lock()
					acknowledged = append(acknowledged, reply.GetIds()...)
					mu.Unlock()
				}
			})
		}
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("fill the disk: %v", err)
		}
		if err := next(t, done, "the end of a schedd that cannot write"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("it ended with: %v", err)
		}
		users.Wait()
		cancel()
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d jobs were acknowledged", len(acknowledged))
}
