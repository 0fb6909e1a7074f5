package schedd

import "testing"

// TestRefusedGrants checks that a machine that refuses is asked again as long as a task
// is ready. Meanwhile the negotiator never receives the report that nothing is wanted.
// With the request it would forget which machines refused, and offer the same ones for
// ever.
func TestRefusedGrants(t *testing.T) {
	p := newPool(t)
	p.startd.mu.Lock()
	p.startd.refusals = 3
	p.startd.mu.Unlock()
	p.submit("k", 1, "")
	receiveNext(t, p.startd.activated, "an attempt after three refusals")
	wanted := 0
	for reported := true; reported; {
		select {
		case u := <-p.asked.updates:
			if wanted += int(u.GetWanted()); u.GetWanted() == 0 && u.GetClaims() == 0 && wanted < 4 {
				t.Fatalf("the request was given up after %d wishes: %v", wanted, u)
			}
		default:
			reported = false
		}
	}
	if wanted < 4 {
		t.Fatalf("%d wishes, want one for each refusal and one more", wanted)
	}
}
