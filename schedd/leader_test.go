package schedd

import (
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestNewLeader holds that the schedd leaves a leader that answers, but was followed by another, for that one; that it finds one of which it only
// hears by the others; and that it stays where it is while a replica has old news.
func TestNewLeader(t *testing.T) {
	p := newPool(t)
	next(t, p.asked.joined, "the first conversation")
	at := func(name string) string { return "unix:" + filepath.Join(p.node.Dir, name+".sock") }
	stranger := negotiate(t, at("stranger"), nodeName, at("startd"))
	stranger.say(&wire.LeaderNews{Epoch: 2, Leads: true})
	p.asked.say(&wire.LeaderNews{Epoch: 2, Leader: at("stranger")})
	next(t, p.asked.left, "the end of the conversation with the old leader")
	if epoch := next(t, stranger.joined, "the conversation with the new leader"); epoch != 2 {
		t.Errorf("the epoch is %d", epoch)
	}
	p.submit("k", 1, "")
	next(t, p.startd.activated, "an attempt, granted by the new leader")

	p.asked.say(&wire.LeaderNews{Epoch: 1, Leads: true, Leader: p.node.Negotiators[0]}) // old news
	p.asked.say(&wire.LeaderNews{Epoch: 2, Leader: at("stranger")})
	stranger.say(&wire.LeaderNews{Epoch: 2})
	p.asked.say(&wire.LeaderNews{Epoch: 3, Leads: true, Leader: p.node.Negotiators[0]})
	next(t, stranger.left, "the end of the conversation with the second leader")
	if epoch := next(t, p.asked.joined, "the conversation with the third leader"); epoch != 3 {
		t.Errorf("the epoch is %d", epoch)
	}
}

// TestSilentNegotiator holds that a negotiator which does not speak again when it has promised to is connected to anew, with all that was on the
// connection: it may be one that the network has swallowed.
func TestSilentNegotiator(t *testing.T) {
	p := newPool(t)
	next(t, p.asked.joined, "the first conversation")
	p.asked.say(&wire.LeaderNews{Epoch: 1, Leads: true, Leader: p.node.Negotiators[0], WithinMs: 1})
	next(t, p.asked.left, "the end of the conversation on the silent connection")
	p.asked.say(&wire.LeaderNews{Epoch: 1, Leads: true, Leader: p.node.Negotiators[0]})
	next(t, p.asked.joined, "the conversation on the next connection")
	p.submit("k", 1, "")
	next(t, p.startd.activated, "an attempt")
}

// TestConversationBreaks holds that a leader which ends the conversation is asked again.
func TestConversationBreaks(t *testing.T) {
	p := newPool(t)
	next(t, p.asked.joined, "the first conversation")
	p.asked.hangUp()
	next(t, p.asked.left, "its end")
	next(t, p.asked.joined, "the second conversation")
}

// TestTellsOfLicences holds that a leader hears at once which grants with licences of its predecessor are claims by now, and which are still in hand; and
// that the machine is told until when such a grant may be claimed.
func TestTellsOfLicences(t *testing.T) {
	p := newPool(t)
	if h := next(t, p.asked.hellos, "the first hello"); !h.GetLists() || len(h.GetGrants()) > 0 {
		t.Errorf("it begins with %v", h)
	}
	p.asked.mu.Lock()
	p.asked.claimBy = 77
	p.asked.mu.Unlock()
	p.submit("k", 1, "")
	if wish := next(t, p.startd.wishes, "a wish for a claim"); wish.GetClaimBy() != 77 {
		t.Errorf("asks for a claim until %d", wish.GetClaimBy())
	}
	next(t, p.startd.activated, "an attempt")
	p.asked.hangUp()
	h := next(t, p.asked.hellos, "the second hello")
	if len(h.GetGrants()) != 1 || !h.GetLists() {
		t.Fatalf("a claim was made of grant 1, and the next leader hears %v", h)
	}
	if g := h.GetGrants()[0]; g.GetGrant() != 1 || g.GetEpoch() != 1 || !g.GetClaimed() || g.GetAdSequence() != 1 {
		t.Errorf("the claim is told of as %v", g)
	}
}
