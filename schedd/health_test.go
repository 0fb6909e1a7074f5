package schedd

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestBriefHealth checks that a brief answer has only what the schedd knows without
// asking others.
func TestBriefHealth(t *testing.T) {
	p := newPool(t)
	brief, err := p.client.Health(p.ctx(), &wire.HealthRequest{Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := p.client.Health(p.ctx(), &wire.HealthRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if brief.GetName() != hostName || brief.GetName() != whole.GetName() || brief.GetStarted() != whole.GetStarted() ||
		brief.GetDialect() != whole.GetDialect() {
		t.Errorf("got %v, and of the whole %v", brief, whole)
	}
	if brief.GetCollector() != "" || whole.GetCollector() == "" {
		t.Errorf("of the collector it says %q, and of the whole %q", brief.GetCollector(), whole.GetCollector())
	}
}
