package rpc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// TestEveryPairHasRule checks that each role that may call a method of a service has a
// row. No row may be superfluous.
func TestEveryPairHasRule(t *testing.T) {
	type pair struct {
		caller  peer.Role
		service string
	}
	rows := map[pair]bool{}
	for _, p := range rpc.CallRules() {
		at := pair{p.Caller, p.Service}
		if rows[at] || p.Proof < rpc.ProofByName || p.Proof > rpc.ProofBySocket || p.Claims == "" ||
			(p.ServerRole == "") != (p.Service == "Guard") {
			t.Errorf("%s calls %s: its row is there twice, or says nothing", p.Caller, p.Service)
		}
		rows[at] = false
	}
	for method, roles := range peer.MethodAccess() {
		service, _, _ := strings.Cut(strings.TrimPrefix(method, "/roost.wire."), "/")
		for _, role := range roles {
			at := pair{role, service}
			if _, there := rows[at]; !there {
				t.Errorf("%s may call %s, and no row says what it compares then", role, method)
			}
			rows[at] = true
		}
	}
	for at, used := range rows {
		if !used {
			t.Errorf("%s calls %s: auth.Methods lets it call nothing there", at.caller, at.service)
		}
	}
}

// pinnedRoles lists the tests of other packages for the rows with ProofByPin, whose pins
// belong to those packages.
var pinnedRoles = map[string]string{
	"user Schedd":        "identity/login/login_test.go TestLogin",
	"stranger Schedd":    "identity/login/login_test.go TestLogin",
	"stranger Authority": "identity/ca/service_test.go TestTheAuthorityIsTheOneOfTheToken",
}

// TestPairs tries each row with three servers. These are the wanted node, another node of
// the same role, and a node of that name without the role.
func TestPairs(t *testing.T) {
	pool := authority(t)
	callers := map[peer.Role]*rpc.Identity{}
	at := map[[2]string]string{} // addresses of servers, by name and role
	server := func(name string, role peer.Role) string {
		key := [2]string{name, string(role)}
		if at[key] == "" {
			at[key], _ = startServer(t, "127.0.0.1:0", issueIdentity(t, pool, name, role))
		}
		return at[key]
	}
	for _, p := range rpc.CallRules() {
		row := string(p.Caller) + " " + p.Service
		switch p.Proof {
		case rpc.ProofBySocket:
			continue // tested by TestUnauthenticatedRefused
		case rpc.ProofByPin:
			file, test, _ := strings.Cut(pinnedRoles[row], " ")
			if text, err := os.ReadFile(filepath.Join("..", file)); err != nil ||
				!strings.Contains(string(text), "func "+test+"(") {
				t.Errorf("%s: no test %q: %v", row, pinnedRoles[row], err)
			}
			continue
		}
		if callers[p.Caller] == nil {
			callers[p.Caller] = identity(t, pool, "caller-"+string(p.Caller), p.Caller)
		}
		other := peer.Startd
		if p.ServerRole == other {
			other = peer.Schedd
		}
		want := "n1"
		if p.Proof == rpc.ProofByRole {
			want = ""
		}
		for _, tt := range []struct {
			name, node string
			role       peer.Role
			reached    bool
		}{
			{"the one that is wanted", "n1", p.ServerRole, true},
			{"another node of its role", "n2", p.ServerRole, p.Proof == rpc.ProofByRole},
			{"a node of its name, in other letters", "N1", p.ServerRole, p.Proof == rpc.ProofByRole},
			{"a node of another role", "n1", other, false},
		} {
			if got := canConnect(t, server(tt.node, tt.role), callers[p.Caller], p.ServerRole,
				want); got != tt.reached {
				t.Errorf("%s: %s: a connection is made: %v, want %v", row, tt.name, got, tt.reached)
			}
		}
		_, err := rpc.Dial(server("n1", p.ServerRole), callers[p.Caller], p.ServerRole)
		if (err == nil) != (p.Proof == rpc.ProofByRole) {
			t.Errorf("%s: without a name: %v", row, err)
		}
	}
}

// issueIdentity is identity in a directory of its own, because several nodes have the
// same name.
func issueIdentity(t *testing.T, pool, name string, role peer.Role) *rpc.Identity {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"ca.pem", "ca.key"} {
		text, err := os.ReadFile(filepath.Join(pool, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return identity(t, dir, name, role)
}

// canConnect reports whether a connection can be established.
func canConnect(t *testing.T, addr string, id *rpc.Identity, role peer.Role, node string) bool {
	t.Helper()
	conn, err := rpc.DialNode(addr, id, role, node)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); ; state = conn.GetState() {
		if state == connectivity.Ready || state == connectivity.TransientFailure {
			return state == connectivity.Ready
		}
		if !conn.WaitForStateChange(ctx, state) {
			t.Fatalf("a connection to %s is neither made nor refused", addr)
		}
	}
}

// TestSocketsOnThisHostOnly checks that a node of another host is never dialled at a unix
// socket, whatever its ad contains.
func TestSocketsOnThisHostOnly(t *testing.T) {
	id := identity(t, authority(t), "n1", peer.Schedd)
	socket := "unix:" + filepath.Join(t.TempDir(), "x.sock")
	for node, want := range map[string]error{"n1": nil, "n2": roost.PermissionDenied} {
		conn, err := rpc.DialNode(socket, id, peer.Startd, node)
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", node, err, want)
		}
		if err == nil {
			conn.Close()
		}
	}
	if !slices.ContainsFunc(rpc.CallRules(), func(p rpc.CallRule) bool { return p.Proof == rpc.ProofByName }) {
		t.Error("nobody is called by name")
	}
}
