package store

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"unicode/utf8"
)

// nameKind is what a name is the name of. The numbers are on disk.
type nameKind int64

const (
	ownerName nameKind = iota + 1
	groupName
	projectName
	queueName
	nodeName
	className
	unixGroupName
	actionName
	personName
)

// The bounds of texts that are stored, in bytes. What is longer is cut.
const (
	maxNameBytes = 255
	maxTextBytes = 1024
)

// cleanText returns text without what a database would refuse: it is UTF-8 without NUL,
// and at most limit bytes long.
func cleanText(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// nameKey is a name of one kind.
type nameKey struct {
	kind nameKind
	text string
}

// newName is a name that is not stored yet.
type newName struct {
	nameKey
	id int64
}

// nameTable has all names in memory. The empty name is 0.
type nameTable struct {
	mu    sync.RWMutex
	ids   map[nameKey]int64
	texts map[int64]string
	last  int64
}

const selectNames = `SELECT id, kind, text FROM name`

// load reads the names of a store.
func (t *nameTable) load(ctx context.Context, db *sql.DB) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids, t.texts, t.last = map[nameKey]int64{}, map[int64]string{}, 0
	rows, err := db.QueryContext(ctx, selectNames)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n newName
		if err := rows.Scan(&n.id, &n.kind, &n.text); err != nil {
			return err
		}
		t.add(n)
	}
	return rows.Err()
}

func (t *nameTable) add(n newName) {
	t.ids[n.nameKey], t.texts[n.id] = n.id, n.text
	t.last = max(t.last, n.id)
}

// text returns the name of an id.
func (t *nameTable) text(id int64) string {
	if id == 0 {
		return ""
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.texts[id]
}

// find returns the id of a name, or -1 if there is none.
func (t *nameTable) find(kind nameKind, text string) int64 {
	if text == "" {
		return 0
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if id, ok := t.ids[nameKey{kind, text}]; ok {
		return id
	}
	return -1
}

// nameDraft has the names that one transaction adds. They are in the table only when they
// have been committed.
type nameDraft struct {
	table *nameTable
	added map[nameKey]int64
	names []newName
}

func (t *nameTable) draft() *nameDraft { return &nameDraft{table: t, added: map[nameKey]int64{}} }

// id returns the id of a name, and makes one if it has none.
func (d *nameDraft) id(kind nameKind, text string) int64 {
	key := nameKey{kind, cleanText(text, maxNameBytes)}
	if key.text == "" {
		return 0
	}
	if id := d.table.find(kind, key.text); id > 0 {
		return id
	}
	if id, ok := d.added[key]; ok {
		return id
	}
	d.table.mu.RLock()
	id := d.table.last + int64(len(d.names)) + 1
	d.table.mu.RUnlock()
	d.added[key] = id
	d.names = append(d.names, newName{key, id})
	return id
}

const insertName = `INSERT INTO name (id, kind, text) VALUES ($1, $2, $3)`

// store writes the names that were added.
func (d *nameDraft) store(ctx context.Context, tx *sql.Tx) error {
	for _, n := range d.names {
		if _, err := tx.ExecContext(ctx, insertName, n.id, int64(n.kind), n.text); err != nil {
			return err
		}
	}
	return nil
}

// commit puts the names into the table. The caller has committed them.
func (d *nameDraft) commit() {
	d.table.mu.Lock()
	defer d.table.mu.Unlock()
	for _, n := range d.names {
		d.table.add(n)
	}
	d.names = nil
}
