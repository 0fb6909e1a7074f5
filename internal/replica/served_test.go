package replica_test

import (
	"fmt"
	"testing"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

// TestServed lets three replicas find each other over real sockets. They use
// certificates, or are one user on one machine.
func TestServed(t *testing.T) {
	authority := t.TempDir()
	if err := pki.Init(authority, "lab"); err != nil {
		t.Fatal(err)
	}
	certified := func(i int) *rpc.Identity {
		files, err := pki.IssueTo(authority, fmt.Sprintf("n%d", i), []peer.Role{peer.Negotiator})
		if err != nil {
			t.Fatal(err)
		}
		id, err := pki.Load(&files)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	dir := t.TempDir()
	tests := []struct {
		name string
		addr func(int) string
		who  func(int) *rpc.Identity
	}{
		{"tls", func(int) string { return "127.0.0.1:0" }, certified},
		{"unix", func(i int) string {
			return fmt.Sprintf("unix:%s/%d.sock", dir, i)
		}, func(int) *rpc.Identity { return nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			leader := newServedReplicas(t, t.TempDir(), tt.addr, tt.who).waitForNewLeader(nil)
			if err := commitEntry(leader, []byte("a")); err != nil {
				t.Fatal(err)
			}
			if s := leader.Survey(t.Context()); s.SpareVoters() != 1 {
				t.Errorf("got %+v", s)
			}
		})
	}
}
