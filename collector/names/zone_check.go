package names

import "fmt"

// Check panics if an invariant is broken. Each endpoint of a machine is a claim of its
// task, the shown endpoint is of the newest attempt, and exactly the ready tasks are in
// the lists of ready tasks. Tests and the simulator call it after each event.
func (z *Zone) Check() {
	claims := 0
	for name, m := range z.machines {
		if m.name != name || m.silent != (m.heapIndex < 0) || !m.silent && z.leases[m.heapIndex] != m {
			panic(fmt.Sprintf("machine %s is not in order", name))
		}
		for _, e := range m.endpoints {
			claims++
			if t := z.tasks[e.endpoint.TaskKey]; t == nil || !t.hasClaim(m, e.endpoint) {
				panic(fmt.Sprintf("machine %s: endpoint %+v is no claim of a task", name, e.endpoint.TaskKey))
			}
		}
	}
	for key, t := range z.tasks {
		claims -= len(t.claims)
		t.check(key)
		if z.services[t.service.key] != t.service || t.service.tasks[key] != t {
			panic(fmt.Sprintf("task %+v is not in its service", key))
		}
	}
	if claims != 0 {
		panic(fmt.Sprintf("machines have %d endpoints more than tasks have claims", claims))
	}
}

func (t *task) hasClaim(m *machine, e *Endpoint) bool {
	for _, c := range t.claims {
		if c.machine == m && c.endpoint == e {
			return true
		}
	}
	return false
}

func (t *task) check(key TaskKey) {
	isReady := t.shown != nil && t.shown.State == Ready
	switch {
	case t.key != key:
		panic(fmt.Sprintf("task %+v is stored as %+v", t.key, key))
	case t.shown != nil && t.shown.Attempt != t.highest:
		panic(fmt.Sprintf("task %+v shows attempt %d after attempt %d", key, t.shown.Attempt, t.highest))
	case isReady != (t.readyAt >= 0) || isReady && t.service.ready[addressFamily(t.shown)][t.readyAt] != t:
		panic(fmt.Sprintf("task %+v is ready: %v, and is in the list at %d", key, isReady, t.readyAt))
	}
	for _, c := range t.claims {
		if c.endpoint.Attempt > t.highest || c.endpoint.TaskKey != key {
			panic(fmt.Sprintf("task %+v has a claim of attempt %d of %+v", key, c.endpoint.Attempt, c.endpoint.TaskKey))
		}
	}
}
