package startd

import (
	"testing"
	"time"
)

func TestNewerSessionFencesOlder(t *testing.T) {
	p := newTestStartd(t)
	old := p.connect("host1", 5)
	claim := old.claim()
	s := p.connect("host1", 6)
	if got := s.welcome.GetClaims(); len(got) != 1 || got[0].GetClaim() != claim || got[0].GetAttempt() != nil {
		t.Fatalf("welcome: got %v", got)
	}
	late := time.After(time.Minute)
	for open := true; open; {
		select {
		case _, open = <-old.messages:
		case <-late:
			t.Fatal("the older session goes on")
		}
	}
	a := s.activate(claim, s.shell("exit 4"), false)
	if x := s.awaitOnlyExit(a); x.GetStatus().GetCode() != 4 {
		t.Errorf("got %s", exitText(x))
	}
	s.acknowledge(a)
	other := p.connect("host2", 1)
	if len(other.welcome.GetClaims()) != 0 {
		t.Errorf("another schedd is shown %v", other.welcome.GetClaims())
	}
}
