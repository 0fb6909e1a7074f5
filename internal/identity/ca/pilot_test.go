package ca

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
)

// TestPilotTokens checks that a token lets as many pilots in as it says. The certificate
// of each names the owner, and ends soon after the pilot.
func TestPilotTokens(t *testing.T) {
	s := newStore(t)
	token, record, err := s.createPilotToken("ada@login1", 2, time.Hour, noon)
	if err != nil || record.Owner != "ada@login1" {
		t.Fatalf("got %+v, %v", record, err)
	}
	join := func(name string, part NodePart) (joinRequest, *certRecord, error) {
		a := newJoinRequest(t, token, part, name)
		a.life = 30 * time.Minute
		got, _, err := s.redeemToken(a, noon)
		return a, got, err
	}
	for name, part := range map[string]NodePart{"n7": Pilot, "pilot-x": Server, "": Pilot} {
		if _, _, err := join(name, part); !errors.Is(err, roost.Invalid) && !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("as %s, named %q: %v", part, name, err)
		}
	}
	first, got, err := join("pilot-1", Pilot)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(got.DER)
	if err != nil {
		t.Fatal(err)
	}
	if left := leaf.NotAfter.Sub(noon); left > 91*time.Minute || left < 89*time.Minute {
		t.Errorf("the certificate is valid for %v", left)
	}
	if units := leaf.Subject.OrganizationalUnit; rpc.PilotOwner(leaf) != "ada@login1" || len(units) != 1 ||
		units[0] != "pilot" {
		t.Errorf("it is of %q, for %v", rpc.PilotOwner(leaf), units)
	}
	if again, _, err := s.redeemToken(first, noon.Add(time.Minute)); err != nil ||
		string(again.DER) != string(got.DER) {
		t.Errorf("its answer was lost: %v", err)
	}
	if _, _, err := join("pilot-1", Pilot); !errors.Is(err, roost.Conflict) {
		t.Errorf("a second one of its name: %v", err)
	}
	if _, _, err := join("pilot-2", Pilot); err != nil {
		t.Errorf("the second: %v", err)
	}
	if _, _, err := join("pilot-3", Pilot); !errors.Is(err, roost.PermissionDenied) ||
		!strings.Contains(err.Error(), "2 pilots have joined") {
		t.Errorf("the third: %v", err)
	}
	late := newJoinRequest(t, token, Pilot, "pilot-4")
	if _, _, err := s.redeemToken(late, noon.Add(2*time.Hour)); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("too late: %v", err)
	}
	if list, err := s.listMembers(); err != nil || len(list) != 2 || list[0].GetOwner() != "ada@login1" {
		t.Errorf("members: %v, %v", list, err)
	}
	if list, err := s.listTokens(); err != nil || len(list) != 1 || list[0].GetJoined() != 2 {
		t.Errorf("tokens: %v, %v", list, err)
	}
	for _, owner := range []string{"", "a b", "ada@"} {
		if _, _, err := s.createPilotToken(owner, 1, 0, noon); !errors.Is(err, roost.Invalid) {
			t.Errorf("owner %q: %v", owner, err)
		}
	}
	if _, _, err := s.createPilotToken("ada", maxPilotUses+1, 0, noon); !errors.Is(err, roost.Invalid) {
		t.Errorf("too many: %v", err)
	}
	if _, _, err := s.createToken(Pilot, "", 0, noon); !errors.Is(err, roost.Invalid) {
		t.Errorf("without an owner: %v", err)
	}
}
