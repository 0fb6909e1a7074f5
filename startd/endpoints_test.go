package startd

import (
	"net/netip"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
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
	if got := endpointAd(h, "pool", "ann").String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	signed := endpointAd(h, "pool", "ann")
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
	if right.Signature = make([]byte, maxSignature+1); addRight(endpointAd(h, "pool", "ann"), right) != "" {
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
