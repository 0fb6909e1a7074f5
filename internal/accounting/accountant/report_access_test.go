package accountant

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// TestCapabilities reads administrators as the negotiators show them.
func TestCapabilities(t *testing.T) {
	const shown = `[{"kind":"admin","name":"ann@n1","object":{"capabilities":["accounts"],"who":"ann@n1"},"set_by":"root@n1"},
		{"kind":"admin","name":"bob","object":{"capabilities":["jobs","quotas"],"who":"bob"}},
		{"kind":"admin","name":"eve","object":{"capabilities":["all"],"who":"eve"}}]`
	var list []adminObject
	if err := json.Unmarshal([]byte(shown), &list); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]bool{"ann@n1": true, "ann@n2": false, "bob@n1": false, "eve@n9": true,
		"": false} {
		if got := anyHasCapability(list, who, []string{"accounts", "all"}); got != want {
			t.Errorf("%s may change the accounts: got %v, want %v", who, got, want)
		}
	}
}

// TestWhoMayAsk holds that a schedd speaks for the users of its own node. Nobody is an
// administrator while no negotiator says so.
func TestWhoMayAsk(t *testing.T) {
	s := &reportService{accountant: &accountant{node: &config.Node{Name: "books"}}}
	remote := grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{
		AuthInfo: peer.Peer{Name: "n1", Certified: []peer.Role{peer.Schedd}}})
	ask := func(ctx context.Context, who string, trusted bool, text string) (query.Query, error) {
		return s.permittedQuery(ctx, &wire.AccountingQuery{Who: who, Trusted: trusted, Query: []byte(text)})
	}
	const own, everybody = `{"report":"statements","to":1,"owner":"."}`, `{"report":"statements","to":1}`
	if q, err := ask(remote, "ann@n1", false, own); err != nil || q.Owner != "ann" {
		t.Errorf("ann's own: %+v, %v", q, err)
	}
	for who, want := range map[string]error{"ann@n2": roost.PermissionDenied, "ann": roost.PermissionDenied,
		"@n1": roost.PermissionDenied, "ann@n1": roost.Unavailable} {
		if _, err := ask(remote, who, true, everybody); !errors.Is(err, want) {
			t.Errorf("%s asks about everybody: got %v, want %v", who, err, want)
		}
	}
	if q, err := ask(remote, "ann@n1", false, `{"report":"rates"}`); err != nil || q.Owner != "" {
		t.Errorf("rates: %+v, %v", q, err)
	}
	_, err := s.Change(remote, &wire.AccountingChange{Who: "ann@n2", Trusted: true, Change: []byte(`{"close":"2026-03"}`)})
	if !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a change for a user of another node: got %v", err)
	}
}
