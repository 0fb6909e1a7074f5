package startd

import (
	"net/netip"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// TestEndpointAd checks what the machine's ad has of an attempt of a service.
func TestEndpointAd(t *testing.T) {
	h := claim.HealthEvent{Name: "web", Revision: 3,
		Health: &wire.TaskHealth{Attempt: &wire.AttemptRef{Job: 12, Index: 4, Attempt: 2},
			State: wire.HealthState_HEALTH_STATE_READY},
		Ports: map[string]netip.AddrPort{"web-admin": netip.MustParseAddrPort("10.0.0.1:20002"),
			"http": netip.MustParseAddrPort("10.0.0.1:20001")}}
	want := `[ Job = "12.pool"; Name = "web"; Owner = "ann"; Index = 4; Attempt = 2; Revision = 3; State = "ready"; ` +
		`Ports = [ http = 20001; web_admin = 20002 ] ]`
	if got := endpointAd(h, "pool", "ann", true).String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h.Ports["admin"] = netip.MustParseAddrPort("127.0.0.1:20003")
	if got := endpointAd(h, "pool", "ann", true).String(); got != want {
		t.Errorf("a port on the loopback address: got %s\nwant %s", got, want)
	}
	if ports, _ := endpointAd(h, "pool", "ann", false).Sub("Ports"); ports.Len() != 3 {
		t.Errorf("of a machine that only its own programs reach, got ports %v", ports)
	}
	signed := endpointAd(h, "pool", "ann", true)
	right := &wire.NameRight{ExpiresS: 1_800_000_000, Signature: []byte("signature"),
		Certificate: []byte("certificate")}
	key := addRight(signed, right)
	for name, want := range map[string]string{"Signer": key, "Signature": "c2lnbmF0dXJl"} {
		if got, _ := signed.Str(name); got != want || want == "" {
			t.Errorf("%s of a signed endpoint: %q, want %q", name, got, want)
		}
	}
	if end, _ := signed.Int("Expires"); end != right.GetExpiresS() {
		t.Errorf("a signed endpoint expires at %d", end)
	}
	if right.Signature = make([]byte, maxSignature+1); addRight(endpointAd(h, "pool", "ann", true), right) != "" {
		t.Error("a signature without bounds is in the ad")
	}
	for state, want := range map[wire.HealthState]string{wire.HealthState_HEALTH_STATE_STARTING: "starting",
		wire.HealthState_HEALTH_STATE_UNREADY: "unready", wire.HealthState_HEALTH_STATE_FAILING: "unready",
		wire.HealthState_HEALTH_STATE_LEAVING: "leaving"} {
		if got := endpointState(state); got != want {
			t.Errorf("%v: %s, want %s", state, got, want)
		}
	}
}

// TestEndedTaskHasNoName checks that the next ad does not name an ended attempt, though
// its claim holds what it held.
func TestEndedTaskHasNoName(t *testing.T) {
	l := &machineLoop{table: slot.New(slot.TableOptions{}), metrics: newLoopMetrics(nil),
		health: map[slot.ClaimID]claim.HealthEvent{1: {}, 2: {}}, exits: map[slot.ClaimID]*wire.Exited{}}
	l.handleEvent(claim.EndedEvent{Claim: 1, Exited: &wire.Exited{}})
	if l.handleEvent(claim.GoneEvent{Claim: 3}); len(l.health) != 1 || !l.endpointsStale {
		t.Errorf("an attempt has ended: %v, %v", l.health, l.endpointsStale)
	}
	l.endpointsStale = false
	if l.handleEvent(claim.GoneEvent{Claim: 3}); l.endpointsStale {
		t.Error("a claim without a service has names")
	}
	if l.handleEvent(claim.GoneEvent{Claim: 2}); len(l.health) != 0 || !l.endpointsStale {
		t.Errorf("a claim is gone: %v, %v", l.health, l.endpointsStale)
	}
}
