package startd

import (
	"sync"

	"github.com/roost-batch/roost/internal/userfiles"
)

// fileAgents shares the files agents among the claims of a user: each is a process.
type fileAgents struct {
	exe string
	mu  sync.Mutex
	all map[[2]uint32]*sharedFileAgent
}

type sharedFileAgent struct {
	once  sync.Once
	agent *userfiles.Agent
	err   error
	users int
}

func newFileAgents(exe string) *fileAgents {
	return &fileAgents{exe: exe, all: make(map[[2]uint32]*sharedFileAgent)}
}

// acquire returns an agent with the rights of that user, which must be given back.
func (a *fileAgents) acquire(c userfiles.UserCredential) (*userfiles.Agent, error) {
	key := [2]uint32{c.UID, c.GID}
	a.mu.Lock()
	s := a.all[key]
	if s == nil {
		s = &sharedFileAgent{}
		a.all[key] = s
	}
	s.users++
	a.mu.Unlock()
	s.once.Do(func() { s.agent, s.err = userfiles.StartAgent(c, a.exe) })
	if s.err != nil {
		a.release(c)
	}
	return s.agent, s.err
}

// release ends an agent that nobody uses any more.
func (a *fileAgents) release(c userfiles.UserCredential) {
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
