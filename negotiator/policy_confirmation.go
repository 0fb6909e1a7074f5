package negotiator

import (
	"context"
	"slices"
	"time"
)

// confirmTimeout bounds how long an administrator's command waits for the schedds. A
// schedd that is slower than this hears of the change a moment after the command.
const confirmTimeout = 500 * time.Millisecond

// maxPolicyWaiters bounds how many commands wait for the schedds at once. Others do not
// wait.
const maxPolicyWaiters = 1000

// policyWaiters are the commands that wait until the schedds obey a policy.
type policyWaiters struct{ waiting []*policyWaiter }

// policyWaiter is one command that waits.
type policyWaiter struct {
	missing map[string]uint64 // by schedd: version of the policy that it must confirm
	done    chan struct{}     // closed when none is missing
}

// confirm handles that a schedd obeys a version of the policy, and all before it.
func (w *policyWaiters) confirm(schedd string, version uint64) {
	w.waiting = slices.DeleteFunc(w.waiting, func(one *policyWaiter) bool {
		if wanted, ok := one.missing[schedd]; ok && wanted <= version {
			delete(one.missing, schedd)
		}
		if len(one.missing) > 0 {
			return false
		}
		close(one.done)
		return true
	})
}

// remove forgets a command that waits no more.
func (w *policyWaiters) remove(one *policyWaiter) {
	w.waiting = slices.DeleteFunc(w.waiting, func(o *policyWaiter) bool { return o == one })
}

// addPolicyWaiter sends the present policy to the schedds. It returns who has not
// confirmed it yet, or nil.
func (c *leaderState) addPolicyWaiter() *policyWaiter {
	c.broadcastPolicy()
	one := &policyWaiter{missing: map[string]uint64{}, done: make(chan struct{})}
	for name, s := range c.schedds {
		if s.sendQueue != nil && s.confirmsPolicy && s.confirmedPolicy < s.awaitedPolicy {
			one.missing[name] = s.awaitedPolicy
		}
	}
	if len(one.missing) == 0 || len(c.policyWaiters.waiting) >= maxPolicyWaiters {
		return nil
	}
	c.policyWaiters.waiting = append(c.policyWaiters.waiting, one)
	return one
}

// awaitSchedds waits until all connected schedds obey the present policy. So whoever has
// changed it finds it obeyed everywhere. It waits at most confirmTimeout.
func (l *decisionLoop) awaitSchedds(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	var one *policyWaiter
	if err := l.runInLoop(ctx, func(time.Time) {
		if l.cell != nil {
			one = l.cell.addPolicyWaiter()
		}
	}); err != nil || one == nil {
		return
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		l.postEvent(context.WithoutCancel(ctx), func(time.Time) {
			if l.cell != nil {
				l.cell.policyWaiters.remove(one)
			}
		})
	case <-l.done:
	}
}
