package schedd

import (
	"fmt"
	"sync"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pmi"
)

// maxAllKeys bounds the keys of all gangs of a schedd together, in bytes. A gang of
// 100,000 ranks has some 10 MiB.
const maxAllKeys = 256 << 20

// keyBudget is how many bytes of keys the gangs of a schedd hold together.
type keyBudget struct {
	mu   sync.Mutex
	used int
}

// add takes so many bytes more; false if there is no room for them.
func (b *keyBudget) add(bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes > 0 && b.used+bytes > maxAllKeys {
		return false
	}
	b.used += bytes
	return true
}

// adjust changes what is used by something that is held already.
func (b *keyBudget) adjust(change int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += change
}

// reserve takes room for a part of a message of keys, before it is kept. A gang that
// finds none is ended: its ranks would wait in a barrier without end.
func (g *rankGang) reserve(bytes int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := ""
	switch {
	case g.incoming+g.collector.Held()+bytes > pmi.MaxGangKeys:
		text = fmt.Sprintf("the ranks have put more than %d MiB of keys", pmi.MaxGangKeys>>20)
	case !g.keys.add(bytes):
		text = fmt.Sprintf("the gangs of this submit node hold %d MiB of keys together, and there is no room for "+
			"more: submit it again when another one has ended", maxAllKeys>>20)
	default:
		g.incoming += bytes
		g.charged += bytes
		return nil
	}
	g.deliver(g.collector.Stop(1, text))
	return fmt.Errorf("%w: %s", roost.Exhausted, text)
}

// release gives back the room of a message of which no more comes.
func (g *rankGang) release(bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.incoming -= bytes
	g.recount()
}

// recount has the budget know what the gang holds now.
func (g *rankGang) recount() {
	now := g.incoming + g.collector.Held()
	g.keys.adjust(now - g.charged)
	g.charged = now
}
