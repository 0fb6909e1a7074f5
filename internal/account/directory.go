package account

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost"
)

// UserEntry is the directory's entry of a user.
type UserEntry struct {
	UID     uint32
	IsKnown bool // false: the other fields are empty
	Name    string
	Home    string   // home directory; empty: unknown
	GID     uint32   // the primary group
	Groups  []uint32 // all groups with the primary one, in order
}

// GroupEntry is the directory's entry of a group.
type GroupEntry struct {
	GID     uint32
	IsKnown bool
	Name    string
}

// Bounds of the directory.
const (
	lookupTimeout     = 3 * time.Second // of one lookup
	cacheLifetime     = time.Minute     // of a cached answer
	maxCached         = 10_000
	maxPendingLookups = 16 // lookups in progress for which no caller waits any more
)

// Directory is the machine's directory of users and groups, with a cache of recent
// answers. It is safe for concurrent use.
type Directory struct {
	mu             sync.Mutex
	users          map[uint32]cachedAnswer[UserEntry]
	groups         map[uint32]cachedAnswer[GroupEntry]
	pendingLookups chan struct{}
	lookup         accountLookup
}

type cachedAnswer[T any] struct {
	at    time.Time
	value T
}

// accountLookup looks accounts up in the system. A missing account is no error.
type accountLookup struct {
	user  func(uid uint32) (UserEntry, error)
	group func(gid uint32) (GroupEntry, error)
}

// NewDirectory returns the directory of this machine.
func NewDirectory() *Directory { return newDirectory(accountLookup{lookUser, lookGroup}) }

func newDirectory(l accountLookup) *Directory {
	return &Directory{users: map[uint32]cachedAnswer[UserEntry]{}, groups: map[uint32]cachedAnswer[GroupEntry]{},
		pendingLookups: make(chan struct{}, maxPendingLookups), lookup: l}
}

// User returns a user by number. An error, of kind roost.Unavailable, means that the
// directory did not answer, and not that the user is unknown.
func (d *Directory) User(uid uint32) (UserEntry, error) {
	u, err := cachedLookup(d, d.users, uid, d.lookup.user)
	if err != nil {
		return UserEntry{}, fmt.Errorf("uid %d: the user directory of this machine: %w: %w",
			uid, roost.Unavailable, err)
	}
	if u.IsKnown && !slices.Contains(u.Groups, u.GID) {
		u.Groups = append([]uint32{u.GID}, u.Groups...)
	}
	return u, nil
}

// Group returns a group by number. Errors are those of User.
func (d *Directory) Group(gid uint32) (GroupEntry, error) {
	g, err := cachedLookup(d, d.groups, gid, d.lookup.group)
	if err != nil {
		return GroupEntry{}, fmt.Errorf("gid %d: the user directory of this machine: %w: %w", gid,
			roost.Unavailable, err)
	}
	return g, nil
}

// cachedLookup answers from the cache, or looks up for at most lookupTimeout.
func cachedLookup[T any](d *Directory, known map[uint32]cachedAnswer[T], id uint32,
	look func(uint32) (T, error)) (none T, _ error) {
	d.mu.Lock()
	k, ok := known[id]
	d.mu.Unlock()
	if ok && time.Since(k.at) < cacheLifetime {
		return k.value, nil
	}
	select {
	case d.pendingLookups <- struct{}{}:
	default:
		return none, fmt.Errorf("%d questions are not answered yet", maxPendingLookups)
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-d.pendingLookups }()
		value, err := look(id)
		answered <- answer{value, err}
	}()
	timer := time.NewTimer(lookupTimeout)
	defer timer.Stop()
	select {
	case a := <-answered:
		if a.err != nil {
			return none, a.err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(known) >= maxCached {
			clear(known)
		}
		known[id] = cachedAnswer[T]{time.Now(), a.value}
		return a.value, nil
	case <-timer.C:
		return none, fmt.Errorf("no answer in %v", lookupTimeout)
	}
}
