package names

import (
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/balancer"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// doubtTime is how long a task that is missing in a new list may be there all the same. A
// collector that has just started knows no machine for some seconds.
const doubtTime = 15 * time.Second

// backendTable makes backends of the endpoints of a service. The naive way sets those of
// the last list. After a restart of the collector that would be none for some seconds, so
// those that are missing in a whole list are doubtful first. An explicit word about a
// task always counts.
type backendTable struct {
	pool *balancer.Pool
	port string // its name; empty: the only one
	log  *slog.Logger

	mu       sync.Mutex
	backends map[endpointKey]balancer.Backend // ready, or lost
	doubtful map[endpointKey]balancer.Backend // missing in the last whole list
	timer    *time.Timer                      // forgets those
	warned   bool                             // that there is no such port
}

func newBackendTable(pool *balancer.Pool, port string, log *slog.Logger) *backendTable {
	return &backendTable{pool: pool, port: port, log: log, doubtful: map[endpointKey]balancer.Backend{}}
}

// stop ends the timer.
func (t *backendTable) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// update takes in a change of the endpoints.
func (t *backendTable) update(all endpointTable, u *scheddapi.NamesUpdate) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := map[endpointKey]balancer.Backend{}
	for key, e := range all {
		if b, ok := t.backend(e); ok {
			now[key] = b
		}
	}
	if u.GetFull() {
		t.doubt(all)
	}
	for _, e := range u.GetEndpoints() {
		delete(t.doubtful, keyOf(e.GetKey()))
	}
	for _, k := range u.GetRemoved() {
		delete(t.doubtful, keyOf(k))
	}
	t.backends = now
	t.set()
	return nil
}

// doubt makes those backends doubtful that are missing in a whole list.
func (t *backendTable) doubt(all endpointTable) {
	for key, b := range t.backends {
		if all[key] == nil {
			b.Doubtful = true
			t.doubtful[key] = b
		}
	}
	if len(t.doubtful) == 0 {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = time.AfterFunc(doubtTime, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		clear(t.doubtful)
		t.set()
	})
}

func (t *backendTable) set() {
	list := slices.Collect(maps.Values(t.backends))
	for _, b := range t.doubtful {
		if !slices.ContainsFunc(list, func(o balancer.Backend) bool { return o.Address == b.Address }) {
			list = append(list, b)
		}
	}
	t.pool.Set(list)
}

// backend returns where a task takes connections; false: it takes none now.
func (t *backendTable) backend(e *scheddapi.ServiceEndpoint) (b balancer.Backend, ok bool) {
	lost := e.GetState() == "lost"
	if e.GetState() != "ready" && !lost {
		return b, false
	}
	var names []string
	for _, p := range e.GetPorts() {
		if p.GetName() == t.port || t.port == "" && len(e.GetPorts()) == 1 {
			return balancer.Backend{Address: net.JoinHostPort(e.GetAddress(), strconv.Itoa(int(p.GetNumber()))),
				Weight: int(e.GetWeight()), Doubtful: lost}, true
		}
		names = append(names, p.GetName())
	}
	if !t.warned {
		t.warned = true
		t.log.Warn("a task has no such port that others can reach: name one as in web:http", "port", t.port, "ports",
			strings.Join(names, " "))
	}
	return b, false
}
