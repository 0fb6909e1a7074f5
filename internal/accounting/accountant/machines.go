package accountant

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
)

// machineWatch makes events of machines from their ads.
type machineWatch struct {
	node     *config.Node
	identity *rpc.Identity
	store    Store
	log      *slog.Logger
	metrics  *metrics.Accountant

	known  map[string]knownMachine
	ads    map[string]string // the newest of each machine; the removed are not in it
	synced bool
}

// knownMachine is what the store was last told of a machine.
type knownMachine struct {
	capacity roost.Resources
	class    string
	drained  bool
	owned    bool // it has an owner
	owner    bool // who uses it
}

// machineRetry is how long a store that fails is left alone.
const machineRetry = 10 * time.Second

// watch follows the machines until ctx ends.
func (w *machineWatch) watch(ctx context.Context) {
	w.known, w.ads = map[string]knownMachine{}, map[string]string{}
	for ctx.Err() == nil {
		err := w.load(ctx)
		if err == nil {
			break
		}
		w.log.Warn("the machines cannot be read from the store", "error", err)
		sleep(ctx, machineRetry)
	}
	a := adclient.AdWatcher{Collectors: w.node.Collectors, Identity: w.identity, Type: "Machine", Log: w.log,
		Apply: func(changes []adclient.AdChange, synced bool) { w.onAds(ctx, changes, synced) }}
	a.Run(ctx)
}

// load reads from the store which machines the pool had when the accountant was last
// there.
func (w *machineWatch) load(ctx context.Context) error {
	events, err := lastMachines(w.store.Reader(ctx))
	for _, e := range events {
		m := w.known[e.Node]
		m.apply(&e)
		if w.known[e.Node] = m; e.What == accounting.MachineRemoved {
			delete(w.known, e.Node)
		}
	}
	return err
}

func lastMachines(r accounting.Reader) (events []accounting.MachineEvent, err error) {
	for e, err := range r.MachinesAt(accounting.Millis(time.Now().UnixMilli())) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func (m *knownMachine) apply(e *accounting.MachineEvent) {
	m.capacity, m.class = e.Capacity, e.Class
	switch e.What {
	case accounting.MachineDrained:
		m.drained = true
	case accounting.MachineAvailable, accounting.MachineReclaimed:
		m.owned, m.owner = true, e.What == accounting.MachineReclaimed
	}
}

// onAds takes in changes of ads, and stores what follows. It blocks while the store
// fails: the collectors then keep the last state of each ad.
func (w *machineWatch) onAds(ctx context.Context, changes []adclient.AdChange, synced bool) {
	now := accounting.Millis(time.Now().UnixMilli())
	var events []accounting.MachineEvent
	next := maps.Clone(w.known)
	for _, c := range changes {
		if c.Removed {
			delete(w.ads, c.Name)
			if m, there := next[c.Name]; there {
				events = append(events, m.event(c.Name, now, accounting.MachineRemoved, "its ad is gone"))
				delete(next, c.Name)
			}
			continue
		}
		w.ads[c.Name] = c.Ad
		m, reason, err := readMachine(c.Ad)
		if err != nil {
			w.log.Warn("ad of a machine makes no sense", "machine", c.Name, "error", err)
			continue
		}
		old, there := next[c.Name]
		events = append(events, m.changesFrom(c.Name, old, there, now, reason)...)
		next[c.Name] = m
	}
	if synced && !w.synced {
		w.synced = true
		for _, name := range slices.Sorted(maps.Keys(next)) {
			if _, there := w.ads[name]; !there { // it left while the accountant was away
				m := next[name]
				events = append(events, m.event(name, now, accounting.MachineRemoved,
					"it was gone when the accountant began"))
				delete(next, name)
			}
		}
	}
	for len(events) > 0 && ctx.Err() == nil {
		err := w.store.IngestMachines(ctx, events)
		if err == nil {
			w.metrics.Ingested.Add(float64(len(events)), metrics.MachineEntry)
			break
		}
		w.log.Warn("events of machines cannot be stored", "error", err)
		sleep(ctx, machineRetry)
	}
	w.known = next
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (m *knownMachine) event(name string, at accounting.Millis, what accounting.MachineChange,
	reason string) accounting.MachineEvent {
	return accounting.MachineEvent{Node: name, Time: at, What: what, Capacity: m.capacity, Class: m.class,
		Reason: reason}
}

// changesFrom returns the events between two states of a machine.
func (m *knownMachine) changesFrom(name string, old knownMachine, there bool, at accounting.Millis,
	reason string) (events []accounting.MachineEvent) {
	add := func(what accounting.MachineChange, reason string) {
		events = append(events, m.event(name, at, what, reason))
	}
	switch {
	case !there:
		add(accounting.MachineAdded, "")
	case old.capacity != m.capacity || old.class != m.class:
		add(accounting.MachineUpdated, "")
	}
	switch {
	case m.drained && !old.drained:
		add(accounting.MachineDrained, "")
	case old.drained && !m.drained:
		add(accounting.MachineUndrained, "")
	}
	if m.owned && (!old.owned || old.owner != m.owner) {
		if m.owner {
			add(accounting.MachineReclaimed, reason)
		} else {
			add(accounting.MachineAvailable, "")
		}
	}
	return events
}

// readMachine reads the ad of a machine.
func readMachine(text string) (m knownMachine, reason string, err error) {
	ad, err := classad.Parse(text)
	if err != nil {
		return m, "", err
	}
	cpus, _ := ad.Real(roost.AttrTotalCpus)
	memory, _ := ad.Int(roost.AttrTotalMemory)
	disk, _ := ad.Int(roost.AttrTotalDisk)
	gpus, _ := ad.Int(roost.AttrTotalGpus)
	m.capacity = roost.Resources{CPU: roost.MilliCPU(cpus * 1000), Memory: roost.Bytes(memory) * roost.MiB,
		Disk: roost.Bytes(disk) * roost.KiB, GPUs: int(gpus)}
	if models, ok := ad.Strings(roost.AttrGpuModels); ok && len(models) > 0 {
		m.class = models[0]
	} else if arch, ok := ad.Str(roost.AttrArch); ok {
		m.class = strings.ToLower(arch)
	}
	state, _ := ad.Str(roost.AttrState)
	m.drained = state == "Drained"
	m.owner, m.owned = ad.Bool(roost.AttrOwnerBusy)
	reason, _ = ad.Str(roost.AttrOwnerBusyReason)
	return m, reason, nil
}
