package negotiator

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// slowLog commits proposals when the test says so.
type slowLog struct{ waiting []func(c *LoopCore) }

func (l *slowLog) Propose(entry []byte, done func(any, error)) {
	l.waiting = append(l.waiting, func(c *LoopCore) { done(c.Apply(0, entry), nil) })
}

// TestCore drives a core step by step. It leads when its entry is committed, and sends
// grants when they are.
func TestCore(t *testing.T) {
	log := &slowLog{}
	c := NewCore("head", "head:1", log)
	now := time.Unix(1_000_000, 0)
	commit := func() {
		t.Helper()
		if len(log.waiting) != 1 {
			t.Fatalf("%d entries are under way, want 1", len(log.waiting))
		}
		log.waiting[0](c)
		log.waiting = nil
		c.ProcessEvents(now)
	}
	ad, err := classad.Parse("[Cpus = 2; TotalCpus = 2]")
	if err != nil {
		t.Fatal(err)
	}
	c.MachinesChanged(now, []MachineUpdate{ReadMachineUpdate(now, "n1", 1, 1,
		ad, map[string]string{grantKey: hex.EncodeToString(testKey), nameKey: "schedd"})}, true)
	if _, err := c.JoinSchedd(now, &wire.ScheddHello{Name: "s"}); err == nil {
		t.Fatal("it takes a schedd in, and does not lead")
	}
	c.LeadershipChanged(now, true, 1, "head:1")
	if epoch, _, _ := c.LeadingEpoch(); epoch != 0 {
		t.Fatal("it leads before that is committed")
	}
	commit()
	epoch, highest, leader := c.LeadingEpoch()
	if epoch == 0 || highest != epoch || leader != "head:1" {
		t.Fatalf("it leads with epoch %d of %d, and says that %q does", epoch, highest, leader)
	}
	v, err := c.JoinSchedd(now, &wire.ScheddHello{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	m := &wire.RequestUpdate{Id: 1, Wanted: 1, Owner: "ada", Resources: &wire.Resources{MilliCpu: 1000},
		Ad: "[Requirements = true]"}
	if err := c.HandleMessage(now, v, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: m}}); err != nil {
		t.Fatal(err)
	}
	granted := func() (n int, late bool) {
		messages, late, _ := v.TakeMessages(now)
		for _, m := range messages {
			if g := m.GetGrant(); g != nil {
				n++
				if !wire.CheckClaimToken(testKey, g, "s") || wire.CheckClaimToken(testKey, g, "another") {
					t.Error("the grant is not for its schedd alone")
				}
			}
		}
		return n, late
	}
	if cycled := c.ProcessEvents(now); !cycled {
		t.Fatal("a request has made no cycle due")
	}
	if n, _ := granted(); n != 0 {
		t.Fatalf("%d grants were sent before they were committed", n)
	}
	commit()
	now = now.Add(maxUnverifiedAge + 1)
	if n, late := granted(); n != 1 || !late {
		t.Fatalf("%d grants, late %v; want 1 that is late", n, late)
	}
	if at, ok := c.NextWake(); !ok || at.Sub(now) > grantTTL {
		t.Fatalf("it wants to be woken at %v, %v: nobody has answered the grant", at, ok)
	}
	c.LeadershipChanged(now, false, 2, "tail:1")
	if _, _, ended := v.TakeMessages(now); ended == nil {
		t.Fatal("it leads no more, and the conversation goes on")
	}
}
