package account

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost"
)

// User is what the directory knows of a user.
type User struct {
	UID    uint32
	Known  bool // else nothing of the following is
	Name   string
	GID    uint32   // the primary group
	Groups []uint32 // all groups, with the primary one, in order
}

// Group is what the directory knows of a group.
type Group struct {
	GID   uint32
	Known bool
	Name  string
}

// Bounds of the directory.
const (
	patience   = 3 * time.Second // for one question
	life       = time.Minute     // of an answer
	maxKept    = 10_000
	maxHanging = 16 // questions that nobody waits for any more
)

// Directory is the machine's directory of users and groups, with what it has answered lately. It is for any number of goroutines.
type Directory struct {
	mu      sync.Mutex
	users   map[uint32]cachedAnswer[User]
	groups  map[uint32]cachedAnswer[Group]
	hanging chan struct{}
	lookup  lookup
}

type cachedAnswer[T any] struct {
	at    time.Time
	value T
}

// lookup asks the system. What is not there is no error.
type lookup struct {
	user  func(uid uint32) (User, error)
	group func(gid uint32) (Group, error)
}

// NewDirectory returns the directory of this machine.
func NewDirectory() *Directory { return newDirectory(lookup{lookUser, lookGroup}) }

func newDirectory(l lookup) *Directory {
	return &Directory{users: map[uint32]cachedAnswer[User]{}, groups: map[uint32]cachedAnswer[Group]{}, hanging: make(chan struct{}, maxHanging), lookup: l}
}

// User is a user by number. An error, of kind roost.Unavailable, says that the directory did not answer, and not that there is nobody.
func (d *Directory) User(uid uint32) (User, error) {
	u, err := ask(d, d.users, uid, d.lookup.user)
	if err != nil {
		return User{}, fmt.Errorf("uid %d: the user directory of this machine: %w: %w", uid, roost.Unavailable, err)
	}
	if u.Known && !slices.Contains(u.Groups, u.GID) {
		u.Groups = append([]uint32{u.GID}, u.Groups...)
	}
	return u, nil
}

// Group is a group by number; errors are those of User.
func (d *Directory) Group(gid uint32) (Group, error) {
	g, err := ask(d, d.groups, gid, d.lookup.group)
	if err != nil {
		return Group{}, fmt.Errorf("gid %d: the user directory of this machine: %w: %w", gid, roost.Unavailable, err)
	}
	return g, nil
}

// ask answers from what is kept, or looks up for as long as it may take.
func ask[T any](d *Directory, known map[uint32]cachedAnswer[T], id uint32, look func(uint32) (T, error)) (none T, _ error) {
	d.mu.Lock()
	k, ok := known[id]
	d.mu.Unlock()
	if ok && time.Since(k.at) < life {
		return k.value, nil
	}
	select {
	case d.hanging <- struct{}{}:
	default:
		return none, fmt.Errorf("%d questions are not answered yet", maxHanging)
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-d.hanging }()
		value, err := look(id)
		answered <- answer{value, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answered:
		if a.err != nil {
			return none, a.err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(known) >= maxKept {
			clear(known)
		}
		known[id] = cachedAnswer[T]{time.Now(), a.value}
		return a.value, nil
	case <-timer.C:
		return none, fmt.Errorf("no answer in %v", patience)
	}
}
