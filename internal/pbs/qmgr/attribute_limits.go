package qmgr

import "github.com/roost-batch/roost/negotiator/ledger"

// runLimitAttributes returns the limits on running jobs.
func runLimitAttributes() []attributeSpec {
	return []attributeSpec{
		limitAttribute("max_run", (*Object).runLimits),
		amountLimitAttribute("max_run_res", amountOf(func(q *ledger.QueuePolicy) *ledger.AmountLimits {
			return &q.RunningAmounts
		}, func(p *ledger.PoolLimits) *ledger.AmountLimits { return &p.RunningAmounts })),
		limitAttribute("max_run_soft", (*Object).softRunLimits),
		amountLimitAttribute("max_run_res_soft", amountOf(func(q *ledger.QueuePolicy) *ledger.AmountLimits {
			return &q.RunningSoftAmounts
		}, func(p *ledger.PoolLimits) *ledger.AmountLimits { return &p.RunningSoftAmounts })),
	}
}

// oldLimitAttributes returns the old limits, each a single number of one of the new ones.
func oldLimitAttributes() []attributeSpec {
	hard := func(o *Object) *ledger.AmountLimits { return runAmountLimits(o, false) }
	soft := func(o *Object) *ledger.AmountLimits { return runAmountLimits(o, true) }
	running := (*Object).runLimits
	return []attributeSpec{
		queueOnly(oldAmountLimitAttribute("resources_available", "o:"+anyEntity, hard)),
		oldLimitAttribute("max_user_run_soft", "u:"+eachEntity, (*Object).softRunLimits, true),
		oldLimitAttribute("max_group_run_soft", "g:"+eachEntity, (*Object).softRunLimits, true),
		oldAmountLimitAttribute("max_user_res", "u:"+eachEntity, hard),
		oldAmountLimitAttribute("max_group_res", "g:"+eachEntity, hard),
		oldAmountLimitAttribute("max_user_res_soft", "u:"+eachEntity, soft),
		oldAmountLimitAttribute("max_group_res_soft", "g:"+eachEntity, soft),
		oldLimitAttribute("max_running", "o:"+anyEntity, running, true),
		oldLimitAttribute("max_user_run", "u:"+eachEntity, running, true),
		oldLimitAttribute("max_group_run", "g:"+eachEntity, running, true),
		oldLimitAttribute("max_queuable", "o:"+anyEntity, (*Object).queueLimits, false),
		oldLimitAttribute("max_user_queuable", "u:"+eachEntity, (*Object).queueLimits, false),
	}
}

// queueOnly restricts an attribute to queues, because the server has another one of that
// name.
func queueOnly(r attributeSpec) attributeSpec {
	r.server = false
	return r
}

// runAmountLimits returns the limits, or the soft limits, on the resources of running
// jobs.
func runAmountLimits(o *Object, soft bool) *ledger.AmountLimits {
	switch {
	case o.Queue != nil && soft:
		return &o.Queue.RunningSoftAmounts
	case o.Queue != nil:
		return &o.Queue.RunningAmounts
	case soft:
		return &o.Pool.RunningSoftAmounts
	}
	return &o.Pool.RunningAmounts
}
