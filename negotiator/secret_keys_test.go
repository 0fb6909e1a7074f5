package negotiator

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/sealing"
)

// keysOnDisk returns the keys in the file of a node.
func (c *threeNegotiators) keysOnDisk(node string) []sealing.Key {
	c.Helper()
	keys, err := sealing.Open(filepath.Join(c.pools[node].node.Dir, "negotiator", secretKeysFile))
	if err != nil {
		c.Fatal(err)
	}
	return keys.Keys()
}

// readSecret returns the value of ann's secret db, as a leader gives it.
func (c *threeNegotiators) readSecret(leader string) string {
	c.Helper()
	reply, err := c.pools[leader].server.secretStore().read(c.Context(), &wire.SecretsRequest{Owner: "ann", Host: "n1",
		Secrets: []*wire.SecretText{{Name: "db"}}})
	if err != nil {
		c.Fatal(err)
	}
	return string(reply.GetSecrets()[0].GetText())
}

// TestSecretKeysOfCell has a majority store the key of a secret, one negotiator being
// away. That one is among those that go on when the leader dies, and the secret is read.
// A new key comes to all of them.
func TestSecretKeysOfCell(t *testing.T) {
	c := newThreeNegotiators(t)
	first, epoch := c.waitForLeader(0, c.nodes...)
	others := c.otherNodes(first)
	absent := others[0]
	c.stops[absent]()
	store, change := c.pools[first].server.secretStore(), ledger.SecretChange{Name: "db", Text: []byte("sesame")}
	if err := store.set(t.Context(), secretCaller{user: "ann", host: "n1"}, change); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]int{first: 1, others[1]: 1, absent: 0} {
		if n := len(c.keysOnDisk(node)); n != want {
			t.Errorf("%s has %d keys, and %d is right", node, n, want)
		}
	}
	c.stops[absent] = c.pools[absent].startNegotiator()
	c.stops[first]()
	next, _ := c.waitForLeader(epoch, others...)
	if got := c.readSecret(next); got != "sesame" {
		t.Errorf("the next leader reads %q", got)
	}
	old := c.keysOnDisk(next)[0].ID
	store = c.pools[next].server.secretStore()
	if _, err := store.rotateKey(t.Context(), &wire.CellRequest{Trusted: true}); err != nil {
		t.Fatal(err)
	}
	for _, node := range others {
		if keys := c.keysOnDisk(node); keys[len(keys)-1].ID == old {
			t.Errorf("%s does not have the new key", node)
		}
	}
	if keys := c.keysOnDisk(next); len(keys) != 1 {
		t.Errorf("the leader keeps %d keys", len(keys))
	}
	if got := c.readSecret(next); got != "sesame" {
		t.Errorf("with the new key it reads %q", got)
	}
}

// TestKeysOfLaggingLedger has a negotiator whose ledger lags behind exchange keys. It
// keeps what the leader has, though nothing here is sealed with it, and drops the rest.
func TestKeysOfLaggingLedger(t *testing.T) {
	s := newSecretTest(t)
	leader, err := sealing.Open(filepath.Join(t.TempDir(), secretKeysFile))
	if err != nil {
		t.Fatal(err)
	}
	exchange := func(want int) {
		t.Helper()
		reply, err := s.service.ExchangeKeys(t.Context(), keyMessage(leader.Keys()))
		if err != nil || len(reply.GetKeys()) != want {
			t.Errorf("it has %d keys, %v; %d is right", len(reply.GetKeys()), err, want)
		}
	}
	for n := range 3 {
		if err := leader.NewKey(time.Now()); err != nil {
			t.Fatal(err)
		}
		exchange(n + 1)
	}
	if err := leader.Retain(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	exchange(1)
}
