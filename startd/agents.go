package startd

import (
	"sync"

	"github.com/roost-batch/roost/internal/files"
)

// agents shares the files agents among the claims of a user: each is a process.
type agents struct {
	exe string
	mu  sync.Mutex
	all map[[2]uint32]*sharedAgent
}

type sharedAgent struct {
	once  sync.Once
	agent *files.Agent
	err   error
	users int
}

func newAgents(exe string) *agents { return &agents{exe: exe, all: make(map[[2]uint32]*sharedAgent)} }

// take returns an agent with the rights of that user, which must be given back.
func (a *agents) take(c files.Credential) (*files.Agent, error) {
	key := [2]uint32{c.UID, c.GID}
	a.mu.Lock()
	s := a.all[key]
	if s == nil {
		s = &sharedAgent{}
		a.all[key] = s
	}
	s.users++
	a.mu.Unlock()
	s.once.Do(func() { s.agent, s.err = files.Start(c, a.exe) })
	if s.err != nil {
		a.giveBack(c)
	}
	return s.agent, s.err
}

// giveBack ends an agent that nobody uses any more.
func (a *agents) giveBack(c files.Credential) {
	key := [2]uint32{c.UID, c.GID}
	a.mu.Lock()
	s := a.all[key]
	s.users--
	last := s.users == 0
	if last {
		delete(a.all, key)
	}
	a.mu.Unlock()
	if last && s.agent != nil {
		s.agent.Close()
	}
}
