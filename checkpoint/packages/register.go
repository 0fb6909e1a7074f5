package packages

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/store"
)

// Bounds are the most of what a register has.
type Bounds struct {
	Versions   int   // of a name, removed ones too
	Labels     int   // of a name
	Moves      int   // of a name; older ones are forgotten
	Bytes      int64 // of the file of a name
	OwnerNames int
	OwnerBytes int64 // of the files of an owner's names
	Names      int
	TotalBytes int64
}

// DefaultBounds are the bounds of a pool.
func DefaultBounds() Bounds {
	return Bounds{Versions: 2000, Labels: 200, Moves: 500, Bytes: 1 << 20, OwnerNames: 1000, OwnerBytes: 16 << 20,
		Names: 50_000, TotalBytes: 256 << 20}
}

// blobPins keeps blobs from being removed. It is a store.Directory.
type blobPins interface {
	Pin(digest store.Digest, owner string) error
	Unpin(digest store.Digest, owner string) error
	List() []store.Entry
}

// pinOwner is the owner of the pins on blobs that have names.
const pinOwner = "packages"

// Register has the names of a server. Its methods may be called concurrently, and the
// packages that they return are not to be changed.
type Register struct {
	dir    string
	pins   blobPins
	bounds Bounds

	mu      sync.Mutex
	names   map[string]*entry
	uses    map[store.Digest]map[string]bool // NAME@VERSION by digest, without removed ones
	byOwner map[string]*ownerTotal
	total   int64 // bytes of the files
}

// entry is a name. One whose file is damaged means nothing, and is not free either.
type entry struct {
	*Package
	size   int64 // of its file
	damage error
}

type ownerTotal struct {
	names int
	bytes int64
}

const (
	directoryMode, fileMode fs.FileMode = 0o700, 0o600
	fileSuffix                          = ".json"
)

// Open reads the names in a directory, and makes it if there is none. Blobs that have
// names are pinned from then on.
func Open(dir string, pins blobPins, bounds Bounds) (*Register, error) {
	r := &Register{dir: dir, pins: pins, bounds: bounds, names: map[string]*entry{},
		uses: map[store.Digest]map[string]bool{}, byOwner: map[string]*ownerTotal{}}
	if err := os.MkdirAll(dir, directoryMode); err != nil {
		return nil, fmt.Errorf("packages: %w", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("packages: %w", err)
	}
	damaged := false
	for _, e := range list {
		name, ok := strings.CutSuffix(e.Name(), fileSuffix)
		if !ok {
			os.Remove(filepath.Join(dir, e.Name())) // a file that a crash left half written
		}
		if !ok || !e.Type().IsRegular() || !imageref.ValidName(name) {
			continue
		}
		text, err := os.ReadFile(r.path(name))
		if err != nil {
			return nil, fmt.Errorf("packages: %w", err)
		}
		p, err := decode(name, text)
		if errors.Is(err, roost.BadConfig) {
			return nil, fmt.Errorf("packages: %s: %w", r.path(name), err)
		}
		if err != nil {
			damaged = true
			r.names[name] = &entry{damage: err}
			continue
		}
		r.enter(p, int64(len(text)))
	}
	return r, r.comparePins(damaged)
}

func (r *Register) path(name string) string { return filepath.Join(r.dir, name+fileSuffix) }

// comparePins pins what has a name, and unpins the rest unless a name cannot be read.
func (r *Register) comparePins(damaged bool) (err error) {
	for digest := range r.uses {
		err = errors.Join(err, r.pins.Pin(digest, pinOwner))
	}
	for _, e := range r.pins.List() {
		if !damaged && len(r.uses[e.Digest]) == 0 && slices.Contains(e.Pins, pinOwner) {
			err = errors.Join(err, r.pins.Unpin(e.Digest, pinOwner))
		}
	}
	if err != nil {
		return fmt.Errorf("packages: %w", err)
	}
	return nil
}

// enter puts a name into the tables, in the place of what it was before. r.mu is held.
func (r *Register) enter(p *Package, size int64) {
	if old := r.names[p.Name]; old != nil && old.Package != nil {
		r.total -= old.size
		o := r.byOwner[old.Owner]
		o.names, o.bytes = o.names-1, o.bytes-old.size
		for _, v := range old.Versions {
			delete(r.uses[v.Digest], p.Name+"@"+v.Version)
			if len(r.uses[v.Digest]) == 0 {
				delete(r.uses, v.Digest)
			}
		}
	}
	r.names[p.Name] = &entry{Package: p, size: size}
	r.total += size
	if r.byOwner[p.Owner] == nil {
		r.byOwner[p.Owner] = &ownerTotal{}
	}
	o := r.byOwner[p.Owner]
	o.names, o.bytes = o.names+1, o.bytes+size
	for _, v := range p.Versions {
		if v.Removed {
			continue
		}
		if r.uses[v.Digest] == nil {
			r.uses[v.Digest] = map[string]bool{}
		}
		r.uses[v.Digest][p.Name+"@"+v.Version] = true
	}
}

// Find returns a name.
func (r *Register) Find(name string) (*Package, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(name)
}

func (r *Register) find(name string) (*Package, error) {
	e := r.names[name]
	switch {
	case e == nil:
		return nil, fmt.Errorf("package %.100q: %w: there is no such name; roost package list shows all", name,
			roost.NotFound)
	case e.damage != nil:
		return nil, fmt.Errorf("package %s: %w: %s is damaged (%w): bring it back from a backup, or remove it: the "+
			"name is free then", name, roost.Internal, r.path(name), e.damage)
	}
	return e.Package, nil
}

// List returns names in alphabetic order, those that follow one, until add returns false.
func (r *Register) List(after string, add func(*Package) bool) (more bool) {
	r.mu.Lock()
	names := slices.Sorted(maps.Keys(r.names))
	r.mu.Unlock()
	at, found := slices.BinarySearch(names, after)
	if found {
		at++
	}
	for _, name := range names[at:] {
		p, err := r.Find(name)
		if err != nil {
			continue
		}
		if !add(p) {
			return true
		}
	}
	return false
}

// Count returns how many names there are, damaged ones too, and versions, without
// removed ones.
func (r *Register) Count() (names, versions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.uses {
		versions += len(of)
	}
	return len(r.names), versions
}

// NameOf returns a version of which an owner is charged for the blob; empty for none.
func (r *Register) NameOf(digest store.Digest, owner string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(r.uses[digest])) {
		name, version, _ := strings.Cut(text, "@")
		if v := r.names[name].Version(version); v.Charged == owner {
			return text
		}
	}
	return ""
}
