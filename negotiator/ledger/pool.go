package ledger

import "fmt"

// Pool is what holds for the jobs of all queues, and of none (PBS: attributes of the server). There is one object of it.
type Pool struct {
	Default        Extent `json:"default"` // what a job gets that neither says nor is told by its queue
	Least          Extent `json:"least"`
	Most           Extent `json:"most"` // where the queue of a job says nothing
	Running        Counts `json:"running"`
	Queued         Counts `json:"queued"`
	Chunk          Extent `json:"default_chunk,omitzero"`
	MaxArray       *int64 `json:"max_array,omitempty"`
	RunningAmounts Amount `json:"running_amounts,omitempty"`
	QueuedAmounts  Amount `json:"queued_amounts,omitempty"`

	RunningSoft        Counts `json:"running_soft,omitzero"`
	RunningSoftAmounts Amount `json:"running_soft_amounts,omitempty"`

	Stopped bool    `json:"stopped,omitempty"` // nothing starts; scheduling is False
	Access  *Access `json:"access,omitempty"`  // who may submit jobs at all
	Comment string  `json:"comment,omitempty"` // for people
}

// PoolName is what the one object is found by.
const PoolName = "pool"

func (p Pool) name() string     { return PoolName }
func (p Pool) users() []string  { return nil }
func (p Pool) groups() []string { return nil }

func (p Pool) check(*Ledger) error {
	// A default above the most is no mistake here: queues may allow more.
	if err := checkExtents(p.Default, p.Least, p.Most); err != nil {
		return err
	}
	if err := checkCounts(p.Running, p.Queued, p.RunningAmounts, p.QueuedAmounts); err != nil {
		return err
	}
	if err := checkCounts(p.RunningSoft, Counts{}, p.RunningSoftAmounts, nil); err != nil {
		return fmt.Errorf("soft limit: %w", err)
	}
	if err := p.Access.check(); err != nil {
		return err
	}
	if len(p.Comment) > maxReason {
		return fmt.Errorf("the comment has %d characters, and %d is the most", len(p.Comment), maxReason)
	}
	return checkSmall(p.Chunk, p.MaxArray)
}

// Pool returns what holds for the jobs of all queues.
func (l *Ledger) Pool() Pool {
	p, _ := one[Pool](l, KindPool, PoolName)
	return p
}
