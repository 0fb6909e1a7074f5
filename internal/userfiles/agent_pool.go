package userfiles

import "sync"

// SelfExecutable is the path by which the kernel finds this program. It works after an
// upgrade, too, and where a user may not enter the program's directory.
const SelfExecutable = "/proc/self/exe"

// AgentPool shares agents among all who work with the files of a user: each agent is a
// process. Several goroutines may use it.
type AgentPool struct {
	exe string
	mu  sync.Mutex
	all map[[2]uint32]*sharedAgent
}

type sharedAgent struct {
	once  sync.Once
	agent *Agent
	err   error
	users int
}

// NewAgentPool returns a pool without agents. Their program is exe (AgentCommand).
func NewAgentPool(exe string) *AgentPool {
	return &AgentPool{exe: exe, all: make(map[[2]uint32]*sharedAgent)}
}

// Acquire returns an agent with the rights of a user. Each call that succeeds is followed
// by one of Release.
func (p *AgentPool) Acquire(c UserCredential) (*Agent, error) {
	key := [2]uint32{c.UID, c.GID}
	p.mu.Lock()
	s := p.all[key]
	if s == nil {
		s = &sharedAgent{}
		p.all[key] = s
	}
	s.users++
	p.mu.Unlock()
	s.once.Do(func() { s.agent, s.err = StartAgent(c, p.exe) })
	if s.err != nil {
		p.Release(c)
	}
	return s.agent, s.err
}

// Release gives an agent back, and ends the agent that nobody uses any more.
func (p *AgentPool) Release(c UserCredential) {
	key := [2]uint32{c.UID, c.GID}
	p.mu.Lock()
	s := p.all[key]
	s.users--
	last := s.users == 0
	if last {
		delete(p.all, key)
	}
	p.mu.Unlock()
	if last && s.agent != nil {
		s.agent.Close()
	}
}
