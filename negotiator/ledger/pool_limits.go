package ledger

import "fmt"

// PoolLimits is what holds for the jobs of all queues, and of none (PBS: attributes of
// the server). There is one object of it.
type PoolLimits struct {
	Defaults       ResourceRange `json:"default"` // what a job gets that neither says nor is told by its queue
	MinResources   ResourceRange `json:"least"`
	MaxResources   ResourceRange `json:"most"` // where the queue of a job says nothing
	Running        CountLimits   `json:"running"`
	Queued         CountLimits   `json:"queued"`
	DefaultChunk   ResourceRange `json:"default_chunk,omitzero"`
	MaxArray       *int64        `json:"max_array,omitempty"`
	RunningAmounts AmountLimits  `json:"running_amounts,omitempty"`
	QueuedAmounts  AmountLimits  `json:"queued_amounts,omitempty"`

	RunningSoft        CountLimits  `json:"running_soft,omitzero"`
	RunningSoftAmounts AmountLimits `json:"running_soft_amounts,omitempty"`

	Stopped bool         `json:"stopped,omitempty"` // nothing starts; scheduling is False
	Access  *QueueAccess `json:"access,omitempty"`  // who may submit jobs at all
	Comment string       `json:"comment,omitempty"` // for people
}

// PoolName is what the one object is found by.
const PoolName = "pool"

func (p PoolLimits) name() string     { return PoolName }
func (p PoolLimits) users() []string  { return nil }
func (p PoolLimits) groups() []string { return nil }

func (p PoolLimits) check(*Ledger) error {
	// A default above the most is no mistake here: queues may allow more.
	if err := checkRanges(p.Defaults, p.MinResources, p.MaxResources); err != nil {
		return err
	}
	if err := checkCounts(p.Running, p.Queued, p.RunningAmounts, p.QueuedAmounts); err != nil {
		return err
	}
	if err := checkCounts(p.RunningSoft, CountLimits{}, p.RunningSoftAmounts, nil); err != nil {
		return fmt.Errorf("soft limit: %w", err)
	}
	if err := p.Access.check(); err != nil {
		return err
	}
	if len(p.Comment) > maxReason {
		return fmt.Errorf("the comment has %d characters, and %d is the most", len(p.Comment), maxReason)
	}
	return checkCommonFields(p.DefaultChunk, p.MaxArray)
}

// Pool returns what holds for the jobs of all queues.
func (l *Ledger) Pool() PoolLimits {
	p, _ := objectNamed[PoolLimits](l, KindPool, PoolName)
	return p
}
