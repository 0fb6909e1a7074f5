package schedd

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/pmi"
	"github.com/roost-batch/roost/schedd/queue"
)

// keyGang is a gang of machines with one rank each, whose messages of an end are
// recorded.
func keyGang(keys *keyBudget, machines int, ended *[]string) *rankGang {
	members := make([]queue.HostProcesses, machines)
	for i := range members {
		members[i].Processes = 1
	}
	g := newRankGang(&queue.GangRanks{Members: members, Done: make([]bool, machines)})
	g.keys, g.log = keys, func(text string) { *ended = append(*ended, text) }
	return g
}

// TestKeysOfAGang has the machines of a gang send more together than it may have. Each
// stays below the bound of one message.
func TestKeysOfAGang(t *testing.T) {
	var ended []string
	keys := &keyBudget{}
	g := keyGang(keys, 3, &ended)
	const part = pmi.MaxGangKeys/2 - 1
	for i := range 3 {
		if err := g.reserve(part); (err != nil) != (i == 2) {
			t.Fatalf("machine %d: %v", i, err)
		}
	}
	if len(ended) != 1 || !strings.Contains(ended[0], "more than 64 MiB of keys") {
		t.Errorf("the gang ended with %q", ended)
	}
	g.release(part)
	g.release(part)
	if keys.used != 0 {
		t.Errorf("%d bytes are not given back", keys.used)
	}
}

// TestKeysOfAllGangs has gangs that keep their own bound use up what a submit node has.
// The one too many ends; the others give their room back as they end.
func TestKeysOfAllGangs(t *testing.T) {
	var ended []string
	keys := &keyBudget{}
	const part = pmi.MaxGangKeys - 1
	var gangs []*rankGang
	for range maxAllKeys / pmi.MaxGangKeys {
		g := keyGang(keys, 2, &ended)
		gangs = append(gangs, g)
		if err := g.reserve(part); err != nil {
			t.Fatal(err)
		}
		g.apply(0, pmi.Message{Kind: pmi.Barrier, Epoch: 1, Data: make([]byte, part)}, part)
		if g.charged != part {
			t.Fatalf("charged %d of %d bytes", g.charged, part)
		}
	}
	late := keyGang(keys, 2, &ended)
	err := late.reserve(part)
	if err == nil || len(ended) != 1 || !strings.Contains(ended[0], "hold 256 MiB of keys together") {
		t.Fatalf("%v, ended %q", err, ended)
	}
	for _, g := range gangs {
		g.end()
	}
	if keys.used != 0 {
		t.Errorf("%d bytes are not given back", keys.used)
	}
	if err := keyGang(keys, 2, &ended).reserve(part); err != nil {
		t.Error(err)
	}
}
