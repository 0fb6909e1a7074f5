package schedd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/transfer"
)

// smallDisk makes a directory a file system of so many bytes.
func smallDisk(t *testing.T, dir string, size int) {
	t.Helper()
	disk := damage.SmallDisk(t, "", size, 0o711)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(disk, dir); err != nil {
		t.Fatal(err)
	}
}

// fillDisk takes all that is free in a directory, and returns what gives it back.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	return func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

// submitAll has users submit until they are refused. All of them get an answer, and none
// after long.
func submitAll(t *testing.T, p *testPool, name string) (acknowledged []string) {
	var mu sync.Mutex
	var users sync.WaitGroup
	for u := range 200 {
		users.Go(func() {
			for n := 0; ; n++ {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				ad := fmt.Sprintf("[Cmd = \"/bin/true\"; Iwd = %q; HoldOnSubmit = true]", p.node.Dir)
				reply, err := p.client.Submit(ctx,
					&wire.SubmitRequest{Key: fmt.Sprint(name, u, n), Jobs: []*wire.JobSpec{{Ad: ad, Count: 1}}})
				cancel()
				if err != nil {
					if !strings.Contains(err.Error(), "no space left on "+filepath.Join(p.node.Dir, "schedd")) {
						t.Errorf("the answer on a full disk: %v", err)
					}
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, reply.GetIds()...)
				mu.Unlock()
			}
		})
	}
	users.Wait()
	return acknowledged
}

// TestFullDisk checks that a schedd whose disk is full refuses new work with a message,
// and continues. It writes what it had decided into the room that it reserves. When there
// is room again it accepts jobs as before. It loses nothing that it has acknowledged.
func TestFullDisk(t *testing.T) {
	p := newPool(t)
	p.stop()
	dir := filepath.Join(p.node.Dir, "schedd")
	smallDisk(t, dir, 4<<20)
	conn, err := rpc.Dial(p.node.Schedd.Socket, nil, peer.Schedd)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.client = wire.NewScheddClient(conn)
	var acknowledged []string
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, p.node, nil) }()
		if _, err := p.client.Health(p.ctx(), &wire.HealthRequest{}, grpc.WaitForReady(true)); err != nil {
			cancel()
			t.Fatalf("round %d: %v; the schedd ended with: %v", round, err,
				receiveNext(t, done, "the end of the schedd"))
		}
		for _, id := range acknowledged {
			if rows := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}}); len(rows) !=
				1 {
				t.Fatalf("P1: %s was acknowledged, and there are %d of it", id, len(rows))
			}
		}
		eventually(t, "the reserve", func() bool {
			info, err := os.Stat(filepath.Join(dir, journal.ReserveName))
			return err == nil && info.Size() > 0
		})
		free := fillDisk(t, dir)
		acknowledged = append(acknowledged, submitAll(t, p, fmt.Sprint("full ", round))...)
		if len(acknowledged) > 0 { // what makes room is taken still
			last := acknowledged[len(acknowledged)-1]
			acknowledged = acknowledged[:len(acknowledged)-1]
			if _, err := p.client.Act(p.ctx(), &wire.ActRequest{Verb: wire.ActRequest_REMOVE,
				Selection: &wire.Selection{Selectors: []string{last}}}); err != nil {
				t.Errorf("a removal on a full disk: %v", err)
			}
		}
		free()
		eventually(t, "a job is taken again", func() bool {
			ad := fmt.Sprintf("[Cmd = \"/bin/true\"; Iwd = %q; HoldOnSubmit = true]", p.node.Dir)
			reply, err := p.client.Submit(ctx,
				&wire.SubmitRequest{Key: fmt.Sprint("after ", round), Jobs: []*wire.JobSpec{{Ad: ad, Count: 1}}})
			acknowledged = append(acknowledged, reply.GetIds()...)
			return err == nil
		})
		cancel()
		if err := receiveNext(t, done, "the end of the schedd"); err != nil {
			t.Errorf("it ended with: %v", err)
		}
	}
	t.Logf("%d jobs were acknowledged", len(acknowledged))
}

// TestRenewalsOnAFullDisk: while the log waits for room, and everything with it, what
// runs lives on: its leases are renewed.
func TestRenewalsOnAFullDisk(t *testing.T) {
	p := newPool(t)
	p.stop()
	dir := filepath.Join(p.node.Dir, "schedd")
	smallDisk(t, dir, 4<<20)
	p.node.Schedd.JobLease = 2 * time.Second
	p.start()
	t.Cleanup(func() { p.stop() })
	p.run("")
	go func() { // what starts between two verbs
		for {
			select {
			case <-p.startd.activated:
			case <-p.startd.vacated:
			case <-t.Context().Done():
				return
			}
		}
	}()
	held := p.submit("held", 900, "HoldOnSubmit = true").GetIds()[0]
	reserve := filepath.Join(dir, journal.ReserveName)
	eventually(t, "the reserve", func() bool { _, err := os.Stat(reserve); return err == nil })
	free := fillDisk(t, dir)
	if err := os.Remove(reserve); err != nil {
		t.Fatal(err)
	}
	rest := filepath.Join(dir, "rest")
	if err := os.WriteFile(rest, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	stuck := error(nil)
	for n := 0; stuck == nil && n < 10_000; n++ { // the log has some room of its own
		verb := []wire.ActRequest_Verb{wire.ActRequest_RELEASE, wire.ActRequest_HOLD}[n%2]
		_, stuck = p.client.Act(p.ctx(),
			&wire.ActRequest{Verb: verb, Selection: &wire.Selection{Selectors: []string{held}}})
	}
	if stuck == nil || !strings.Contains(stuck.Error(), "no space left") {
		t.Fatalf("the log does not wait for room: %v", stuck)
	}
	for len(p.startd.renewed) > 0 {
		<-p.startd.renewed
	}
	for range 3 { // more than a lease
		receiveNext(t, p.startd.renewed, "a renewal while the log waits")
	}
	free()
	if err := os.Remove(rest); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is written again", func() bool {
		_, err := p.client.Act(p.ctx(), &wire.ActRequest{Verb: wire.ActRequest_REMOVE,
			Selection: &wire.Selection{Selectors: []string{held}}})
		return err == nil
	})
}

// TestSpoolEndsAtTheReserve checks that captured output never uses the room of the job
// log. Output that is not completed leaves nothing.
func TestSpoolEndsAtTheReserve(t *testing.T) {
	p := newPool(t)
	p.stop()
	dir := filepath.Join(p.node.Dir, "schedd")
	smallDisk(t, dir, 8<<20)
	s := &transfer.SpoolDir{Dir: filepath.Join(dir, "spool"), Reserve: journal.NewDiskReserve(dir,
		slog.New(slog.DiscardHandler))}
	if err := s.Reserve.Allocate(); err != nil {
		t.Fatal(err)
	}
	a := roost.AttemptID{Task: roost.JobID{Seq: 7, Host: "h"}.Task(0), Attempt: 1}
	if err := s.Store(a, false, 0, bytes.NewReader(make([]byte, 5<<20))); err != nil {
		t.Fatal(err)
	}
	a.Attempt = 2
	err := s.Store(a, false, 0, bytes.NewReader(make([]byte, 5<<20)))
	if !journal.IsDiskFull(err) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(s.Path(a, false)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is left of it: %v", err)
	}
	if free := s.Reserve.FreeBytes(); free < s.Reserve.Size {
		t.Errorf("%d bytes are free, and the reserve has %d", free, s.Reserve.Size)
	}
}

// TestDiskReserve: the log gets the room of the reserve, and after that everybody hears
// that it waits.
func TestDiskReserve(t *testing.T) {
	dir := t.TempDir()
	smallDisk(t, dir, 4<<20)
	r := journal.NewDiskReserve(dir, slog.New(slog.DiscardHandler))
	if err := r.Allocate(); err != nil {
		t.Fatal(err)
	}
	if err := r.RefusalReason(); err != nil {
		t.Errorf("with room: %v", err)
	}
	free := fillDisk(t, dir)
	write := func() error { return os.WriteFile(filepath.Join(dir, "log"), make([]byte, r.Size/2), 0o600) }
	if err := r.RetryWrite(t.Context(), write); err != nil {
		t.Fatalf("with the reserve: %v", err)
	}
	if err := r.RefusalReason(); !errors.Is(err, roost.Exhausted) {
		t.Errorf("without the reserve: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		done <- r.RetryWrite(t.Context(), func() error {
			return os.WriteFile(filepath.Join(dir, "more"), make([]byte, 2<<20), 0o600)
		})
	}()
	eventually(t, "it waits", func() bool {
		select {
		case <-r.StuckChannel():
			return true
		default:
			return false
		}
	})
	free()
	if err := receiveNext(t, done, "the write"); err != nil {
		t.Error(err)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 20 seconds", what)
		}
	}
}
