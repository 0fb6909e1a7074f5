package peer_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// serviceMethods lists every method of every service by its full name.
func serviceMethods() []string {
	var all []string
	for _, s := range []grpc.ServiceDesc{wire.Schedd_ServiceDesc, wire.Neighbour_ServiceDesc,
		wire.Collector_ServiceDesc, wire.Negotiator_ServiceDesc, wire.Replica_ServiceDesc, wire.Startd_ServiceDesc,
		wire.CheckpointServer_ServiceDesc, wire.Guard_ServiceDesc, wire.Authority_ServiceDesc, wire.Feed_ServiceDesc,
		wire.Accountant_ServiceDesc, wire.CellQueue_ServiceDesc, wire.Relay_ServiceDesc} {
		for _, m := range s.Methods {
			all = append(all, "/"+s.ServiceName+"/"+m.MethodName)
		}
		for _, m := range s.Streams {
			all = append(all, "/"+s.ServiceName+"/"+m.StreamName)
		}
	}
	return all
}

// TestAccessTableComplete compares the table with the services, both ways, and checks its
// roles.
func TestAccessTableComplete(t *testing.T) {
	table, served := peer.MethodAccess(), serviceMethods()
	for _, m := range served {
		if len(table[m]) == 0 {
			t.Errorf("%s: nobody may call it", m)
		}
	}
	for m, roles := range table {
		if !slices.Contains(served, m) {
			t.Errorf("%s: no service has it", m)
		}
		for _, r := range roles {
			if r != peer.User && r != peer.Anonymous && !slices.Contains(peer.DaemonRoles(), r) {
				t.Errorf("%s: no role is called %q", m, r)
			}
		}
	}
}

// TestManualListsAccess compares the table in roost-security(7) with this one, both ways.
func TestManualListsAccess(t *testing.T) {
	page, err := os.ReadFile("../../../man/roost-security.7")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), ".SH WHO MAY CALL WHAT")
	_, text, _ = strings.Cut(text, ".nf\n")
	text, _, _ = strings.Cut(text, ".fi")
	documented := map[string]string{}
	for line := range strings.Lines(text) {
		method, roles, _ := strings.Cut(strings.TrimSpace(line), " ")
		documented["/roost.wire."+strings.Replace(method, ".", "/", 1)] = strings.TrimSpace(roles)
	}
	for method, allowed := range peer.MethodAccess() {
		var roles []string
		for _, r := range allowed {
			roles = append(roles, string(r))
		}
		if want := strings.Join(roles, ", "); documented[method] != want {
			t.Errorf("%s: the page says %q, want %q", method, documented[method], want)
		}
		delete(documented, method)
	}
	for method := range documented {
		t.Errorf("%s: the page has it, and there is no such method", method)
	}
}

func TestWhoMay(t *testing.T) {
	self := uint32(os.Geteuid())
	other := self + 12345
	certified := func(roles ...peer.Role) peer.Peer { return peer.Peer{Name: "n1", Certified: roles} }
	far := peer.Peer{Name: "ann@n1", User: "ann", Serial: "1"}
	local := func(uid uint32) peer.Peer { return peer.Peer{Local: true, UID: uid} }
	const (
		submit    = "/roost.wire.Schedd/Submit"
		negotiate = "/roost.wire.Negotiator/Negotiate"
		session   = "/roost.wire.Startd/Session"
	)
	tests := []struct {
		name   string
		peer   peer.Peer
		method string
		want   bool
	}{
		{"a user submits", local(other), submit, true},
		{"a user negotiates", local(other), negotiate, false},
		{"a user runs tasks", local(other), session, false},
		{"root is every daemon", local(0), session, true},
		{"the daemons' user is every daemon", local(self), negotiate, true},
		{"a schedd negotiates", certified(peer.Schedd), negotiate, true},
		{"a startd negotiates", certified(peer.Startd), negotiate, false},
		{"a certificate makes no user", certified(peer.DaemonRoles()...), submit, false},
		{"a certificate without roles", certified(), session, false},
		{"nobody", peer.Peer{}, submit, false},
		{"a startd puts an image", certified(peer.Startd), "/roost.wire.CheckpointServer/Put", true},
		{"a startd removes an image", certified(peer.Startd), "/roost.wire.CheckpointServer/Remove", false},
		{"a user gets an image", local(other), "/roost.wire.CheckpointServer/Get", false},
		{"a checkpoint server runs tasks", certified(peer.CheckpointServer), session, false},
		{"a schedd asks another one", certified(peer.Schedd), "/roost.wire.Neighbour/Query", true},
		{"a schedd acts on another one's jobs", certified(peer.Schedd), "/roost.wire.Schedd/Act", false},
		{"a startd asks a schedd", certified(peer.Startd), "/roost.wire.Neighbour/Query", false},
		{"a user who has logged in acts", far, "/roost.wire.Schedd/Act", true},
		{"a user who has logged in runs tasks", far, session, false},
		{"a user who has logged in asks as a schedd", far, "/roost.wire.Neighbour/Query", false},
		{"a user who says to be a startd", peer.Peer{Name: "ann@n1", User: "ann", Certified: peer.DaemonRoles()},
			session, false},
		{"a node that says to be a user", certified(peer.User), submit, false},
		{"a stranger logs in", certified(peer.Anonymous), "/roost.wire.Schedd/Login", true},
		{"a stranger submits", certified(peer.Anonymous), submit, false},
		{"a schedd logs in", certified(peer.DaemonRoles()...), "/roost.wire.Schedd/Login", false},
		{"a user asks as a schedd", local(other), "/roost.wire.Neighbour/Query", false},
		{"a method that is not there", local(0), "/roost.wire.Schedd/Shutdown", false},
		{"no method", local(0), "", false},
	}
	for _, tt := range tests {
		if got := peer.MethodAccess().Allows(tt.peer, tt.method); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestSpeaksFor checks who may speak as the schedd of a name. Only central managers with
// the role may speak for the queue of the cell, and for no other schedd.
func TestSpeaksFor(t *testing.T) {
	member := peer.Peer{Name: "cm1", Certified: []peer.Role{peer.Schedd, peer.CellQueue}, CellQueue: "physics"}
	for _, tt := range []struct {
		peer   peer.Peer
		schedd string
		want   bool
	}{
		{member, "physics", true}, {member, "cm1", true}, {member, "cm2", false}, {member, "", false},
		{peer.Peer{Name: "n1", Certified: []peer.Role{peer.Schedd}}, "physics", false},
		{peer.Peer{Name: "n1", Certified: []peer.Role{peer.Schedd}}, "n1", true},
		{peer.Peer{}, "", false}, {peer.Peer{}, "physics", false},
		{peer.Peer{Local: true}, "physics", true},
	} {
		if got := tt.peer.SpeaksFor(tt.schedd); got != tt.want {
			t.Errorf("%s for %q: %v", tt.peer, tt.schedd, got)
		}
	}
}
