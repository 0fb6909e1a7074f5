package schedd

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
)

// userAgents knows users by name, and holds for each whose files are moved an agent that has that user's rights. An agent is started when it is
// first needed and kept; one that has died is replaced.
type userAgents struct {
	mu     sync.Mutex
	names  map[uint32]string
	agents map[account]*files.Agent
}

// account is whose rights an agent has. One user may submit with one group or another (newgrp(1)), and files are of that group.
type account struct{ uid, gid uint32 }

func newUserAgents() *userAgents {
	return &userAgents{names: make(map[uint32]string), agents: make(map[account]*files.Agent)}
}

// name is the login name of a uid. A uid without one goes by its number, as on machines that know it only by a certificate or a container.
func (u *userAgents) name(uid uint32) (string, error) {
	u.mu.Lock()
	known, ok := u.names[uid]
	u.mu.Unlock()
	if ok {
		return known, nil
	}
	name := strconv.FormatUint(uint64(uid), 10)
	if found, err := user.LookupId(name); err == nil {
		name = found.Username
	}
	u.mu.Lock()
	u.names[uid] = name
	u.mu.Unlock()
	return name, nil
}

// agent returns an agent with the rights of a user.
func (u *userAgents) agent(uid, gid uint32) (*files.Agent, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.agents[account{uid, gid}]; a != nil {
		return a, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a, err := files.Start(files.Credential{UID: uid, GID: gid, Groups: groups(uid)}, exe)
	if err != nil {
		return nil, fmt.Errorf("files of uid %d: %w: %w", uid, roost.Unavailable, err)
	}
	u.agents[account{uid, gid}] = a
	return a, nil
}

// drop forgets an agent that has failed.
func (u *userAgents) drop(uid, gid uint32) {
	u.mu.Lock()
	a := u.agents[account{uid, gid}]
	delete(u.agents, account{uid, gid})
	u.mu.Unlock()
	if a != nil {
		a.Close()
	}
}

// groups are the supplementary groups of a user, as far as they are known here.
func groups(uid uint32) (gids []uint32) {
	found, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil
	}
	names, err := found.GroupIds()
	if err != nil {
		return nil
	}
	for _, name := range names {
		if gid, err := strconv.ParseUint(name, 10, 32); err == nil {
			gids = append(gids, uint32(gid))
		}
	}
	return gids
}

func (u *userAgents) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range u.agents {
		a.Close()
	}
}
