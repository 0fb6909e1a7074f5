package transfer

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
)

// UserAgents knows users by name, and holds for each whose files are moved an agent that
// has that user's rights. An agent is started when it is first needed and kept; one that
// has died is replaced.
type UserAgents struct {
	mu            sync.Mutex
	names         map[uint32]string
	groups        map[uint32]string // by gid
	primaryGroups map[uint32]uint32 // primary group by uid, of those who have one here
	unixGroups    map[agentKey]userUnixGroups
	agents        map[agentKey]*userfiles.Agent
}

// userUnixGroups is in which groups a user is, by name, as it was found lately.
type userUnixGroups struct {
	groups []string
	readAt time.Time
}

// unixGroupsLifetime is how long a user's groups are used without another lookup. A
// lookup may ask a daemon on the network, and users submit thousands of jobs.
const unixGroupsLifetime = time.Minute

// agentKey is whose rights an agent has. One user may submit with one group or another
// (newgrp(1)), and files are of that group.
type agentKey struct{ uid, gid uint32 }

// NewUserAgents returns one without agents.
func NewUserAgents() *UserAgents {
	return &UserAgents{names: make(map[uint32]string), groups: make(map[uint32]string),
		primaryGroups: make(map[uint32]uint32), unixGroups: make(map[agentKey]userUnixGroups),
		agents: make(map[agentKey]*userfiles.Agent)}
}

// GroupName is the name of a gid, or its number.
func (u *UserAgents) GroupName(gid uint32) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	name, ok := u.groups[gid]
	if !ok {
		name = strconv.FormatUint(uint64(gid), 10)
		if found, err := user.LookupGroupId(name); err == nil {
			name = found.Name
		}
		u.groups[gid] = name
	}
	return name
}

// IsSecondaryGroup reports whether a group is not the primary one of a user here. Then it
// was asked for, by newgrp(1) or with the job.
func (u *UserAgents) IsSecondaryGroup(uid, gid uint32) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	own, known := u.primaryGroups[uid]
	if !known {
		own = gid
		if found, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
			if primary, err := strconv.ParseUint(found.Gid, 10, 32); err == nil {
				own = uint32(primary)
			}
			u.primaryGroups[uid] = own
		}
	}
	return own != gid
}

// GroupNames are the groups that a user is in by name, the one that he submits with
// first.
func (u *UserAgents) GroupNames(uid, gid uint32) []string {
	u.mu.Lock()
	known := u.unixGroups[agentKey{uid, gid}]
	u.mu.Unlock()
	if time.Since(known.readAt) < unixGroupsLifetime {
		return known.groups
	}
	names := []string{u.GroupName(gid)}
	for _, other := range UnixGroups(uid) {
		if name := u.GroupName(other); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	u.mu.Lock()
	u.unixGroups[agentKey{uid, gid}] = userUnixGroups{names, time.Now()}
	u.mu.Unlock()
	return names
}

// UserName is the login name of a uid. A uid without one goes by its number, as on
// machines that know it only by a certificate or a container.
func (u *UserAgents) UserName(uid uint32) (string, error) {
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

// Agent returns an Agent with the rights of a user.
func (u *UserAgents) Agent(uid, gid uint32) (*userfiles.Agent, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.agents[agentKey{uid, gid}]; a != nil {
		return a, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a, err := userfiles.StartAgent(userfiles.UserCredential{UID: uid, GID: gid, Groups: UnixGroups(uid)}, exe)
	if err != nil {
		return nil, fmt.Errorf("files of uid %d: %w: %w", uid, roost.Unavailable, err)
	}
	u.agents[agentKey{uid, gid}] = a
	return a, nil
}

// DropAgent forgets an agent that has failed.
func (u *UserAgents) DropAgent(uid, gid uint32) {
	u.mu.Lock()
	a := u.agents[agentKey{uid, gid}]
	delete(u.agents, agentKey{uid, gid})
	u.mu.Unlock()
	if a != nil {
		a.Close()
	}
}

// UnixGroups are the supplementary groups of a user, as far as they are known here.
func UnixGroups(uid uint32) (gids []uint32) {
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

// Close ends all agents.
func (u *UserAgents) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range u.agents {
		a.Close()
	}
}

// MemberGID is the number of a group that a user is in.
func (u *UserAgents) MemberGID(uid uint32, name string) (gid uint32, ok bool) {
	for _, gid := range UnixGroups(uid) {
		if u.GroupName(gid) == name {
			return gid, true
		}
	}
	return 0, false
}
