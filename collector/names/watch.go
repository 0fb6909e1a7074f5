package names

import (
	"cmp"
	"slices"
)

// maxQueued bounds the changed tasks that a watch has not taken.
const maxQueued = 20_000

// Selection selects endpoints. Empty fields match all.
type Selection struct {
	Owner, Name string // labels in lower case
	Job         string // "123.POOL"
}

// Watch delivers all endpoints of a service or of the zone, then changes.
//
// Naively a watch would have a list of changes, which grows if its reader is slow. A
// watch stores only which tasks have changed, each once, and Take reads their present
// state. If more than maxQueued wait, they are dropped, and Take returns a full list.
type Watch struct {
	Selection
	queue  []TaskKey
	queued map[TaskKey]bool
	full   bool // the next Take returns all
	woken  bool
}

// Update is what a watch delivers.
type Update struct {
	Version   uint64
	Full      bool        // Endpoints are all there are: others are gone
	Endpoints []*Endpoint // added or changed
	Removed   []TaskKey
}

// StartWatch starts a watch of endpoints.
func (z *Zone) StartWatch(s Selection) *Watch {
	w := &Watch{Selection: s, full: true, queued: map[TaskKey]bool{}}
	z.watches[w] = true
	for k, s := range z.services {
		if w.matchesService(k) {
			s.watches = append(s.watches, w)
		}
	}
	return w
}

func (s Selection) matchesService(k serviceKey) bool {
	return (s.Owner == "" || s.Owner == k.owner) && (s.Name == "" || s.Name == k.name)
}

// EndWatch ends a watch.
func (z *Zone) EndWatch(w *Watch) {
	delete(z.watches, w)
	for k, s := range z.services {
		if w.matchesService(k) {
			s.watches = slices.DeleteFunc(s.watches, func(o *Watch) bool { return o == w })
		}
	}
}

func (z *Zone) notify(w *Watch, key TaskKey) {
	if w.Job != "" && w.Job != key.Job {
		return
	}
	if !w.full && !w.queued[key] {
		if len(w.queue) >= maxQueued {
			w.full, w.queue = true, nil
			clear(w.queued)
		} else {
			w.queue = append(w.queue, key)
			w.queued[key] = true
		}
	}
	if !w.woken {
		w.woken = true
		z.woken = append(z.woken, w)
	}
}

// TakeWoken returns the watches with changes since the last call.
func (z *Zone) TakeWoken() []*Watch {
	woken := z.woken
	z.woken = nil
	return woken
}

// Take returns the changes since the last call, at first all endpoints. Without changes
// the update is empty.
func (z *Zone) Take(w *Watch) Update {
	w.woken = false
	u := Update{Version: z.version, Full: w.full}
	if w.full {
		u.Endpoints = z.List(w.Selection)
	}
	for _, key := range w.queue {
		if t := z.tasks[key]; t != nil && t.shown != nil {
			u.Endpoints = append(u.Endpoints, t.shown)
		} else {
			u.Removed = append(u.Removed, key)
		}
	}
	w.full, w.queue = false, nil
	clear(w.queued)
	return u
}

// List returns the selected endpoints in order.
func (z *Zone) List(s Selection) []*Endpoint {
	var list []*Endpoint
	for k, service := range z.services {
		if !s.matchesService(k) {
			continue
		}
		for _, t := range service.tasks {
			if t.shown != nil && (s.Job == "" || s.Job == t.key.Job) {
				list = append(list, t.shown)
			}
		}
	}
	slices.SortFunc(list, func(a, b *Endpoint) int { return CompareKeys(a.TaskKey, b.TaskKey) })
	return list
}

// CompareKeys orders tasks by owner, name, job and index.
func CompareKeys(a, b TaskKey) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Job, b.Job),
		cmp.Compare(a.Index, b.Index))
}
