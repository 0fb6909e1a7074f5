package startd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/damage"
)

// TestFullDisk: a machine whose disk is full gives no claims, says why, and gives them
// again when there is room.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	var filler string
	p := newTestStartdWith(t, func(p *testStartd) {
		dir := damage.SmallDisk(t, "", 4<<20, 0o711)
		p.node.Startds[0].Dir = dir
		filler = filepath.Join(dir, "filler")
	})
	s := p.connect("host1", 1)
	if err := os.WriteFile(filler, make([]byte, 10<<20), 0o600); err == nil {
		t.Fatal("the small disk is not small")
	}
	if reply := s.requestClaim(nil); reply.GetClaim() != 0 ||
		!strings.Contains(reply.GetReason(), "the disk of this machine is full") {
		t.Errorf("with a full disk: %v", reply)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	reply := s.requestClaim(nil)
	if reply.GetClaim() == 0 {
		t.Fatalf("with room: %v", reply)
	}
	if got := exitText(s.run(reply.GetClaim(), s.shell("echo alive"))); !strings.Contains(got, `"alive\n"`) {
		t.Errorf("with room: got %s", got)
	}
}
