package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// machineCache has the states of all machines at one time, from which the events after it
// are folded. The caller holds Store.mu.
type machineCache struct {
	at     accounting.Millis // 0: nothing
	states map[int64]accounting.MachineState
}

const upsertMachine = `INSERT INTO machine (node, at, what, cpu, mem, disk, gpus, class, reason, person)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (node, at, what) DO UPDATE SET cpu = excluded.cpu, mem = excluded.mem, disk = excluded.disk,
 gpus = excluded.gpus, class = excluded.class, reason = excluded.reason, person = excluded.person`

// IngestMachines stores events of machines. One of the same machine, time and kind
// replaces the one that is stored.
func (s *Store) IngestMachines(ctx context.Context, events []accounting.MachineEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return s.engine.explain(err)
	}
	names, marks, classes := s.names.draft(), s.newMarkSet(), s.newClassDraft()
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		for i := range events {
			e := &events[i]
			if e.Node == "" || accounting.MonthOf(e.Time) < firstMonth || accounting.MonthOf(e.Time) >= lastMonth {
				return fmt.Errorf("event of machine %.80q: %w: it needs a name, and a time between 2000 and 2200",
					e.Node,
					roost.Invalid)
			}
			c, isKnown := boundedResources(e.Capacity), s.names.find(nodeName, cleanText(e.Node, maxNameBytes)) > 0
			node, class := names.id(nodeName, e.Node), names.id(className, e.Class)
			_, err := tx.ExecContext(ctx, upsertMachine, node, int64(e.Time), int64(e.What), int64(c.CPU),
				int64(c.Memory), int64(c.Disk), int64(c.GPUs), class, cleanText(e.Reason, maxTextBytes),
				names.id(personName, e.By))
			if err != nil {
				return err
			}
			classes.add(node, class, isKnown, e)
			if s.rolled != 0 {
				marks.addHours(e.Time, s.rolled)
			}
			if e.Time < s.machines.at {
				s.machines = machineCache{}
			}
		}
		if err := names.store(ctx, tx); err != nil {
			return err
		}
		if err := classes.write(ctx, tx, &marks); err != nil {
			return err
		}
		return s.storeMarks(ctx, tx, &marks, true)
	})
	if err != nil {
		return err
	}
	names.commit()
	classes.commit()
	return nil
}

const selectMachines = `SELECT node, at, what, cpu, mem, disk, gpus, class, reason, person FROM machine
WHERE at >= $1 AND at < $2 ORDER BY at, node, what`

// machineRow is an event of the machine node.
type machineRow struct {
	node int64
	accounting.MachineEvent
}

// scanMachine reads a row of selectMachines.
func (s *Store) scanMachine(rows *sql.Rows) (machineRow, error) {
	var r machineRow
	var class, person int64
	c := &r.Capacity
	err := rows.Scan(&r.node, &r.Time, &r.What, &c.CPU, &c.Memory, &c.Disk, &c.GPUs, &class, &r.Reason, &person)
	r.Node, r.Class, r.By = s.names.text(r.node), s.names.text(class), s.names.text(person)
	return r, err
}

// machinesAt returns the states of all machines at a time. The caller may change them.
func (s *Store) machinesAt(ctx context.Context, db querier, at accounting.Millis) (map[int64]accounting.MachineState,
	error) {
	from := accounting.Millis(0)
	states := map[int64]accounting.MachineState{}
	if s.machines.at != 0 && s.machines.at <= at {
		from, states = s.machines.at, s.machines.states
	}
	err := queryAll(ctx, db, func(rows *sql.Rows) error {
		r, err := s.scanMachine(rows)
		state := states[r.node]
		state.Apply(&r.MachineEvent)
		states[r.node] = state
		return err
	}, selectMachines, int64(from), int64(at))
	if err != nil {
		s.machines = machineCache{}
		return nil, err
	}
	s.machines = machineCache{at, states}
	return maps.Clone(states), nil
}

// capacity adds to sums what machines had in each hour of [from, to), up to now. It
// returns the states at to.
func (s *Store) capacity(ctx context.Context, db querier, from, to, now accounting.Millis, sums *hourSums) error {
	states, err := s.machinesAt(ctx, db, from)
	if err != nil {
		return err
	}
	for node, state := range states {
		sums.setMachine(node, from, state)
	}
	until := min(to, now)
	since := map[int64]accounting.Millis{}
	addUntil := func(node int64, end accounting.Millis) {
		state := states[node]
		begin := max(since[node], from)
		for h := begin.Hour(); h < end; h += accounting.HourMillis {
			state.AddTo(sums.capacityLine(h, state.Class), max(h, begin), min(h+accounting.HourMillis, end))
		}
		since[node] = end
	}
	err = queryAll(ctx, db, func(rows *sql.Rows) error {
		r, err := s.scanMachine(rows)
		if err != nil {
			return err
		}
		addUntil(r.node, r.Time)
		state := states[r.node]
		state.Apply(&r.MachineEvent)
		states[r.node] = state
		sums.setMachine(r.node, r.Time, state)
		return nil
	}, selectMachines, int64(from), int64(max(until, from)))
	if err != nil {
		return err
	}
	for _, node := range slices.Sorted(maps.Keys(states)) {
		addUntil(node, until)
	}
	return nil
}
