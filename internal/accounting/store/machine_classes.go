package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"sync"

	"github.com/roost-batch/roost/internal/accounting"
)

// machineClasses has the class of each machine over time, by node. It is the table
// machine_class in memory: each attempt that is read needs the class of its machine.
type machineClasses struct {
	mu    sync.RWMutex
	nodes map[int64][]classSince
}

// classSince is the class that a machine has since a time. What a list of them says of a
// machine differs from one to the next.
type classSince struct {
	at    accounting.Millis
	class int64
}

const selectClasses = `SELECT node, since, class FROM machine_class ORDER BY node, since`

// load reads the classes of a store.
func (m *machineClasses) load(ctx context.Context, db *sql.DB) error {
	nodes := map[int64][]classSince{}
	err := queryAll(ctx, db, func(rows *sql.Rows) error {
		var node int64
		var c classSince
		err := rows.Scan(&node, &c.at, &c.class)
		nodes[node] = append(nodes[node], c)
		return err
	}, selectClasses)
	if err == nil {
		m.put(nodes)
	}
	return err
}

// put replaces the classes of all machines.
func (m *machineClasses) put(nodes map[int64][]classSince) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = nodes
}

// of returns the classes of a machine. Nobody changes a list.
func (m *machineClasses) of(node int64) []classSince {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.nodes[node]
}

// at returns the class of a machine at a time. Before its first event it had the class of
// that event: the accountant may hear of a machine after its attempts have begun.
func (m *machineClasses) at(node int64, t accounting.Millis) int64 {
	return classAt(m.of(node), t)
}

func classAt(classes []classSince, t accounting.Millis) int64 {
	if len(classes) == 0 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(classes, t+1, func(c classSince, t accounting.Millis) int {
		return cmp.Compare(c.at, t)
	})
	return classes[max(i-1, 0)].class
}

// classTime returns the time at which the class of an attempt's machine counts.
func classTime(a *accounting.AttemptEntry) accounting.Millis {
	return cmp.Or(a.Started, a.Assigned, a.Ended)
}

// attemptClass returns the class of the machine of an attempt.
func (s *Store) attemptClass(node int64, a *accounting.AttemptEntry) string {
	return s.names.text(s.classes.at(node, classTime(a)))
}

// classDraft has the machines whose classes a transaction changes.
type classDraft struct {
	store   *Store
	changed map[int64]bool // by node; true: the store had something of that name before
	classes map[int64][]classSince
}

func (s *Store) newClassDraft() *classDraft {
	return &classDraft{store: s, changed: map[int64]bool{}, classes: map[int64][]classSince{}}
}

// add takes in an event of a machine. One that says what is known already changes
// nothing.
func (d *classDraft) add(node, class int64, isKnown bool, e *accounting.MachineEvent) {
	if e.What != accounting.MachineAdded && e.What != accounting.MachineUpdated {
		return
	}
	classes := d.store.classes.of(node)
	if len(classes) == 0 || classAt(classes, e.Time) != class {
		d.changed[node] = isKnown
	}
}

const (
	selectMachineClasses = `SELECT at, class FROM machine WHERE node = $1 AND what IN (1, 2) ORDER BY at, what`
	deleteClasses        = `DELETE FROM machine_class WHERE node = $1`
	insertClass          = `INSERT INTO machine_class (node, since, class) VALUES ($1, $2, $3)`
)

// write writes the classes that follow from all events of the machines. It marks the
// attempts whose class is another one now, because their charges depend on it.
func (d *classDraft) write(ctx context.Context, tx *sql.Tx, marks *markSet) error {
	for node, isKnown := range d.changed {
		var classes []classSince
		err := queryAll(ctx, tx, func(rows *sql.Rows) error {
			var c classSince
			err := rows.Scan(&c.at, &c.class)
			classes = appendClass(classes, c)
			return err
		}, selectMachineClasses, node)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, deleteClasses, node); err != nil {
			return err
		}
		for _, c := range classes {
			if _, err := tx.ExecContext(ctx, insertClass, node, int64(c.at), c.class); err != nil {
				return err
			}
		}
		if d.classes[node] = classes; isKnown {
			if err := d.markAttempts(ctx, node, classes, marks); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendClass adds a class to a list, if it is another one. Of two at one time the later
// counts.
func appendClass(classes []classSince, c classSince) []classSince {
	n := len(classes)
	if n > 0 && classes[n-1].at == c.at {
		n--
	}
	if n > 0 && classes[n-1].class == c.class {
		return classes[:n]
	}
	return append(classes[:n], c)
}

const selectNodeEnded = `SELECT month, source, seq, idx, attempt, started, assigned, ended FROM attempt
WHERE node = $1 AND ended >= $2`

// markAttempts marks the attempts of a machine that have ended and whose class is not
// what it was.
func (d *classDraft) markAttempts(ctx context.Context, node int64, classes []classSince, marks *markSet) error {
	parts, err := d.store.engine.partitions(ctx, 0, 0)
	if err != nil {
		return err
	}
	for _, p := range parts {
		err := queryAll(ctx, p.db, func(rows *sql.Rows) error {
			var k attemptKey
			var a accounting.AttemptEntry
			err := rows.Scan(&k.month, &k.source, &k.seq, &k.index, &k.attempt, &a.Started, &a.Assigned, &a.Ended)
			if t := classTime(&a); classAt(classes, t) != d.store.classes.at(node, t) {
				marks.due[k] = true
			}
			return err
		}, selectNodeEnded, node, int64(firstDifference(d.store.classes.of(node), classes)))
		if err != nil {
			return err
		}
	}
	return nil
}

// firstDifference returns from when on two lists differ, and at least 1.
func firstDifference(a, b []classSince) accounting.Millis {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	first := accounting.Millis(1)
	switch {
	case n == 0:
	case n < len(a) && n < len(b):
		first = min(a[n].at, b[n].at)
	case n < len(a):
		first = a[n].at
	case n < len(b):
		first = b[n].at
	}
	return max(first, 1)
}

// commit puts the classes into memory. The caller has committed them.
func (d *classDraft) commit() {
	m := &d.store.classes
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, classes := range d.classes {
		m.nodes[node] = classes
	}
}
