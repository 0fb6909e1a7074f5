package schedd

import (
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestNewLeader checks that the schedd leaves a leader that answers but has a successor,
// for the successor. It finds a leader that only other replicas name. It keeps its leader
// while a replica reports old news.
func TestNewLeader(t *testing.T) {
	p := newPool(t)
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	at := func(name string) string { return "unix:" + filepath.Join(p.node.Dir, name+".sock") }
	unrelated := serveNegotiator(t, at("stranger"), nodeName, at("startd"))
	unrelated.reportLeader(&wire.LeaderNews{Epoch: 2, Leads: true})
	p.asked.reportLeader(&wire.LeaderNews{Epoch: 2, Leader: at("stranger")})
	receiveNext(t, p.asked.closedEpochs, "the end of the conversation with the old leader")
	if epoch := receiveNext(t, unrelated.openedEpochs, "the conversation with the new leader"); epoch != 2 {
		t.Errorf("the epoch is %d", epoch)
	}
	p.submit("k", 1, "")
	receiveNext(t, p.startd.activated, "an attempt, granted by the new leader")

	p.asked.reportLeader(&wire.LeaderNews{Epoch: 1, Leads: true, Leader: p.node.Negotiators[0]}) // old news
	p.asked.reportLeader(&wire.LeaderNews{Epoch: 2, Leader: at("stranger")})
	unrelated.reportLeader(&wire.LeaderNews{Epoch: 2})
	p.asked.reportLeader(&wire.LeaderNews{Epoch: 3, Leads: true, Leader: p.node.Negotiators[0]})
	receiveNext(t, unrelated.closedEpochs, "the end of the conversation with the second leader")
	if epoch := receiveNext(t, p.asked.openedEpochs, "the conversation with the third leader"); epoch != 3 {
		t.Errorf("the epoch is %d", epoch)
	}
}

// TestSilentNegotiator checks that the schedd reconnects to a negotiator that does not
// speak again as promised. Everything on the old connection is connected anew, because
// the network may have lost that connection.
func TestSilentNegotiator(t *testing.T) {
	p := newPool(t)
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	p.asked.reportLeader(&wire.LeaderNews{Epoch: 1, Leads: true, Leader: p.node.Negotiators[0], WithinMs: 1})
	receiveNext(t, p.asked.closedEpochs, "the end of the conversation on the silent connection")
	p.asked.reportLeader(&wire.LeaderNews{Epoch: 1, Leads: true, Leader: p.node.Negotiators[0]})
	receiveNext(t, p.asked.openedEpochs, "the conversation on the next connection")
	p.submit("k", 1, "")
	receiveNext(t, p.startd.activated, "an attempt")
}

// TestNegotiatorStreamBreaks holds that a leader which ends the conversation is asked
// again.
func TestNegotiatorStreamBreaks(t *testing.T) {
	p := newPool(t)
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	p.asked.endStreams()
	receiveNext(t, p.asked.closedEpochs, "its end")
	receiveNext(t, p.asked.openedEpochs, "the second conversation")
}

// TestReportsLimitedGrants checks that a new leader learns at once which of its
// predecessor's licence grants exist. The report says which grants are claims by now, and
// which are still pending. The machine learns until when such a grant may be claimed.
func TestReportsLimitedGrants(t *testing.T) {
	p := newPool(t)
	if h := receiveNext(t, p.asked.hellos, "the first hello"); !h.GetLists() || len(h.GetGrants()) > 0 {
		t.Errorf("it begins with %v", h)
	}
	p.asked.mu.Lock()
	p.asked.claimBy = 77
	p.asked.mu.Unlock()
	p.submit("k", 1, "")
	if claimRequest := receiveNext(t, p.startd.claimRequests, "a wish for a claim"); claimRequest.GetClaimBy() != 77 {
		t.Errorf("asks for a claim until %d", claimRequest.GetClaimBy())
	}
	receiveNext(t, p.startd.activated, "an attempt")
	p.asked.endStreams()
	h := receiveNext(t, p.asked.hellos, "the second hello")
	if len(h.GetGrants()) != 1 || !h.GetLists() {
		t.Fatalf("a claim was made of grant 1, and the next leader hears %v", h)
	}
	if g := h.GetGrants()[0]; g.GetGrant() != 1 || g.GetEpoch() != 1 || !g.GetClaimed() || g.GetAdSequence() != 1 {
		t.Errorf("the claim is told of as %v", g)
	}
}
