package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/provision/provider"
)

// The bounds after which a provider is stopped.
const (
	maxRefusals    = 10
	maxEarlyDeaths = 3
	excludedFor    = 24 * time.Hour
	maxExcluded    = 200 // hosts of a provider
)

// Provider is a provider with what was learnt of it.
type Provider struct {
	provider.Settings
	History ProviderHistory
}

// ProviderHistory is what the journal has of a provider beside its settings.
type ProviderHistory struct {
	Refusals    int       // submits in a row that the outer system refused
	EarlyDeaths int       // allocations in a row that were of no use
	LastRefusal time.Time // zero: none
	LastSubmit  time.Time
	LastError   string // of the last submit or allocation that went wrong
	StatusError string // of the last status query; "": it was answered
	StatusAt    time.Time
	Stopped     bool   // nothing is submitted until it is resumed
	StopReason  string // why
	Leaving     bool   // it is being removed: all that it has is cancelled
	// outer hosts that get no pilots until then
	Excluded map[string]time.Time
	Learnt   string // the ad of an empty pilot; "": none has joined
	LearntOf string // the settings that it is true for
}

// refusalDelays are the times between a refused submit and the next, by refusals in a
// row.
func refusalDelays() []time.Duration {
	return []time.Duration{0, time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}
}

// retryTime returns when the next submit may be tried; zero: at once.
func (h *ProviderHistory) retryTime() time.Time {
	if h.Refusals == 0 {
		return time.Time{}
	}
	delays := refusalDelays()
	return h.LastRefusal.Add(delays[min(h.Refusals, len(delays)-1)])
}

// noteRefusal counts a refused submit.
func (h *ProviderHistory) noteRefusal(now time.Time, text string) {
	h.Refusals, h.LastRefusal, h.LastError = h.Refusals+1, now, text
	if h.Refusals >= maxRefusals {
		h.stop(fmt.Sprintf("%d submits in a row were refused; the last: %s", h.Refusals, text))
	}
}

// noteEarlyDeath counts an allocation that was of no use. If it was on one host, that
// gets no more pilots for a day.
func (h *ProviderHistory) noteEarlyDeath(now time.Time, a *Allocation) {
	h.EarlyDeaths, h.LastError = h.EarlyDeaths+1, a.Reason
	if len(a.Hosts) == 1 {
		h.exclude(a.Hosts[0], now)
	}
	if h.EarlyDeaths >= maxEarlyDeaths {
		h.stop(fmt.Sprintf("%d allocations in a row were of no use; the last: %s", h.EarlyDeaths, a.Reason))
	}
}

// exclude gives a host no more pilots for a day.
func (h *ProviderHistory) exclude(host string, now time.Time) {
	maps.DeleteFunc(h.Excluded, func(_ string, until time.Time) bool { return !until.After(now) })
	if h.Excluded == nil {
		h.Excluded = map[string]time.Time{}
	}
	if len(h.Excluded) < maxExcluded || !h.Excluded[host].IsZero() {
		h.Excluded[host] = now.Add(excludedFor)
	}
}

// ExcludedHosts returns the hosts that get no pilots now, in order.
func (h *ProviderHistory) ExcludedHosts(now time.Time) (hosts []string) {
	for _, host := range slices.Sorted(maps.Keys(h.Excluded)) {
		if h.Excluded[host].After(now) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (h *ProviderHistory) stop(reason string) {
	if !h.Stopped {
		h.Stopped, h.StopReason = true, reason
	}
}

// resume forgets what went wrong.
func (h *ProviderHistory) resume() {
	h.Stopped, h.StopReason, h.Refusals, h.EarlyDeaths, h.LastError = false, "", 0, 0, ""
	h.Excluded = nil
}
