package ledger

import "fmt"

// PoolLimits contains the defaults and limits for all jobs, with or without a queue (PBS:
// server attributes). There is one such object.
type PoolLimits struct {
	Defaults       ResourceRange `json:"default"` // for a job where neither it nor its queue sets a value
	MinResources   ResourceRange `json:"least"`
	MaxResources   ResourceRange `json:"most"` // for a job whose queue sets no value
	Running        CountLimits   `json:"running"`
	Queued         CountLimits   `json:"queued"`
	DefaultChunk   ResourceRange `json:"default_chunk,omitzero"`
	MaxArray       *int64        `json:"max_array,omitempty"`
	RunningAmounts AmountLimits  `json:"running_amounts,omitempty"`
	QueuedAmounts  AmountLimits  `json:"queued_amounts,omitempty"`

	RunningSoft        CountLimits  `json:"running_soft,omitzero"`
	RunningSoftAmounts AmountLimits `json:"running_soft_amounts,omitempty"`

	Stopped bool         `json:"stopped,omitempty"` // no task starts (PBS: scheduling is False)
	Access  *QueueAccess `json:"access,omitempty"`  // who may submit jobs at all
	Comment string       `json:"comment,omitempty"` // for people
}

// PoolName is the name of the one PoolLimits object.
const PoolName = "pool"

func (p PoolLimits) name() string     { return PoolName }
func (p PoolLimits) users() []string  { return nil }
func (p PoolLimits) groups() []string { return nil }

func (p PoolLimits) check(*Ledger) error {
	// A default above the maximum is valid here: queues may allow more.
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

// Pool returns the defaults and limits for all jobs.
func (l *Ledger) Pool() PoolLimits {
	p, _ := objectNamed[PoolLimits](l, KindPool, PoolName)
	return p
}
