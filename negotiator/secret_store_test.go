package negotiator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/sealing"
)

// secretTest is a leader with secrets, whose ledger has no log.
type secretTest struct {
	*testing.T
	registry *fakeRegistry
	service  *grpcService
}

func newSecretTest(t *testing.T) *secretTest {
	o := newFakeRegistry()
	admin := newAdminService(o)
	keys, err := sealing.Open(filepath.Join(t.TempDir(), secretKeysFile))
	if err != nil {
		t.Fatal(err)
	}
	admin.secrets = &secretStore{ledgerAdmin: o, keys: keys, log: slog.New(slog.DiscardHandler),
		verifyLeader: func(context.Context) error { return nil }, usesKey: func(id string) bool {
			for _, s := range ledger.Secrets(o.ledger) {
				if s.Key == id {
					return true
				}
			}
			return false
		}}
	return &secretTest{t, o, &grpcService{admin: admin, loop: &decisionLoop{leadership: admin.leadership}, name: "c1"}}
}

// ask sends a user's request through the schedd of the user's node.
func (s *secretTest) ask(who, verb, name string, change ledger.SecretChange) ([]ledger.SecretInfo, error) {
	_, node, _ := strings.Cut(who, "@")
	object, _ := json.Marshal(change)
	reply, err := s.service.Cell(callerContext(peer.Peer{Name: node, Certified: []peer.Role{peer.Schedd}}),
		&wire.CellRequest{Verb: verb, Kind: "secret", Name: name, Object: object, Who: who})
	var all []ledger.SecretInfo
	if err == nil && verb == "show" {
		if strings.Contains(string(reply.GetDocument()), "sealed") {
			s.Errorf("it is shown sealed: %s", reply.GetDocument())
		}
		if err := json.Unmarshal(reply.GetDocument(), &all); err != nil {
			s.Error(err)
		}
	}
	return all, err
}

// read asks for secrets as the schedd of a node.
func (s *secretTest) read(p peer.Peer, owner, host string, names ...string) (string, error) {
	req := &wire.SecretsRequest{Owner: owner, Host: host}
	for _, name := range names {
		n, _ := roost.ParseSecretName(name)
		req.Secrets = append(req.Secrets, &wire.SecretText{Group: n.Group, Name: n.Name})
	}
	reply, err := s.service.ReadSecrets(callerContext(p), req)
	var texts []string
	for _, o := range reply.GetSecrets() {
		texts = append(texts, fmt.Sprintf("%s %d %s", o.GetName(), o.GetVersion(), o.GetText()))
	}
	return strings.Join(texts, ", "), err
}

// TestSecretStore sets, reads, renews and removes secrets.
func TestSecretStore(t *testing.T) {
	s := newSecretTest(t)
	n1 := peer.Peer{Name: "n1", Certified: []peer.Role{peer.Schedd}}
	set := func(who, name, text string) error {
		_, err := s.ask(who, "set", "", ledger.SecretChange{Name: name, Text: []byte(text)})
		return err
	}
	for _, err := range []error{set("ann@n1", "db", "sesame"), set("ann@n1", "tls.key", "one\ntwo\n"),
		set("ann@n1", "db", "sesame2"), set("bob@n1", "db", "bob's own")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.read(n1, "ann", "n1", "tls.key", "db"); err != nil || got != "tls.key 1 one\ntwo\n, db 2 sesame2" {
		t.Errorf("got %q, %v", got, err)
	}
	if all, err := s.ask("ann@n1", "show", "", ledger.SecretChange{}); err != nil || len(all) != 2 ||
		all[0].Version != 2 || all[0].Versions[0].By != "ann@n1" || all[0].Bytes != 7 {
		t.Errorf("got %+v, %v", all, err)
	}
	if text := string(s.registry.ledger.Save()); strings.Contains(text, "sesame") {
		t.Error("the ledger has a value in the clear")
	}
	if err := set("ann@n1", "../x", "a"); !errors.Is(err, roost.Invalid) {
		t.Errorf("a path for a name: %v", err)
	}
	if err := set("ann@n1", "big", strings.Repeat("x", roost.MaxSecretBytes+1)); !errors.Is(err, roost.Invalid) {
		t.Errorf("too large: %v", err)
	}
	if _, err := s.ask("ann@n1", "remove", "db", ledger.SecretChange{}); err != nil {
		t.Error(err)
	}
	if _, err := s.read(n1, "ann", "n1", "db"); !errors.Is(err, roost.NotFound) ||
		!strings.Contains(err.Error(), "roost secret set db") {
		t.Errorf("removed: %v", err)
	}
	if got, err := s.read(n1, "bob", "n1", "db"); err != nil || got != "db 1 bob's own" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestSecretAttacks has others ask for ann's secret, which is for jobs of n1.
func TestSecretAttacks(t *testing.T) {
	s := newSecretTest(t)
	if _, err := s.ask("ann@n1", "set", "", ledger.SecretChange{Name: "db", Text: []byte("sesame")}); err != nil {
		t.Fatal(err)
	}
	node := func(name string) peer.Peer { return peer.Peer{Name: name, Certified: []peer.Role{peer.Schedd}} }
	queue := peer.Peer{Name: "c1", Certified: []peer.Role{peer.Schedd, peer.CellQueue}, CellQueue: "pool"}
	for _, test := range []struct {
		what        string
		peer        peer.Peer
		owner, host string
		want        error
	}{
		{"the submit node", node("n1"), "ann", "n1", nil},
		{"the queue of the cell, for a job of n1", queue, "ann", "n1", nil},
		{"another user", node("n1"), "bob", "n1", roost.NotFound},
		{"a user of the same name at another node", node("n2"), "ann", "n2", roost.PermissionDenied},
		{"another submit node that names n1", node("n2"), "ann", "n1", roost.PermissionDenied},
		{"the queue of the cell, for a job of n2", queue, "ann", "n2", roost.PermissionDenied},
	} {
		got, err := s.read(test.peer, test.owner, test.host, "db")
		if given := got == "db 1 sesame"; test.want == nil && err != nil || !errors.Is(err, test.want) ||
			given != (test.want == nil) {
			t.Errorf("%s: got %q, %v", test.what, got, err)
		}
	}
	for _, verb := range []string{"set", "remove", "show"} {
		if _, err := s.ask("ann@n2", verb, "db", ledger.SecretChange{Name: "db", Text: []byte("mine"),
			Allow: []string{"n2"}}); !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("%s by an ann of another node: %v", verb, err)
		}
	}
	if _, err := s.ask("ann@n1", "reset", "", ledger.SecretChange{}); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a user rotates the key: %v", err)
	}
	for _, kind := range []string{"show", "set"} { // not by the way of administrators
		if _, err := s.service.admin.showPolicy(t.Context(),
			&wire.CellRequest{Verb: kind, Kind: "secret"}); err == nil {
			t.Error("secrets are shown like policies")
		}
	}
	if _, err := s.ask("ann@n1", "set", "", ledger.SecretChange{Name: "db", Allow: []string{"n2"}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.read(node("n2"), "ann", "n2", "db"); err != nil || got != "db 1 sesame" {
		t.Errorf("allowed: got %q, %v", got, err)
	}
	table := peer.MethodAccess()
	for _, role := range peer.DaemonRoles() {
		p := peer.Peer{Name: "x", Certified: []peer.Role{role}}
		if table.Allows(p, wire.Negotiator_ReadSecrets_FullMethodName) != (role == peer.Schedd) ||
			table.Allows(p, wire.Negotiator_ExchangeKeys_FullMethodName) != (role == peer.Negotiator) {
			t.Errorf("a node with role %s may read secrets or keys", role)
		}
	}
}

// give sets the capabilities of a user; with none it takes all away.
func (s *secretTest) give(who string, capabilities ...string) {
	s.Helper()
	req := &wire.CellRequest{Verb: "remove", Kind: "admin", Name: who}
	if len(capabilities) > 0 {
		req.Verb, req.Name = "set", ""
		req.Object, _ = json.Marshal(ledger.AdminRights{User: who, Capabilities: capabilities})
	}
	if _, err := s.service.Cell(callerContext(peer.Peer{Local: true}), req); err != nil {
		s.Fatal(err)
	}
}

// set gives a secret a value.
func (s *secretTest) set(who, name, text string) {
	s.Helper()
	if _, err := s.ask(who, "set", "", ledger.SecretChange{Name: name, Text: []byte(text)}); err != nil {
		s.Fatal(err)
	}
}

// TestGroupSecret has those who are in a group use its secret, and those who may set it
// set it.
func TestGroupSecret(t *testing.T) {
	s := newSecretTest(t)
	s.give("ann@n1", "set-secrets:physics")
	s.give("bob@n2", "secrets:physics")
	node := func(name string) peer.Peer { return peer.Peer{Name: name, Certified: []peer.Role{peer.Schedd}} }
	s.set("ann@n1", "physics/db", "sesame")
	s.set("ann@n1", "physics/db", "sesame2")
	s.set("ann@n1", "db", "ann's own")
	queue := peer.Peer{Name: "c1", Certified: []peer.Role{peer.Schedd, peer.CellQueue}, CellQueue: "pool"}
	for _, at := range []struct {
		peer       peer.Peer
		user, host string
	}{{node("n1"), "ann", "n1"}, {node("n2"), "bob", "n2"}, {queue, "bob", "n2"}} {
		if got, err := s.read(at.peer, at.user, at.host, "physics/db"); err != nil || got != "db 2 sesame2" {
			t.Errorf("%s at %s reads %q, %v", at.user, at.host, got, err)
		}
	}
	if got, err := s.read(node("n1"), "ann", "n1", "db"); err != nil || got != "db 1 ann's own" {
		t.Errorf("ann's own secret of that name: %q, %v", got, err)
	}
	all, err := s.ask("bob@n2", "show", "", ledger.SecretChange{})
	if err != nil || len(all) != 1 || all[0].Name != "physics/db" || all[0].MaySet ||
		all[0].Versions[1].By != "ann@n1" {
		t.Errorf("bob sees %+v, %v", all, err)
	}
	if all, _ := s.ask("ann@n1", "show", "physics/db", ledger.SecretChange{}); len(all) != 1 || !all[0].MaySet {
		t.Errorf("ann sees %+v", all)
	}
	if _, err := s.ask("ann@n1", "set", "",
		ledger.SecretChange{Name: "physics/db", Allow: []string{"n2"}}); err == nil {
		t.Error("submit nodes belong to a secret of a group")
	}
	if _, err := s.service.Cell(callerContext(peer.Peer{Local: true}),
		&wire.CellRequest{Verb: "remove", Kind: "secret", Name: "physics/db"}); err != nil {
		t.Errorf("root on a central manager: %v", err)
	}
	if _, err := s.read(node("n1"), "ann", "n1", "physics/db"); !errors.Is(err, roost.NotFound) ||
		!strings.Contains(err.Error(), "roost secret set physics/db") {
		t.Errorf("removed: %v", err)
	}
}

// TestGroupSecretAttacks has those who are not in a group, or are no longer, ask for its
// secret. Those who may only use it change it. Each is told what to do.
func TestGroupSecretAttacks(t *testing.T) {
	s := newSecretTest(t)
	s.give("ann@n1", "set-secrets:physics")
	s.give("bob@n1", "secrets:physics")
	s.give("eve@n1", "set-secrets:chemistry", "jobs", "admins")
	s.set("ann@n1", "physics/db", "sesame")
	node := func(name string) peer.Peer { return peer.Peer{Name: name, Certified: []peer.Role{peer.Schedd}} }
	refused := func(what, cure string, err error) {
		t.Helper()
		if !errors.Is(err, roost.PermissionDenied) || !strings.Contains(fmt.Sprint(err), cure) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for what, at := range map[string]struct{ node, user, host, name, cure string }{
		"a user who claims the group":  {"n1", "eve", "n1", "physics/db", "roost admin give eve@n1 secrets:physics"},
		"a name that nobody has set":   {"n1", "eve", "n1", "physics/nix", "roost admin give eve@n1 secrets:physics"},
		"bob of another node":          {"n2", "bob", "n2", "physics/db", "roost admin give bob@n2 secrets:physics"},
		"a node that speaks of others": {"n2", "bob", "n1", "physics/db", "submitted at"},
	} {
		got, err := s.read(node(at.node), at.user, at.host, at.name)
		if refused(what, at.cure, err); got != "" {
			t.Errorf("%s reads %q", what, got)
		}
	}
	if _, err := s.read(node("n1"), "%physics", "n1", "db"); !errors.Is(err, roost.NotFound) {
		t.Errorf("a user of the name of a group: %v", err)
	}
	for _, who := range []string{"bob@n1", "eve@n1", "ann@n2"} {
		for _, verb := range []string{"set", "remove"} {
			_, err := s.ask(who, verb, "physics/db", ledger.SecretChange{Name: "physics/db", Text: []byte("mine")})
			refused(verb+" by "+who, "roost admin give "+who+" set-secrets:physics", err)
		}
	}
	if all, err := s.ask("eve@n1", "show", "", ledger.SecretChange{}); err != nil || len(all) != 0 {
		t.Errorf("eve sees %+v, %v", all, err)
	}
	for _, name := range []string{"/db", "physics/", "physics/../x", "../db", "a/b/c"} {
		if _, err := s.ask("ann@n1", "set", "", ledger.SecretChange{Name: name, Text: []byte("x")}); !errors.Is(err,
			roost.Invalid) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	s.give("bob@n1")
	got, err := s.read(node("n1"), "bob", "n1", "physics/db")
	if refused("bob, who is in the group no longer", "roost admin give bob@n1 secrets:physics", err); got != "" {
		t.Errorf("he reads %q", got)
	}
}

// TestSecretKeyRotation seals all with a new key. What was sealed with a lost one is
// named.
func TestSecretKeyRotation(t *testing.T) {
	s := newSecretTest(t)
	n1 := peer.Peer{Name: "n1", Certified: []peer.Role{peer.Schedd}}
	for _, who := range []string{"ann@n1", "bob@n1"} {
		if _, err := s.ask(who, "set", "", ledger.SecretChange{Name: "db", Text: []byte("of " + who)}); err != nil {
			t.Fatal(err)
		}
	}
	secrets := s.service.admin.secrets
	first := secrets.keys.Current()
	rotate := func() string {
		reply, err := s.service.Cell(callerContext(peer.Peer{Local: true}),
			&wire.CellRequest{Verb: "reset", Kind: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		return string(reply.GetDocument())
	}
	if got := rotate(); got != `{"lost":[],"sealed":2}` || secrets.keys.Has(first) || secrets.keys.Current() == "" {
		t.Errorf("got %s; the first key is there: %v", got, secrets.keys.Has(first))
	}
	if got, err := s.read(n1, "bob", "n1", "db"); err != nil || got != "db 1 of bob@n1" {
		t.Errorf("got %q, %v", got, err)
	}
	var err error
	if secrets.keys, err = sealing.Open(filepath.Join(t.TempDir(), "keys")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(n1, "bob", "n1", "db"); !errors.Is(err, roost.Unavailable) ||
		!strings.Contains(err.Error(), "roost secret set db") {
		t.Errorf("with a lost key: %v", err)
	}
	if got := rotate(); got != `{"lost":["ann/db","bob/db"],"sealed":0}` {
		t.Errorf("got %s", got)
	}
}

// TestSecretKeyMajority checks that nothing is sealed with a key that only this
// negotiator has.
func TestSecretKeyMajority(t *testing.T) {
	s := newSecretTest(t)
	s.service.admin.secrets.others = []string{"c2", "c3"}
	s.service.admin.secrets.dial = func(string) (*grpc.ClientConn, error) { return nil, roost.Unavailable }
	_, err := s.ask("ann@n1", "set", "", ledger.SecretChange{Name: "db", Text: []byte("sesame")})
	if !errors.Is(err, roost.Unavailable) || len(ledger.Secrets(s.registry.ledger)) != 0 {
		t.Errorf("got %v", err)
	}
}
